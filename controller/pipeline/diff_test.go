package pipeline

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"brlb/controller/state"
	"brlb/openflow"
)

// table is a flow table that does what a switch does with ADD and
// DELETE_STRICT. It knows nothing of groups and encoded rows.
type table map[string]*openflow.FlowMod

func place(f *openflow.FlowMod) string {
	return fmt.Sprintf("table=%d priority=%d %v", f.Table, f.Priority, f.Match)
}

func (t table) apply(r testing.TB, mods []openflow.Message) {
	for _, m := range mods {
		f := m.(*openflow.FlowMod)
		switch f.Command {
		case openflow.FlowAdd:
			t[place(f)] = onWire(r, f)
		case openflow.FlowDeleteStrict:
			if old := t[place(f)]; old != nil && (old.Cookie^f.Cookie)&f.CookieMask == 0 {
				delete(t, place(f))
			}
		default:
			r.Fatalf("unexpected %s", f)
		}
	}
}

// stats is the table as a switch tells of it, after a trip over the wire.
func (t table) stats(r testing.TB) []openflow.FlowStats {
	var list openflow.FlowStatsReply
	for _, f := range t {
		list = append(list, openflow.FlowStats{
			Table: f.Table, Priority: f.Priority, Cookie: f.Cookie, Match: f.Match, Instructions: f.Instructions,
			DurationSec: 12, PacketCount: 34, ByteCount: 56,
		})
	}
	var back []openflow.FlowStats
	for part := range slices.Chunk(list, 100) {
		b, err := openflow.Append(nil, 1, &openflow.MultipartReply{Body: part})
		if err != nil {
			r.Fatal(err)
		}
		_, m, err := openflow.Parse(b)
		if err != nil {
			r.Fatal(err)
		}
		back = append(back, m.(*openflow.MultipartReply).Body.(openflow.FlowStatsReply)...)
	}
	return back
}

func (t table) text() string {
	var lines []string
	for _, f := range t {
		lines = append(lines, f.String())
	}
	slices.Sort(lines)
	return fmt.Sprint(lines)
}

func tableOf(r testing.TB, s Set) table {
	t := table{}
	for _, f := range s.Flows() {
		t[place(f)] = onWire(r, f)
	}
	return t
}

// onWire returns a flow as it is after a trip over the wire, where notes are padded.
func onWire(t testing.TB, f *openflow.FlowMod) *openflow.FlowMod {
	b, err := openflow.Append(nil, 1, f)
	if err != nil {
		t.Fatal(err)
	}
	_, m, err := openflow.Parse(b)
	if err != nil {
		t.Fatal(err)
	}
	return m.(*openflow.FlowMod)
}

func sameSet(a, b Set) bool {
	return len(Diff(a, b, nothingHeld).Mods) == 0 && len(Diff(b, a, nothingHeld).Mods) == 0
}

const behindPort80 = `
mac: 02:00:5e:00:01:02
zone: 5
pools:
  web: {id: 1, mode: dsr, slots: 64, members: {be1: 10.30.0.11:80, be2: 10.30.0.12:80}}
services:
  web: {address: 10.20.0.100, ports: [80/tcp], pool: web}
`

// Variants of a configuration between which the properties move.
var variants = []string{
	small,
	"miss: drop" + small,
	`
mac: 02:00:5e:00:01:09
zone: 6
pools:
  web: {id: 1, slots: 128, members: {be1: 10.30.0.11:8080, be4: 10.30.0.14:8080}}
  new: {id: 3, slots: 64, members: {be1: 10.30.0.11:8080, be2: 10.30.0.12:8080}}
services:
  web: {address: 10.20.0.100, ports: [80/tcp, 81/tcp], pool: new}
  old: {address: 10.20.0.100, ports: [82/tcp], pool: web}
`,
	behindPort80,
	strings.Replace(behindPort80, "mode: dsr, ", "", 1),
	`{pools: {tls: {id: 2, slots: 64, members: {be1: {address: 10.30.0.11:8443, weight: 0}, be2: 10.30.0.12:8443}}}}`,
}

