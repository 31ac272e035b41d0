package state

import (
	"fmt"
	"strings"
	"testing"

	"brlb/controller/config"
	"brlb/maglev"
)

// ofPool is a pool of members be1..beN with further settings.
func ofPool(n int, settings string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "pools:\n  web:\n    id: 1\n%s    members:\n", settings)
	for i := range n {
		fmt.Fprintf(&b, "      be%d: 10.30.0.%d:80\n", i+1, 11+i)
	}
	return b.String()
}

func web(s *State) *Pool { return s.Snapshot().Pool("web") }

func drainIt(s *State, key string) {
	s.SetOverride(MemberID{Pool: "web", Key: key}, Override{State: Draining, At: start})
}

func enableIt(s *State, key string) {
	s.SetOverride(MemberID{Pool: "web", Key: key}, Override{State: Enabled, At: start})
}

// The anchor is who the pool consists of at its first table. Members that come,
// go or change their weight leave it alone; a rebase renews it.
func TestAnchorStays(t *testing.T) {
	s := connected(t, ofPool(4, ""))
	if p := web(s); p.Anchor != nil || p.Version != "v2" {
		t.Errorf("before the first table: anchor %+v, version %q", p.Anchor, p.Version)
	}
	judge(s, Up, byTCP(be1))
	first := web(s).Anchor
	if first == nil || len(first.Members) != 4 || first.Digest != maglev.AnchorDigest(1, 1024, first.Members) || web(s).Stale() {
		t.Fatalf("with the first table: %+v", first)
	}
	judge(s, Up, s.Probes()...)
	full := web(s)
	if full.Anchor != first {
		t.Error("the anchor is another although nothing of it has changed")
	}
	s.SetConfig(parse(t, ofPool(3, "")), start)
	three := web(s)
	if three.Anchor != first || !three.Stale() {
		t.Errorf("after a removal: stale %v, %+v", three.Stale(), three.Anchor)
	}
	if c := maglev.Compare(full.Table, three.Table); c.Moved != 256 || c.Collateral != 0 {
		t.Errorf("the removal moves %d, collateral %d", c.Moved, c.Collateral)
	}
	rebased := three.Rebased()
	s.Rebase("web")
	after := web(s)
	if after.Stale() || after.Anchor == first || len(after.Anchor.Members) != 3 || after.Digest != rebased.Digest() || after.Digest == three.Digest {
		t.Errorf("after the rebase: digest %s, foretold %s, before %s", after.Digest, rebased.Digest(), three.Digest)
	}
	s.SetConfig(parse(t, ofPool(3, "    slots: 2048\n")), start)
	if p := web(s); p.Anchor.Digest == after.Anchor.Digest || p.Problem != "" {
		t.Error("the anchor's digest says nothing of the number of slots")
	}
}

// A state that loads the stored anchor has the same table from the start.
func TestAnchorIsLoaded(t *testing.T) {
	s := serving(t, ofPool(4, ""))
	s.SetConfig(parse(t, ofPool(3, "")), start)
	want := web(s)
	again := New(parse(t, ofPool(3, "")), start)
	again.LoadAnchors(s.Anchors())
	if err := again.LoadNumbers(s.Numbers()); err != nil {
		t.Fatal(err)
	}
	again.SetPorts([]Port{{Number: 2, Name: "p2", Live: true}}, start)
	for _, addr := range again.NextHops() {
		again.SetNextHop(addr, NextHop{MAC: mac(1), Port: 2}, start)
	}
	judge(again, Up, again.Probes()...)
	if got := web(again); got.Digest != want.Digest || got.Anchor.Digest != want.Anchor.Digest {
		t.Errorf("loaded: %s with anchor %s, want %s with %s", got.Digest, got.Anchor.Digest, want.Digest, want.Anchor.Digest)
	}
}

// What is pinned wins, and stays in force when the pin is removed. Other
// layouts have no anchor, but forget none.
func TestAnchorIsPinned(t *testing.T) {
	s := serving(t, ofPool(3, ""))
	before := web(s)
	pinned := "    anchor: {a: 10.30.0.19:80, b: {address: 10.30.0.11:80, weight: 3}}\n"
	s.SetConfig(parse(t, ofPool(3, pinned)), start)
	p := web(s)
	want := []maglev.Member{{Key: "10.30.0.11:80", Weight: 3}, {Key: "10.30.0.19:80", Weight: 1}}
	if !p.Anchor.Pinned || fmt.Sprint(p.Anchor.Members) != fmt.Sprint(want) || p.Digest == before.Digest {
		t.Errorf("pinned: %+v", p.Anchor)
	}
	s.Rebase("web")
	if web(s).Anchor.Digest != p.Anchor.Digest {
		t.Error("a rebase has replaced a pinned anchor")
	}
	s.SetConfig(parse(t, ofPool(3, "    layout: v1\n")), start)
	if p := web(s); p.Anchor != nil || p.Version != "v1" {
		t.Errorf("layout v1: version %s, anchor %+v", p.Version, p.Anchor)
	}
	s.SetConfig(parse(t, ofPool(3, "")), start)
	if now := web(s); now.Anchor.Pinned || now.Digest != p.Digest {
		t.Errorf("with the pin removed: %+v", now.Anchor)
	}
}

