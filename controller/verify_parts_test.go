package controller

import (
	"errors"
	"net/netip"
	"strings"
	"testing"

	"brlb/controller/api"
	"brlb/controller/config"
	"brlb/controller/inventory"
	"brlb/controller/pipeline"
	"brlb/controller/state"
	"brlb/openflow"
)

const verifiedConfig = `
mac: 02:00:5e:00:01:02
gateways: [10.30.0.1/24]
pools:
  web: {id: 1, layout: v1, slots: 64, members: {be1: 10.30.0.11:80, be2: 10.30.0.12:80}}
  dsr: {id: 2, layout: v1, slots: 64, mode: dsr, transition: 1m, members: {be1: 10.30.0.11:81, be2: 10.30.0.12:81, be3: 10.30.0.13:81}}
services:
  web: {address: 10.20.0.100, ports: [80/tcp], pool: web}
  dsr: {address: 10.20.0.101, ports: [81/tcp], pool: dsr}
`

// failures are the checks that fail, and what they say.
func failures(checks []api.VerifyCheck) string {
	var failed []string
	for _, check := range checks {
		if !check.OK {
			failed = append(failed, check.Name+": "+check.Detail)
		}
	}
	return strings.Join(failed, "\n")
}

// Each part of the pipeline has a line that tells when the switch does not hold it
// as it should, and what to do.
func TestVerifyTellsOfTheFlows(t *testing.T) {
	s := allUp(t, verifiedConfig)
	s.Snapshot()
	s.SetOverride(state.MemberID{Pool: "dsr", Key: "10.30.0.13:81"}, state.Override{State: state.Draining, At: noon})
	snapshot := s.Snapshot()
	if p := snapshot.Pool("dsr"); p.Moving == nil {
		t.Fatal("no slot moves")
	}
	number := func(pool, key string) uint32 { return uint32(snapshot.Pool(pool).Member(key).Number) }
	remember := func(flows []openflow.FlowStats, pool uint16, number uint32, n int) []openflow.FlowStats {
		for i := range n {
			flows = append(flows, openflow.FlowStats{
				Table: pipeline.TableLearned, Priority: 100, Cookie: pipeline.Cookie(pipeline.KindLearned, pool, number),
				Match: openflow.Match{openflow.EthType.Exact(0x0800), openflow.IPProto.Exact(6), openflow.TCPSrc.Exact(uint64(i))},
			})
		}
		return flows
	}
	without := func(flows []openflow.FlowStats, wrong func(*openflow.FlowMod) bool) (kept []openflow.FlowStats) {
		for _, f := range flows {
			if !wrong(&openflow.FlowMod{Cookie: f.Cookie, Table: f.Table, Priority: f.Priority, Match: f.Match}) {
				kept = append(kept, f)
			}
		}
		return kept
	}
	for _, c := range []struct {
		name  string
		spoil func([]openflow.FlowStats) []openflow.FlowStats
		want  []string // lines of failed checks begin and go on so
	}{
		{"all is well", func(flows []openflow.FlowStats) []openflow.FlowStats {
			return remember(flows, 2, number("dsr", "10.30.0.11:81"), 3)
		}, nil},
		{"no hairpin", func(flows []openflow.FlowStats) []openflow.FlowStats { return without(flows, pipeline.IsHairpin) },
			[]string{"hairpin: ", "rows missing, wrong or too many: brlb repairs them; if they stay, see brlb status and brlb flows --diff; the first: "}},
		{"another zone", func(flows []openflow.FlowStats) []openflow.FlowStats {
			for i := range flows {
				if flows[i].Table == pipeline.TableClassify && len(flows[i].Instructions) > 0 {
					if actions, ok := flows[i].Instructions[0].(openflow.ApplyActions); ok && len(actions) == 1 {
						if ct, ok := actions[0].(openflow.CT); ok && ct.Table == pipeline.TableHairpin {
							ct.Zone++
							flows[i].Instructions = openflow.Instructions{openflow.ApplyActions{ct}}
						}
					}
				}
			}
			return flows
		}, []string{"hairpin: 1 rows missing, wrong or too many"}},
		{"no transition", func(flows []openflow.FlowStats) []openflow.FlowStats {
			return without(flows, pipeline.IsTransition)
		}, []string{"transitions: ", "rows missing"}},
		{"learned of a member that is cut", func(flows []openflow.FlowStats) []openflow.FlowStats {
			return remember(flows, 2, 99, 2)
		}, []string{"learned connections: pool dsr: 2 of member number 99, which gets no packets any more: ", `"table=9,cookie=0xb71b090002000063/-1"`}},
		{"learned of a pool that tracks connections", func(flows []openflow.FlowStats) []openflow.FlowStats {
			return remember(flows, 1, number("web", "10.30.0.11:80"), 2)
		}, []string{"learned connections: 2 of pool 1, which tracks none so"}},
		{"as many as there can be", func(flows []openflow.FlowStats) []openflow.FlowStats {
			return remember(flows, 2, number("dsr", "10.30.0.12:81"), pipeline.LearnLimit)
		}, []string{"learned connections: pool dsr: 65536 of be2 are all that the switch remembers", "a shorter transition helps"}},
		{"another family", func(flows []openflow.FlowStats) []openflow.FlowStats {
			for i := range flows {
				if flows[i].Match.String() == "tcp,nw_dst=10.20.0.100,tp_dst=80" && flows[i].Table == pipeline.TableClassify {
					six := flows[i]
					six.Match = openflow.Match{openflow.EthType.Exact(0x86dd), openflow.IPProto.Exact(6), openflow.IPv6Dst.Addr(netip.MustParseAddr("2001:db8::1")), openflow.TCPDst.Exact(80)}
					return append(flows, six)
				}
			}
			return nil
		}, []string{"pool web: address family: not IPv4, and has rows nevertheless", "VIP 2001:db8::1"}},
	} {
		checker, err := checkFlows(&view{snapshot: snapshot}, c.spoil(held(t, snapshot)))
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		got := failures(checker.checks)
		for _, want := range c.want {
			if !strings.Contains("\n"+got, want) {
				t.Errorf("%s: no %q in\n%s", c.name, want, got)
			}
		}
		if (got == "") != (c.want == nil) {
			t.Errorf("%s: %s", c.name, got)
		}
	}
}

