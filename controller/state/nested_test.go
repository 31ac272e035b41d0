package state

import (
	"fmt"
	"math/big"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"brlb/controller/config"
)

// Pool all has a member of its own, and two pools of which the one, eu, has
// three times the weight of the other.
const nestedPools = `
pools:
  all:
    id: 1
    slots: 128
    RULES
    members: {own: 10.30.0.19:80, eu: {pool: eu, weight: 3}, us: {pool: us, weight: 4}}
  eu:
    id: 2
    members: {be1: 10.30.0.11:80, be2: {address: 10.30.0.12:80, weight: 2}}
  us:
    id: 3
    members: {be3: 10.30.0.13:80, deep: {pool: us-east}}
  us-east:
    id: 4
    members: {be4: 10.30.0.14:80, be5: 10.30.0.15:80}
services:
  all: {address: 10.20.0.100, ports: [80/tcp], pool: all}
`

func nestedWith(rules string) string { return strings.Replace(nestedPools, "RULES", rules, 1) }

func be(n int) netip.AddrPort { return netip.MustParseAddrPort(fmt.Sprintf("10.30.0.%d:80", 10+n)) }

// slotsOf says how many slots of a pool be1, be2, ... be5 and own (be9) have.
func slotsOf(s *State, pool string) string {
	var list []string
	for _, n := range []int{1, 2, 3, 4, 5, 9} {
		if m := s.Snapshot().Pool(pool).Member(be(n).String()); m != nil {
			list = append(list, fmt.Sprint(m.Slots))
		}
	}
	return strings.Join(list, " ")
}

// TestNestedShares: a pool inside another keeps its share while any of its
// members is active, and has none when none is.
func TestNestedShares(t *testing.T) {
	s := serving(t, nestedWith("layout: v2"))
	look := func(when, want string) {
		t.Helper()
		if got := slotsOf(s, "all"); got != want {
			t.Errorf("%s: %s, want %s", when, got, want)
		}
	}
	eu1, us3 := MemberID{"eu", be(1).String()}, MemberID{"us", be(3).String()}
	look("all is well", "16 32 32 16 16 16") // eu 48 of 128, us 64, own 16
	before := s.Snapshot().Pool("all").Table
	judge(s, Down, byTCP(be(1)))
	look("be1 is down", "0 48 32 16 16 16")
	for slot, table := 0, s.Snapshot().Pool("all").Table; slot < 128; slot++ {
		if was, is := before.Key(slot), table.Key(slot); was != is && (was != be(1).String() || is != be(2).String()) {
			t.Errorf("slot %d moves from %s to %s", slot, was, is)
		}
	}
	judge(s, Down, byTCP(be(2)))
	look("eu is down", "0 0 51 26 25 26") // us 4/5, own 1/5
	judge(s, Up, byTCP(be(1)))
	look("be1 is up", "48 0 32 16 16 16")
	judge(s, Up, byTCP(be(2)))
	look("all is well again", "16 32 32 16 16 16")

	s.SetOverride(us3, Override{State: Draining, At: start})
	look("be3 drains", "16 32 0 32 32 16")
	s.SetOverride(us3, Override{State: Enabled, At: start})
	s.SetOverride(eu1, Override{State: Enabled, Weighting: Weighting{To: "6"}, At: start})
	look("be1 has weight 6", "36 12 32 16 16 16")
	s.SetOverride(eu1, Override{State: Enabled, Weighting: Weighting{To: "0"}, At: start})
	look("be1 has weight 0", "0 48 32 16 16 16")
	s.SetOverride(eu1, Override{State: Enabled, At: start})

	// In pool all alone; what is inside us is inside all by way of us.
	inAll, inUS := MemberID{"all", be(4).String()}, MemberID{"us", be(4).String()}
	s.SetOverride(inAll, Override{State: Draining, At: start})
	look("be4 drains in all", "16 32 32 0 32 16")
	if got := slotsOf(s, "us"); got != "512 256 256" {
		t.Errorf("us: %s", got)
	}
	s.SetOverride(inAll, Override{State: Enabled, Weighting: Weighting{To: "300%"}, At: start})
	look("be4 has 300% in all", "16 32 32 24 8 16")
	s.SetOverride(inAll, Override{State: Enabled, At: start})
	s.SetOverride(inUS, Override{State: Draining, At: start})
	look("be4 drains in us", "16 32 32 0 32 16")
	if got := slotsOf(s, "us-east"); got != "512 512" {
		t.Errorf("us-east: %s", got)
	}
}

