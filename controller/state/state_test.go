package state

import (
	"net/netip"
	"strings"
	"testing"
	"time"

	"brlb/controller/config"
	"brlb/openflow"
)

var start = time.Date(2024, 5, 1, 12, 0, 0, 0, time.UTC)

func after(d time.Duration) time.Time { return start.Add(d) }

// parse reads a configuration; what it says beyond pools is the default.
func parse(t testing.TB, text string) *config.Config {
	t.Helper()
	cfg, err := config.Parse("test.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return cfg
}

const onePool = `
pools:
  web:
    id: 1
    slots: 64
    members: {be1: 10.30.0.11:80, be2: 10.30.0.12:80, be3: 10.30.0.13:80}
services:
  web: {address: 10.20.0.100, ports: [80/tcp], pool: web}
`

// Three members of a pool, as the tests name them.
var (
	be1 = netip.MustParseAddrPort("10.30.0.11:80")
	be2 = netip.MustParseAddrPort("10.30.0.12:80")
	be3 = netip.MustParseAddrPort("10.30.0.13:80")
	be9 = netip.MustParseAddrPort("10.30.0.19:80")
)

func inWeb(addr netip.AddrPort) MemberID { return MemberID{Pool: "web", Key: addr.String()} }

func byTCP(addr netip.AddrPort) ProbeID { return ProbeID{Address: addr, Check: "tcp"} }

func mac(last byte) openflow.MAC { return openflow.MAC{2, 0, 0, 0, 0, last} }

// connected is a state that knows ports and next hops, but no verdict.
func connected(t testing.TB, text string) *State {
	t.Helper()
	s := New(parse(t, text), start)
	if err := s.LoadNumbers(""); err != nil {
		t.Fatal(err)
	}
	s.SetPorts([]Port{{Number: 1, Name: "p1", Live: true}, {Number: 2, Name: "p2", Live: true}}, start)
	for i, addr := range s.NextHops() {
		s.SetNextHop(addr, NextHop{MAC: mac(byte(i + 1)), Port: 2, Source: "arp"}, start)
	}
	return s
}

// serving is a state in which every member is up, and a first snapshot of it
// has been made.
func serving(t testing.TB, text string) *State {
	t.Helper()
	s := connected(t, text)
	judge(s, Up, s.Probes()...)
	s.Snapshot()
	return s
}

func judge(s *State, h Health, ids ...ProbeID) {
	code := map[Health]string{Up: "L4OK", Down: "L4CON"}[h]
	for _, id := range ids {
		s.SetVerdict(id, Verdict{Health: h, Since: start, Code: code}, start)
	}
}

// shape is a pool in a line: each member with its slots, or why it has none.
func shape(s *State, pool string) string {
	p := s.Snapshot().Pool(pool)
	if p == nil {
		return "no pool"
	}
	var parts []string
	for i := range p.Members {
		m := &p.Members[i]
		text := m.Name + " owns"
		switch {
		case !m.Active:
			text = m.Name + " " + m.Reason
		case m.Slots == 0:
			text = m.Name + " owns nothing"
		}
		parts = append(parts, text)
	}
	if !p.Settled {
		parts = append(parts, "waiting")
	}
	if p.Problem != "" {
		parts = append(parts, p.Problem)
	}
	return strings.Join(parts, "; ")
}

func TestWhoOwnsSlots(t *testing.T) {
	cases := []struct {
		name string
		do   func(s *State)
		want string
	}{
		{"all up", func(*State) {}, "be1 owns; be2 owns; be3 owns"},
		{"one down", func(s *State) { judge(s, Down, byTCP(be2)) },
			"be1 owns; be2 down: L4CON; be3 owns"},
		{"down with a sentence", func(s *State) {
			s.SetVerdict(byTCP(be2), Verdict{Health: Down, Code: "L7STS", Detail: "503 in 2ms"}, start)
		}, "be1 owns; be2 down: L7STS 503 in 2ms; be3 owns"},
		{"all down", func(s *State) { judge(s, Down, s.Probes()...) },
			"be1 down: L4CON; be2 down: L4CON; be3 down: L4CON"},
		{"back up", func(s *State) { judge(s, Down, byTCP(be2)); judge(s, Up, byTCP(be2)) },
			"be1 owns; be2 owns; be3 owns"},
		{"draining", func(s *State) { s.SetOverride(inWeb(be1), Override{State: Draining, Who: "ann", Why: "disk"}) },
			"be1 draining by ann: disk; be2 owns; be3 owns"},
		{"disabled", func(s *State) { s.SetOverride(inWeb(be1), Override{State: Disabled}) },
			"be1 disabled; be2 owns; be3 owns"},
		{"draining beats down", func(s *State) {
			judge(s, Down, byTCP(be1))
			s.SetOverride(inWeb(be1), Override{State: Draining})
		}, "be1 draining; be2 owns; be3 owns"},
		{"drained and enabled", func(s *State) {
			s.SetOverride(inWeb(be1), Override{State: Draining})
			s.SetOverride(inWeb(be1), Override{State: Enabled})
		}, "be1 owns; be2 owns; be3 owns"},
		{"disabled and enabled: probed anew", func(s *State) {
			s.SetOverride(inWeb(be1), Override{State: Disabled})
			s.SetOverride(inWeb(be1), Override{State: Enabled})
		}, "be1 no verdict yet; be2 owns; be3 owns"},
		{"stored overrides replace all", func(s *State) {
			s.SetOverride(inWeb(be1), Override{State: Draining})
			s.SetOverrides(map[MemberID]Override{inWeb(be3): {State: Draining}}, start)
		}, "be1 owns; be2 owns; be3 draining"},
		{"an override of nobody", func(s *State) { s.SetOverride(MemberID{"web", "10.9.9.9:9"}, Override{State: Draining}) },
			"be1 owns; be2 owns; be3 owns"},
		{"verdict of another check", func(s *State) {
			s.SetVerdict(ProbeID{be1, "http"}, Verdict{Health: Down}, start)
		}, "be1 owns; be2 owns; be3 owns"},
		{"port is down", func(s *State) { s.SetPorts([]Port{{Number: 2, Name: "p2"}}, start) },
			"be1 port p2 (2) is down; be2 port p2 (2) is down; be3 port p2 (2) is down"},
		{"port is gone", func(s *State) { s.SetPorts([]Port{{Number: 1, Name: "p1", Live: true}}, start) },
			"be1 port 2 is not on the bridge; be2 port 2 is not on the bridge; be3 port 2 is not on the bridge"},
		{"moved to a live port", func(s *State) {
			s.SetPorts([]Port{{Number: 1, Name: "p1", Live: true}}, start)
			s.SetNextHop(be2.Addr(), NextHop{MAC: mac(2), Port: 1}, start)
		}, "be1 port 2 is not on the bridge; be2 owns; be3 port 2 is not on the bridge"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			s := serving(t, onePool)
			c.do(s)
			if got := shape(s, "web"); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

func TestNothingWithoutNumbers(t *testing.T) {
	s := New(parse(t, onePool), start)
	judge(s, Up, s.Probes()...)
	s.Tick(after(time.Hour))
	p := s.Snapshot().Pool("web")
	if p.Active != 0 || p.Settled || p.Members[0].Number != 0 || !strings.Contains(p.Members[0].Reason, "OVSDB") {
		t.Errorf("before the numbers are loaded: %d active, settled %v, %+v", p.Active, p.Settled, p.Members[0])
	}
}

func TestNextHopsAreNeeded(t *testing.T) {
	s := New(parse(t, `
pools:
  web:
    id: 1
    slots: 64
    members:
      near: 10.30.0.11:80
      far: {address: 10.40.0.12:80, via: 10.30.0.254}
`), start)
	if err := s.LoadNumbers(""); err != nil {
		t.Fatal(err)
	}
	s.SetPorts([]Port{{Number: 1, Name: "p1", Live: true}}, start)
	judge(s, Up, s.Probes()...)
	want := "near no next hop: nobody has answered ARP for 10.30.0.11; far no next hop: router 10.30.0.254 has not answered ARP; waiting"
	if got := shape(s, "web"); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	s.SetNextHop(netip.MustParseAddr("10.40.0.12"), NextHop{MAC: mac(9), Port: 1}, start)
	if got := shape(s, "web"); got != want {
		t.Errorf("the address of a member behind a router answered: %s", got)
	}
	s.SetNextHop(netip.MustParseAddr("10.30.0.254"), NextHop{MAC: mac(8), Port: 1}, start)
	s.SetNextHop(netip.MustParseAddr("10.30.0.11"), NextHop{MAC: mac(1), Port: 1}, start)
	if got := shape(s, "web"); got != "near owns; far owns" {
		t.Errorf("got %s", got)
	}
	if far := s.Snapshot().Pool("web").Member("10.40.0.12:80"); far.Next.MAC != mac(8) {
		t.Errorf("far is reached by %v, want the router's MAC", far.Next.MAC)
	}
}

func TestWeights(t *testing.T) {
	weighted := func(a, b, c string) string {
		return `
pools:
  web:
    id: 1
    slots: 64
    members:
      be1: {address: 10.30.0.11:80, weight: ` + a + `}
      be2: {address: 10.30.0.12:80, weight: ` + b + `}
      be3: {address: 10.30.0.13:80, weight: ` + c + `}
`
	}
	cases := []struct {
		name, cfg string
		slots     [3]int
		table     bool
	}{
		{"equal", weighted("1", "1", "1"), [3]int{22, 21, 21}, true},
		{"double", weighted("1", "2", "1"), [3]int{16, 32, 16}, true},
		{"zero", weighted("1", "0", "1"), [3]int{32, 0, 32}, true},
		{"all zero", weighted("0", "0", "0"), [3]int{}, false},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			p := serving(t, c.cfg).Snapshot().Pool("web")
			got := [3]int{p.Members[0].Slots, p.Members[1].Slots, p.Members[2].Slots}
			if got != c.slots || (p.Table != nil) != c.table || p.Problem != "" || p.Active != 3 {
				t.Errorf("slots %v table %v problem %q active %d", got, p.Table != nil, p.Problem, p.Active)
			}
			if (p.Digest != "") != c.table {
				t.Errorf("digest %q", p.Digest)
			}
		})
	}
}

// More members than slots can only come from OVSDB: the file is checked.
func TestMoreMembersThanSlots(t *testing.T) {
	s := connected(t, `{pools: {web: {id: 1, slots: 64, from_ovsdb: true}}}`)
	var declared []Declared
	for i := range 65 {
		declared = append(declared, Declared{
			Interface: "v", Pool: "web", Address: netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 1, 0, byte(i)}), 80),
			Weight: 1, MAC: mac(byte(i)), OFPort: 1,
		})
	}
	s.SetDeclared(declared, start)
	judge(s, Up, s.Probes()...)
	p := s.Snapshot().Pool("web")
	if p.Table != nil || !strings.Contains(p.Problem, "set its slots to 128 or more") {
		t.Errorf("table %v, problem %q", p.Table != nil, p.Problem)
	}
	s.SetDeclared(declared[1:], start)
	if p := s.Snapshot().Pool("web"); p.Table == nil || p.Problem != "" {
		t.Errorf("with 64 members: table %v, problem %q", p.Table != nil, p.Problem)
	}
}

