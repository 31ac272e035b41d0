package maglev

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestV1Golden(t *testing.T) {
	var golden struct {
		Cases []struct {
			Name       string
			Pool       uint16
			Slots      int
			Members    json.RawMessage
			First16    []string `json:"first_16"`
			Counts     json.RawMessage
			Digest     string
			Collateral *int `json:"collateral_when_first_leaves"`
		}
	}
	readJSON(t, "testdata/layout_v1.json", &golden)
	if len(golden.Cases) < 20 {
		t.Fatalf("only %d golden cases", len(golden.Cases))
	}
	for _, c := range golden.Cases {
		t.Run(fmt.Sprintf("%s/pool=%d/slots=%d", c.Name, c.Pool, c.Slots), func(t *testing.T) {
			in := Input{Pool: c.Pool, Slots: c.Slots}
			switch c.Name {
			case "hundred":
				for i := range 100 {
					in.Members = append(in.Members, Member{Key: fmt.Sprintf("10.1.%d.%d:9000", i/10, i%10+1), Weight: 1})
				}
			case "thousand":
				for i := range 1000 {
					in.Members = append(in.Members, Member{Key: fmt.Sprintf("10.2.%d.%d:9000", i/100, i%100+1), Weight: uint32(1 + i%7)})
				}
			default:
				if err := json.Unmarshal(c.Members, &in.Members); err != nil {
					t.Fatal(err)
				}
			}
			var table Table
			if err := new(v1).Build(in, &table); err != nil {
				t.Fatal(err)
			}
			if got := table.Digest(); got != c.Digest {
				t.Errorf("digest %s, want %s", got, c.Digest)
			}
			if got := ownerKeys(&table)[:16]; c.First16 != nil && !slices.Equal(got, c.First16) {
				t.Errorf("first slots %q, want %q", got, c.First16)
			}
			var counts map[string]int
			if json.Unmarshal(c.Counts, &counts) == nil && len(counts) == len(in.Members) {
				for i, n := range table.Counts(nil) {
					if key := table.Members[i].Key; counts[key] != n {
						t.Errorf("%s has %d slots, want %d", key, n, counts[key])
					}
				}
			}
			if c.Collateral != nil && len(in.Members) > 1 {
				in.Members = in.Members[1:]
				var after Table
				if err := new(v1).Build(in, &after); err != nil {
					t.Fatal(err)
				}
				if got := Compare(&table, &after).Collateral; got != *c.Collateral {
					t.Errorf("%d collateral moves when the first leaves, want %d", got, *c.Collateral)
				}
			}
		})
	}
}

// Table 1 of the Maglev paper has seven slots, which the layout itself does
// not accept; it checks the rounds of the twin that the layout is checked by.
func TestV1FillPaperTable1(t *testing.T) {
	var table1 struct {
		Permutation [][]int
		Before      []int `json:"entry_before"`
		After       []int `json:"entry_after_removing_B1"`
		Collateral  []int `json:"collateral_rows"`
	}
	readJSON(t, "testdata/paper_table1.json", &table1)
	p := table1.Permutation
	before := naiveFill(p, []int{7, 7, 7})
	if !slices.Equal(before, table1.Before) {
		t.Errorf("before: %v, want %v", before, table1.Before)
	}
	after := naiveFill([][]int{p[0], nil, p[2]}, []int{7, 0, 7})
	if !slices.Equal(after, table1.After) {
		t.Errorf("after: %v, want %v", after, table1.After)
	}
	var collateral []int
	for slot := range before {
		if before[slot] != 1 && before[slot] != after[slot] {
			collateral = append(collateral, slot)
		}
	}
	if !slices.Equal(collateral, table1.Collateral) {
		t.Errorf("collateral rows %v, want %v", collateral, table1.Collateral)
	}
}

func TestV1AgreesWithNaive(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	layout := new(v1)
	var table Table
	for range 300 {
		in := randomInput(rng, 2<<rng.IntN(9), 300, 100)
		if err := layout.Build(in, &table); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(naiveV1(in), ownerKeys(&table)); diff != "" {
			t.Fatalf("pool %d, %d slots, members %v (-naive +built):\n%s", in.Pool, in.Slots, in.Members, diff)
		}
	}
}

