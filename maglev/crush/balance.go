package crush

import (
	"cmp"
	"errors"
	"math/big"
	"slices"
)

// Balance looks for replacements that even out how many placements each device
// has, one at a time, as Ceph's upmap balancer does (OSDMap::calc_pg_upmaps):
// starting from the fullest device that exceeds its share by more than the
// permitted deviation, it takes back a replacement that led there, or replaces
// the device in one of its placements by the emptiest one that the rule
// permits; if that is not possible, it takes back a replacement away from a
// device that is short. A change must bring the sum over devices of
// weight*(deviation/share)^2 down.
type Balance struct {
	// Placements are the devices of each placement before replacements; an
	// index into it is the placement's number.
	Placements [][]int32

	// Weights are the devices' weights, of which their shares are
	// proportional parts. A device of weight 0 is left alone.
	Weights []uint32

	// MaxDeviation is by how many placements a device may miss its share.
	MaxDeviation int

	// MaxChanges bounds the number of changes.
	MaxChanges int

	// Permitted reports whether a placement may become another that differs in
	// one device; see [Mapper.Permits].
	Permitted func(before, after []int32) bool
}

// BalanceStep is one change and what it led to.
type BalanceStep struct {
	Placement uint32
	Replacement
	Dropped bool // whether the replacement was taken back, not added
	Counts  []int
	Score   float64 // the sum above, over weights that sum to the number of devices
}

// Run returns the replacements in force after it, starting from some (nil for
// none), and the steps that led there.
func (b *Balance) Run(items map[uint32][]Replacement) (map[uint32][]Replacement, []BalanceStep, error) {
	run := balancing{Balance: b, items: make(map[uint32][]Replacement), on: make([]map[uint32]bool, len(b.Weights))}
	for device, w := range b.Weights {
		run.on[device] = make(map[uint32]bool)
		run.weight += int64(w)
	}
	if run.weight == 0 {
		return nil, nil, errors.New("crush balance: no device has a weight")
	}
	for placement, pairs := range items {
		run.items[placement] = slices.Clone(pairs)
	}
	for i := range b.Placements {
		for _, device := range run.devices(uint32(i)) {
			if device < 0 || device == None {
				continue
			}
			if int(device) >= len(b.Weights) {
				return nil, nil, errors.New("crush balance: a placement is on a device without a weight entry")
			}
			run.on[device][uint32(i)] = true
			if b.Weights[device] > 0 {
				run.total++
			}
		}
	}
	var steps []BalanceStep
	for len(steps) < b.MaxChanges {
		step, ok := run.improve()
		if !ok {
			break
		}
		steps = append(steps, step)
	}
	return run.items, steps, nil
}

type balancing struct {
	*Balance
	items  map[uint32][]Replacement
	on     []map[uint32]bool // the placements of each device
	weight int64             // of all devices
	total  int64             // replicas on devices with a weight
}

// devices returns a placement with its replacements.
func (b *balancing) devices(placement uint32) []int32 {
	u := Upmaps{Items: b.items}
	return u.Apply(placement, slices.Clone(b.Placements[placement]), nil)
}

// deviation is by how much a device exceeds its share, times b.weight.
func (b *balancing) deviation(device int32, count int) int64 {
	return int64(count)*b.weight - int64(b.Weights[device])*b.total
}

// improve makes the first change that helps.
func (b *balancing) improve() (BalanceStep, bool) {
	var order []int32 // the emptiest first
	limit := int64(b.MaxDeviation) * b.weight
	for device, w := range b.Weights {
		if w > 0 {
			order = append(order, int32(device))
		}
	}
	deviation := func(device int32) int64 { return b.deviation(device, len(b.on[device])) }
	slices.SortStableFunc(order, func(x, y int32) int { return cmp.Compare(deviation(x), deviation(y)) })
	tooFull := deviation(order[len(order)-1]) > limit
	if !tooFull && deviation(order[0]) >= -limit {
		return BalanceStep{}, false
	}
	for _, full := range slices.Backward(order) {
		// If nobody is too full, those who are at all must help.
		if d := deviation(full); d <= 0 || tooFull && d <= limit {
			break
		}
		if step, ok := b.drop(func(r Replacement) bool { return r.To == full }); ok {
			return step, true
		}
		placements := sortedKeys(b.on[full])
		for _, empty := range order {
			if deviation(empty) >= 0 {
				break
			}
			for _, placement := range placements {
				if step, ok := b.replace(placement, Replacement{full, empty}); ok {
					return step, true
				}
			}
		}
	}
	for _, short := range order {
		if deviation(short) >= -limit {
			break
		}
		if step, ok := b.drop(func(r Replacement) bool { return r.From == short }); ok {
			return step, true
		}
	}
	return BalanceStep{}, false
}

