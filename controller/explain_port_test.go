package controller

import (
	"strings"
	"testing"
	"time"

	"brlb/controller/config"
	"brlb/controller/state"
)

// TestStoryOfAPort: what is told of a member that has no probes.
func TestStoryOfAPort(t *testing.T) {
	start := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	cfg, err := config.Parse("test.yaml", []byte(`
checks: {wire: {type: port}}
pools: {web: {id: 1, slots: 64, check: wire, members: {be1: 10.30.0.11:80}}}
`))
	if err != nil {
		t.Fatal(err)
	}
	s := state.New(cfg, start)
	if err := s.LoadNumbers(""); err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct {
		do    func()
		facts string
		check string
		help  string
	}{
		{func() {}, "admin, -check, -next hop, weight, -pool, -switch",
			"no verdict yet; check wire probes nothing, the port decides", "an answer of 10.30.0.11 to ARP on the bridge"},
		{func() {
			s.SetPorts([]state.Port{{Number: 2, Name: "p2", Live: true}}, start)
			s.SetNextHop(cfg.Pools[0].Members[0].Address.Addr(), state.NextHop{Port: 2, Source: "arp"}, start)
		}, "admin, check, next hop, port, weight, pool, -switch",
			"up since 2026-03-01T12:00:00Z: port p2 (2) lives; check wire probes nothing, the port decides", ""},
		{func() { s.SetPorts([]state.Port{{Number: 2, Name: "p2"}}, start.Add(time.Minute)) },
			"admin, -check, next hop, -port, weight, pool, -switch",
			"down since 2026-03-01T12:01:00Z: port p2 (2) is down; check wire probes nothing, the port decides",
			"port p2 coming up: carrier, and BFD, CFM or LACP where they are configured"},
	} {
		step.do()
		snapshot := s.Snapshot()
		p := snapshot.Pool("web")
		told := story{view: &view{snapshot: snapshot, config: cfg}, pool: p, member: &p.Members[0]}
		told.tell()
		if got := factNames(told.facts); got != step.facts {
			t.Errorf("facts: %s\nwant   %s", got, step.facts)
		}
		if got := told.facts[1].Text; got != step.check {
			t.Errorf("check: %s\nwant   %s", got, step.check)
		}
		if got := strings.Join(told.remedies, "; "); got != step.help {
			t.Errorf("remedies: %s\nwant      %s", got, step.help)
		}
	}
}