// TestNestedMember: what a member looks like in a pool that contains its own.
func TestNestedMember(t *testing.T) {
	s := serving(t, nestedWith("layout: v2"))
	s.SetOverride(MemberID{"us-east", be(4).String()}, Override{State: Draining, Who: "ann", At: start})
	snap := s.Snapshot()
	m := snap.Pool("all").Member(be(4).String())
	if m.Name != "us-east/be4" || m.ID != (MemberID{"all", be(4).String()}) || m.Origin != (MemberID{"us-east", be(4).String()}) ||
		m.Reason != "draining by ann" || m.Active || m.Check != "tcp" {
		t.Errorf("be4 in all: %+v", m)
	}
	numbers := map[uint16]bool{}
	members := 0
	for i := range snap.Pools {
		for j := range snap.Pools[i].Members {
			members++
			numbers[snap.Pools[i].Members[j].Number] = true
		}
	}
	if members != 6+2+3+2 || len(numbers) != members || numbers[0] {
		t.Errorf("%d members have %d numbers", members, len(numbers))
	}
	if n := len(s.Probes()); n != 6 {
		t.Errorf("%d probes", n)
	}
	for what, want := range map[string]string{
		"be4": "us-east", "us-east/be4": "us-east", "10.30.0.14:80": "us-east", "all/us-east/be4": "all", "us/10.30.0.14:80": "us",
	} {
		if found := snap.Find(what); len(found) != 1 || found[0].ID.Pool != want {
			t.Errorf("%s finds %d members, want that of %s", what, len(found), want)
		}
	}
	events := Events(snap, func() *Snapshot { judge(s, Down, byTCP(be(1))); return s.Snapshot() }(), start)
	if len(events) != 1 || events[0].Pool != "eu" || events[0].Member != "be1" {
		t.Errorf("events %+v", events)
	}
	before := s.Snapshot()
	s.SetOverride(MemberID{"all", be(2).String()}, Override{State: Draining, At: start})
	events = Events(before, s.Snapshot(), start)
	if len(events) != 1 || events[0].Pool != "all" || events[0].Member != "eu/be2" || events[0].Text != "draining" {
		t.Errorf("events %+v", events)
	}
}

// TestNestedEmpty: what is told when a pool that is only inside others is empty.
func TestNestedEmpty(t *testing.T) {
	s := serving(t, nestedWith("layout: v2"))
	before := s.Snapshot()
	judge(s, Down, byTCP(be(1)), byTCP(be(2)))
	events := Events(before, s.Snapshot(), start)
	if last := events[len(events)-1]; last.Pool != "eu" || last.Text != "no member is active: it has no share of pool all" {
		t.Errorf("events %+v", events)
	}
	if got := before.Around("all"); got != nil {
		t.Errorf("around pool all, which a service uses: %v", got)
	}
}

