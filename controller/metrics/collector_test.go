package metrics_test

import (
	"io"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"brlb/controller/api"
	"brlb/controller/api/apitest"
	"brlb/controller/metrics"
)

// source hands out what a test has put there.
type source struct{ metrics *api.Metrics }

func (s *source) Metrics() *api.Metrics { return s.metrics }

func newSource() *source {
	noon := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	seconds := api.Histogram{Bounds: []float64{0.001, 0.01, 0.1}, Counts: []uint64{2, 5, 6}, Count: 7, Sum: 0.25}
	status := apitest.New(noon).Status()
	status.Pools[0].Layout, status.Pools[0].Version = "v2", "v2"
	status.Pools[0].Anchor = &api.Anchor{Digest: "5b7c41a09d3e2f68", Stale: true, RebaseMoves: 91}
	status.Pools[0].Names = []api.Name{
		{Name: "dyn", Host: "be.example.org", Port: 80, Addresses: 2, State: "resolved"},
		{Name: "old", Host: "old.example.org", Port: 80, Addresses: 1, State: "stale", Problem: "NXDOMAIN"},
	}
	status.Conntrack.Pools = []api.ZoneUsage{{Number: 18202, Pools: []string{"dns", "ntp"}, TableUsage: api.TableUsage{Entries: 312, Limit: 50_000}}}
	return &source{&api.Metrics{
		Status:          status,
		SlotsMoved:      map[string]api.MoveCounts{"web": {Needed: 342, Collateral: 9}},
		Bundles:         map[string]uint64{"applied": 4, "rejected": 1},
		BundleSeconds:   seconds,
		ConvergeSeconds: seconds,
		BundleRows:      2100,
		MessagesSent:    map[string]uint64{"FLOW_MOD": 2100},
		MessagesRecv:    map[string]uint64{"ECHO_REQUEST": 12},
		EventsDropped:   1,
		Sessions:        2,
		DriftRepairs:    3,
		Resent:          5,
		Answered:        6,
		Probes: map[api.ProbeKey]api.ProbeCounts{
			{Pool: "web", Member: "be1", Check: "web"}: {Results: map[string]uint64{"L7OK": 30, "L7STS": 2}, Seconds: seconds},
		},
		ReloadOK: true,
		ReloadAt: noon,
	}}
}

func TestLint(t *testing.T) {
	problems, err := testutil.CollectAndLint(metrics.NewCollector(newSource()))
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		t.Errorf("%s: %s", p.Metric, p.Text)
	}
}