// An anchor with more members than there are slots is of no use: the pool's
// members take its place.
func TestAnchorThatDoesNotFit(t *testing.T) {
	s := serving(t, ofPool(100, "    slots: 128\n"))
	s.SetConfig(parse(t, ofPool(50, "    slots: 64\n")), start)
	if p := web(s); p.Problem != "" || p.Table == nil || len(p.Anchor.Members) != 50 {
		t.Errorf("problem %q, anchor of %d members", p.Problem, len(p.Anchor.Members))
	}
}

// Sticky moves the least at every step, and goes on from what the switch holds.
func TestSticky(t *testing.T) {
	s := serving(t, ofPool(4, "    layout: sticky\n"))
	before := web(s)
	last := before
	step := func(what string, change func(*State, string), key string) {
		t.Helper()
		change(s, key)
		now := web(s)
		if c := maglev.Compare(last.Table, now.Table); c.Moved == 0 || c.Moved != c.LowerBound || c.Collateral != 0 {
			t.Errorf("%s: %d moved, bound %d, collateral %d", what, c.Moved, c.LowerBound, c.Collateral)
		}
		last = now
	}
	step("be1 leaves", drainIt, "10.30.0.11:80")
	step("be2 leaves", drainIt, "10.30.0.12:80")
	step("be1 comes back", enableIt, "10.30.0.11:80")
	step("be2 comes back", enableIt, "10.30.0.12:80")
	if last.Digest == before.Digest {
		t.Fatal("the table has no history: the test tests nothing")
	}

	again := New(parse(t, ofPool(4, "    layout: sticky\n")), start)
	if err := again.LoadNumbers(s.Numbers()); err != nil {
		t.Fatal(err)
	}
	again.SetPorts([]Port{{Number: 2, Name: "p2", Live: true}}, start)
	var held []Adopted
	for i := range last.Members {
		m := &last.Members[i]
		a := Adopted{Number: m.Number, PoolID: 1, Address: m.Address, Next: NextHop{MAC: mac(1), Port: 2}, HasNext: true}
		for slot := range last.Slots {
			if last.Table.Key(slot) == m.ID.Key {
				a.Slots = append(a.Slots, uint16(slot))
			}
		}
		held = append(held, a)
	}
	again.Adopt(held, start)
	if now := web(again); now.Digest != last.Digest {
		t.Errorf("after a restart the digest is %s, before it was %s", now.Digest, last.Digest)
	}
	// Members that are judged one by one do not make history.
	judge(again, Up, byTCP(be1), byTCP(be2))
	web(again)
	judge(again, Up, again.Probes()...)
	if now := web(again); now.Digest != last.Digest || !now.Settled {
		t.Errorf("when all are judged the digest is %s, before it was %s", now.Digest, last.Digest)
	}
}

// Slack, pins and domains reach the layout, and a change of theirs makes a new
// table.
func TestLayoutSettings(t *testing.T) {
	s := serving(t, ofPool(3, ""))
	plain := web(s)
	owner := plain.Owner(17)
	other := "be1"
	if owner.Name == other {
		other = "be2"
	}
	s.SetConfig(parse(t, ofPool(3, "    pins: {17: "+other+"}\n")), start)
	if p := web(s); p.Owner(17).Name != other || p.Digest == plain.Digest {
		t.Errorf("slot 17 is pinned to %s and belongs to %s", other, p.Owner(17).Name)
	}
	s.SetConfig(parse(t, ofPool(3, "    layout: ring\n")), start)
	if p := web(s); p.Version != "ring-1" || p.Owner(17) == nil {
		t.Errorf("layout ring: version %s", p.Version)
	}
	domains := strings.NewReplacer("be1: 10.30.0.11:80", "be1: {address: 10.30.0.11:80, domain: a}", "be2: 10.30.0.12:80", "be2: {address: 10.30.0.12:80, domain: a}",
		"be3: 10.30.0.13:80", "be3: {address: 10.30.0.13:80, domain: b}").Replace(ofPool(3, "    layout: crush\n"))
	flat := serving(t, ofPool(3, "    layout: crush\n"))
	deep := serving(t, domains)
	if a, b := web(flat), web(deep); a.Digest == b.Digest || b.Table.Members[2].Domain != "b" {
		t.Errorf("domains change nothing: %+v", b.Table.Members)
	}
}

// While nothing changes nothing is built; copies are independent.
func TestCopiesBuildTheirOwn(t *testing.T) {
	s := serving(t, ofPool(4, ""))
	p := web(s)
	c := s.Clone()
	c.EditPool("web", func(p *config.Pool) { p.Layout = "v1" })
	c.SetOverride(inWeb(be1), Override{Weighting: Weighting{To: "9"}})
	c.RemoveMember(MemberID{Pool: "web", Key: "10.30.0.12:80"})
	c.AddMember("web", config.Member{Name: "be9", Address: be9, Weight: 2})
	copied := web(c)
	if m := copied.Member(be9.String()); copied.Version != "v1" || len(copied.Members) != 4 || m == nil || m.Slots == 0 || copied.Members[0].Weight != 9 {
		t.Errorf("the copy: version %s, %+v", copied.Version, copied.Members)
	}
	s.Tick(after(1))
	if now := web(s); now.Table != p.Table || now.Version != "v2" || len(now.Members) != 4 || now.Members[0].Weight != 1 {
		t.Error("a change of a copy has changed the original")
	}
}