// TestNestedDrainEnds: a drain with a deadline ends in every pool.
func TestNestedDrainEnds(t *testing.T) {
	s := serving(t, nestedWith("layout: v2"))
	s.SetOverride(MemberID{"eu", be(1).String()}, Override{State: Draining, Until: after(time.Minute), At: start})
	s.SetOverride(MemberID{"all", be(3).String()}, Override{State: Draining, Until: after(2 * time.Minute), At: start})
	look := func(eu, all Admin) {
		t.Helper()
		p := s.Snapshot().Pool("all")
		if a, b := p.Member(be(1).String()), p.Member(be(3).String()); a.Admin.State != eu || b.Admin.State != all || a.Active || b.Active {
			t.Errorf("be1 is %s and be3 %s, want %s and %s", a.Admin.State, b.Admin.State, eu, all)
		}
	}
	look(Draining, Draining)
	s.Tick(after(time.Minute))
	look(Disabled, Draining)
	s.Tick(after(2 * time.Minute))
	look(Disabled, Disabled)
	if slices.Contains(s.Probes(), byTCP(be(1))) || !slices.Contains(s.Probes(), byTCP(be(3))) {
		t.Errorf("probes %v: only who is disabled where it belongs isn't probed", s.Probes())
	}
}

// TestNestedRules: rules about members hold where these belong, those about
// pools where they are written.
func TestNestedRules(t *testing.T) {
	s := serving(t, nestedWith("panic_below: 50%\n    slow_start: 40s\n    hold_down: {after: 1, within: 1h}"))
	for n := 1; n <= 3; n++ {
		judge(s, Down, byTCP(be(n)))
	}
	if got := slotsOf(s, "all"); got != "0 0 0 51 51 26" && got != "0 0 0 51 52 25" {
		t.Errorf("3 of 6 are down: %s", got)
	}
	judge(s, Down, byTCP(be(9)))
	if p := s.Snapshot().Pool("all"); p.Emergency != Panic || slotsOf(s, "all") != "16 32 32 16 16 16" {
		t.Errorf("4 of 6 are down: %q, %s", p.Emergency, slotsOf(s, "all"))
	}
	if p := s.Snapshot().Pool("us"); p.Emergency != "" || slotsOf(s, "us") != "0 512 512" {
		t.Errorf("in us: %q, %s", p.Emergency, slotsOf(s, "us"))
	}
	for n := 1; n <= 3; n++ {
		judge(s, Up, byTCP(be(n)))
	}
	if got := slotsOf(s, "all"); got != "18 37 37 18 18 0" {
		t.Errorf("held down are members of pool all itself: %s", got)
	}

	// A pool inside that is short has no share.
	s = serving(t, strings.Replace(nestedWith("layout: v2"), "id: 2", "id: 2\n    min_active: 2", 1))
	judge(s, Down, byTCP(be(1)))
	if got := slotsOf(s, "all"); got != "0 0 51 26 25 26" {
		t.Errorf("eu is short: %s", got)
	}
	// And one that keeps its members keeps its share.
	s = serving(t, strings.Replace(nestedWith("layout: v2"), "id: 2", "id: 2\n    on_all_down: keep", 1))
	judge(s, Down, byTCP(be(1)))
	s.Snapshot()
	judge(s, Down, byTCP(be(2)))
	if got := slotsOf(s, "all"); got != "0 48 32 16 16 16" {
		t.Errorf("eu keeps be2: %s", got)
	}
}

// TestNestedReload: pools get inside others, and leave them, while they serve;
// the numbers that members have in them stay.
func TestNestedReload(t *testing.T) {
	s := serving(t, nestedWith("layout: sticky"))
	before := s.Snapshot().Pool("all")
	without := strings.Replace(nestedWith("layout: sticky"), ", us: {pool: us, weight: 4}", "", 1)
	s.SetConfig(parse(t, without), after(time.Second))
	if got := slotsOf(s, "all"); got != "32 64 32" {
		t.Errorf("without us: %s", got)
	}
	s.SetConfig(parse(t, strings.Replace(without, "weight: 3", "weight: 1", 1)), after(2*time.Second))
	if got := slotsOf(s, "all"); got != "21 43 64" {
		t.Errorf("eu has weight 1: %s", got)
	}
	s.SetConfig(parse(t, nestedWith("layout: sticky")), after(3*time.Second))
	p := s.Snapshot().Pool("all")
	if got := slotsOf(s, "all"); got != "16 32 32 16 16 16" {
		t.Errorf("as before: %s", got)
	}
	for i := range p.Members {
		if p.Members[i].Number != before.Members[i].Number {
			t.Errorf("%s has number %d, before %d", p.Members[i].Name, p.Members[i].Number, before.Members[i].Number)
		}
	}
	clone := s.Clone()
	clone.SetOverride(MemberID{"eu", be(1).String()}, Override{State: Draining, At: after(4 * time.Second)})
	if a, b := slotsOf(clone, "all"), slotsOf(s, "all"); a != "0 48 32 16 16 16" || b != "16 32 32 16 16 16" {
		t.Errorf("of a copy: %s, of the state itself: %s", a, b)
	}
}

