package pipeline

import (
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"brlb/controller/state"
	"brlb/openflow"
)

func TestRendererReusesWhatHasNotChanged(t *testing.T) {
	s := serving(t, small)
	r := NewRenderer()
	first, _, err := r.Render(s.Snapshot())
	if err != nil {
		t.Fatal(err)
	}
	judge(s, state.Down, byTCP("10.30.0.12:8080"))
	second, _, err := r.Render(s.Snapshot())
	if err != nil {
		t.Fatal(err)
	}
	for _, kind := range []Kind{KindHash, KindSlot, KindMember} {
		if id := (GroupID{kind, 2}); first[id] == nil || first[id] != second[id] {
			t.Errorf("group %v was rendered again although nothing in its pool has changed", id)
		}
		if id := (GroupID{kind, 1}); first[id] == second[id] {
			t.Errorf("group %v was not rendered again", id)
		}
	}
	slots := GroupID{KindSlot, 1}
	kept := 0
	for i := range first[slots].Rows {
		before, _ := SlotOwner(first[slots].Rows[i].Mod)
		now, _ := SlotOwner(second[slots].Rows[i].Mod)
		if same := first[slots].Rows[i].Mod == second[slots].Rows[i].Mod; same != (before == now) {
			t.Errorf("slot %d went from %d to %d; the same row: %v", i, before, now, same)
		} else if same {
			kept++
		}
	}
	if kept == 0 || kept == 64 {
		t.Errorf("%d of 64 slots keep their owner", kept)
	}
	before := map[*openflow.FlowMod]bool{}
	for _, row := range first[GroupID{KindMember, 1}].Rows {
		before[row.Mod] = true
	}
	down, again := s.Snapshot().Pool("web").Member("10.30.0.12:8080").Number, 0
	for _, row := range second[GroupID{KindMember, 1}].Rows {
		_, _, number := CookieParts(row.Mod.Cookie)
		if same := before[row.Mod]; same == (number == uint32(down)) {
			t.Errorf("%s: the same row: %v", row.Mod, same)
		} else if !same {
			again++
		}
	}
	if again == 0 {
		t.Error("a member has no rows")
	}
	for _, id := range []GroupID{{KindBase, 0}, {KindReply, 0}, {KindService, 1}} {
		if first[id] != second[id] {
			t.Errorf("group %v was rendered again although nothing has changed for it", id)
		}
	}
	s.SetConfig(parse(t, strings.Replace(small, "zone: 5", "zone: 6", 1)), start)
	third, _, err := r.Render(s.Snapshot())
	if err != nil {
		t.Fatal(err)
	}
	if !sameWire(third, render(t, s.Snapshot())) {
		t.Error("another zone, but some flows are of the old one")
	}
}

// What a pool's VIP answers depends on whether connections find members.
func TestAnswersForVIPs(t *testing.T) {
	answers := func(set Set, addr string) bool {
		return strings.Contains(text(set), "arp_tpa="+addr+",arp_op=1")
	}
	s := serving(t, small)
	set := render(t, s.Snapshot())
	for _, addr := range []string{"10.20.0.100", "10.20.0.101", "10.30.0.1"} {
		if !answers(set, addr) {
			t.Errorf("no answer for %s", addr)
		}
	}
	// 10.20.0.101 belongs to tls alone, 10.20.0.100 to web too.
	judge(s, state.Down, byTCP("10.30.0.11:8443"))
	set = render(t, s.Snapshot())
	if answers(set, "10.20.0.101") || !answers(set, "10.20.0.100") {
		t.Error("without tls: 10.20.0.100 must answer and 10.20.0.101 not")
	}
	judge(s, state.Down, s.Probes()...)
	set = render(t, s.Snapshot())
	if answers(set, "10.20.0.100") || !answers(set, "10.30.0.1") {
		t.Error("without members: only the gateway must answer")
	}
	if !strings.Contains(text(set), "priority=30000,ip,nw_dst=10.20.0.100 ") {
		t.Error("packets to a VIP that nobody serves are not dropped")
	}
}

