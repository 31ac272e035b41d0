package state

import (
	"net/netip"
	"slices"
	"testing"
	"time"

	"brlb/controller/resolve"
)

const byName = `
pools:
  web: {id: 1, slots: 64, members: {be1: 10.30.0.11:80, dyn: "Be.example.org:80"}}
services:
  web: {address: 10.20.0.100, ports: [80/tcp], pool: web}
`

var dyn = resolve.Name{Host: "be.example.org"}

func addrs(last ...byte) []netip.Addr {
	var list []netip.Addr
	for _, b := range last {
		list = append(list, netip.AddrFrom4([4]byte{10, 30, 0, b}))
	}
	return list
}

// answer is what a server says, and everybody who is new works at once.
func answer(s *State, now time.Time, last ...byte) {
	s.SetResolved(dyn, resolve.Answer{Addrs: addrs(last...)}, now)
	for i, addr := range s.NextHops() {
		if _, known := s.arp[addr]; !known {
			s.SetNextHop(addr, NextHop{MAC: mac(byte(i)), Port: 2, Source: "arp"}, now)
		}
	}
}

func unanswered(s *State, now time.Time, why string) {
	s.SetResolved(dyn, resolve.Answer{Problem: why}, now)
}

func TestMembersByName(t *testing.T) {
	judgeAll := func(s *State) { judge(s, Up, s.Probes()...) }
	cases := []struct {
		name string
		do   func(s *State)
		want string
	}{
		{"no answer yet", func(s *State) { judgeAll(s) }, "be1 owns; waiting"},
		{"no answer until the deadline", func(s *State) { judgeAll(s); s.Tick(after(10 * time.Second)) }, "be1 owns"},
		{"no such name: the rest serves", func(s *State) { judgeAll(s); unanswered(s, start, "NXDOMAIN") }, "be1 owns"},
		{"two addresses, not probed yet", func(s *State) { judgeAll(s); answer(s, start, 12, 13) },
			"be1 owns; dyn/10.30.0.12 no verdict yet; dyn/10.30.0.13 no verdict yet; waiting"},
		{"two addresses", func(s *State) { answer(s, start, 12, 13); judgeAll(s) },
			"be1 owns; dyn/10.30.0.12 owns; dyn/10.30.0.13 owns"},
		{"one of them is a member of its own", func(s *State) { answer(s, start, 11, 12); judgeAll(s) }, "be1 owns; dyn/10.30.0.12 owns"},
		{"one goes, one comes", func(s *State) { answer(s, start, 12, 13); judgeAll(s); s.Snapshot(); answer(s, start, 13, 14) },
			"be1 owns; dyn/10.30.0.13 owns; dyn/10.30.0.14 no verdict yet"},
		{"the last answer holds", func(s *State) { answer(s, start, 12, 13); judgeAll(s); unanswered(s, start, "SERVFAIL") },
			"be1 owns; dyn/10.30.0.12 owns; dyn/10.30.0.13 owns"},
		{"a drain outlives an answer without its member", func(s *State) {
			answer(s, start, 12)
			judgeAll(s)
			s.SetOverride(inWeb(be2), Override{State: Draining})
			answer(s, start, 13)
			answer(s, start, 12)
			judgeAll(s)
		}, "be1 owns; dyn/10.30.0.12 draining"},
		{"the configuration is read again", func(s *State) {
			answer(s, start, 12)
			judgeAll(s)
			s.SetConfig(parse(t, byName), start)
		}, "be1 owns; dyn/10.30.0.12 owns"},
		{"a VIP", func(s *State) {
			s.SetResolved(dyn, resolve.Answer{Addrs: []netip.Addr{netip.MustParseAddr("10.20.0.100")}}, start)
			judgeAll(s)
			s.Tick(after(time.Minute))
		}, "dyn/10.20.0.100 10.20.0.100 is an address of brlb's own, a VIP or gateway; be1 owns"},
		{"an answer to nobody's question", func(s *State) {
			judgeAll(s)
			unanswered(s, start, "NXDOMAIN")
			s.SetResolved(resolve.Name{Host: "other.example.org"}, resolve.Answer{Addrs: addrs(12)}, start)
		}, "be1 owns"},
		{"removed, in a copy", func(s *State) {
			answer(s, start, 12, 13)
			judgeAll(s)
			c := s.Clone()
			c.RemoveMember(inWeb(be2))
			if got := shape(c, "web"); got != "be1 owns; dyn/10.30.0.13 owns" {
				t.Errorf("the copy: %s", got)
			}
		}, "be1 owns; dyn/10.30.0.12 owns; dyn/10.30.0.13 owns"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			s := connected(t, byName)
			c.do(s)
			if got := shape(s, "web"); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

// The anchor of layout v2 has the addresses that DNS knew at the first table;
// an address that comes later takes slots only from those it shares with.
func TestAnchorOfMembersByName(t *testing.T) {
	s := connected(t, byName)
	judge(s, Up, s.Probes()...)
	if a := s.Snapshot().Pool("web").Anchor; a != nil && len(a.Members) == 1 && s.pools["web"].settled {
		t.Errorf("before DNS has answered: %+v", a)
	}
	answer(s, start, 12, 13)
	judge(s, Up, s.Probes()...)
	p := s.Snapshot().Pool("web")
	if len(p.Anchor.Members) != 3 || p.Stale() {
		t.Errorf("anchor %+v", p.Anchor)
	}
	answer(s, start, 12, 14)
	if p := s.Snapshot().Pool("web"); len(p.Anchor.Members) != 3 || !p.Stale() {
		t.Errorf("after a change: anchor %+v", p.Anchor)
	}
	answer(s, start, 12, 13)
	judge(s, Up, s.Probes()...)
	if again := s.Snapshot().Pool("web"); again.Digest != p.Digest || again.Stale() {
		t.Errorf("as before, but digest %s instead of %s", again.Digest, p.Digest)
	}
}

func TestNameStates(t *testing.T) {
	s := connected(t, byName)
	judge(s, Up, s.Probes()...)
	var before *Snapshot
	for i, step := range []struct {
		do    func(now time.Time)
		state NameState
		since int // step at which it began
		addrs int
		event string
	}{
		{func(time.Time) {}, NameAsking, 0, 0, ""},
		{func(now time.Time) { unanswered(s, now, "NXDOMAIN") }, NameUnresolved, 1, 0, "web/dyn: be.example.org is unresolved: NXDOMAIN"},
		{func(now time.Time) { unanswered(s, now, "SERVFAIL") }, NameUnresolved, 1, 0, ""},
		{func(now time.Time) { answer(s, now, 12, 13) }, NameResolved, 3, 2, "web/dyn: be.example.org is resolved again"},
		{func(now time.Time) { answer(s, now, 12) }, NameResolved, 3, 1, ""},
		{func(now time.Time) { unanswered(s, now, "NXDOMAIN") }, NameStale, 5, 1,
			"web/dyn: be.example.org cannot be resolved, its last answer holds: NXDOMAIN"},
		{func(now time.Time) { answer(s, now, 12) }, NameResolved, 6, 1, "web/dyn: be.example.org is resolved again"},
	} {
		now := after(time.Duration(i) * time.Second)
		if i == 0 {
			now = start
		}
		step.do(now)
		snap := s.Snapshot()
		n := snap.Pool("web").Names[0]
		if n.State != step.state || !n.Since.Equal(after(time.Duration(step.since)*time.Second)) || n.Addresses != step.addrs {
			t.Errorf("step %d: %+v", i, n)
		}
		if before != nil {
			events := slices.DeleteFunc(Events(before, snap, now), func(e Event) bool { return e.Member != "dyn" })
			if got := told(events); got != step.event {
				t.Errorf("step %d: told %q", i, got)
			}
		}
		before = snap
	}
	if s.SetConfig(parse(t, onePool), start); len(s.Names()) != 0 {
		t.Errorf("nobody has names, but %v are asked for", s.Names())
	}
}

// A brlb that begins while DNS is silent goes on with what the switch holds.
func TestAdoptedAddressesOfNames(t *testing.T) {
	begin := func() *State {
		s := New(parse(t, byName), start)
		s.SetPorts([]Port{{Number: 2, Name: "p2", Live: true}}, start)
		s.Adopt([]Adopted{found(be1, 11), found(be2, 12), {Number: 13, PoolID: 1, Address: be3}}, start)
		if err := s.LoadNumbers(""); err != nil {
			t.Fatal(err)
		}
		return s
	}
	s := begin()
	if got := shape(s, "web"); got != "be1 owns; dyn/10.30.0.12 owns; waiting" {
		t.Errorf("before any answer: %s", got)
	}
	unanswered(s, start, "no answer")
	judge(s, Up, s.Probes()...)
	if got := shape(s, "web"); got != "be1 owns; dyn/10.30.0.12 owns" {
		t.Errorf("without an answer: %s", got)
	}
	if n := s.Snapshot().Pool("web").Names[0]; n.State != NameStale || n.Addresses != 1 {
		t.Errorf("without an answer: %+v", n)
	}
	answer(s, start, 13)
	if got := shape(s, "web"); got != "be1 owns; dyn/10.30.0.13 no verdict yet" {
		t.Errorf("with an answer: %s", got)
	}

	s = begin()
	answer(s, start, 13) // before the switch was read
	s.Adopt([]Adopted{found(be1, 11), found(be2, 12)}, start)
	if got := shape(s, "web"); got != "be1 owns; dyn/10.30.0.13 no verdict yet; waiting" {
		t.Errorf("with an answer before: %s", got)
	}
}

// A pool asks for addresses of its family, and so does a pool inside another; the
// outer one waits for the answer too, and has the members.
func TestNamesOfIPv6AndOfPoolsInside(t *testing.T) {
	s := connected(t, `
pools:
  inner: {id: 1, slots: 64, members: {dyn: "be.example.org:80"}}
  outer: {id: 2, slots: 64, members: {all: {pool: inner}, near: "[2001:db8::1]:80"}}
services:
  web: {address: "2001:db8:1::100", ports: [80/tcp], pool: outer}
`)
	v6 := resolve.Name{Host: "be.example.org", V6: true}
	judge(s, Up, s.Probes()...)
	if got := shape(s, "outer"); !slices.Equal(s.Names(), []resolve.Name{v6}) || got != "near owns; waiting" {
		t.Errorf("%v is asked for, outer: %s", s.Names(), got)
	}
	s.SetResolved(v6, resolve.Answer{Addrs: []netip.Addr{netip.MustParseAddr("2001:db8::2")}}, start)
	for _, hop := range s.NextHops() {
		s.SetNextHop(hop, NextHop{MAC: mac(1), Port: 2}, start)
	}
	judge(s, Up, s.Probes()...)
	if got := shape(s, "outer"); got != "near owns; inner/dyn/2001:db8::2 owns" {
		t.Errorf("outer: %s", got)
	}
}