// TestNestedAdoption: a brlb that starts takes over what the switch holds of
// members that belong to pools inside.
func TestNestedAdoption(t *testing.T) {
	text := nestedWith("layout: v2")
	old := serving(t, text)
	was := old.Snapshot()
	s := New(parse(t, text), start)
	s.LoadAnchors(old.Anchors())
	if err := s.LoadNumbers(old.Numbers()); err != nil {
		t.Fatal(err)
	}
	s.SetPorts(was.Ports, start)
	s.Adopt(heldBy(was), start)
	for i := range was.Pools {
		p := s.Snapshot().Pool(was.Pools[i].Name)
		if p.Digest != was.Pools[i].Digest || p.Settled {
			t.Errorf("pool %s: digest %s, was %s; settled %v", p.Name, p.Digest, was.Pools[i].Digest, p.Settled)
		}
		for j := range p.Members {
			if m := &p.Members[j]; !m.Active || m.Number != was.Pools[i].Members[j].Number {
				t.Errorf("%s in %s: active %v, number %d", m.Name, p.Name, m.Active, m.Number)
			}
		}
	}
	judge(s, Up, s.Probes()...)
	if p := s.Snapshot().Pool("all"); !p.Settled || p.Stale() || p.Digest != was.Pool("all").Digest {
		t.Errorf("after verdicts: settled %v, stale %v", p.Settled, p.Stale())
	}
}

// TestNestedDeclared: OVSDB may declare members of a pool inside, and one that
// the outer pool has itself; that counts once.
func TestNestedDeclared(t *testing.T) {
	s := serving(t, strings.Replace(nestedWith("layout: v2"), "id: 2", "id: 2\n    from_ovsdb: true", 1))
	s.SetDeclared([]Declared{
		{Interface: "v6", Pool: "eu", Name: "be6", Address: be(6), Weight: 3, MAC: mac(6), OFPort: 2},
		{Interface: "v9", Pool: "eu", Name: "be9", Address: be(9), Weight: 3, MAC: mac(9), OFPort: 2},
	}, start)
	judge(s, Up, byTCP(be(6)), byTCP(be(9)))
	p := s.Snapshot().Pool("all")
	if m := p.Member(be(6).String()); m.Slots != 24 || m.Name != "eu/be6" {
		t.Errorf("be6: %+v", m)
	}
	if m := p.Member(be(9).String()); m.Slots != 16 || m.Name != "own" || len(p.Members) != 7 {
		t.Errorf("of %d members, own: %+v", len(p.Members), m)
	}
}