func TestTableIsBuiltOverActiveMembers(t *testing.T) {
	s := serving(t, onePool)
	full := s.Snapshot().Pool("web")
	judge(s, Down, byTCP(be2))
	less := s.Snapshot().Pool("web")
	if full.Digest == less.Digest {
		t.Error("the digest did not change with the members")
	}
	for slot := range less.Slots {
		if m := less.Owner(slot); m == nil || !m.Active {
			t.Fatalf("slot %d belongs to %+v", slot, m)
		}
	}
	if less.Owner(-1) != nil || less.Owner(64) != nil {
		t.Error("a slot beyond the table has an owner")
	}
	judge(s, Up, byTCP(be2))
	if again := s.Snapshot().Pool("web"); again.Digest != full.Digest {
		t.Errorf("digest %s, was %s with the same members", again.Digest, full.Digest)
	}
}

func TestUnchangedFactsGiveTheSameSnapshot(t *testing.T) {
	s := serving(t, onePool)
	first := s.Snapshot()
	s.Tick(after(time.Hour))
	judge(s, Up, byTCP(be1))
	s.SetPorts([]Port{{Number: 2, Name: "p2", Live: true}, {Number: 1, Name: "p1", Live: true}}, after(time.Minute))
	s.SetOverrides(nil, after(time.Minute))
	s.SetDeclared(nil, after(time.Minute))
	s.SetConfig(parse(t, onePool), after(time.Minute))
	s.SetNextHop(be1.Addr(), NextHop{MAC: mac(1), Port: 2, Source: "arp"}, after(time.Minute))
	if s.Snapshot() != first {
		t.Error("a new snapshot although nothing has changed")
	}
	judge(s, Down, byTCP(be1))
	second := s.Snapshot()
	if second == first || second.Revision != first.Revision+1 {
		t.Errorf("revision %d after %d", second.Revision, first.Revision)
	}
	if first.Pools[0].Active != 3 || second.Pools[0].Active != 2 {
		t.Errorf("active %d, then %d", first.Pools[0].Active, second.Pools[0].Active)
	}
	judge(s, Up, byTCP(be1))
	if third := s.Snapshot(); third.Revision != first.Revision+2 || third.Pools[0].Digest != first.Pools[0].Digest {
		t.Errorf("back again: revision %d, digest %s", third.Revision, third.Pools[0].Digest)
	}
}