// wander changes a state at random.
func wander(t *rapid.T, r testing.TB, s *state.State) {
	for range rapid.IntRange(0, 6).Draw(t, "steps") {
		now := start.Add(time.Duration(rapid.IntRange(0, 20).Draw(t, "second")) * time.Second)
		probes, hops := s.Probes(), s.NextHops()
		switch rapid.IntRange(0, 5).Draw(t, "do") {
		case 0, 1:
			if len(probes) > 0 {
				h := rapid.SampledFrom([]state.Health{state.Up, state.Down, state.Unknown}).Draw(t, "health")
				s.SetVerdict(rapid.SampledFrom(probes).Draw(t, "probe"), state.Verdict{Health: h}, now)
			}
		case 2:
			for i, addr := range hops {
				s.SetNextHop(addr, hop(i+rapid.IntRange(0, 2).Draw(t, "hop")), now)
			}
		case 3:
			s.SetConfig(parse(r, rapid.SampledFrom(variants).Draw(t, "config")), now)
		case 4:
			id := state.MemberID{Pool: "web", Key: "10.30.0.11:8080"}
			s.SetOverride(id, state.Override{State: rapid.SampledFrom([]state.Admin{state.Enabled, state.Draining}).Draw(t, "admin"), At: now})
		case 5:
			s.Tick(now)
		}
	}
}

func randomState(t *rapid.T, r testing.TB) *state.State {
	s := reachable(r, rapid.SampledFrom(variants).Draw(t, "first"))
	wander(t, r, s)
	return s
}

func TestRenderedSets(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		s := randomState(rt, t)
		set := render(t, s.Snapshot())
		if again := render(t, s.Clone().Snapshot()); text(again) != text(set) || !sameWire(again, set) {
			rt.Fatal("the same snapshot gives other flows")
		}
		places := map[string]bool{}
		for _, f := range set.Flows() {
			if !IsOwn(f.Cookie) {
				rt.Fatalf("no tag: %s", f)
			}
			if places[place(f)] {
				rt.Fatalf("two flows in one place: %s", f)
			}
			places[place(f)] = true
		}
		if len(places) != set.Len() {
			rt.Fatalf("Len says %d, there are %d", set.Len(), len(places))
		}
		for id, g := range set {
			for i := range g.Rows {
				kind, pool, _ := CookieParts(g.Rows[i].Mod.Cookie)
				if (GroupID{kind, pool}) != id {
					rt.Fatalf("in group %v: %s", id, g.Rows[i].Mod)
				}
				if i > 0 && g.Rows[i-1].compare(&g.Rows[i]) >= 0 {
					rt.Fatalf("group %v is not sorted", id)
				}
			}
		}
	})
}

func sameWire(a, b Set) bool {
	if len(a) != len(b) {
		return false
	}
	for id := range a {
		if b[id] == nil || !slices.EqualFunc(a[id].Rows, b[id].Rows, func(x, y Row) bool { return x.compare(&y) == 0 && x.Wire == y.Wire }) {
			return false
		}
	}
	return true
}

// Whatever the switch holds, the plan leads to what it should hold: by way of
// the plan's own account, of a table that executes it, and of what that table
// tells over the wire.
func TestDiffLeadsToDesired(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		s := randomState(rt, t)
		r := NewRenderer()
		installed := Set{}
		sw := table{}
		foreign := openflow.NewFlowMod(openflow.FlowAdd)
		foreign.Table, foreign.Priority, foreign.Cookie = TableSlots, 7, 0xabc
		sw[place(foreign)] = foreign
		for range 3 {
			desired, held, err := r.Render(s.Snapshot())
			if err != nil {
				rt.Fatal(err)
			}
			if !sameWire(desired, render(t, s.Snapshot())) {
				rt.Fatal("a renderer with a past gives other flows than a new one")
			}
			if rapid.Bool().Draw(rt, "spoil") {
				installed = spoil(rt, t, sw, foreign)
			}
			before := maps.Clone(sw)
			plan := Diff(installed, desired, held)
			sw.apply(t, plan.Mods)
			if plan.Added+plan.Deleted != len(plan.Mods) {
				rt.Fatalf("%d added, %d deleted, %d mods", plan.Added, plan.Deleted, len(plan.Mods))
			}
			if got := tableOf(t, plan.Result); got.text() != own(sw).text() {
				rt.Fatalf("the plan says\n%s\nthe switch holds\n%s", got.text(), sw.text())
			}
			if sw[place(foreign)] != foreign {
				rt.Fatal("somebody else's flow was touched")
			}
			checkHeld(rt, t, before, sw, desired, held)
			read, err := FromSwitch(sw.stats(t))
			if err != nil {
				rt.Fatal(err)
			}
			if !sameSet(read, plan.Result) {
				rt.Fatal("what the switch tells differs from the plan's result")
			}
			if again := Diff(read, desired, held); len(again.Mods) != 0 {
				rt.Fatalf("a second plan changes %v", again.Mods)
			}
			installed = plan.Result
			wander(rt, t, s)
		}
	})
}