func TestBuildRefuses(t *testing.T) {
	two := []Member{{Key: "10.0.0.1:80", Weight: 1}, {Key: "10.0.0.2:80", Weight: 1}}
	var tooMany *TooManyMembersError
	var duplicate *DuplicateKeyError
	var slots *SlotsError
	for _, name := range Names() {
		layout, err := ByName(name)
		if err != nil {
			t.Fatal(err)
		}
		table := Table{Owner: make([]uint16, 8)}
		fails := func(in Input) error {
			t.Helper()
			err := layout.Build(in, &table)
			if err == nil || table.Slots() != 0 {
				t.Fatalf("%s: Build(%+v) = %v with %d slots", name, in, err, table.Slots())
			}
			return err
		}
		for _, m := range []int{-2, 0, 1, 3, 1000, 1 << 17} {
			if err := fails(Input{Pool: 1, Slots: m, Members: two}); !errors.As(err, &slots) {
				t.Errorf("%s, %d slots: %v", name, m, err)
			}
		}
		for _, none := range [][]Member{nil, {{Key: "10.0.0.1:80", Weight: 0}, {Key: "10.0.0.2:80", Weight: 0}}} {
			if err := fails(Input{Pool: 1, Slots: 8, Members: none}); err != ErrNoMembers {
				t.Errorf("%s, members %v: %v", name, none, err)
			}
		}
		if err := fails(Input{Pool: 1, Slots: 8, Members: append(two, two[0])}); !errors.As(err, &duplicate) || duplicate.Key != two[0].Key {
			t.Errorf("%s: %v", name, err)
		}
		if err := fails(Input{Pool: 1, Slots: 8, Members: []Member{{Key: "", Weight: 1}}}); err != ErrEmptyKey {
			t.Errorf("%s: %v", name, err)
		}
		in := Input{Pool: 7, Slots: 16, Members: testMembers(33, 1)}
		err = fails(in)
		if want := "pool 7 has 33 members but only 16 slots: set its slots to 64 or more"; !errors.As(err, &tooMany) || err.Error() != want {
			t.Errorf("%s: %v, want %s", name, err, want)
		}
		in.Slots = tooMany.SlotsNeeded()
		if err := layout.Build(in, &table); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		in.Members = make([]Member, MaxMembers+1)
		if err := fails(in); !errors.As(err, &tooMany) || tooMany.SlotsNeeded() != 0 {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func readJSON(t *testing.T, path string, into any) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, into); err != nil {
		t.Fatal(err)
	}
}

// testMembers returns n members with weights 1..maxWeight in turn.
func testMembers(n int, maxWeight int) []Member {
	members := make([]Member, n)
	for i := range members {
		members[i] = Member{Key: fmt.Sprintf("10.%d.%d.%d:8080", i>>16, i>>8&255, i&255), Weight: uint32(1 + i%maxWeight)}
	}
	return members
}

// randomInput returns 1..min(slots, maxMembers) members with random keys and
// weights 1..maxWeight (all 1 in every second input) in random order.
func randomInput(rng *rand.Rand, slots, maxMembers, maxWeight int) Input {
	in := Input{Pool: uint16(1 + rng.IntN(65535)), Slots: slots}
	equal := rng.IntN(2) == 0
	seen := make(map[string]bool)
	for range 1 + rng.IntN(min(slots, maxMembers)) {
		key := fmt.Sprintf("10.%d.%d.%d:%d", rng.IntN(4), rng.IntN(256), rng.IntN(256), 80+rng.IntN(3))
		if seen[key] {
			continue
		}
		seen[key] = true
		weight := uint32(1)
		if !equal {
			weight = uint32(1 + rng.IntN(maxWeight))
		}
		in.Members = append(in.Members, Member{Key: key, Weight: weight})
	}
	return in
}
