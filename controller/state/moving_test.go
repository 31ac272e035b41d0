package state

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	"brlb/controller/config"
)

const stateless = `
pools:
  web:
    id: 1
    slots: 64
    mode: dsr
    transition: 60s
    members: {be1: 10.30.0.11:80, be2: 10.30.0.12:80, be3: 10.30.0.13:80, be4: 10.30.0.14:80}
services:
  web: {address: 10.20.0.100, ports: [80/tcp], pool: web}
`

// movingFrom counts the slots of each member that move away from it.
func movingFrom(s *State) string {
	m := web(s).Moving
	if m == nil {
		return "-"
	}
	counts := map[string]int{}
	for _, l := range m.From {
		if !l.Open {
			counts["not yet"]++
		}
		counts[l.Key]++
	}
	return fmt.Sprint(counts)
}

// TestMoving: whose open connections stay where, as members come and go.
func TestMoving(t *testing.T) {
	const be1, be2 = "10.30.0.11:80", "10.30.0.12:80"
	s := serving(t, stateless)
	at := func(seconds int) time.Time { return after(time.Duration(seconds) * time.Second) }
	override := func(key string, state Admin, seconds int) {
		s.SetOverride(MemberID{Pool: "web", Key: key}, Override{State: state, At: at(seconds)})
	}
	verdict := func(n int, h Health, seconds int) { s.SetVerdict(byTCP(be(n)), Verdict{Health: h}, at(seconds)) }
	for _, step := range []struct {
		what   string
		second int
		do     func()
		want   string
	}{
		{"nothing has moved", 0, func() {}, "-"},
		{"be1 drains: its slots are about to move", 10, func() { override(be1, Draining, 10) }, "map[10.30.0.11:80:16 not yet:16]"},
		{"they move, and its connections stay", 12, func() {}, "map[10.30.0.11:80:16]"},
		{"be2 drains too: only what it had from the start stays with it", 20, func() { override(be2, Draining, 20) }, "map[10.30.0.11:80:16 10.30.0.12:80:16 not yet:16]"},
		{"be2 returns: what it had is its own again", 30, func() { override(be2, Enabled, 30) }, "map[10.30.0.11:80:16]"},
		{"the time of be1's is over", 70, func() { s.Tick(at(70)) }, "-"},
		{"be1 returns, and takes its slots back by and by", 80, func() { override(be1, Enabled, 80) }, "map[10.30.0.12:80:5 10.30.0.13:80:5 10.30.0.14:80:6 not yet:16]"},
		{"be4 dies: nothing can stay with it", 90, func() { verdict(4, Down, 90) }, "map[10.30.0.12:80:5 10.30.0.13:80:5]"},
		{"be1, be2 and be3 die as well", 95, func() { verdict(1, Down, 95); verdict(2, Down, 95); verdict(3, Down, 95) }, "-"},
		{"all return: nothing stays with anybody", 100, func() {
			for n := range 4 {
				verdict(n+1, Up, 100)
			}
		}, "-"},
		{"be1 is disabled: as if it drained", 110, func() { override(be1, Disabled, 110) }, "map[10.30.0.11:80:16 not yet:16]"},
		{"a drain of be2 ends: so do its connections", 115, func() {
			s.SetOverride(MemberID{Pool: "web", Key: be2}, Override{State: Draining, Until: at(114), At: at(115)})
		}, "map[10.30.0.11:80:16]"},
	} {
		s.Tick(at(step.second))
		step.do()
		if got := movingFrom(s); got != step.want {
			t.Errorf("%s: %s, want %s", step.what, got, step.want)
		}
	}
}

// A stateful pool moves nothing by and by, and neither does a brlb that has just
// found the table that it would make itself.
func TestNotMoving(t *testing.T) {
	s := serving(t, ofPool(4, ""))
	drainIt(s, "10.30.0.11:80")
	if m := s.Snapshot().Pools[0].Moving; m != nil {
		t.Errorf("%+v", m)
	}
	cfg := parse(t, stateless)
	if p, _ := cfg.Pool("web"); p.Transition != time.Minute || p.Mode != config.ModeDSR {
		t.Errorf("%+v", p)
	}
}

// TestUnsuitedPort: a member that OVSDB declares with another port than the
// service's gets nothing in a stateless pool, and so in the pools around it.
func TestUnsuitedPort(t *testing.T) {
	s := serving(t, `
pools:
  web: {id: 1, slots: 64, mode: dsr, members: {be1: 10.30.0.11:80, eu: {pool: eu}}}
  eu: {id: 2, slots: 64, mode: dsr, from_ovsdb: true, members: {}}
services:
  web: {address: 10.20.0.100, ports: [80/tcp], pool: web}
`)
	s.SetDeclared([]Declared{
		{Interface: "p2", Pool: "eu", Address: netip.MustParseAddrPort("10.30.0.12:8080"), Weight: 1},
		{Interface: "p3", Pool: "eu", Address: netip.MustParseAddrPort("10.30.0.13:80"), Weight: 1},
	}, start)
	for _, addr := range s.NextHops() {
		s.SetNextHop(addr, NextHop{Port: 2}, start)
	}
	judge(s, Up, s.Probes()...)
	for key, want := range map[string]string{
		"10.30.0.11:80":   "",
		"10.30.0.12:8080": "it listens on port 8080, and the pool's mode leaves ports as they are: a service has 80/tcp",
		"10.30.0.13:80":   "",
	} {
		if m := web(s).Member(key); m == nil || m.Reason != want {
			t.Errorf("%s: %+v, want %q", key, m, want)
		}
	}
}