func TestCloneIsIndependent(t *testing.T) {
	s := serving(t, onePool)
	before := s.Snapshot()
	c := s.Clone()
	if c.Snapshot() != before {
		t.Error("a clone gives another snapshot although nothing has changed")
	}
	c.SetOverride(inWeb(be1), Override{State: Draining})
	judge(c, Down, byTCP(be2))
	c.SetNextHop(be3.Addr(), NextHop{MAC: mac(99), Port: 1}, start)
	c.SetPorts([]Port{{Number: 1, Live: true}}, start)
	c.SetDeclared([]Declared{{Interface: "v1", Pool: "web", Address: netip.MustParseAddrPort("10.0.0.1:1")}}, start)
	c.SetConfig(parse(t, `{pools: {other: {id: 7, members: {x: 10.0.0.9:1}}}}`), start)
	numbers := s.Numbers()
	if got := shape(c, "other"); got != "x no next hop: nobody has answered ARP for 10.0.0.9; waiting" && got != "x no verdict yet; waiting" {
		t.Errorf("the clone: %s", got)
	}
	if s.Snapshot() != before || s.Numbers() != numbers {
		t.Error("a change of the clone reached the original")
	}
	judge(s, Down, byTCP(be1))
	if c.Snapshot().Pool("web") != nil {
		t.Error("a change of the original reached the clone")
	}
}

