package maglev

import (
	"errors"
	"math/bits"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// Whatever happens, sticky moves the lower bound.
func TestStickyMovesLowerBoundAtEveryStep(t *testing.T) {
	layout := new(sticky)
	rapid.Check(t, func(rt *rapid.T) {
		in := drawPool(rt)
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(rt, "changes"), 0))
		tables := [2]Table{}
		if err := layout.Build(in, &tables[0]); err != nil {
			rt.Fatal(err)
		}
		for step := range 4 {
			before, after := &tables[step&1], &tables[step&1^1]
			in.Members = disturb(rng, in, 1+rng.IntN(len(in.Members)))
			in.Previous = before
			if err := layout.Build(in, after); err != nil {
				rt.Fatal(err)
			}
			if c := Compare(before, after); c.Moved != c.LowerBound {
				rt.Fatalf("step %d: %d moved, lower bound %d", step, c.Moved, c.LowerBound)
			}
			checkQuotas(rt, after)
		}
	})
}

func TestStickyStart(t *testing.T) {
	in := Input{Pool: 5, Slots: 256, Members: testMembers(7, 3)}
	var first, again, other Table
	if err := errors.Join(new(sticky).Build(in, &first), new(v2).Build(in, &other)); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(first.Owner, other.Owner) || first.Version != "sticky-1" {
		t.Errorf("the first table, version %s, is not v2's", first.Version)
	}
	// The previous table may come from another layout, be the one to build,
	// and lack an owner for some slot.
	if err := new(v1).Build(in, &other); err != nil {
		t.Fatal(err)
	}
	before := other.Clone()
	other.Owner[3] = NoOwner
	in.Previous = &other
	if err := new(sticky).Build(in, &other); err != nil {
		t.Fatal(err)
	}
	if c := Compare(before, &other); c.Moved > 8 {
		t.Errorf("%d slots of a v1 table moved", c.Moved)
	}
	// With more slots, connections stay where they are but for the quotas.
	in.Slots, in.Previous = 1024, &first
	if err := new(sticky).Build(in, &again); err != nil {
		t.Fatal(err)
	}
	if c := Compare(&first, &again); c.Moved != c.LowerBound || c.Moved > 2*len(in.Members) {
		t.Errorf("four times the slots: %d moved, lower bound %d", c.Moved, c.LowerBound)
	}
}

func TestRendezvousAgreesWithNaive(t *testing.T) {
	rng := rand.New(rand.NewPCG(4, 4))
	layout := new(rendezvous)
	var table Table
	times := arrivals(nil, 1<<16)
	for range 50 {
		in := randomInput(rng, 2<<rng.IntN(8), 40, 100)
		if err := layout.Build(in, &table); err != nil {
			t.Fatal(err)
		}
		for slot := range in.Slots {
			best := slices.MinFunc(in.Members, func(a, b Member) int {
				x := naiveMix(newNaiveMember(in.Pool, 2, a).tie ^ uint64(slot))
				y := naiveMix(newNaiveMember(in.Pool, 2, b).tie ^ uint64(slot))
				// E[x]/a.Weight against E[y]/b.Weight
				c := int(int64(times[x>>48+1])*int64(b.Weight) - int64(times[y>>48+1])*int64(a.Weight))
				if c == 0 && x < y {
					return -1
				}
				return c
			})
			if table.Key(slot) != best.Key {
				t.Fatalf("pool %d: slot %d has %s, want %s", in.Pool, slot, table.Key(slot), best.Key)
			}
		}
	}
}

// Layouts in which each slot has a fixed order of members move nothing but
// what goes to or comes from the member that changed.
func TestFixedPreferencesNeverMoveCollaterally(t *testing.T) {
	for _, name := range []string{"rendezvous", "straw2", "ring", "chash", "crush"} {
		layout, err := ByName(name)
		if err != nil {
			t.Fatal(err)
		}
		rng := rand.New(rand.NewPCG(5, 5))
		var before, after Table
		for range 50 {
			in := randomInput(rng, 64<<rng.IntN(4), 60, 20)
			if err := layout.Build(in, &before); err != nil {
				t.Fatal(err)
			}
			in.Members = disturb(rng, in, 1)
			if err := layout.Build(in, &after); err != nil {
				t.Fatal(err)
			}
			if c := Compare(&before, &after); c.Collateral != 0 {
				t.Errorf("%s: %d collateral moves of %d", name, c.Collateral, c.Moved)
			}
		}
	}
}

