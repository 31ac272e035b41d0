package integration

import (
	"slices"
	"strings"
	"testing"
	"time"

	"brlb/controller/api"
	"brlb/integration/stand"
	"brlb/maglev"
)

// withLayout gives the stand's pool a layout, and settings of it, a line each.
func withLayout(config, layout string, settings ...string) string {
	lines := "    layout: " + layout + "\n"
	for _, s := range settings {
		lines += "    " + s + "\n"
	}
	return strings.Replace(config, "    id: 1\n", "    id: 1\n"+lines, 1)
}

// reload makes brlb take a configuration and waits until the switch has it.
func reload(t *testing.T, s *stand.Stand, config string) *api.ReloadResult {
	t.Helper()
	must(t, s.WriteConfig(config))
	result, err := s.API.Reload(t.Context(), api.ReloadRequest{})
	must(t, err)
	if !result.Confirmed {
		t.Fatalf("the switch has not confirmed the configuration: %+v", result)
	}
	return result
}

func slotsOf(t *testing.T, s *stand.Stand) *api.Slots {
	t.Helper()
	slots, err := s.API.Slots(t.Context(), "")
	must(t, err)
	return slots
}

// moved counts the slots whose owner differs, and those of them that did not
// belong to the member, before or after.
func moved(before, after *api.Slots, member string) (all, others int) {
	owner := func(s *api.Slots, slot int) string {
		if s.Owner[slot] < 0 {
			return ""
		}
		return s.Members[s.Owner[slot]]
	}
	for slot := range before.Owner {
		was, is := owner(before, slot), owner(after, slot)
		if was != is {
			all++
			if was != member && is != member {
				others++
			}
		}
	}
	return all, others
}

// verified demands that the switch holds what brlb says, invariant by invariant.
func verified(t *testing.T, s *stand.Stand) {
	t.Helper()
	verify, err := s.API.Verify(t.Context())
	must(t, err)
	for _, check := range verify.Checks {
		if !check.OK {
			t.Errorf("verify: %s: %s", check.Name, check.Detail)
		}
	}
}

// restart kills brlb, starts it again, and demands that it sends the switch
// nothing and has the same table.
func restart(t *testing.T, s *stand.Stand, active int) {
	t.Helper()
	before := slotsOf(t, s)
	s.Relay.ResetCounts()
	must(t, s.Kill())
	must(t, s.Start())
	await(t, s, "brlb back", stand.Steady(active))
	time.Sleep(500 * time.Millisecond)
	if n := s.Relay.FlowMods(); n != 0 {
		t.Errorf("the restart sent %d flow-mods", n)
	}
	if after := slotsOf(t, s); after.Digest != before.Digest {
		t.Errorf("digest %s after the restart, %s before", after.Digest, before.Digest)
	}
}

// With layout v2, a member that dies moves exactly the slots that must move, on
// the wire as well, and its return restores the table to the bit.
func TestAnchoredMemberDies(t *testing.T) {
	onUserspace(t, func(t *testing.T, s *stand.Stand) {
		before := slotsOf(t, s)
		if before.Version != "v2" || before.Anchor == nil || before.Anchor.Stale || len(before.Anchor.Members) != 4 {
			t.Fatalf("layout %s, anchor %+v", before.Version, before.Anchor)
		}
		s.Relay.ResetCounts()
		must(t, s.Servers[2].Kill())
		await(t, s, "be3 out", stand.Steady(3))
		all, others := moved(before, slotsOf(t, s), "be3")
		// Beside the slots' rows one of the member itself changes.
		mods := s.Relay.FlowMods()
		if all != 256 || others != 0 || mods > 256+1 {
			t.Errorf("%d slots moved, %d collateral, %d flow-mods; 256, 0 and 256 are the least", all, others, mods)
		}
		t.Logf("%d slots moved, %d collateral, %d flow-mods", all, others, mods)
		verified(t, s)
		restart(t, s, 3)
		must(t, s.Servers[2].Restart(t.Context()))
		await(t, s, "be3 back", stand.Steady(4))
		if after := slotsOf(t, s); after.Digest != before.Digest {
			t.Errorf("digest %s after the member's return, %s before its death", after.Digest, before.Digest)
		}
	})
}