func TestValues(t *testing.T) {
	want := `
# HELP brlb_bundles_total OpenFlow bundles by outcome: applied, rejected or unknown (the switch was read back).
# TYPE brlb_bundles_total counter
brlb_bundles_total{outcome="applied"} 4
brlb_bundles_total{outcome="rejected"} 1
brlb_bundles_total{outcome="unknown"} 0
# HELP brlb_config_last_reload_success_timestamp_seconds When the configuration was last loaded with success.
# TYPE brlb_config_last_reload_success_timestamp_seconds gauge
brlb_config_last_reload_success_timestamp_seconds 1.7723664e+09
# HELP brlb_degraded 1 while something is wrong; brlb status says what.
# TYPE brlb_degraded gauge
brlb_degraded 0
# HELP brlb_member_slots Slots that the member owns.
# TYPE brlb_member_slots gauge
brlb_member_slots{address="10.30.0.11:8080",member="be1",pool="web"} 342
brlb_member_slots{address="10.30.0.12:8080",member="be2",pool="web"} 341
brlb_member_slots{address="10.30.0.13:8080",member="be3",pool="web"} 341
brlb_member_slots{address="10.30.0.14:8080",member="be4",pool="web"} 0
# HELP brlb_member_connections Connections of the member that are open through the switch.
# TYPE brlb_member_connections gauge
brlb_member_connections{address="10.30.0.11:8080",member="be1",pool="web"} 1204
brlb_member_connections{address="10.30.0.12:8080",member="be2",pool="web"} 1187
brlb_member_connections{address="10.30.0.13:8080",member="be3",pool="web"} 1190
brlb_member_connections{address="10.30.0.14:8080",member="be4",pool="web"} 0
# HELP brlb_conntrack_entries Entries of the switch's connection table: of the bridge's zone, of pools' own zones, and of the whole datapath.
# TYPE brlb_conntrack_entries gauge
brlb_conntrack_entries{pool="",scope="datapath",zone=""} 4100
brlb_conntrack_entries{pool="",scope="zone",zone="18200"} 3702
brlb_conntrack_entries{pool="dns,ntp",scope="pool",zone="18202"} 312
# HELP brlb_conntrack_limit How many entries are possible there; no series without a limit.
# TYPE brlb_conntrack_limit gauge
brlb_conntrack_limit{pool="",scope="datapath",zone=""} 3e+06
brlb_conntrack_limit{pool="",scope="zone",zone="18200"} 200000
brlb_conntrack_limit{pool="dns,ntp",scope="pool",zone="18202"} 50000
# HELP brlb_openflow_messages_total OpenFlow messages by direction (sent, received) and type.
# TYPE brlb_openflow_messages_total counter
brlb_openflow_messages_total{direction="received",type="ECHO_REQUEST"} 12
brlb_openflow_messages_total{direction="sent",type="FLOW_MOD"} 2100
# HELP brlb_pool_active_members Members that may own slots: enabled, up and reachable.
# TYPE brlb_pool_active_members gauge
brlb_pool_active_members{pool="web"} 3
# HELP brlb_pool_layout_info The layout of the pool's slot table, the table's digest and, of layout v2, its anchor's; always 1.
# TYPE brlb_pool_layout_info gauge
brlb_pool_layout_info{anchor="5b7c41a09d3e2f68",digest="92f84b339cff363e",layout="v2",pool="web",version="v2"} 1
# HELP brlb_pool_members Members by state.
# TYPE brlb_pool_members gauge
brlb_pool_members{pool="web",state="disabled"} 0
brlb_pool_members{pool="web",state="down"} 1
brlb_pool_members{pool="web",state="draining"} 0
brlb_pool_members{pool="web",state="unknown"} 0
brlb_pool_members{pool="web",state="up"} 3
# HELP brlb_pool_name_resolved 1 while DNS answers for a member by name; 0 while it is unresolved, or its last answer holds.
# TYPE brlb_pool_name_resolved gauge
brlb_pool_name_resolved{host="be.example.org",name="dyn",pool="web"} 1
brlb_pool_name_resolved{host="old.example.org",name="old",pool="web"} 0
# HELP brlb_pool_rebase_slots Slots that a rebase of the pool would move; 0 while its anchor is its members.
# TYPE brlb_pool_rebase_slots gauge
brlb_pool_rebase_slots{pool="web"} 91
# HELP brlb_probe_duration_seconds Time that a probe took.
# TYPE brlb_probe_duration_seconds histogram
brlb_probe_duration_seconds_bucket{check="web",member="be1",pool="web",le="0.001"} 2
brlb_probe_duration_seconds_bucket{check="web",member="be1",pool="web",le="0.01"} 5
brlb_probe_duration_seconds_bucket{check="web",member="be1",pool="web",le="0.1"} 6
brlb_probe_duration_seconds_bucket{check="web",member="be1",pool="web",le="+Inf"} 7
brlb_probe_duration_seconds_sum{check="web",member="be1",pool="web"} 0.25
brlb_probe_duration_seconds_count{check="web",member="be1",pool="web"} 7
# HELP brlb_probes_total Probes by result code.
# TYPE brlb_probes_total counter
brlb_probes_total{check="web",member="be1",pool="web",result="L7OK"} 30
brlb_probes_total{check="web",member="be1",pool="web",result="L7STS"} 2
# HELP brlb_slots_moved_total Slots whose owner changed: needed (the old owner left or the new one's share grew) or collateral.
# TYPE brlb_slots_moved_total counter
brlb_slots_moved_total{kind="collateral",pool="web"} 9
brlb_slots_moved_total{kind="needed",pool="web"} 342
`
	err := testutil.CollectAndCompare(metrics.NewCollector(newSource()), strings.NewReader(want),
		"brlb_bundles_total", "brlb_config_last_reload_success_timestamp_seconds", "brlb_degraded", "brlb_member_slots", "brlb_member_connections", "brlb_conntrack_entries", "brlb_conntrack_limit",
		"brlb_openflow_messages_total", "brlb_pool_active_members", "brlb_pool_members", "brlb_pool_name_resolved", "brlb_probe_duration_seconds",
		"brlb_probes_total", "brlb_slots_moved_total")
	if err != nil {
		t.Error(err)
	}
}

// TestEveryFamilyIsDescribed registers with the checks of a pedantic registry:
// each metric that is collected must have been described.
func TestEveryFamilyIsDescribed(t *testing.T) {
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(metrics.NewCollector(newSource()))
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	descriptions := make(chan *prometheus.Desc, 100)
	metrics.NewCollector(newSource()).Describe(descriptions)
	if len(families) != len(descriptions) {
		t.Errorf("%d families have values, %d are described", len(families), len(descriptions))
	}
	for _, f := range families {
		if !strings.HasPrefix(f.GetName(), "brlb_") {
			t.Errorf("%s lacks the prefix", f.GetName())
		}
	}
}

func TestRemovedMembersVanish(t *testing.T) {
	s := newSource()
	collector := metrics.NewCollector(s)
	before := testutil.CollectAndCount(collector, "brlb_member_slots", "brlb_probes_total")
	s.metrics.Status.Pools[0].Members = s.metrics.Status.Pools[0].Members[1:]
	clear(s.metrics.Probes)
	if after := testutil.CollectAndCount(collector, "brlb_member_slots", "brlb_probes_total"); before != 6 || after != 3 {
		t.Errorf("%d series before, %d after", before, after)
	}
}

func TestHandler(t *testing.T) {
	s := newSource()
	s.metrics.Status.Pools[0].Members[0].Name = "be\xff1"
	w := httptest.NewRecorder()
	metrics.Handler(s).ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	body, _ := io.ReadAll(w.Body)
	for _, want := range []string{
		`brlb_build_info{goversion="go1.`, `version="0.1.0"} 1`, "brlb_in_sync 1", "go_goroutines", "process_open_fds",
		`brlb_member_active{address="10.30.0.11:8080",member="be` + "\uFFFD" + `1",pool="web"} 1`,
	} {
		if !strings.Contains(string(body), want) {
			t.Errorf("the scrape lacks %s", want)
		}
	}
}

// TestNothingYet: a controller that has only just started has no numbers.
func TestNothingYet(t *testing.T) {
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(metrics.NewCollector(&source{&api.Metrics{Status: &api.Status{}}}))
	if _, err := registry.Gather(); err != nil {
		t.Error(err)
	}
}

func BenchmarkScrape(b *testing.B) {
	handler := metrics.Handler(newSource())
	b.ReportAllocs()
	for b.Loop() {
		handler.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/metrics", nil))
	}
}