// Random shares are near to the weights, to within what chance allows.
func TestRandomSharesFollowWeights(t *testing.T) {
	for _, name := range []string{"rendezvous", "straw2", "ring", "chash", "crush"} {
		layout, err := ByName(name)
		if err != nil {
			t.Fatal(err)
		}
		var table Table
		in := Input{Pool: 3, Slots: 65536, Members: testMembers(16, 4)}
		if err := layout.Build(in, &table); err != nil {
			t.Fatal(err)
		}
		total := totalWeight(in.Members)
		for i, n := range table.Counts(nil) {
			share := float64(n) * float64(total) / float64(in.Slots) / float64(table.Members[i].Weight)
			if share < 0.5 || share > 1.7 {
				t.Errorf("%s: weight %d has %.2f of its share", name, table.Members[i].Weight, share)
			}
		}
	}
}

func TestPins(t *testing.T) {
	for _, name := range Names() {
		layout, err := ByName(name)
		if err != nil {
			t.Fatal(err)
		}
		in := Input{Pool: 1, Slots: 64, Members: testMembers(4, 1)}
		in.Members[3].Weight = 0
		var free, pinned Table
		if err := layout.Build(in, &free); err != nil {
			t.Fatal(err)
		}
		want := ownerKeys(&free)
		in.Pins = []Pin{{0, in.Members[0].Key}, {1, in.Members[1].Key}, {2, "10.9.9.9:80"}, {3, in.Members[3].Key}}
		want[0], want[1] = in.Members[0].Key, in.Members[1].Key
		if err := layout.Build(in, &pinned); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, ownerKeys(&pinned)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		var pinErr *PinError
		for _, pins := range [][]Pin{{{-1, "a"}}, {{64, "a"}}, {{5, "a"}, {5, "b"}}} {
			in.Pins = pins
			if err := layout.Build(in, &pinned); !errors.As(err, &pinErr) || pinned.Slots() != 0 {
				t.Errorf("%s takes pins %v: %v", name, pins, err)
			}
		}
	}
}

func TestNewTable(t *testing.T) {
	in := Input{Pool: 5, Slots: 64, Members: testMembers(5, 2)}
	var built Table
	if err := new(v1).Build(in, &built); err != nil {
		t.Fatal(err)
	}
	read, err := NewTable("v1", 5, in.Members, ownerKeys(&built))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(&built, read); diff != "" {
		t.Errorf("a table read back differs:\n%s", diff)
	}
	owners := ownerKeys(&built)
	owners[7], owners[8] = "", "10.7.7.7:80"
	read, err = NewTable("v1", 5, nil, owners)
	if err != nil {
		t.Fatal(err)
	}
	if got := ownerKeys(read); !slices.Equal(got, owners) {
		t.Errorf("owners %q, want %q", got, owners)
	}
	for _, n := range []int{0, 1, 3} {
		if _, err := NewTable("v1", 5, nil, make([]string, n)); err == nil {
			t.Errorf("a table of %d slots is accepted", n)
		}
	}
	if _, err := NewTable("v1", 5, slices.Repeat(in.Members[:1], 2), owners); err == nil {
		t.Error("a member listed twice is accepted")
	}
}

func FuzzBuild(f *testing.F) {
	f.Add(uint16(1), 16, uint8(3), uint32(1), uint32(7), uint8(0))
	f.Add(uint16(0), 1024, uint8(255), uint32(1<<31), uint32(1<<32-1), uint8(255))
	f.Fuzz(func(t *testing.T, pool uint16, slots int, n uint8, first, step uint32, slack uint8) {
		if slots > 1024 && slots <= MaxSlots {
			slots = 1024 // large tables are built elsewhere; here many inputs count
		}
		in := Input{Pool: pool, Slots: slots, Members: testMembers(int(n), 1), Slack: slack}
		sum := uint64(0)
		for i := range in.Members {
			in.Members[i].Weight = first + uint32(i)*step
			sum += uint64(in.Members[i].Weight)
		}
		in.Anchor = in.Members[len(in.Members)/2:]
		for _, name := range Names() {
			if name == "ring" && sum > 2048 && sum <= 1<<16 {
				continue // tens of thousands of points, each an MD5 hash
			}
			layout, err := ByName(name)
			if err != nil {
				t.Fatal(err)
			}
			var table Table
			err = layout.Build(in, &table)
			if err == nil && (table.Slots() != slots || bits.OnesCount(uint(slots)) != 1 || slices.Contains(table.Owner, NoOwner)) {
				t.Fatalf("%s: a table of %d slots, some without owner", name, table.Slots())
			}
			if err != nil && table.Slots() != 0 {
				t.Fatalf("%s: %v, but there is a table", name, err)
			}
		}
	})
}
