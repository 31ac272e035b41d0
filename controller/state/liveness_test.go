package state

import (
	"testing"
	"time"
)

const byPortPool = `
checks: {wire: {type: port}}
probe_allow: [10.99.0.0/16]
pools:
  web: {id: 1, slots: 64, check: wire, hold_down: {after: 3, within: 1m}, members: {be1: 10.30.0.11:80, be2: 10.30.0.12:80}}
`

// TestPortDecides: a member whose check is of type port follows its port, and
// nothing else.
func TestPortDecides(t *testing.T) {
	p1, p2 := Port{Number: 1, Name: "p1", Live: true}, Port{Number: 2, Name: "p2", Live: true}
	dead := Port{Number: 2, Name: "p2"}
	s := New(parse(t, byPortPool), start)
	if probes := s.Probes(); len(probes) != 0 {
		t.Errorf("probes %v", probes)
	}
	if err := s.LoadNumbers(""); err != nil {
		t.Fatal(err)
	}
	for second, step := range []struct {
		name   string
		do     func(now time.Time)
		want   string
		health Health // of be2
		since  int    // in which second be2's verdict came
	}{
		{"nothing is known", func(time.Time) {}, "be1 no next hop: nobody has answered ARP for 10.30.0.11; be2 no next hop: nobody has answered ARP for 10.30.0.12; waiting", Unknown, 0},
		{"the ports", func(now time.Time) { s.SetPorts([]Port{p1, p2}, now) }, "be1 no next hop: nobody has answered ARP for 10.30.0.11; be2 no next hop: nobody has answered ARP for 10.30.0.12; waiting", Unknown, 0},
		{"be1 is found", func(now time.Time) { s.SetNextHop(be1.Addr(), NextHop{MAC: mac(1), Port: 1}, now) }, "be1 owns; be2 no next hop: nobody has answered ARP for 10.30.0.12; waiting", Unknown, 0},
		{"be2 is found", func(now time.Time) { s.SetNextHop(be2.Addr(), NextHop{MAC: mac(2), Port: 2}, now) }, "be1 owns; be2 owns", Up, 3},
		{"time passes", func(now time.Time) { s.Tick(now) }, "be1 owns; be2 owns", Up, 3},
		{"its port dies", func(now time.Time) { s.SetPorts([]Port{p1, dead}, now) }, "be1 owns; be2 down: PORTDOWN port p2 (2) is down", Down, 5},
		{"its port has gone", func(now time.Time) { s.SetPorts([]Port{p1}, now) }, "be1 owns; be2 down: PORTDOWN port 2 is not on the bridge", Down, 5},
		{"and is back, nobody knows who is behind it", func(now time.Time) { s.SetPorts([]Port{p1, p2}, now) }, "be1 owns; be2 down: PORTDOWN port 2 is not on the bridge", Down, 5},
		{"be2 is found again", func(now time.Time) { s.SetNextHop(be2.Addr(), NextHop{MAC: mac(2), Port: 2}, now) }, "be1 owns; be2 owns", Up, 8},
		{"it moves", func(now time.Time) { s.SetNextHop(be2.Addr(), NextHop{MAC: mac(2), Port: 1}, now) }, "be1 owns; be2 owns", Up, 8},
		{"and back", func(now time.Time) { s.SetNextHop(be2.Addr(), NextHop{MAC: mac(2), Port: 2}, now) }, "be1 owns; be2 owns", Up, 8},
		{"drained", func(time.Time) { s.SetOverride(inWeb(be2), Override{State: Draining}) }, "be1 owns; be2 draining", Up, 8},
		{"enabled", func(time.Time) { s.SetOverride(inWeb(be2), Override{State: Enabled}) }, "be1 owns; be2 owns", Up, 8},
		{"it dies again", func(now time.Time) { s.SetPorts([]Port{p1, dead}, now) }, "be1 owns; be2 down: PORTDOWN port p2 (2) is down", Down, 13},
		{"lives", func(now time.Time) { s.SetPorts([]Port{p1, p2}, now) }, "be1 owns; be2 owns", Up, 14},
		{"dies a third time", func(now time.Time) { s.SetPorts([]Port{p1, dead}, now) }, "be1 owns; be2 down: PORTDOWN port p2 (2) is down", Down, 15},
		{"flaps too much", func(now time.Time) { s.SetPorts([]Port{p1, p2}, now) }, "be1 owns; be2 held down until 12:01:05: it went down 3 times within 1m0s", Up, 16},
	} {
		step.do(after(time.Duration(second) * time.Second))
		if got := shape(s, "web"); got != step.want {
			t.Errorf("%s:\ngot  %s\nwant %s", step.name, got, step.want)
		}
		m := s.Snapshot().Pool("web").Member(be2.String())
		if m.Health.Health != step.health || step.health != Unknown && !m.Health.Since.Equal(after(time.Duration(step.since)*time.Second)) {
			t.Errorf("%s: be2 is %s since %v", step.name, m.Health.Health, m.Health.Since)
		}
	}
}