func TestFind(t *testing.T) {
	s := serving(t, `
pools:
  web: {id: 1, slots: 64, members: {be1: 10.30.0.11:80, be2: 10.30.0.12:80}}
  tls: {id: 2, slots: 64, members: {be1: 10.30.0.11:443, same: 10.30.0.12:80}}
`).Snapshot()
	cases := map[string][]string{
		"be1":               {"web/10.30.0.11:80", "tls/10.30.0.11:443"},
		"web/be1":           {"web/10.30.0.11:80"},
		"tls/be1":           {"tls/10.30.0.11:443"},
		"be2":               {"web/10.30.0.12:80"},
		"10.30.0.11:80":     {"web/10.30.0.11:80"},
		"10.30.0.12:80":     {"web/10.30.0.12:80", "tls/10.30.0.12:80"},
		"tls/10.30.0.12:80": {"tls/10.30.0.12:80"},
		"be9":               nil, "": nil, "web/": nil, "web": nil,
	}
	for what, want := range cases {
		var got []string
		for _, m := range s.Find(what) {
			got = append(got, m.ID.Pool+"/"+m.Key())
		}
		if strings.Join(got, " ") != strings.Join(want, " ") {
			t.Errorf("%q: %v, want %v", what, got, want)
		}
	}
}

// A member's name must not be taken for another member's key.
func TestANameIsNoKey(t *testing.T) {
	s := connected(t, `{pools: {web: {id: 1, slots: 64, from_ovsdb: true, members: {be2: 10.30.0.12:80}}}}`)
	s.SetDeclared([]Declared{{
		Interface: "v1", Name: be2.String(), Pool: "web", Address: be1, Weight: 3, MAC: mac(7), OFPort: 1,
	}}, start)
	judge(s, Up, s.Probes()...)
	p := s.Snapshot().Pool("web")
	if m := p.Member(be2.String()); m == nil || m.Name != "be2" || m.Slots != 16 {
		t.Errorf("Member(%s) is %+v", be2, m)
	}
	for slot := range p.Slots {
		if m := p.Owner(slot); m.Key() != p.Table.Key(slot) {
			t.Fatalf("slot %d belongs to %s, the table says %s", slot, m.Key(), p.Table.Key(slot))
		}
	}
}

func TestQuestions(t *testing.T) {
	for addr, want := range map[string]string{"10.30.0.11": "ARP", "2001:db8:30::b": "neighbour discovery"} {
		if got := Question(netip.MustParseAddr(addr)); got != want {
			t.Errorf("%s is asked for by %s, want %s", addr, got, want)
		}
	}
}
