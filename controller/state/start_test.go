package state

import (
	"net/netip"
	"testing"
	"time"
)

// found is what a switch holds of a member that owns slots.
func found(addr netip.AddrPort, number uint16) Adopted {
	return Adopted{Number: number, PoolID: 1, Address: addr, Next: NextHop{MAC: mac(byte(number)), Port: 2}, HasNext: true, Slots: make([]uint16, 21)}
}

// restarted is a state that has read a switch whose slots belong to be1 and
// be2, numbers 11 and 12; be3 is new.
func restarted(t testing.TB) *State {
	t.Helper()
	s := New(parse(t, onePool), start)
	s.SetPorts([]Port{{Number: 2, Name: "p2", Live: true}}, start)
	s.Adopt([]Adopted{found(be1, 11), found(be2, 12)}, start)
	if err := s.LoadNumbers("next=13 web/10.30.0.11:80=11 web/10.30.0.12:80=12"); err != nil {
		t.Fatal(err)
	}
	s.SetNextHop(be3.Addr(), NextHop{MAC: mac(3), Port: 2, Source: "arp"}, start)
	return s
}

func TestFirstVerdicts(t *testing.T) {
	cases := []struct {
		name string
		do   func(s *State)
		want string
	}{
		{"who owned slots keeps them, who is new has none", func(*State) {},
			"be1 owns; be2 owns; be3 no verdict yet; waiting"},
		{"an adopted member passes", func(s *State) { judge(s, Up, byTCP(be1)) },
			"be1 owns; be2 owns; be3 no verdict yet; waiting"},
		{"an adopted member fails", func(s *State) { judge(s, Down, byTCP(be1)) },
			"be1 down: L4CON; be2 owns; be3 no verdict yet; waiting"},
		{"inconclusive is no verdict", func(s *State) { judge(s, Unknown, byTCP(be1)) },
			"be1 owns; be2 owns; be3 no verdict yet; waiting"},
		{"a new member passes", func(s *State) { judge(s, Up, byTCP(be3)) },
			"be1 owns; be2 owns; be3 owns; waiting"},
		{"all have a verdict", func(s *State) { judge(s, Up, byTCP(be1), byTCP(be2)); judge(s, Down, byTCP(be3)) },
			"be1 owns; be2 owns; be3 down: L4CON"},
		{"the deadline passes: who owned slots still keeps them", func(s *State) { s.Tick(after(10 * time.Second)) },
			"be1 owns; be2 owns; be3 no verdict yet"},
		{"just before the deadline", func(s *State) { s.Tick(after(10*time.Second - 1)) },
			"be1 owns; be2 owns; be3 no verdict yet; waiting"},
		{"nobody waits for who is disabled or draining", func(s *State) {
			s.SetOverrides(map[MemberID]Override{inWeb(be3): {State: Disabled}, inWeb(be2): {State: Draining}}, start)
			judge(s, Up, byTCP(be1))
		}, "be1 owns; be2 draining; be3 disabled"},
		{"an adopted member that was drained waits for a pass when enabled", func(s *State) {
			s.SetOverride(inWeb(be1), Override{State: Draining})
			s.SetOverride(inWeb(be1), Override{State: Enabled})
		}, "be1 no verdict yet; be2 owns; be3 no verdict yet; waiting"},
		{"a verdict that came before the switch counts", func(s *State) {
			judge(s, Up, byTCP(be1))
			s.Adopt([]Adopted{found(be1, 11)}, start)
			s.SetOverride(inWeb(be1), Override{State: Disabled})
			s.SetOverride(inWeb(be1), Override{State: Enabled})
		}, "be1 no verdict yet; be2 owns; be3 no verdict yet; waiting"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			s := restarted(t)
			c.do(s)
			if got := shape(s, "web"); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

// Waiting ends once: a member that becomes unknown later does not bring it back.
func TestWaitingEndsOnce(t *testing.T) {
	s := restarted(t)
	if deadline, waiting := s.Waiting(); !waiting || !deadline.Equal(after(10*time.Second)) {
		t.Errorf("at the start: waiting %v until %v", waiting, deadline)
	}
	judge(s, Up, s.Probes()...)
	s.Snapshot()
	if _, waiting := s.Waiting(); waiting {
		t.Error("waiting although all members have a verdict")
	}
	s.SetOverride(inWeb(be1), Override{State: Disabled, At: start})
	s.SetOverride(inWeb(be1), Override{State: Enabled, At: start})
	if got := shape(s, "web"); got != "be1 no verdict yet; be2 owns; be3 owns" {
		t.Errorf("a member that comes back: %s", got)
	}
}

func TestAdoptionGivesNumbersAndNextHops(t *testing.T) {
	s := restarted(t)
	p := s.Snapshot().Pool("web")
	for i, want := range []uint16{11, 12, 13} {
		if p.Members[i].Number != want {
			t.Errorf("%s has number %d, want %d", p.Members[i].Name, p.Members[i].Number, want)
		}
	}
	if m := p.Members[0]; m.Next != (NextHop{MAC: mac(11), Port: 2, Source: "adopted"}) || !m.Adopted {
		t.Errorf("be1: %+v", m)
	}
	s.SetNextHop(be1.Addr(), NextHop{MAC: mac(77), Port: 2, Source: "arp"}, start)
	s.Adopt([]Adopted{found(be1, 11)}, start)
	if m := s.Snapshot().Pool("web").Members[0]; m.Next.MAC != mac(77) {
		t.Errorf("what ARP found was replaced by what the switch held: %+v", m.Next)
	}
}

func TestAdoptIgnoresWhatIsNotConfigured(t *testing.T) {
	s := New(parse(t, onePool), start)
	s.Adopt([]Adopted{
		{Number: 5, PoolID: 9, Address: be1, Slots: []uint16{1}},
		{Number: 6, PoolID: 1, Address: netip.MustParseAddrPort("10.9.9.9:9"), Next: NextHop{MAC: mac(1), Port: 1}, HasNext: true, Slots: []uint16{2}},
		{Number: 0, PoolID: 1, Address: be2, Slots: []uint16{3}},
	}, start)
	if err := s.LoadNumbers(""); err != nil {
		t.Fatal(err)
	}
	p := s.Snapshot().Pool("web")
	if p.Members[0].Adopted || !p.Members[1].Adopted || p.Members[0].Number == 6 || p.Members[1].Number == 0 {
		t.Errorf("be1 %+v\nbe2 %+v", p.Members[0], p.Members[1])
	}
}

// The order in which the switch and OVSDB answer does not matter.
func TestAdoptBeforeOrAfterTheNumbers(t *testing.T) {
	const stored = "next=13 web/10.30.0.11:80=11 web/10.30.0.12:80=12"
	one := New(parse(t, onePool), start)
	one.Adopt([]Adopted{found(be1, 11), found(be2, 12)}, start)
	other := New(parse(t, onePool), start)
	for _, err := range []error{one.LoadNumbers(stored), other.LoadNumbers(stored)} {
		if err != nil {
			t.Error(err)
		}
	}
	other.Adopt([]Adopted{found(be1, 11), found(be2, 12)}, start)
	one.Snapshot()
	other.Snapshot()
	if one.Numbers() != other.Numbers() {
		t.Errorf("%s\n%s", one.Numbers(), other.Numbers())
	}
}

func TestReloadKeeps(t *testing.T) {
	s := serving(t, onePool)
	s.SetOverride(inWeb(be3), Override{State: Draining, At: start})
	s.Snapshot()
	s.SetConfig(parse(t, `
pools:
  web: {id: 1, slots: 64, members: {renamed: 10.30.0.11:80, be3: 10.30.0.13:80, be4: 10.30.0.14:80}}
  tls: {id: 2, slots: 64, members: {be1: 10.30.0.11:443}}
`), after(time.Minute))
	if got, want := shape(s, "web"), "renamed owns; be3 draining; be4 no verdict yet"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if got, want := shape(s, "tls"), "be1 no verdict yet; waiting"; got != want {
		t.Errorf("a new pool: got %s, want %s", got, want)
	}
	if deadline, waiting := s.Waiting(); !waiting || !deadline.Equal(after(time.Minute+10*time.Second)) {
		t.Errorf("a new pool waits: %v until %v", waiting, deadline)
	}
	// be2 was away: it starts anew, with the number it had.
	number := s.numbers.Get(inWeb(be2))
	s.SetConfig(parse(t, onePool), after(2*time.Minute))
	if got, want := shape(s, "web"), "be1 owns; be2 no verdict yet; be3 draining"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if m := s.Snapshot().Pool("web").Member(be2.String()); m.Number != number {
		t.Errorf("be2 came back with number %d, had %d", m.Number, number)
	}
}

// A pool that gets another check goes on serving until that check has spoken.
func TestAnotherCheckKeepsMembersServing(t *testing.T) {
	s := serving(t, onePool)
	judge(s, Down, byTCP(be3))
	s.Snapshot()
	s.SetConfig(parse(t, `
checks: {web: {type: http}}
pools:
  web:
    id: 1
    slots: 64
    check: web
    members: {be1: 10.30.0.11:80, be2: 10.30.0.12:80, be3: 10.30.0.13:80}
`), start)
	if got, want := shape(s, "web"), "be1 owns; be2 owns; be3 no verdict yet"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	judge(s, Down, ProbeID{be1, "web"})
	judge(s, Up, ProbeID{be3, "web"})
	if got, want := shape(s, "web"), "be1 down: L4CON; be2 owns; be3 owns"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}
