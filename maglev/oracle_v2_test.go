package maglev

import (
	"cmp"
	"encoding/binary"
	"math/big"
	"slices"
)

// naiveV2 is v2 with stored permutations and sorted lists of pairs.
func naiveV2(in Input) []string {
	anchor := in.Anchor
	if len(anchor) == 0 {
		anchor = in.Members
	}
	base := naiveRepair(in.Pool, anchor, make([]string, in.Slots), 0)
	return naiveRepair(in.Pool, in.Members, base, int(in.Slack))
}

type naiveMember struct {
	key   string
	w     uint64
	quota int
	tie   uint64
	perm  []int // slot of each rank
	rank  []int // rank of each slot
}

// naiveRepair returns the keys of the new owners, given those of the old ones.
func naiveRepair(pool uint16, members []Member, owner []string, slack int) []string {
	slots := len(owner)
	owner = slices.Clone(owner)
	var all []*naiveMember
	for _, m := range members {
		if m.Weight > 0 {
			all = append(all, newNaiveMember(pool, slots, m))
		}
	}
	slices.SortFunc(all, func(a, b *naiveMember) int { return cmp.Compare(a.key, b.key) })
	naiveWebster(slots, all)
	byKey := make(map[string]*naiveMember)
	for _, m := range all {
		byKey[m.key] = m
		var own []int
		for _, slot := range m.perm {
			if owner[slot] == m.key {
				own = append(own, slot)
			}
		}
		for _, slot := range own[min(len(own), m.quota):] {
			owner[slot] = ""
		}
	}
	for slot, key := range owner {
		if byKey[key] == nil {
			owner[slot] = ""
		}
	}
	for _, extra := range []int{-slack, slack} {
		limit := make(map[*naiveMember]int)
		for _, m := range all {
			limit[m] = max(1, m.quota+extra)
		}
		naiveGreedy(all, owner, limit)
	}
	return owner
}

func newNaiveMember(pool uint16, slots int, m Member) *naiveMember {
	h := naiveMix(uint64(pool)<<32 + uint64(len(m.Key)))
	padded := append([]byte(m.Key), make([]byte, 7)...)
	for i := 0; i < len(m.Key); i += 8 {
		h = naiveMix(h ^ binary.LittleEndian.Uint64(padded[i:]))
	}
	var words []uint64
	for i := range uint64(4) {
		words = append(words, naiveMix(h+(i+1)*0x9e3779b97f4a7c15))
	}
	n := &naiveMember{key: m.Key, w: uint64(m.Weight), tie: words[0], rank: make([]int, slots)}
	half := 0
	for 1<<(2*half) < slots {
		half++ // half of log2(slots), rounded up
	}
	for r := range slots {
		x := r
		for i, word := range words[1:] {
			if i > 0 {
				x ^= x >> half
			}
			x = int((uint64(x)*(word&0xffffffff|1) + word>>32) % uint64(slots))
		}
		n.perm = append(n.perm, x)
		n.rank[x] = r
	}
	return n
}

func naiveMix(z uint64) uint64 {
	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9
	z = (z ^ (z >> 27)) * 0x94d049bb133111eb
	return z ^ (z >> 31)
}

// naiveWebster hands out one seat after the other.
func naiveWebster(slots int, members []*naiveMember) {
	for range slots {
		best := members[0]
		for _, m := range members[1:] {
			c := cmp.Compare(min(m.quota, 1), min(best.quota, 1)) // who has none comes first
			if c == 0 {
				x := new(big.Rat).SetFrac64(int64(m.w), int64(2*m.quota+1))
				y := new(big.Rat).SetFrac64(int64(best.w), int64(2*best.quota+1))
				if m.quota == 0 {
					x, y = y, x // all get a first one, the order does not matter
				}
				c = y.Cmp(x)
			}
			if c == 0 {
				c = cmp.Compare(m.tie, best.tie)
			}
			if c < 0 {
				best = m
			}
		}
		best.quota++
	}
}

// naiveGreedy takes pairs from the cheapest on.
func naiveGreedy(members []*naiveMember, owner []string, limit map[*naiveMember]int) {
	slots := len(owner)
	has := make(map[string]int)
	for _, key := range owner {
		has[key]++
	}
	type pair struct {
		m    *naiveMember
		slot int
	}
	var pairs []pair
	for _, m := range members {
		for slot, key := range owner {
			if key == "" && has[m.key] < limit[m] {
				pairs = append(pairs, pair{m, slot})
			}
		}
	}
	times := arrivals(nil, slots) // checked by a test of its own
	slices.SortFunc(pairs, func(a, b pair) int {
		x := uint64(times[a.m.rank[a.slot]+1]) * b.m.w
		y := uint64(times[b.m.rank[b.slot]+1]) * a.m.w
		if x != y {
			return cmp.Compare(x, y)
		}
		return cmp.Compare(naiveMix(a.m.tie^uint64(a.slot)), naiveMix(b.m.tie^uint64(b.slot)))
	})
	for _, p := range pairs {
		if owner[p.slot] == "" && has[p.m.key] < limit[p.m] {
			owner[p.slot] = p.m.key
			has[p.m.key]++
		}
	}
}