// spoil does to some rows what somebody else might do, and reads the switch.
func spoil(rt *rapid.T, t testing.TB, sw table, foreign *openflow.FlowMod) Set {
	for _, name := range sortedPlaces(sw) {
		if name == place(foreign) {
			continue
		}
		f := *sw[name]
		switch rapid.IntRange(0, 9).Draw(rt, "harm") {
		case 0:
			delete(sw, name)
		case 1:
			f.Instructions = nil
			sw[name] = &f
		case 2: // somebody's flow in the place of ours
			f.Cookie = 0x77
			sw[name] = &f
		case 3: // a cookie of another group
			f.Cookie = Cookie(KindHash, 77, 0)
			sw[name] = &f
		}
	}
	read, err := FromSwitch(sw.stats(t))
	if err != nil {
		rt.Fatal(err)
	}
	return read
}

func sortedPlaces(t table) []string {
	return slices.Sorted(maps.Keys(t))
}

// own returns the flows that carry brlb's tag.
func own(t table) table {
	c := table{}
	for name, f := range t {
		if IsOwn(f.Cookie) {
			c[name] = f
		}
	}
	return c
}

// checkHeld demands that held rows have not changed, and that all others are
// what they should be.
func checkHeld(rt *rapid.T, t testing.TB, before, now table, desired Set, held func(GroupID) bool) {
	want := tableOf(t, desired)
	for name, f := range before {
		kind, pool, _ := CookieParts(f.Cookie)
		if id := (GroupID{kind, pool}); IsOwn(f.Cookie) && held(id) && now[name] == nil {
			rt.Fatalf("held, but deleted: %s", f)
		} else if IsOwn(f.Cookie) && held(id) && pool != 0 && want[name] == nil && now[name].String() != f.String() {
			rt.Fatalf("held, but changed: %s", f)
		}
	}
	for name, f := range want {
		kind, pool, _ := CookieParts(f.Cookie)
		if id := (GroupID{kind, pool}); (!held(id) || pool == 0) && (now[name] == nil || now[name].String() != f.String()) {
			rt.Fatalf("missing: %s", f)
		}
	}
}

func TestDiffOfEqualsIsEmpty(t *testing.T) {
	set := render(t, serving(t, small).Snapshot())
	if plan := Diff(set, set, nothingHeld); len(plan.Mods) != 0 || !sameSet(plan.Result, set) {
		t.Errorf("%d mods", len(plan.Mods))
	}
	if plan := Diff(nil, nil, nothingHeld); len(plan.Mods) != 0 || len(plan.Result) != 0 {
		t.Errorf("of nothing: %+v", plan)
	}
}

