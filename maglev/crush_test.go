package maglev

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"brlb/maglev/crush"
)

// farm returns members in zones of racks of hosts.
func farm(zones, racks, hosts, perHost int) []Member {
	var members []Member
	for i := range zones * racks * hosts * perHost {
		host := i / perHost
		members = append(members, Member{
			Key: fmt.Sprintf("10.1.%d.%d:80", i>>8, i&255), Weight: uint32(1 + i%3),
			Domain: fmt.Sprintf("z%d/r%d/h%d", host/hosts/racks, host/hosts, host),
		})
	}
	return members
}

// One flat bucket, given to CRUSH with the members' hashed ids as devices'.
func TestStraw2AgreesWithCrush(t *testing.T) {
	in := Input{Pool: 7, Slots: 512, Members: testMembers(20, 5)}
	var straw, flat Table
	if err := errors.Join(new(straw2).Build(in, &straw), new(hierarchy).Build(in, &flat)); err != nil {
		t.Fatal(err)
	}
	b := crush.Bucket{ID: -1, Type: 1, Algorithm: crush.Straw2}
	var ids []int32
	for i, m := range straw.Members {
		b.Items = append(b.Items, int32(i))
		b.Weights = append(b.Weights, m.Weight*crush.One)
		ids = append(ids, int32(crush.HashString(m.Key)))
	}
	mapper, err := crush.New(crush.Map{Devices: len(ids), Tunables: crush.Jewel(), Buckets: []crush.Bucket{b},
		ChooseArgs: map[int32]crush.ChooseArg{-1: {IDs: ids}}})
	if err != nil {
		t.Fatal(err)
	}
	rule := crush.Rule{Type: crush.Replicated, Steps: []crush.Step{{Op: crush.Take, Arg1: -1}, {Op: crush.ChooseFirstn}, {Op: crush.Emit}}}
	for slot := range in.Slots {
		want, err := mapper.Do(nil, rule, crush.Hash2(uint32(slot), 7), 1, nil)
		if err != nil {
			t.Fatal(err)
		}
		if int32(straw.Owner[slot]) != want[0] || flat.Owner[slot] != straw.Owner[slot] {
			t.Fatalf("slot %d: straw2 %d, crush %d, want %d", slot, straw.Owner[slot], flat.Owner[slot], want[0])
		}
	}
}

func TestReplicas(t *testing.T) {
	in := Input{Pool: 3, Slots: 256, Members: farm(3, 2, 2, 2)}
	var owners, table Table
	if err := new(hierarchy).Build(in, &owners); err != nil {
		t.Fatal(err)
	}
	for apart, domains := range map[int]int{0: 24, 1: 3, 2: 6, 3: 12} {
		lists, err := Replicas(in, 4, apart, &table)
		if err != nil {
			t.Fatal(err)
		}
		for slot, list := range lists {
			if list[0] != owners.Owner[slot] || table.Owner[slot] != owners.Owner[slot] {
				t.Fatalf("apart %d: slot %d starts with %d, its owner is %d", apart, slot, list[0], owners.Owner[slot])
			}
			if len(list) != min(4, domains) {
				t.Fatalf("apart %d: slot %d has %d replicas", apart, slot, len(list))
			}
			seen := make(map[string]bool)
			for _, i := range list {
				m := table.Members[i]
				seen[strings.Join(append(strings.Split(m.Domain, "/")[:apart], m.Key)[:max(1, apart)], "/")] = true
			}
			if apart > 0 && len(seen) != len(list) {
				t.Fatalf("apart %d: slot %d has %v", apart, slot, seen)
			}
		}
	}
	// When the owner goes, the next in the list takes over most slots: always,
	// if the owner's was the only member of its domain.
	in.Members = farm(5, 1, 1, 1)
	lists, err := Replicas(in, 2, 1, &table)
	if err != nil {
		t.Fatal(err)
	}
	gone := in.Members[2].Key
	var after Table
	in.Members = slices.Delete(slices.Clone(in.Members), 2, 3)
	if err := new(hierarchy).Build(in, &after); err != nil {
		t.Fatal(err)
	}
	for slot := range lists {
		if table.Key(slot) == gone && after.Key(slot) == gone {
			t.Fatalf("slot %d stays with a member that is gone", slot)
		}
		if table.Key(slot) != gone && after.Key(slot) != table.Key(slot) {
			t.Fatalf("slot %d leaves %s", slot, table.Key(slot))
		}
	}
	for _, bad := range []struct{ size, apart int }{{0, 1}, {2, 4}, {2, -1}, {1000, 1}} {
		if _, err := Replicas(in, bad.size, bad.apart, &table); err == nil || table.Slots() != 0 {
			t.Errorf("size %d, apart %d are accepted", bad.size, bad.apart)
		}
	}
}

// A domain that goes as a whole moves only its own slots, and so does a member.
func TestCrushLosesDomain(t *testing.T) {
	in := Input{Pool: 3, Slots: 1024, Members: farm(3, 3, 2, 2)}
	layout := new(hierarchy)
	var before, after Table
	if err := layout.Build(in, &before); err != nil {
		t.Fatal(err)
	}
	for _, lost := range []string{"z1/", "z2/r7/", "z0/r0/h1"} {
		rest := in
		rest.Members = slices.DeleteFunc(slices.Clone(in.Members), func(m Member) bool { return strings.HasPrefix(m.Domain, lost) })
		if err := layout.Build(rest, &after); err != nil {
			t.Fatal(err)
		}
		// Weights of the domains around shrink: a domain may give slots to the
		// others, but no slot moves to a member of a domain that shrank.
		c := Compare(&before, &after)
		lostSlots := 0
		for _, m := range c.Members {
			if m.After == 0 {
				lostSlots += m.Before
			}
		}
		if c.Needed != lostSlots || strings.Count(lost, "/") == 1 && c.Collateral != 0 {
			t.Errorf("%s: %d needed of %d lost, %d collateral", lost, c.Needed, lostSlots, c.Collateral)
		}
	}
}

func TestCrushRefuses(t *testing.T) {
	var table Table
	for name, members := range map[string][]Member{
		"weights":      {{Key: "a", Weight: 65535}, {Key: "b", Weight: 1}},
		"mixed depths": {{Key: "a", Weight: 1, Domain: "z/r"}, {Key: "b", Weight: 1, Domain: "z"}},
		"empty":        {{Key: "a", Weight: 1, Domain: "z//h"}},
		"too deep":     {{Key: "a", Weight: 1, Domain: "1/2/3/4/5/6/7/8/9/10"}},
	} {
		in := Input{Pool: 1, Slots: 8, Members: members}
		if err := new(hierarchy).Build(in, &table); err == nil || table.Slots() != 0 {
			t.Errorf("%s: accepted", name)
		}
	}
	in := Input{Pool: 1, Slots: 8, Members: []Member{{Key: "a", Weight: 65535}, {Key: "b", Weight: 1}}}
	if err := new(straw2).Build(in, &table); !errors.Is(err, ErrWeights) {
		t.Errorf("straw2: %v", err)
	}
}

func TestFreeID(t *testing.T) {
	taken := map[int32]bool{}
	first := freeID(taken, "a")
	if second := freeID(taken, "a"); second != first+1 || !taken[second] {
		t.Errorf("ids %d, %d", first, second)
	}
}