// drop takes back the first replacement of the kind that it helps to take back.
func (b *balancing) drop(kind func(Replacement) bool) (BalanceStep, bool) {
	for _, placement := range sortedKeys(b.items) {
		pairs := b.items[placement]
		for i, r := range pairs {
			if kind(r) {
				if step, ok := b.try(placement, r, slices.Delete(slices.Clone(pairs), i, i+1)); ok {
					step.Dropped = true
					return step, true
				}
			}
		}
	}
	return BalanceStep{}, false
}

// replace adds a replacement to a placement, unless one of the two devices is
// in another of its replacements or the rule forbids it.
func (b *balancing) replace(placement uint32, r Replacement) (BalanceStep, bool) {
	pairs := b.items[placement]
	for _, other := range pairs {
		if other.From == r.From || other.To == r.From || other.From == r.To || other.To == r.To {
			return BalanceStep{}, false
		}
	}
	before := b.devices(placement)
	at := replaceable(before, r)
	if at < 0 {
		return BalanceStep{}, false
	}
	after := slices.Clone(before)
	after[at] = r.To
	if !b.Permitted(before, after) {
		return BalanceStep{}, false
	}
	return b.try(placement, r, append(slices.Clone(pairs), r))
}

// try gives a placement other replacements and keeps them if that helps.
func (b *balancing) try(placement uint32, r Replacement, pairs []Replacement) (BalanceStep, bool) {
	old := b.items[placement]
	before := b.devices(placement)
	b.set(placement, pairs)
	after := b.devices(placement)
	var lost, gained []int32
	for i := range before {
		if before[i] != after[i] {
			lost = append(lost, before[i])
			gained = append(gained, after[i])
		}
	}
	if !b.helps(lost, gained) {
		b.set(placement, old)
		return BalanceStep{}, false
	}
	for i := range lost {
		delete(b.on[lost[i]], placement)
		b.on[gained[i]][placement] = true
	}
	step := BalanceStep{Placement: placement, Replacement: r}
	for device := range b.on {
		n := len(b.on[device])
		step.Counts = append(step.Counts, n)
		if w := b.Weights[device]; w > 0 {
			relative := float64(b.deviation(int32(device), n)) / (float64(w) * float64(b.total))
			step.Score += float64(w) * relative * relative / float64(b.weight) * float64(len(b.Weights))
		}
	}
	return step, true
}

func (b *balancing) set(placement uint32, pairs []Replacement) {
	if len(pairs) == 0 {
		delete(b.items, placement)
	} else {
		b.items[placement] = pairs
	}
}

// helps reports whether the score sinks when devices lose and gain one
// placement each. Up to a constant factor a device's part of the score is
// deviation^2/weight.
func (b *balancing) helps(lost, gained []int32) bool {
	sum := new(big.Rat)
	add := func(device int32, change int) bool {
		if int(device) >= len(b.Weights) || device < 0 || b.Weights[device] == 0 {
			return false
		}
		n := len(b.on[device])
		old, changed := big.NewInt(b.deviation(device, n)), big.NewInt(b.deviation(device, n+change))
		difference := new(big.Int).Sub(changed.Mul(changed, changed), old.Mul(old, old))
		sum.Add(sum, new(big.Rat).SetFrac(difference, big.NewInt(int64(b.Weights[device]))))
		return true
	}
	for i := range lost {
		if !add(lost[i], -1) || !add(gained[i], 1) {
			return false
		}
	}
	return sum.Sign() < 0
}

func sortedKeys[V any](m map[uint32]V) []uint32 {
	keys := make([]uint32, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
