package controller

import (
	"strings"
	"testing"
	"time"

	"brlb/controller/api"
	"brlb/controller/config"
	"brlb/controller/state"
	"brlb/health"
	"brlb/openflow"
)

// TestStory: what is told of a member, "-" before what keeps it from owning
// slots, and what would bring it back.
func TestStory(t *testing.T) {
	start := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	cfg, err := config.Parse("test.yaml", []byte(`
pools: {web: {id: 1, slots: 64, members: {be1: 10.30.0.11:80, be2: 10.30.0.12:80}}}
`))
	if err != nil {
		t.Fatal(err)
	}
	be1 := state.MemberID{Pool: "web", Key: "10.30.0.11:80"}
	hop := state.NextHop{MAC: openflow.MAC{2, 0, 0, 0, 0, 1}, Port: 2, Source: "arp"}
	for _, c := range []struct {
		name    string
		facts   func(*state.State, state.ProbeID)
		results []health.Outcome // of be1's probes
		want    string
		help    string
	}{
		{"up", func(*state.State, state.ProbeID) {}, []health.Outcome{health.Pass},
			"admin, check, next hop, port, weight, pool, -switch", ""},
		{"down", func(s *state.State, id state.ProbeID) {
			s.SetVerdict(id, state.Verdict{Health: state.Down, Since: start}, start)
		}, []health.Outcome{health.Fail, health.Fail, health.Fail, health.Pass},
			"admin, -check, next hop, port, weight, pool, -switch",
			"check tcp (tcp 10.30.0.11:80): 2 passes in a row, of which it has 1; it is probed every 500ms"},
		{"drained by somebody", func(s *state.State, _ state.ProbeID) {
			s.SetOverride(be1, state.Override{State: state.Draining, Who: "alice", Why: "kernel", At: start})
		}, []health.Outcome{health.Pass},
			"-admin, check, next hop, port, weight, pool, -switch", "brlb enable web/be1"},
		{"drained, and its port is down", func(s *state.State, _ state.ProbeID) {
			s.SetOverride(be1, state.Override{State: state.Draining, At: start})
			s.SetPorts([]state.Port{{Number: 2, Name: "p2"}}, start)
		}, []health.Outcome{health.Pass},
			"-admin, check, next hop, -port, weight, pool, -switch",
			"brlb enable web/be1; port p2 coming up: carrier, and BFD, CFM or LACP where they are configured"},
		{"its port is gone", func(s *state.State, _ state.ProbeID) {
			s.SetPorts([]state.Port{{Number: 3, Name: "p3", Live: true}}, start)
		}, []health.Outcome{health.Pass},
			"admin, check, next hop, -port, weight, pool, -switch",
			"port 2 coming back to the bridge, or 10.30.0.11 being found behind another"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := state.New(cfg, start)
			if err := s.LoadNumbers(""); err != nil {
				t.Fatal(err)
			}
			s.SetPorts([]state.Port{{Number: 2, Name: "p2", Live: true}}, start)
			for _, addr := range s.NextHops() {
				s.SetNextHop(addr, hop, start)
			}
			for _, id := range s.Probes() {
				s.SetVerdict(id, state.Verdict{Health: state.Up, Since: start}, start)
			}
			id := s.Probes()[0]
			c.facts(s, id)
			snapshot := s.Snapshot()
			p := snapshot.Pool("web")
			told := story{view: &view{snapshot: snapshot, config: cfg}, pool: p, member: p.Member(be1.Key), target: probeTarget(cfg, id), probed: true}
			for _, o := range c.results {
				told.probe.Step(o, 2, 3, start)
			}
			told.tell()
			if got := factNames(told.facts); got != c.want {
				t.Errorf("facts: %s\nwant   %s", got, c.want)
			}
			if got := strings.Join(told.remedies, "; "); got != c.help {
				t.Errorf("remedies: %s\nwant      %s", got, c.help)
			}
		})
	}
}

func factNames(facts []api.Fact) string {
	var names []string
	for _, f := range facts {
		if f.OK {
			names = append(names, f.Name)
		} else {
			names = append(names, "-"+f.Name)
		}
	}
	return strings.Join(names, ", ")
}