// held is what a switch tells that holds a snapshot's flows.
func held(t *testing.T, s *state.Snapshot) (flows []openflow.FlowStats) {
	t.Helper()
	set, _, err := pipeline.NewRenderer().Render(s)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range set.Flows() {
		flows = append(flows, openflow.FlowStats{Table: f.Table, Priority: f.Priority, Cookie: f.Cookie, Flags: f.Flags, Match: f.Match, Instructions: f.Instructions})
	}
	return flows
}

func TestVerifyTellsOfMeters(t *testing.T) {
	all := func() (meters []openflow.MeterConfig) {
		for _, m := range pipeline.Meters() {
			meters = append(meters, openflow.MeterConfig{ID: m.ID, Flags: m.Flags, Bands: m.Bands})
		}
		return meters
	}
	faster := all()
	faster[1].Bands[0].Rate = 5
	for _, c := range []struct {
		name   string
		meters []openflow.MeterConfig
		err    error
		want   string
	}{
		{"all is well", append(all(), openflow.MeterConfig{ID: 7}), nil, ""},
		{"one is gone", all()[:1], nil, "meters: meter 46876 is missing; brlb sets them at its next change, within a minute"},
		{"another rate", faster, nil, "meters: meter 46876 is not one of 1000 packets a second, 200 at once; brlb sets"},
		{"nobody answers", nil, errors.New("gone"), "meters: not known: gone"},
	} {
		checker := &checker{view: &view{snapshot: &state.Snapshot{}}}
		checker.meters(c.meters, c.err)
		if got := failures(checker.checks); !strings.HasPrefix(got, c.want) || c.want == "" && got != "" {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

func TestVerifyTellsOfTunnelPorts(t *testing.T) {
	cfg, err := config.Parse("test.yaml", []byte(`
mac: 02:00:5e:00:01:02
pools:
  web: {id: 1, mode: tunnel, tunnel: {type: vxlan, key: 5}, members: {be1: 10.30.0.11:80}}
services:
  web: {address: 10.20.0.100, ports: [80/tcp], pool: web}
`))
	if err != nil {
		t.Fatal(err)
	}
	there := []state.Port{{Number: 7, Name: "brlb-vxlan", Live: true}}
	for _, c := range []struct {
		name     string
		ports    []state.Port
		problems []string
		want     string
	}{
		{"all is well", there, nil, ""},
		{"no port", nil, nil, "tunnel ports: the bridge has no port brlb-vxlan: see what ovs-vsctl show says of it"},
		{"changed in OVSDB", there, []string{"port brlb-vxlan: other options"}, "tunnel ports: port brlb-vxlan: other options"},
	} {
		checker := &checker{view: &view{config: cfg, snapshot: &state.Snapshot{Ports: c.ports}}}
		checker.tunnels(c.problems)
		if got := failures(checker.checks); got != c.want || len(checker.checks) != 1 {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

func TestVerifyTellsOfZones(t *testing.T) {
	for _, c := range []struct {
		name string
		said inventory.Update
		want string
	}{
		{"all is well", inventory.Update{ZonesHeld: true}, ""},
		{"another bridge's", inventory.Update{ZonesHeld: true, ZoneClash: "bridge br-2 uses zone 18200"}, "conntrack zones: bridge br-2 uses zone 18200"},
		{"not noted", inventory.Update{}, "conntrack zones: OVSDB does not know which this bridge uses, so that others may take them: see what the log says of writing to it"},
	} {
		checker := &checker{view: &view{config: &config.Config{Zone: 18200}, inventory: c.said}}
		checker.zones()
		if got := failures(checker.checks); got != c.want || len(checker.checks) != 1 {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}
