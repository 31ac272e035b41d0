package crush

import (
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestUpmaps(t *testing.T) {
	reweight := []uint32{One, One, One, One, 0, One}
	for _, c := range []struct {
		name string
		u    Upmaps
		want []int32
	}{
		{"none", Upmaps{}, []int32{0, 1, 2}},
		{"other placement", Upmaps{Items: map[uint32][]Replacement{8: {{0, 3}}}}, []int32{0, 1, 2}},
		{"item", Upmaps{Items: map[uint32][]Replacement{7: {{1, 3}}}}, []int32{0, 3, 2}},
		{"two items", Upmaps{Items: map[uint32][]Replacement{7: {{1, 3}, {0, 5}}}}, []int32{5, 3, 2}},
		{"to a device that is there", Upmaps{Items: map[uint32][]Replacement{7: {{1, 2}}}}, []int32{0, 1, 2}},
		{"no swap", Upmaps{Items: map[uint32][]Replacement{7: {{1, 2}, {2, 1}}}}, []int32{0, 1, 2}},
		{"from a device that is not there", Upmaps{Items: map[uint32][]Replacement{7: {{5, 3}}}}, []int32{0, 1, 2}},
		{"to a device that is out", Upmaps{Items: map[uint32][]Replacement{7: {{1, 4}}}}, []int32{0, 1, 2}},
		{"full", Upmaps{Full: map[uint32][]int32{7: {3, 5, 1}}}, []int32{3, 5, 1}},
		{"full and item", Upmaps{Full: map[uint32][]int32{7: {3, 5, 1}}, Items: map[uint32][]Replacement{7: {{5, 2}}}}, []int32{3, 2, 1}},
		{"full with an out device", Upmaps{Full: map[uint32][]int32{7: {3, 4, 1}}, Items: map[uint32][]Replacement{7: {{1, 5}}}}, []int32{0, 1, 2}},
		{"primary", Upmaps{Primary: map[uint32]int32{7: 2}}, []int32{2, 1, 0}},
		{"primary that is not there", Upmaps{Primary: map[uint32]int32{7: 3}}, []int32{0, 1, 2}},
	} {
		if got := c.u.Apply(7, []int32{0, 1, 2}, reweight); !slices.Equal(got, c.want) {
			t.Errorf("%s: %d, want %d", c.name, got, c.want)
		}
	}
}

// The worked example of four devices with 56, 50, 44 and 42 of 192 replicas.
func TestBalanceExample(t *testing.T) {
	c := golden(t)
	var want []struct {
		Pair   *[2]int32
		Counts []int
		Score  float64
	}
	c.fact(t, "upmap_example", &want)
	b := Balance{Weights: []uint32{One, One, One, One}, MaxDeviation: 5, MaxChanges: 10,
		Permitted: func(before, after []int32) bool { return true }}
	// Of 64 placements, each leaves out one device: 8, 14, 20 and 22 times.
	for without, times := range []int{8, 14, 20, 22} {
		for range times {
			b.Placements = append(b.Placements, slices.Delete([]int32{0, 1, 2, 3}, without, without+1))
		}
	}
	_, steps, err := b.Run(nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(steps) != len(want)-1 {
		t.Fatalf("%d steps %+v, want %d", len(steps), steps, len(want)-1)
	}
	for i, step := range steps {
		w := want[i+1]
		if step.Replacement != (Replacement{w.Pair[0], w.Pair[1]}) || !slices.Equal(step.Counts, w.Counts) || math.Abs(step.Score-w.Score) > 0.00006 {
			t.Errorf("step %d: %+v, want %v %v %.4f", i+1, step, *w.Pair, w.Counts, w.Score)
		}
	}
}

func TestBalanceKeepsRule(t *testing.T) {
	m := mapper(t, rackMap(false))
	rule := replicatedRule(-1, 1)
	b := Balance{MaxDeviation: 1, MaxChanges: 1000, Permitted: m.Permits(rule), Weights: make([]uint32, 48)}
	for _, bucket := range rackMap(false).Buckets[4:] {
		for i, device := range bucket.Items {
			b.Weights[device] = bucket.Weights[i]
		}
	}
	b.Weights[7] = 0
	host := m.group(-1, 1)
	for pg := range uint32(512) {
		devices, err := m.Do(nil, rule, Hash2(pg, 1), 3, nil)
		if err != nil {
			t.Fatal(err)
		}
		b.Placements = append(b.Placements, devices)
	}
	items, steps, err := b.Run(nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(steps) < 50 {
		t.Errorf("only %d steps", len(steps))
	}
	for i := 1; i < len(steps); i++ {
		if steps[i].Score >= steps[i-1].Score {
			t.Fatalf("step %d raises the score from %v to %v", i, steps[i-1].Score, steps[i].Score)
		}
	}
	counts := make([]int64, 48)
	total, weight := int64(0), int64(0)
	u := Upmaps{Items: items}
	for pg := range b.Placements {
		devices := u.Apply(uint32(pg), slices.Clone(b.Placements[pg]), nil)
		hosts := make(map[int32]bool)
		for _, device := range devices {
			hosts[host[device]] = true
			counts[device]++
			if b.Weights[device] > 0 {
				total++
			}
		}
		if len(hosts) != 3 {
			t.Fatalf("placement %d on %d uses a host twice", pg, devices)
		}
	}
	for _, w := range b.Weights {
		weight += int64(w)
	}
	for device, n := range counts {
		if w := int64(b.Weights[device]); w > 0 && (n*weight-w*total > 2*weight || n*weight-w*total < -2*weight) {
			t.Errorf("device %d of weight %d has %d", device, w/One, n)
		}
	}
	// Run again, nothing is left to do. When a device that has replacements
	// loses weight, they are taken back first.
	again, steps, err := b.Run(items)
	if err != nil || len(steps) != 0 || !cmp.Equal(items, again) {
		t.Errorf("a second run makes %d steps, %v", len(steps), err)
	}
	to := items[sortedKeys(items)[0]][0].To
	b.Weights[to] /= 3
	_, steps, err = b.Run(items)
	if err != nil || len(steps) == 0 || !steps[0].Dropped || steps[0].To != to {
		t.Errorf("replacements by device %d are not taken back: %v", to, err)
	}
}

// Device 0 is two short, and nobody who is too full can help it but by the
// replacement away from it.
func TestBalanceTakesBackFromShort(t *testing.T) {
	b := Balance{Weights: []uint32{One, One, One, One}, MaxChanges: 5,
		Permitted: func(before, after []int32) bool { return false }}
	for device, n := range []int{3, 3, 5, 5} {
		for range n {
			b.Placements = append(b.Placements, []int32{int32(device)})
		}
	}
	items, steps, err := b.Run(map[uint32][]Replacement{0: {{0, 1}}})
	if err != nil || len(items) != 0 || len(steps) != 1 || !steps[0].Dropped {
		t.Errorf("items %v after %+v, %v", items, steps, err)
	}
}

func TestBalanceRefuses(t *testing.T) {
	b := Balance{Placements: [][]int32{{0, 9}}, Weights: []uint32{One}, MaxChanges: 1}
	if _, _, err := b.Run(nil); err == nil {
		t.Error("a device without weight entry is accepted")
	}
	b = Balance{Weights: []uint32{0}}
	if _, _, err := b.Run(nil); err == nil {
		t.Error("no weight at all is accepted")
	}
}

func TestShadow(t *testing.T) {
	m := rackMap(true)
	ssd := func(device int32) bool { return device%4 == 1 || device >= 40 }
	ids := map[int32]int32{-1: -100}
	root, err := AddShadow(&m, -1, ssd, ids)
	if err != nil {
		t.Fatal(err)
	}
	// The hosts come before the racks, in order of the walk, from the first
	// free id on.
	if root != -100 || ids[-5] != -17 || ids[-8] != -20 || ids[-2] != -21 || ids[-9] != -22 {
		t.Errorf("root %d, ids %v", root, ids)
	}
	byID := make(map[int32]Bucket)
	for _, b := range m.Buckets {
		byID[b.ID] = b
	}
	if b := byID[-17]; !slices.Equal(b.Items, []int32{1}) || b.Weight() != byID[-21].Weights[0] {
		t.Errorf("shadow of a host: %+v", b)
	}
	// Bucket -3 has two weight sets; its shadow's have only what its hosts'
	// shadows, which have none, give: nothing.
	want := ChooseArg{Weights: [][]uint32{{0, 0, 0, 0}, {0, 0, 0, 0}}}
	if diff := cmp.Diff(want, m.ChooseArgs[ids[-3]]); diff != "" {
		t.Errorf("choose_args of a shadow:\n%s", diff)
	}
	if diff := cmp.Diff(ChooseArg{Weights: [][]uint32{{0x10000}}}, m.ChooseArgs[-17]); diff != "" {
		t.Errorf("choose_args of a shadow host:\n%s", diff)
	}
	m.ChooseArgs = nil
	shadowed := mapper(t, m)
	for x := range uint32(200) {
		devices, err := shadowed.Do(nil, replicatedRule(root, 2), x, 3, nil)
		if err != nil || len(devices) != 3 {
			t.Fatalf("%d, %v", devices, err)
		}
		for _, device := range devices {
			if !ssd(device) {
				t.Fatalf("device %d is not of the class", device)
			}
		}
	}
	if _, err := AddShadow(&m, -99, ssd, nil); err == nil {
		t.Error("the shadow of a bucket that is not there")
	}
	if _, err := AddShadow(&m, -1, ssd, ids); err == nil {
		t.Error("ids that are in use are accepted")
	}
}

func TestTry(t *testing.T) {
	m := playground(t)
	reweight := slices.Repeat([]uint32{One}, 9)
	reweight[3] = 0
	seen := 0
	trial, err := m.Try(replicatedRule(-1, 1), 4, 0, 999, reweight, func(x uint32, devices []int32) { seen += len(devices) })
	if err != nil {
		t.Fatal(err)
	}
	if trial.Inputs != 1000 || seen != 3000 || trial.Sizes[3] != 1000 || len(trial.Bad) != 100 {
		t.Errorf("%d inputs, %d devices, sizes %v, %d bad", trial.Inputs, seen, trial.Sizes, len(trial.Bad))
	}
	if u := trial.Devices[3]; u.Placed != 0 || u.Expected != 0 {
		t.Errorf("the device that is out: %+v", u)
	}
	for _, device := range []int{0, 5, 8} {
		if u := trial.Devices[device]; u.Expected != 375 || u.Placed < 250 || u.Placed > 550 {
			t.Errorf("device %d: %+v", device, u)
		}
	}
	if _, err := m.Try(Rule{}, 0, 0, 1, nil, nil); err == nil {
		t.Error("size 0 is accepted")
	}
}

func TestNewRefuses(t *testing.T) {
	good := func() Map { return rackMap(false) }
	for name, spoil := range map[string]func(*Map){
		"device beyond the end":     func(m *Map) { m.Devices = 10 },
		"devices":                   func(m *Map) { m.Devices = -1 },
		"loop":                      func(m *Map) { m.Buckets[4].Items[0] = -2 },
		"bucket inside itself":      func(m *Map) { m.Buckets[4].Items[0] = -5 },
		"missing bucket":            func(m *Map) { m.Buckets[1].Items[0] = -99 },
		"bucket id":                 func(m *Map) { m.Buckets[0].ID = 3 },
		"bucket id too low":         func(m *Map) { m.Buckets[0].ID = -MaxBuckets - 1 },
		"two of an id":              func(m *Map) { m.Buckets[0].ID = -2 },
		"type":                      func(m *Map) { m.Buckets[0].Type = 0 },
		"algorithm":                 func(m *Map) { m.Buckets[0].Algorithm = 4 },
		"weights missing":           func(m *Map) { m.Buckets[0].Weights = nil },
		"weights too large":         func(m *Map) { m.Buckets[0].Weights = []uint32{1 << 31, 1 << 31, 1} },
		"uniform with weights":      func(m *Map) { m.Buckets[15].Weights = []uint32{1, 2, 3, 4} },
		"item twice":                func(m *Map) { m.Buckets[4].Items[0] = 1 },
		"tries":                     func(m *Map) { m.Tunables.TotalTries = 1 << 30 },
		"vary_r":                    func(m *Map) { m.Tunables.VaryR = 99 },
		"choose_args for nobody":    func(m *Map) { m.ChooseArgs = map[int32]ChooseArg{-99: {}} },
		"choose_args, ids missing":  func(m *Map) { m.ChooseArgs = map[int32]ChooseArg{-1: {IDs: []int32{1}}} },
		"choose_args, weights miss": func(m *Map) { m.ChooseArgs = map[int32]ChooseArg{-1: {Weights: [][]uint32{{1}}}} },
		"too deep": func(m *Map) {
			for i := range int32(MaxDepth) {
				m.Buckets = append(m.Buckets, Bucket{ID: -20 - i, Type: 9, Algorithm: Tree, Items: []int32{-21 - i}, Weights: []uint32{1}})
			}
			m.Buckets[len(m.Buckets)-1].Items[0] = -1
		},
	} {
		m := good()
		spoil(&m)
		if _, err := New(m); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	mapper := mapper(t, good())
	for name, rule := range map[string]Rule{
		"take of nothing":        {Replicated, []Step{{Take, -99, 0}}},
		"unknown step":           {Replicated, []Step{{Op(5), 0, 0}}},
		"msr in replicated":      {Replicated, []Step{{ChooseMSR, 1, 0}}},
		"choose in msr":          {MSRIndep, []Step{{ChooseIndep, 1, 0}}},
		"too many tries":         {Replicated, []Step{{SetChooseTries, 1 << 30, 0}}},
		"too many steps":         {Replicated, make([]Step, 100)},
		"msr without take":       {MSRIndep, []Step{{ChooseMSR, 1, 0}, {Emit, 0, 0}}},
		"msr without emit":       {MSRIndep, []Step{{Take, -1, 0}, {ChooseMSR, 1, 0}}},
		"msr that ends at hosts": {MSRIndep, []Step{{Take, -1, 0}, {ChooseMSR, 1, 1}, {Emit, 0, 0}}},
		"msr below devices":      {MSRIndep, []Step{{Take, -1, 0}, {ChooseMSR, 1, 0}, {ChooseMSR, 1, 0}, {Emit, 0, 0}}},
		"msr below a device":     {MSRIndep, []Step{{Take, 1, 0}, {ChooseMSR, 1, 0}, {Emit, 0, 0}}},
		"msr too wide":           {MSRIndep, []Step{{Take, -1, 0}, {ChooseMSR, 256, 3}, {ChooseMSR, 256, 2}, {ChooseMSR, 256, 1}, {ChooseMSR, 9, 0}, {Emit, 0, 0}}},
	} {
		if got, err := mapper.Do(nil, rule, 1, 3, nil); err == nil {
			t.Errorf("%s: accepted, gives %d", name, got)
		}
	}
	// A device can be taken as it is.
	rule := Rule{MSRFirstn, []Step{{Take, 5, 0}, {Emit, 0, 0}, {Take, -1, 0}, {ChooseMSR, 2, 0}, {Emit, 0, 0}}}
	if got, err := mapper.Do(nil, rule, 1, 3, nil); err != nil || len(got) != 3 || got[0] != 5 {
		t.Errorf("%d, %v", got, err)
	}
}

func BenchmarkChooseleaf(b *testing.B) {
	m := mapper(b, rackMap(false))
	var devices []int32
	b.ReportAllocs()
	for x := uint32(0); b.Loop(); x++ {
		devices, _ = m.Do(devices[:0], replicatedRule(-1, 1), x, 3, nil)
	}
}
