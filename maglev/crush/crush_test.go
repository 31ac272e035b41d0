package crush

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// ceph is what Ceph's C code gave.
type ceph struct {
	Facts map[string]json.RawMessage
	Extra struct {
		Hash1   map[uint32]uint32 `json:"hash32"`
		Hash2   [][3]uint32       `json:"hash32_2"`
		Hash3   [][4]uint32       `json:"hash32_3"`
		Hash4   [][5]uint32       `json:"hash32_4"`
		Hash5   [][6]uint32       `json:"hash32_5"`
		Ln      map[uint32]uint64 `json:"crush_ln"`
		LnSum   string            `json:"crush_ln_all_sha256"`
		First16 []int32           `json:"straw2_first16_equal"`
		W1234   []int32           `json:"straw2_first16_w1234"`
		Sum     string            `json:"straw2_1024_equal_sha256"`
		SumW    string            `json:"straw2_1024_w1234_sha256"`
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

func golden(t *testing.T) *ceph {
	t.Helper()
	var c ceph
	readJSON(t, "testdata/ceph.json", &c)
	return &c
}

func (c *ceph) fact(t *testing.T, id string, into any) {
	t.Helper()
	if err := json.Unmarshal(c.Facts[id], into); err != nil {
		t.Fatalf("fact %s: %v", id, err)
	}
}

func mapper(t testing.TB, m Map) *Mapper {
	t.Helper()
	mapper, err := New(m)
	if err != nil {
		t.Fatal(err)
	}
	return mapper
}

func TestHashes(t *testing.T) {
	c := golden(t)
	for a, want := range c.Extra.Hash1 {
		if got := Hash1(a); got != want {
			t.Errorf("Hash1(%d) = %d, want %d", a, got, want)
		}
	}
	for _, v := range c.Extra.Hash2 {
		if got := Hash2(v[0], v[1]); got != v[2] {
			t.Errorf("Hash2(%d) = %d", v, got)
		}
	}
	for _, v := range c.Extra.Hash3 {
		if got := Hash3(v[0], v[1], v[2]); got != v[3] {
			t.Errorf("Hash3(%d) = %d", v, got)
		}
	}
	for _, v := range c.Extra.Hash4 {
		if got := Hash4(v[0], v[1], v[2], v[3]); got != v[4] {
			t.Errorf("Hash4(%d) = %d", v, got)
		}
	}
	for _, v := range c.Extra.Hash5 {
		if got := Hash5(v[0], v[1], v[2], v[3], v[4]); got != v[5] {
			t.Errorf("Hash5(%d) = %d", v, got)
		}
	}
	for object, want := range map[string]uint32{
		"rbd_data.10ab2c3d4e5f.0000000000000000": 0xd1895615,
		"rbd_data.10226b8b4567.0000000000000000": 0x87bd7b9a,
	} {
		if got := HashString(object); got != want {
			t.Errorf("HashString(%q) = %#x, want %#x", object, got, want)
		}
	}
	for _, v := range [][4]uint32{{0xd1895615, 128, 127, 0x15}, {0x87bd7b9a, 64, 63, 0x1a}, {13, 12, 15, 5}, {11, 12, 15, 11}} {
		if got := StableMod(v[0], v[1], v[2]); got != v[3] {
			t.Errorf("StableMod(%d) = %d", v, got)
		}
	}
	if got := Hash2(0x15, 3); got != 0x36d15c32 {
		t.Errorf("placement seed %#x", got)
	}
}

func TestLn(t *testing.T) {
	c := golden(t)
	for x, want := range c.Extra.Ln {
		if got := ln(x); got != want {
			t.Errorf("ln(%d) = %d, want %d", x, got, want)
		}
	}
	sum := sha256.New()
	for x := range uint32(65536) {
		sum.Write(binary.BigEndian.AppendUint64(nil, ln(x)))
	}
	if got := hex.EncodeToString(sum.Sum(nil)); !strings.HasPrefix(c.Extra.LnSum, got) {
		t.Errorf("all logarithms: %s, want %s", got, c.Extra.LnSum)
	}
}

func TestStraw2(t *testing.T) {
	c := golden(t)
	var rows, more []struct {
		R      uint32
		Draws  []int64
		Winner int32
	}
	c.fact(t, "straw2_table", &rows)
	c.fact(t, "straw2_more", &more)
	b := node{Bucket: Bucket{ID: -1, Type: 1, Algorithm: Straw2, Items: []int32{-3, -4, -5}, Weights: []uint32{10 * One, 10 * One, 20 * One}}}
	for _, row := range append(rows, more...) {
		for i, item := range b.Items {
			if got := exponential(Hash3(0x36d15c32, uint32(item), row.R), b.Weights[i]); got != row.Draws[i] {
				t.Errorf("r=%d, item %d draws %d, want %d", row.R, item, got, row.Draws[i])
			}
		}
		if got := b.chooseStraw2(0x36d15c32, row.R, 0); got != row.Winner {
			t.Errorf("r=%d: %d wins, want %d", row.R, got, row.Winner)
		}
	}
	for _, v := range []struct {
		weights []uint32
		first   []int32
		sum     string
	}{
		{[]uint32{One, One, One, One}, c.Extra.First16, c.Extra.Sum},
		{[]uint32{One, 2 * One, 3 * One, 4 * One}, c.Extra.W1234, c.Extra.SumW},
	} {
		b := node{Bucket: Bucket{Items: []int32{1, 2, 3, 4}, Weights: v.weights}}
		var all []byte
		for x := range uint32(1024) {
			item := b.chooseStraw2(x, 0, 0)
			all = append(all, byte(item))
			if x < 16 && item != v.first[x] {
				t.Errorf("x=%d: %d, want %d", x, item, v.first[x])
			}
		}
		if got := fmt.Sprintf("%x", sha256.Sum256(all)); !strings.HasPrefix(v.sum, got) {
			t.Errorf("weights %v: %s, want %s", v.weights, got, v.sum)
		}
	}
	counts(t, c, "straw2_counts", Bucket{ID: -1, Algorithm: Straw2, Items: []int32{0, 1, 2}, Weights: []uint32{One, One, 2 * One}}, 300000)
}

// counts checks how often each item of a bucket is chosen for x = 0..n-1.
func counts(t *testing.T, c *ceph, fact string, b Bucket, n uint32) {
	t.Helper()
	var want []int
	c.fact(t, fact, &want)
	b.Type = 1
	m := mapper(t, Map{Buckets: []Bucket{b}, Devices: 100})
	got := make([]int, len(b.Items))
	for x := range n {
		got[slices.Index(b.Items, m.choose(m.bucket(b.ID), x, 0, 0))]++
	}
	if !slices.Equal(got, want) {
		t.Errorf("%s: %d, want %d", fact, got, want)
	}
}

func TestOldBuckets(t *testing.T) {
	c := golden(t)
	const x = 0x1234abcd
	list := Bucket{ID: -6, Type: 1, Algorithm: List, Items: []int32{20, 21, 22}, Weights: []uint32{One, One, 2 * One}}
	tree := Bucket{ID: -7, Type: 1, Algorithm: Tree, Items: []int32{30, 31, 32, 33}, Weights: []uint32{One, 2 * One, 3 * One, 4 * One}}
	m := mapper(t, Map{Devices: 100, Buckets: []Bucket{
		{ID: -5, Type: 1, Algorithm: Uniform, Items: []int32{10, 11, 12, 13}, Weights: []uint32{One, One, One, One}}, list, tree,
	}})
	for id, want := range map[int32][]int32{-5: {13, 12, 10, 11, 13}, -6: {21, 20, 20}, -7: {32, 32}} {
		for r, item := range want {
			if got := m.choose(m.bucket(id), x, uint32(r), 0); got != item {
				t.Errorf("bucket %d, r=%d: %d, want %d", id, r, got, item)
			}
		}
	}
	counts(t, c, "list_counts", list, 400000)
	counts(t, c, "tree_counts", tree, 400000)
	for _, algorithm := range []Algorithm{List, Tree, Straw2} {
		b := Bucket{ID: -1, Type: 1, Algorithm: algorithm, Items: []int32{1, 2, 3}, Weights: []uint32{0, 0, 0}}
		m := mapper(t, Map{Devices: 4, Buckets: []Bucket{b}})
		for x := range uint32(50) {
			if item := m.choose(m.bucket(-1), x, 0, 0); !slices.Contains(b.Items, item) {
				t.Fatalf("algorithm %d without weights chooses %d", algorithm, item)
			}
		}
	}
}

// How much moves when the items of a bucket change, as a share of all inputs.
func TestMovesOfBuckets(t *testing.T) {
	const inputs = 200000
	moved := func(id int32, algorithm Algorithm, before, after []int32) float64 {
		build := func(items []int32) *Mapper {
			b := Bucket{ID: id, Type: 1, Algorithm: algorithm, Items: items}
			for range items {
				b.Weights = append(b.Weights, One)
			}
			return mapper(t, Map{Devices: 100, Buckets: []Bucket{b}})
		}
		m, n := build(before), build(after)
		count := 0
		for x := range uint32(inputs) {
			if m.choose(m.bucket(id), x, 0, 0) != n.choose(n.bucket(id), x, 0, 0) {
				count++
			}
		}
		return 100 * float64(count) / inputs
	}
	four := []int32{10, 11, 12, 13}
	for _, c := range []struct {
		algorithm Algorithm
		id        int32
		add, del  float64
	}{
		{Uniform, -5, 80, 74.85}, {List, -6, 20.1, 36}, {Tree, -7, 20, 54}, {Straw2, -8, 20, 25},
	} {
		if got := moved(c.id, c.algorithm, four, append(slices.Clone(four), 14)); math.Abs(got-c.add) > 0.4 {
			t.Errorf("algorithm %d: a fifth item moves %.2f %%, want %.2f", c.algorithm, got, c.add)
		}
		if got := moved(c.id, c.algorithm, four, []int32{10, 12, 13}); math.Abs(got-c.del) > 0.4 {
			t.Errorf("algorithm %d: removing the second moves %.2f %%, want %.2f", c.algorithm, got, c.del)
		}
	}
}

func TestReweight(t *testing.T) {
	c := golden(t)
	var want int
	c.fact(t, "is_out_count", &want)
	reweight := make([]uint32, 8)
	reweight[7] = 0x8000
	in := 0
	for x := range uint32(100000) {
		p := placement{x: x, reweight: reweight}
		if !p.isOut(7) {
			in++
		}
	}
	if in != want {
		t.Errorf("%d in, want %d", in, want)
	}
	p := placement{x: 0x36d15c32, reweight: reweight}
	if !p.isOut(7) || !p.isOut(8) || !p.isOut(0) {
		t.Error("half in, beyond the end or of weight 0, but not out")
	}
	reweight[7] = 0xe666
	if p.isOut(7) {
		t.Error("0.9 in, but out")
	}
}

// playground is three hosts of three devices each.
func playground(t *testing.T) *Mapper {
	equal := []uint32{One, One, One}
	host := []uint32{3 * One, 3 * One, 3 * One}
	return mapper(t, Map{Devices: 9, Tunables: Jewel(), Buckets: []Bucket{
		{ID: -1, Type: 2, Algorithm: Straw2, Items: []int32{-2, -3, -4}, Weights: host},
		{ID: -2, Type: 1, Algorithm: Straw2, Items: []int32{0, 1, 2}, Weights: equal},
		{ID: -3, Type: 1, Algorithm: Straw2, Items: []int32{3, 4, 5}, Weights: equal},
		{ID: -4, Type: 1, Algorithm: Straw2, Items: []int32{6, 7, 8}, Weights: equal},
	}})
}

func replicatedRule(root, domain int32) Rule {
	return Rule{Type: Replicated, Steps: []Step{{Take, root, 0}, {ChooseleafFirstn, 0, domain}, {Emit, 0, 0}}}
}

func TestPlayground(t *testing.T) {
	c := golden(t)
	var want map[string][]int32
	var totals struct {
		Counts  []int
		Before  []int `json:"counts_before"`
		Changed int   `json:"pgs_changed"`
	}
	c.fact(t, "playground", &want)
	c.fact(t, "playground_counts", &totals)
	m := playground(t)
	reweight := slices.Repeat([]uint32{One}, 9)
	out := slices.Clone(reweight)
	out[3] = 0
	counts, before := make([]int, 9), make([]int, 9)
	changed := 0
	for ps := range uint32(64) {
		x := Hash2(ps, 1)
		all, err := m.Do(nil, replicatedRule(-1, 1), x, 3, reweight)
		if err != nil {
			t.Fatal(err)
		}
		got, err := m.Do(nil, replicatedRule(-1, 1), x, 3, out)
		if err != nil {
			t.Fatal(err)
		}
		pg := "1." + strconv.FormatUint(uint64(ps), 16)
		if !slices.Equal(got, want[pg]) {
			t.Errorf("pg %s is on %d, want %d", pg, got, want[pg])
		}
		for i := range got {
			counts[got[i]]++
			before[all[i]]++
		}
		if !slices.Equal(all, got) {
			changed++
		}
	}
	if !slices.Equal(counts, totals.Counts) || !slices.Equal(before, totals.Before) || changed != totals.Changed {
		t.Errorf("counts %d, before %d, changed %d; want %+v", counts, before, changed, totals)
	}
}

// rackMap is the hierarchy for which testdata/rules.json holds what Ceph's C
// algorithms give: a root of three racks of four hosts of four devices.
func rackMap(chooseArgs bool) Map {
	m := Map{Devices: 48, Tunables: Jewel(), Buckets: make([]Bucket, 16)}
	for i := range m.Buckets {
		m.Buckets[i] = Bucket{ID: int32(-1 - i), Algorithm: Straw2}
	}
	device := int32(0)
	for h := 4; h < 16; h++ {
		b := &m.Buckets[h]
		b.Type = 1
		for range 4 {
			b.Items = append(b.Items, device)
			b.Weights = append(b.Weights, One*uint32(1+device*7%3))
			device++
		}
	}
	m.Buckets[15].Algorithm = Uniform
	m.Buckets[15].Weights = []uint32{One, One, One, One}
	hold := func(parent, kind, first, count int) {
		b := &m.Buckets[parent]
		b.Type = int32(kind)
		for i := first; i < first+count; i++ {
			b.Items = append(b.Items, m.Buckets[i].ID)
			b.Weights = append(b.Weights, m.Buckets[i].Weight())
		}
	}
	for r := range 3 {
		hold(1+r, 2, 4+4*r, 4)
	}
	hold(0, 3, 1, 3)
	if chooseArgs {
		m.ChooseArgs = map[int32]ChooseArg{
			-3: {IDs: []int32{-109, -110, -111, -112}, Weights: [][]uint32{{0x20000, 0x10000, 0x30000, 0x8000}, {0x10000, 0, 0x10000, 0x50000}}},
			-5: {Weights: [][]uint32{{0x10000, 0x10000, 0, 0x40000}}},
		}
	}
	return m
}

func TestRules(t *testing.T) {
	rules := map[string]struct {
		Rule
		size int
	}{
		"chooseleaf_firstn_host":      {Rule{Replicated, []Step{{1, -1, 0}, {6, 0, 1}, {4, 0, 0}}}, 5},
		"chooseleaf_indep_host":       {Rule{Erasure, []Step{{1, -1, 0}, {7, 0, 1}, {4, 0, 0}}}, 6},
		"chooseleaf_indep_rack_short": {Rule{Erasure, []Step{{1, -1, 0}, {7, 0, 2}, {4, 0, 0}}}, 4},
		"choose_racks_then_hosts":     {Rule{Replicated, []Step{{1, -1, 0}, {2, 2, 2}, {6, 2, 1}, {4, 0, 0}}}, 4},
		"choose_indep_then_osds":      {Rule{Erasure, []Step{{9, 5, 0}, {1, -1, 0}, {3, 3, 1}, {3, 2, 0}, {4, 0, 0}}}, 6},
		"unstable_varyr0":             {Rule{Replicated, []Step{{12, 0, 0}, {13, 0, 0}, {1, -1, 0}, {6, 0, 1}, {4, 0, 0}}}, 4},
		"chooseleaf_osd":              {Rule{Erasure, []Step{{8, 7, 0}, {1, -1, 0}, {7, 0, 0}, {4, 0, 0}}}, 8},
		"two_takes":                   {Rule{Replicated, []Step{{1, -2, 0}, {6, 1, 1}, {4, 0, 0}, {1, -4, 0}, {6, -1, 1}, {4, 0, 0}}}, 4},
		"msr_indep_hosts":             {Rule{MSRIndep, []Step{{1, -1, 0}, {16, 3, 1}, {16, 2, 0}, {4, 0, 0}}}, 6},
		"msr_firstn_hosts":            {Rule{MSRFirstn, []Step{{1, -1, 0}, {16, 3, 1}, {16, 2, 0}, {4, 0, 0}}}, 6},
		"msr_racks_hosts_osds":        {Rule{MSRIndep, []Step{{1, -1, 0}, {16, 3, 2}, {16, 2, 1}, {16, 2, 0}, {4, 0, 0}}}, 11},
		"msr_wide":                    {Rule{MSRIndep, []Step{{14, 20, 0}, {15, 10, 0}, {1, -1, 0}, {16, 0, 1}, {16, 1, 0}, {4, 0, 0}}}, 10},
		"msr_two_blocks":              {Rule{MSRFirstn, []Step{{1, -2, 0}, {16, 2, 1}, {16, 2, 0}, {4, 0, 0}, {1, -3, 0}, {16, 2, 1}, {16, 1, 0}, {4, 0, 0}}}, 6},
	}
	var want []struct {
		Rule       string
		ChooseArgs bool `json:"choose_args"`
		Result     [][]int32
	}
	readJSON(t, "testdata/rules.json", &want)
	if len(want) != 2*len(rules) {
		t.Fatalf("%d results for %d rules", len(want), len(rules))
	}
	reweight := make([]uint32, 48)
	for i := range reweight {
		switch {
		case i%11 == 3:
		case i%7 == 2:
			reweight[i] = 0x8000
		default:
			reweight[i] = One
		}
	}
	for _, w := range want {
		m := mapper(t, rackMap(w.ChooseArgs))
		for x, result := range w.Result {
			got, err := m.Do(nil, rules[w.Rule].Rule, uint32(x*7919), rules[w.Rule].size, reweight)
			if err != nil {
				t.Fatal(err)
			}
			for i := range got {
				if got[i] == None {
					got[i] = -1
				}
			}
			if !slices.Equal(got, result) {
				t.Errorf("%s, choose_args %t, x %d: %d, want %d", w.Rule, w.ChooseArgs, x, got, result)
			}
		}
	}
}

func FuzzMap(f *testing.F) {
	f.Add([]byte{1, 5, 2, 3, 4}, uint32(7), uint8(6), int32(0), int32(1), uint8(3))
	f.Add([]byte{0, 1, 2, 3, 254, 253, 9, 9}, uint32(1), uint8(16), int32(2), int32(0), uint8(200))
	f.Fuzz(func(t *testing.T, shape []byte, x uint32, op uint8, arg1, arg2 int32, size uint8) {
		m := Map{Devices: 6, Tunables: Jewel()}
		for i := 0; i+3 < len(shape); i += 4 {
			b := Bucket{ID: int32(-1 - i/4), Type: int32(shape[i] % 4), Algorithm: Algorithm(shape[i+1] % 7)}
			for _, item := range shape[i+2 : i+4] {
				b.Items = append(b.Items, int32(int8(item)))
				b.Weights = append(b.Weights, uint32(item)<<24)
			}
			m.Buckets = append(m.Buckets, b)
		}
		mapper, err := New(m)
		if err != nil {
			return
		}
		for _, kind := range []RuleType{Replicated, MSRFirstn, MSRIndep} {
			steps := []Step{{Take, -1, 0}, {Op(op), arg1, arg2}, {Emit, 0, 0}}
			if arg1 > 100 {
				return
			}
			result, err := mapper.Do(nil, Rule{kind, steps}, x, int(size), nil)
			if err == nil && len(result) > int(size) {
				t.Fatalf("%d results for size %d", len(result), size)
			}
		}
	})
}