// While a pool waits for first verdicts, what the switch holds of it stays, and
// so do answers and replies; the others' pools go on.
func TestHeldWhileWaiting(t *testing.T) {
	old := serving(t, small)
	installed := render(t, old.Snapshot())

	s := state.New(parse(t, strings.Replace(small, "be2: 10.30.0.12:8080", "be4: 10.30.0.14:8080", 1)), start)
	s.SetPorts([]state.Port{{Number: 2, Name: "p2", Live: true}}, start)
	s.Adopt(Members(installed), start)
	if err := s.LoadNumbers(old.Numbers()); err != nil {
		t.Fatal(err)
	}
	judge(s, state.Up, byTCP("10.30.0.11:8443"))
	judge(s, state.Down, byTCP("10.30.0.11:8080"))
	desired, held, err := NewRenderer().Render(s.Snapshot())
	if err != nil {
		t.Fatal(err)
	}
	plan := Diff(installed, desired, held)
	if len(plan.Mods) != 2 || !strings.Contains(plan.Mods[0].(*openflow.FlowMod).String(), "arp_spa=10.30.0.14") ||
		!strings.Contains(plan.Mods[1].(*openflow.FlowMod).String(), "nw_src=10.30.0.14,tp_src=8080") {
		t.Errorf("while web waits, only what be4 announces and answers is new; sent %v", plan.Mods)
	}
	for id, want := range map[GroupID]bool{
		{KindSlot, 1}: true, {KindMember, 1}: true, {KindHash, 1}: true, {KindOwn, 0}: true, {KindReply, 0}: true,
		{KindSlot, 2}: false, {KindBase, 0}: false, {KindService, 1}: false, {KindSlot, 9}: false,
	} {
		if held(id) != want {
			t.Errorf("group %v held: %v", id, held(id))
		}
	}
	// The wait is over.
	s.Tick(start.Add(time.Minute))
	desired, held, err = NewRenderer().Render(s.Snapshot())
	if err != nil {
		t.Fatal(err)
	}
	plan = Diff(plan.Result, desired, held)
	if !sameSet(plan.Result, desired) || strings.Contains(text(plan.Result), "nw_src=10.30.0.12,tp_src=8080") {
		t.Error("after the wait the switch does not hold what it should")
	}
}

// On an empty switch, a VIP answers when its pool serves, though others wait.
func TestOnePoolWaitsOneServes(t *testing.T) {
	s := reachable(t, small)
	judge(s, state.Up, byTCP("10.30.0.11:8443"), byTCP("10.30.0.11:8080"))
	desired, held, err := NewRenderer().Render(s.Snapshot())
	if err != nil {
		t.Fatal(err)
	}
	got := text(Diff(Set{}, desired, held).Result)
	for part, want := range map[string]bool{
		"arp_tpa=10.20.0.101,":         true,  // tls serves
		"table:11 priority=100,reg0=2": false, // see below
		"reg0=0x2,reg1=0x3f ":          true,
		"reg0=0x1,reg1=0 ":             false, // web waits
		"nw_src=10.30.0.11,tp_src=808": true,
	} {
		if strings.Contains(got, part) != want {
			t.Errorf("%q there: %v", part, !want)
		}
	}
}

func TestMembersOfASwitch(t *testing.T) {
	s := serving(t, small)
	s.SetOverride(state.MemberID{Pool: "web", Key: "10.30.0.12:8080"}, state.Override{State: state.Draining, At: start})
	snap := s.Snapshot()
	read, err := FromSwitch(tableOf(t, render(t, snap)).stats(t))
	if err != nil {
		t.Fatal(err)
	}
	found := Members(read)
	var want []state.Adopted
	for i := range snap.Pools {
		p := &snap.Pools[i]
		for j := range p.Members {
			m := &p.Members[j]
			next := m.Next
			next.Source = ""
			var slots []uint16
			for slot := range p.Slots {
				if p.Owner(slot) == m {
					slots = append(slots, uint16(slot))
				}
			}
			want = append(want, state.Adopted{
				Number: m.Number, PoolID: p.ID, Address: m.Address, Next: next, HasNext: true, Slots: slots,
			})
		}
	}
	slices.SortFunc(want, func(a, b state.Adopted) int { return int(a.Number) - int(b.Number) })
	if diff := cmp.Diff(want, found, cmp.Comparer(func(a, b netip.AddrPort) bool { return a == b })); diff != "" {
		t.Errorf("found (-want +got):\n%s", diff)
	}
	// A state that adopts them renders what is there.
	again := state.New(s.Config(), start)
	again.SetPorts(snap.Ports, start)
	again.SetOverride(state.MemberID{Pool: "web", Key: "10.30.0.12:8080"}, state.Override{State: state.Draining, At: start})
	again.Adopt(found, start)
	if err := again.LoadNumbers(""); err != nil {
		t.Fatal(err)
	}
	for _, when := range []string{"before the first verdicts", "after them"} {
		desired, held, err := NewRenderer().Render(again.Snapshot())
		if err != nil {
			t.Fatal(err)
		}
		if plan := Diff(read, desired, held); len(plan.Mods) != 0 {
			t.Errorf("a restart, %s: %d flow-mods: %v", when, len(plan.Mods), plan.Mods[0])
		}
		judge(again, state.Up, again.Probes()...)
	}
}