// An anchor outlives brlb, and members that come and go; a rebase renews it and
// moves what its plan says.
func TestRebase(t *testing.T) {
	onUserspace(t, func(t *testing.T, s *stand.Stand) {
		first := slotsOf(t, s)
		reload(t, s, removeMember(s.DefaultConfig(), "be4"))
		status := await(t, s, "be4 gone", stand.Steady(3))
		anchor := status.Pools[0].Anchor
		if anchor == nil || anchor.Digest != first.Anchor.Digest || !anchor.Stale || anchor.Pinned {
			t.Fatalf("the anchor after a removal: %+v, before: %+v", anchor, first.Anchor)
		}
		before := slotsOf(t, s)
		if all, others := moved(first, before, "be4"); all != 256 || others != 0 {
			t.Errorf("the removal moved %d slots, %d of them of others", all, others)
		}
		restart(t, s, 3) // the anchor, which is not that of the configuration, is in OVSDB
		verified(t, s)

		plan, err := s.API.Plan(t.Context(), api.PlanRequest{Operation: "rebase"})
		must(t, err)
		change, err := s.API.Rebase(t.Context(), api.RebaseRequest{Who: "test", WaitSeconds: patience.Seconds()})
		must(t, err)
		after := slotsOf(t, s)
		all, _ := moved(before, after, "")
		if !change.Confirmed || all == 0 || all != plan.Moves.Moved || all != anchor.RebaseMoves || after.Digest != plan.Moves.After {
			t.Errorf("the rebase moved %d slots, its plan %d, the status said %d: %+v", all, plan.Moves.Moved, anchor.RebaseMoves, change)
		}
		if after.Anchor.Stale || after.Anchor.Digest == anchor.Digest || len(after.Anchor.Members) != 3 {
			t.Errorf("the anchor after the rebase: %+v", after.Anchor)
		}
		eventually(t, "the anchor is stored", func() bool {
			verify, err := s.API.Verify(t.Context())
			must(t, err)
			return verify.OK
		})
		restart(t, s, 3)

		pinned := withLayout(removeMember(s.DefaultConfig(), "be4"), "v2", "anchor: {a: 10.30.0.11:8080, b: 10.30.0.12:8080, c: 10.30.0.13:8080, d: 10.30.0.14:8080}")
		reload(t, s, pinned)
		if again := slotsOf(t, s); again.Digest != before.Digest || again.Anchor.Digest != anchor.Digest || !again.Anchor.Pinned {
			t.Errorf("with the old anchor pinned: digest %s, anchor %+v; before: %s, %+v", again.Digest, again.Anchor, before.Digest, anchor)
		}
		if _, err := s.API.Rebase(t.Context(), api.RebaseRequest{Who: "test"}); err == nil || !strings.Contains(err.Error(), "pinned") {
			t.Errorf("a rebase of a pinned anchor: %v", err)
		}
	})
}

// With layout sticky every step moves the least, whatever came before, and a
// restart finds the table on the switch.
func TestSticky(t *testing.T) {
	onUserspace(t, func(t *testing.T, s *stand.Stand) {
		start := slotsOf(t, s)
		reload(t, s, withLayout(s.DefaultConfig(), "sticky"))
		before := slotsOf(t, s)
		if all, _ := moved(start, before, ""); all != 0 || before.Version == start.Version {
			t.Errorf("from layout %s to %s %d slots moved", start.Version, before.Version, all)
		}
		step := func(operation, member string) {
			t.Helper()
			change, err := s.API.Change(t.Context(), operation, api.ChangeRequest{Member: member, Who: "test", WaitSeconds: patience.Seconds()})
			must(t, err)
			m := change.Moves
			if !change.Confirmed || m.Moved == 0 || m.Moved != m.LowerBound || m.Collateral != 0 {
				t.Errorf("%s %s: %+v", operation, member, m)
			}
		}
		step("drain", "be1")
		step("drain", "be2")
		step("enable", "be1")
		step("enable", "be2")
		after := slotsOf(t, s)
		if after.Digest == before.Digest {
			t.Error("the table has no history: the test tests nothing")
		}
		verified(t, s)
		restart(t, s, 4)
		step("drain", "be3")
	})
}

// Every layout works on a switch: the table is the one that brlb computes, and
// connections land where it says. A plan says before what a change of the
// layout moves.
func TestEveryLayout(t *testing.T) {
	onUserspace(t, func(t *testing.T, s *stand.Stand) {
		ports := make([]int, 200)
		for _, name := range maglev.Names() {
			before := slotsOf(t, s)
			plan, err := s.API.Plan(t.Context(), api.PlanRequest{Operation: "layout", Layout: name, Compare: true})
			must(t, err)
			if before.Layout != name {
				reload(t, s, withLayout(s.DefaultConfig(), name))
			}
			after := slotsOf(t, s)
			all, _ := moved(before, after, "")
			if after.Layout != name || all != plan.Moves.Moved || after.Digest != plan.Moves.After {
				t.Errorf("%s: layout %s, %d slots moved; the plan says %+v", name, after.Layout, all, plan.Moves)
			}
			if i := slices.IndexFunc(plan.Compare, func(c api.LayoutChange) bool { return c.Layout == name }); plan.Compare[i].Moves != plan.Moves {
				t.Errorf("%s: the comparison says %+v, the plan %+v", name, plan.Compare[i].Moves, plan.Moves)
			}
			verified(t, s)
			for i := range ports {
				ports[i] = 20000 + 7*i
			}
			want, err := s.Predict(t.Context(), ports)
			must(t, err)
			compare(t, name, want, connect(t, s, ports))
		}
	})
}
