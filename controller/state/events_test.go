package state

import (
	"fmt"
	"net/netip"
	"reflect"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"brlb/controller/resolve"
)

func told(events []Event) string {
	var lines []string
	for _, e := range events {
		where := e.Pool
		if e.Member != "" {
			where += "/" + e.Member
		}
		lines = append(lines, where+": "+e.Text)
	}
	return strings.Join(lines, "\n")
}

func TestEvents(t *testing.T) {
	cases := []struct {
		name string
		do   func(s *State)
		want string
	}{
		{"nothing", func(*State) {}, ""},
		{"a member goes down", func(s *State) { judge(s, Down, byTCP(be1)) }, "web/be1: down: L4CON"},
		{"a member is drained", func(s *State) { s.SetOverride(inWeb(be2), Override{State: Draining, Who: "ann"}) },
			"web/be2: draining by ann"},
		{"the last one goes down", func(s *State) { judge(s, Down, s.Probes()...) },
			"web/be1: down: L4CON\nweb/be2: down: L4CON\nweb/be3: down: L4CON\nweb: no member is active: it serves nobody"},
		{"a member is added, one removed", func(s *State) {
			s.SetConfig(parse(t, `{pools: {web: {id: 1, slots: 64, members: {be1: 10.30.0.11:80, be2: 10.30.0.12:80, be4: 10.30.0.14:80}}}}`), start)
		}, "web/be4: no verdict yet\nweb/be3: removed"},
		{"a pool is replaced", func(s *State) {
			s.SetConfig(parse(t, `{pools: {tls: {id: 1, slots: 64, members: {be1: 10.30.0.11:80}}}}`), start)
		}, "tls/be1: active\nweb: removed"},
		{"ports come and go", func(s *State) { s.SetPorts([]Port{{Number: 2, Name: "p2", Live: true}}, start) }, ""},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			s := serving(t, onePool)
			before := s.Snapshot()
			c.do(s)
			events := Events(before, s.Snapshot(), after(time.Second))
			if got := told(events); got != c.want {
				t.Errorf("got\n%s\nwant\n%s", got, c.want)
			}
			for _, e := range events {
				if !e.Time.Equal(after(time.Second)) {
					t.Errorf("time %v", e.Time)
				}
			}
		})
	}
	first := Events(nil, serving(t, onePool).Snapshot(), start)
	if got, want := told(first), "web/be1: active\nweb/be2: active\nweb/be3: active"; got != want {
		t.Errorf("the first snapshot: %s", got)
	}
}

// step changes the facts in some way that the numbers choose.
func step(s *State, cfgs []string, t testing.TB, do, which, how int, now time.Time) {
	members := []netip.AddrPort{be1, be2, be3, netip.MustParseAddrPort("10.30.0.14:80")}
	addr := members[which%len(members)]
	switch do {
	case 0:
		h := []Health{Up, Down, Unknown}[how%3]
		s.SetVerdict(byTCP(addr), Verdict{Health: h, Since: now, Code: "L4OK"}, now)
	case 1:
		s.SetOverride(inWeb(addr), Override{State: []Admin{Enabled, Draining, Disabled}[how%3], At: now})
	case 2:
		s.SetNextHop(addr.Addr(), NextHop{MAC: mac(byte(how)), Port: uint32(how % 3)}, now)
	case 3:
		s.SetPorts([]Port{{Number: 1, Live: how%2 == 0}, {Number: 2, Live: how%3 == 0}}, now)
	case 4:
		s.SetConfig(parse(t, cfgs[how%len(cfgs)]), now)
	case 5:
		s.Tick(now)
	case 6:
		s.SetDeclared([]Declared{declare("v1", "web", addr, uint32(how%3))}, now)
	case 7:
		s.Adopt([]Adopted{found(addr, uint16(how+1))}, now)
	case 8:
		answer := resolve.Answer{Addrs: addrs(11, 12, 13, 14)[which:][:min(how, 4-which)]}
		if len(answer.Addrs) == 0 {
			answer.Problem = "NXDOMAIN"
		}
		s.SetResolved(dyn, answer, now)
	}
}

// The same events give the same pictures, and what the package promises holds
// after each of them.
func TestSameEventsSameSnapshots(t *testing.T) {
	cfgs := []string{onePool, fromOVSDB, byName, `{pools: {web: {id: 1, slots: 64, from_ovsdb: true}}}`}
	rapid.Check(t, func(rt *rapid.T) {
		one, other := New(parse(t, onePool), start), New(parse(t, onePool), start)
		loadAt := rapid.IntRange(0, 5).Draw(rt, "loadAt")
		for i := range rapid.IntRange(1, 30).Draw(rt, "steps") {
			do, which, how := rapid.IntRange(0, 8).Draw(rt, "do"), rapid.IntRange(0, 3).Draw(rt, "which"), rapid.IntRange(0, 5).Draw(rt, "how")
			now := after(time.Duration(i) * time.Second)
			for _, s := range []*State{one, other} {
				if i == loadAt {
					if err := s.LoadNumbers("next=9 web/10.30.0.11:80=4"); err != nil && one.numbers.Len() == 0 {
						rt.Fatal(err)
					}
				}
				step(s, cfgs, t, do, which, how, now)
			}
			a, b := one.Snapshot(), other.Snapshot()
			if !reflect.DeepEqual(a, b) || one.Numbers() != other.Numbers() {
				rt.Fatalf("the same events, but\n%+v\n%+v", a, b)
			}
			if one.Snapshot() != a {
				rt.Fatal("asked twice, another snapshot")
			}
			// Only what events are about is looked at; a look at everything finds
			// no more.
			all := one.Clone()
			all.outdate()
			if full := all.Snapshot(); full != a {
				rt.Fatalf("the facts say\n%+v\nthe snapshot\n%+v", full, a)
			}
			if problem := broken(a); problem != "" {
				rt.Fatal(problem)
			}
		}
	})
}

// broken says which promise about snapshots does not hold.
func broken(s *Snapshot) string {
	numbers := map[uint16]string{}
	for i := range s.Pools {
		p := &s.Pools[i]
		active, slots := 0, 0
		for j := range p.Members {
			m := &p.Members[j]
			if m.Active {
				active++
			}
			slots += m.Slots
			switch {
			case m.Active != (m.Reason == ""):
				return fmt.Sprintf("%s is active %v, with the reason %q", m.Name, m.Active, m.Reason)
			case m.Slots > 0 && !m.Active:
				return fmt.Sprintf("%s owns %d slots but is not active: %s", m.Name, m.Slots, m.Reason)
			case m.Active && (m.Admin.State != Enabled || m.Health.Health == Down || !m.HasNext || m.Number == 0):
				return fmt.Sprintf("%s is active: %+v", m.Name, m)
			case m.Active && m.Health.Health == Unknown && !m.Adopted:
				return m.Name + " is active before its first pass"
			case m.Number != 0 && numbers[m.Number] != "":
				return fmt.Sprintf("number %d is %s's and %s's", m.Number, numbers[m.Number], m.Name)
			case j > 0 && p.Members[j-1].Key() >= m.Key():
				return "members are not sorted by key"
			}
			numbers[m.Number] = m.Name
		}
		if active != p.Active || p.Table != nil && slots != p.Slots || p.Table == nil && slots != 0 {
			return fmt.Sprintf("%d active, said %d; %d slots of %d", active, p.Active, slots, p.Slots)
		}
	}
	return ""
}