// TestWeigh: weights are whole, relate as they should, and have no common
// divisor.
func TestWeigh(t *testing.T) {
	for _, c := range []struct {
		groups []group
		want   []uint32
	}{
		{nil, []uint32{}},
		{[]group{{3, []uint32{1}}, {6, []uint32{1}}}, []uint32{1, 2}},
		{[]group{{3, []uint32{1, 2}}, {4, []uint32{2, 2}}, {1, []uint32{1}}}, []uint32{1, 2, 2, 2, 1}},
		{[]group{{1, []uint32{5, 5, 5}}, {1, []uint32{7, 7}}}, []uint32{2, 2, 2, 3, 3}},
		{[]group{{1, []uint32{0, 0}}, {1, []uint32{0, 7}}, {0, []uint32{1}}}, []uint32{0, 0, 0, 1, 0}},
		{[]group{{1, []uint32{1 << 30, 1}}, {1, []uint32{1}}}, []uint32{1 << 30, 1, 1<<30 + 1}},
	} {
		if got := weigh(c.groups); !slices.Equal(got, c.want) {
			t.Errorf("%v: %v, want %v", c.groups, got, c.want)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		var groups []group
		var exact []*big.Rat
		for range rapid.IntRange(1, 8).Draw(t, "groups") {
			g := group{
				weight: rapid.Uint64Range(0, MaxWeight*MaxPercent).Draw(t, "weight"),
				parts:  rapid.SliceOfN(rapid.Uint32Range(0, config.MaxAnchorWeight), 1, 8).Draw(t, "parts"),
			}
			sum, _ := sumOf(g.parts)
			for _, x := range g.parts {
				r := new(big.Rat)
				if sum > 0 {
					r.SetFrac(new(big.Int).Mul(new(big.Int).SetUint64(g.weight), big.NewInt(int64(x))), new(big.Int).SetUint64(sum))
				}
				exact = append(exact, r)
			}
			groups = append(groups, g)
		}
		weights := weigh(groups)
		greatest := slices.MaxFunc(exact, (*big.Rat).Cmp)
		if greatest.Sign() == 0 {
			return
		}
		top := weights[slices.Index(exact, greatest)]
		for i, w := range weights {
			ratio, _ := new(big.Rat).Quo(exact[i], greatest).Float64()
			if got := float64(w) / float64(top); w > config.MaxAnchorWeight || (w > 0) != (exact[i].Sign() > 0) || got-ratio > 1e-8 || ratio-got > 1e-8 {
				t.Fatalf("part %d of %v: %d of at most %d, which is %g, want %g", i, groups, w, top, got, ratio)
			}
		}
	})
}

// randomNest is a configuration of pools p0, p1, ..., each of which may be inside
// a later one, with rules.
func randomNest(t *rapid.T) string {
	var text strings.Builder
	text.WriteString("pools:\n")
	inside := map[int]int{} // by pool: how deep it is
	free := []int{}         // pools that are inside none
	next := 1
	for i := range rapid.IntRange(2, 6).Draw(t, "pools") {
		fmt.Fprintf(&text, "  p%d:\n    id: %d\n    slots: 64\n    from_ovsdb: true\n", i, i+1)
		fmt.Fprintf(&text, "    %s\n", rapid.SampledFrom([]string{"panic_below: 0%", "panic_below: 60%", "min_active: 2", "on_all_down: keep", "slow_start: 10s"}).Draw(t, "rule"))
		text.WriteString("    members:\n")
		for range rapid.IntRange(1, 3).Draw(t, "members") {
			fmt.Fprintf(&text, "      be%d: {address: 10.30.0.%d:80, weight: %d}\n", next, 10+next, rapid.IntRange(0, 3).Draw(t, "weight"))
			next++
		}
		var still []int
		for _, j := range free {
			if inside[j] < 4 && rapid.Bool().Draw(t, "inside") {
				fmt.Fprintf(&text, "      in%d: {pool: p%d, weight: %d}\n", j, j, rapid.IntRange(0, 5).Draw(t, "weight of pool"))
				inside[i] = max(inside[i], inside[j]+1)
			} else {
				still = append(still, j)
			}
		}
		free = append(still, i)
	}
	return text.String()
}