// Rows that brlb does not write must not mislead it.
func TestMembersOfStrangeRows(t *testing.T) {
	number := openflow.Reg2.Exact(7)
	nat := func(addr string) openflow.Instructions {
		a := netip.MustParseAddrPort(addr)
		return openflow.Instructions{apply(openflow.CT{Commit: true, Exec: []openflow.Action{
			openflow.NAT{Flags: openflow.NATDst, MinAddr: a.Addr(), MinPort: a.Port()}}})}
	}
	cases := []struct {
		name  string
		flows []openflow.FlowStats
		want  int
	}{
		{"no rows", nil, 0},
		{"no NAT", []openflow.FlowStats{{Table: TableMember, Cookie: Cookie(KindMember, 1, 7), Match: openflow.Match{number}}}, 0},
		{"a next hop but no address", []openflow.FlowStats{{Table: TableToMember, Cookie: Cookie(KindMember, 1, 7), Match: openflow.Match{number},
			Instructions: openflow.Instructions{apply(set(openflow.EthDst.MAC(openflow.MAC{2, 1})), output(3))}}}, 0},
		{"an address but no next hop", []openflow.FlowStats{{Table: TableMember, Cookie: Cookie(KindMember, 1, 7), Match: openflow.Match{number}, Instructions: nat("10.0.0.1:80")}}, 1},
		{"a slot of nobody", []openflow.FlowStats{{Table: TableSlots, Cookie: Cookie(KindSlot, 1, 7), Match: openflow.Match{number}}}, 0},
		{"a slot with a number that is too large", []openflow.FlowStats{{Table: TableSlots, Cookie: Cookie(KindSlot, 1, 7), Match: openflow.Match{number},
			Instructions: openflow.Instructions{apply(openflow.RegLoad{Dst: openflow.Reg2.Whole(), Value: 70000})}}}, 0},
		{"a member's cookie in another table", []openflow.FlowStats{{Table: 77, Cookie: Cookie(KindMember, 1, 7), Match: openflow.Match{number}, Instructions: nat("10.0.0.1:80")}}, 0},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			set, err := FromSwitch(c.flows)
			if err != nil {
				t.Fatal(err)
			}
			found := Members(set)
			if len(found) != c.want {
				t.Errorf("%+v", found)
			}
			for _, m := range found {
				if m.HasNext || len(m.Slots) != 0 {
					t.Errorf("%+v", m)
				}
			}
		})
	}
}

func TestLinksAndSlotOwner(t *testing.T) {
	for _, slots := range []string{"64", "1024", "65536"} {
		set := render(t, serving(t, `{pools: {web: {id: 1, slots: `+slots+`, members: {a: 10.0.0.1:1}}}}`).Snapshot())
		links, ok := Links(set[GroupID{KindHash, 1}].Rows[0].Mod)
		if !ok || links != len(set[GroupID{KindSlot, 1}].Rows) {
			t.Errorf("%s slots: %d links, %d rows", slots, links, len(set[GroupID{KindSlot, 1}].Rows))
		}
		if owner, ok := SlotOwner(set[GroupID{KindSlot, 1}].Rows[0].Mod); !ok || owner != 1 {
			t.Errorf("owner %d %v", owner, ok)
		}
	}
	if _, ok := Links(openflow.NewFlowMod(openflow.FlowAdd)); ok {
		t.Error("a flow without multipath has links")
	}
}
