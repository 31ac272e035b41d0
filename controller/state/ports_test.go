package state

import (
	"strings"
	"testing"
)

// A port's number may be given to another port: then nobody is sent there who
// was found behind the first.
func TestNumberOfAPortGivenToAnother(t *testing.T) {
	p1 := Port{Number: 1, Name: "p1", Live: true}
	p2 := Port{Number: 2, Name: "p2", Live: true}
	other := Port{Number: 2, Name: "other", Live: true}
	for _, c := range []struct {
		name   string
		ports  [][]Port
		active int
	}{
		{"the same ports", [][]Port{{p1, p2}}, 3},
		{"down and up", [][]Port{{p1, {Number: 2, Name: "p2"}}, {p1, p2}}, 3},
		{"gone, then another", [][]Port{{p1}, {p1, other}}, 0},
		{"renamed", [][]Port{{p1, other}}, 0},
		{"gone, then back", [][]Port{{p1}, {p1, p2}}, 0},
		{"an unconcerned port is gone", [][]Port{{p2}}, 3},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := serving(t, onePool)
			for _, ports := range c.ports {
				s.SetPorts(ports, start)
			}
			p := &s.Snapshot().Pools[0]
			if p.Active != c.active {
				t.Errorf("%d members are active, want %d", p.Active, c.active)
			}
			for i := range p.Members {
				if m := &p.Members[i]; !m.Active && !strings.HasPrefix(m.Reason, "no next hop") {
					t.Errorf("%s: %s", m.Name, m.Reason)
				}
			}
			s.SetPorts([]Port{p1}, start)
			for _, addr := range s.NextHops() {
				s.SetNextHop(addr, NextHop{MAC: mac(9), Port: 1, Source: "arp"}, start)
			}
			if p := &s.Snapshot().Pools[0]; p.Active != 3 {
				t.Errorf("%d members are active after they were found elsewhere", p.Active)
			}
		})
	}
}