func TestOnlyChangedRowsAreSent(t *testing.T) {
	s := serving(t, small)
	before := s.Snapshot()
	old := render(t, before)
	judge(s, state.Down, byTCP("10.30.0.12:8080"))
	after := s.Snapshot()
	plan := Diff(old, render(t, after), nothingHeld)
	changed := 0
	for slot := range 64 {
		if before.Pool("web").Owner(slot).Name != after.Pool("web").Owner(slot).Name {
			changed++
		}
	}
	var slots, others []string
	for _, m := range plan.Mods {
		f := m.(*openflow.FlowMod)
		if kind, _, _ := CookieParts(f.Cookie); kind == KindSlot {
			slots = append(slots, f.String())
		} else {
			others = append(others, f.String())
		}
	}
	if len(slots) != changed || changed == 0 {
		t.Errorf("%d rows for %d slots that changed", len(slots), changed)
	}
	// Beyond the slots: a reused port must not lead to be2 any more.
	number := after.Pool("web").Member("10.30.0.12:8080").Number
	want := fmt.Sprintf("DEL_STRICT table:2 priority=400,ct_state=-inv+trk,ct_mark=%#x,tcp,tcp_flags=+syn-ack cookie:0xb71b000000000000/0xffff000000000000 actions=drop", Mark(1, number))
	if len(others) != 1 || others[0] != want {
		t.Errorf("got  %q\nwant %q", others, want)
	}
}

func TestDeletesComeFirstAndSpareOthers(t *testing.T) {
	set := render(t, serving(t, small).Snapshot())
	plan := Diff(set, Set{}, nothingHeld)
	if plan.Deleted != set.Len() || plan.Added != 0 || plan.Result.Len() != 0 {
		t.Errorf("%d of %d deleted", plan.Deleted, set.Len())
	}
	for _, m := range plan.Mods {
		f := m.(*openflow.FlowMod)
		if f.Command != openflow.FlowDeleteStrict || f.CookieMask != CookieMask || f.Cookie != Cookie(0, 0, 0) || len(f.Instructions) != 0 ||
			f.OutPort != openflow.PortAny || f.OutGroup != openflow.GroupAny {
			t.Fatalf("%s", f)
		}
	}
	other := render(t, serving(t, variants[2]).Snapshot())
	added := false
	for _, m := range Diff(set, other, nothingHeld).Mods {
		switch f := m.(*openflow.FlowMod); {
		case f.Command == openflow.FlowAdd:
			added = true
			if f.Flags != 0 || f.IdleTimeout != 0 || f.HardTimeout != 0 {
				t.Fatalf("%s", f)
			}
		case added:
			t.Fatalf("a delete after an add: %s", f)
		}
	}
}

func TestFromSwitchLeavesOthersOut(t *testing.T) {
	set, err := FromSwitch([]openflow.FlowStats{
		{Table: 11, Priority: 100, Cookie: 0x1234},
		{Table: 11, Priority: 100, Cookie: Cookie(KindSlot, 1, 1), Match: openflow.Match{openflow.Reg0.Exact(1)}},
		{Table: 99, Priority: 5, Cookie: Cookie(200, 9, 1)},
	})
	if err != nil || set.Len() != 2 {
		t.Fatalf("%v, %v", set, err)
	}
	desired := render(t, serving(t, small).Snapshot())
	plan := Diff(set, desired, nothingHeld)
	if plan.Deleted != 2 || plan.Added != desired.Len() {
		t.Errorf("%d deleted, %d added", plan.Deleted, plan.Added)
	}
}

// A flow of ours to which somebody gave a timeout or a flag is not ours as it
// should be.
func TestTimeoutsAndFlagsAreDrift(t *testing.T) {
	desired := render(t, serving(t, small).Snapshot())
	for name, change := range map[string]func(*openflow.FlowStats){
		"idle":       func(f *openflow.FlowStats) { f.IdleTimeout = 9 },
		"hard":       func(f *openflow.FlowStats) { f.HardTimeout = 9 },
		"flags":      func(f *openflow.FlowStats) { f.Flags = openflow.FlowSendFlowRem },
		"importance": func(f *openflow.FlowStats) { f.Importance = 1 },
		"cookie":     func(f *openflow.FlowStats) { f.Cookie++ },
	} {
		stats := tableOf(t, desired).stats(t)
		change(&stats[0])
		read, err := FromSwitch(stats)
		if err != nil {
			t.Fatal(err)
		}
		if plan := Diff(read, desired, nothingHeld); plan.Added != 1 {
			t.Errorf("%s: %d added", name, plan.Added)
		}
	}
}
