package crush

import (
	"math"
	"math/bits"
)

// choose picks one of a bucket's items, which must not be none, for input x
// and attempt r. position is where in the result the item is to go.
func (m *Mapper) choose(b *node, x, r uint32, position int) int32 {
	switch b.Algorithm {
	case Uniform:
		return m.choosePermuted(b, x, r)
	case List:
		return b.chooseList(x, r)
	case Tree:
		return b.chooseTree(x, r)
	default:
		return b.chooseStraw2(x, r, position)
	}
}

// choosePermuted returns item r of a permutation that depends on x.
func (m *Mapper) choosePermuted(b *node, x, r uint32) int32 {
	size := uint32(len(b.Items))
	perm := append(m.perm[:0], b.Items...)
	m.perm = perm
	r %= size
	for p := uint32(0); p <= r && p < size-1; p++ {
		other := p + Hash3(x, uint32(b.ID), p)%(size-p)
		perm[p], perm[other] = perm[other], perm[p]
	}
	return perm[r]
}

// chooseList goes from the newest item to the oldest and stops at each with
// the probability that its weight has among itself and the older ones.
func (b *node) chooseList(x, r uint32) int32 {
	for i := len(b.Items) - 1; i >= 0; i-- {
		draw := uint64(Hash4(x, uint32(b.Items[i]), r, uint32(b.ID)) & 0xffff)
		if draw*uint64(b.sums[i])>>16 < uint64(b.Weights[i]) {
			return b.Items[i]
		}
	}
	return b.Items[0]
}

func listSums(weights []uint32) []uint32 {
	sums := make([]uint32, len(weights))
	sum := uint32(0)
	for i, w := range weights {
		sum += w
		sums[i] = sum
	}
	return sums
}

// chooseTree walks down a binary tree, left or right by the weights below.
// The items are the odd nodes; the number of trailing zero bits of a node is
// its height.
func (b *node) chooseTree(x, r uint32) int32 {
	n := uint32(len(b.nodes) / 2)
	for n&1 == 0 {
		draw := uint64(Hash4(x, n, r, uint32(b.ID))) * uint64(b.nodes[n]) >> 32
		half := n & -n / 2
		if draw < uint64(b.nodes[n-half]) {
			n -= half
		} else {
			n += half
		}
	}
	if i := int(n / 2); i < len(b.Items) {
		return b.Items[i]
	}
	// Only a tree without weight leads beside the items.
	return b.Items[0]
}

func treeNodes(weights []uint32) []uint32 {
	if len(weights) == 0 {
		return nil
	}
	depth := 1 + bits.Len(uint(len(weights)-1))
	nodes := make([]uint32, 1<<depth)
	for i, w := range weights {
		n := uint32(2*i + 1)
		nodes[n] = w
		for range depth - 1 {
			height := n & -n
			if n&(2*height) != 0 {
				n -= height
			} else {
				n += height
			}
			nodes[n] += w
		}
	}
	return nodes
}

// chooseStraw2 lets each item draw a straw of its own; the longest wins.
func (b *node) chooseStraw2(x, r uint32, position int) int32 {
	ids, weights := b.Items, b.Weights
	if len(b.arg.IDs) > 0 {
		ids = b.arg.IDs
	}
	if sets := b.arg.Weights; len(sets) > 0 {
		weights = sets[min(position, len(sets)-1)]
	}
	return b.Items[DrawStraw2(x, r, ids, weights)]
}

// DrawStraw2 returns which of the items of a Straw2 bucket, one at least, wins
// the draw for input x and attempt r: item 0 if none has a weight.
func DrawStraw2(x, r uint32, ids []int32, weights []uint32) int {
	best, bestDraw := 0, int64(math.MinInt64)
	for i, id := range ids {
		if weights[i] == 0 {
			continue
		}
		if draw := exponential(Hash3(x, uint32(id), r), weights[i]); draw > bestDraw {
			best, bestDraw = i, draw
		}
	}
	return best
}