// TestNestedInvariants: whatever happens, slots have owners that are active, a
// member that is out of a pool is out of that around it, unless this one has an
// emergency, and a pool inside has its weight's share or none.
func TestNestedInvariants(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cfg, err := config.Parse("test.yaml", []byte(randomNest(t)))
		if err != nil {
			t.Fatal(err)
		}
		s := New(cfg, start)
		if err := s.LoadNumbers(""); err != nil {
			t.Fatal(err)
		}
		s.SetPorts([]Port{{Number: 1, Name: "p1", Live: true}}, start)
		now := start
		for range rapid.IntRange(1, 30).Draw(t, "events") {
			now = now.Add(time.Second)
			snap := s.Snapshot()
			p := &snap.Pools[rapid.IntRange(0, len(snap.Pools)-1).Draw(t, "pool")]
			m := &p.Members[rapid.IntRange(0, len(p.Members)-1).Draw(t, "member")]
			switch rapid.IntRange(0, 5).Draw(t, "event") {
			case 0, 1:
				s.SetVerdict(ProbeID{Address: m.Address, Check: m.Check}, Verdict{Health: rapid.SampledFrom([]Health{Up, Up, Down}).Draw(t, "health")}, now)
			case 2:
				for _, addr := range s.NextHops() {
					s.SetNextHop(addr, NextHop{Port: 1}, now)
				}
				judge(s, Up, s.Probes()...)
			case 3:
				o := Override{State: rapid.SampledFrom([]Admin{Enabled, Draining, Disabled}).Draw(t, "admin"), At: now}
				o.Weighting.To = rapid.SampledFrom([]Weight{"", "0", "50%", "7", "1000%"}).Draw(t, "override")
				s.SetOverride(m.ID, o)
			case 4:
				var declared []Declared
				for n := range rapid.IntRange(0, 3).Draw(t, "declared") {
					declared = append(declared, Declared{Interface: "v", Pool: p.Name, Address: be(n + rapid.IntRange(1, 20).Draw(t, "address")), Weight: 2})
				}
				s.SetDeclared(declared, now)
			case 5:
				s.Tick(now)
			}
			checkNest(t, s.Snapshot())
		}
	})
}

func checkNest(t *rapid.T, snap *Snapshot) {
	for i := range snap.Pools {
		p := &snap.Pools[i]
		for slot := range p.Slots {
			if m := p.Owner(slot); p.Table != nil && (m == nil || !m.Active) {
				t.Fatalf("pool %s: slot %d belongs to %+v", p.Name, slot, m)
			}
		}
		if len(p.Nested) == 0 {
			continue
		}
		parts := map[string]*big.Rat{} // of the pool directly inside, by name
		for j := range p.Members {
			m := &p.Members[j]
			if !m.Active && m.Part != 0 {
				t.Fatalf("%s has a part of %s, and is out: %s", m.Name, p.Name, m.Reason)
			}
			for _, n := range p.Nested {
				if at := snap.Pool(n.Pool).Member(m.ID.Key); at != nil && (at.ID == m.Origin || at.Origin == m.Origin && m.Origin != (MemberID{})) {
					if !at.Active && m.Active && p.Emergency == "" {
						t.Fatalf("%s is active in %s, and in %s, inside, %s", m.Name, p.Name, n.Pool, at.Reason)
					}
					if parts[n.Name] == nil {
						parts[n.Name] = new(big.Rat)
					}
					parts[n.Name].Add(parts[n.Name], new(big.Rat).SetInt64(int64(m.Part)))
				}
			}
		}
		var whole *big.Rat // what a weight of 1 is worth
		for _, n := range p.Nested {
			sum := parts[n.Name]
			if sum == nil || sum.Sign() == 0 {
				continue
			}
			one := new(big.Rat).Quo(sum, new(big.Rat).SetInt64(int64(n.Weight)))
			if whole == nil {
				whole = one
			}
			a, _ := one.Float64()
			b, _ := whole.Float64()
			if a/b > 1+1e-6 || b/a > 1+1e-6 {
				t.Fatalf("pool %s: the parts of %s are worth %v a weight, others' %v", p.Name, n.Name, a, b)
			}
		}
	}
}
