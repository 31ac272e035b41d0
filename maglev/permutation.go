package maglev

import "math/bits"

// seed derives a member's random words from its key. It starts from
// mix64(pool<<32 + length of the key) and goes on, for each eight bytes of the
// key as a little-endian integer, the last ones padded with zero bytes, with
// mix64(seed XOR integer). The words that [splitmix] draws from it are, in
// this order, the tie word and three words of the permutation.
func seed(pool uint16, key string) splitmix {
	h := mix64(uint64(pool)<<32 + uint64(len(key)))
	for len(key) >= 8 {
		h = mix64(h ^ littleEndian(key[:8]))
		key = key[8:]
	}
	if len(key) > 0 {
		h = mix64(h ^ littleEndian(key))
	}
	return splitmix(h)
}

// littleEndian reads at most eight bytes as an integer.
func littleEndian(s string) uint64 {
	if len(s) == 8 {
		return uint64(s[0]) | uint64(s[1])<<8 | uint64(s[2])<<16 | uint64(s[3])<<24 |
			uint64(s[4])<<32 | uint64(s[5])<<40 | uint64(s[6])<<48 | uint64(s[7])<<56
	}
	n := uint64(0)
	for i := range len(s) {
		n |= uint64(s[i]) << (8 * i & 63)
	}
	return n
}

// splitmix is the SplitMix64 generator (Steele, Lea, Flood: Fast Splittable
// Pseudorandom Number Generators, OOPSLA 2014).
type splitmix uint64

func (s *splitmix) next() uint64 {
	*s += 0x9e3779b97f4a7c15
	return mix64(uint64(*s))
}

// mix64 is SplitMix64's output function: a bijection in which every bit of
// the input changes about half of the bits of the output.
func mix64(z uint64) uint64 {
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// permutation is a member's own order of the slots. It is computed, not
// stored: three affine steps modulo M = 2^k with odd factors, and between them
// the upper half of the bits folded into the lower half. Each step is a
// bijection, so is the whole.
type permutation struct {
	factor [3]uint32 // odd
	term   [3]uint32
}

// draw draws three words: the lower half of each, made odd, is a factor, the
// upper half the term beside it.
func (p *permutation) draw(s *splitmix) {
	for i := range p.factor {
		word := s.next()
		p.factor[i] = uint32(word) | 1
		p.term[i] = uint32(word >> 32)
	}
}

// slotBits describes M = 2^k: the mask M-1, and how far the fold shifts, half
// of k rounded up. Shifting by at least half makes the fold its own inverse.
type slotBits struct {
	mask  uint32
	shift uint8
}

func newSlotBits(slots int) slotBits {
	k := bits.Len(uint(slots)) - 1
	return slotBits{mask: uint32(slots - 1), shift: uint8((k + 1) / 2)}
}

// at returns the slot of a rank: the slot that is visited after rank others.
func (p *permutation) at(rank uint32, b slotBits) uint32 {
	x := (rank*p.factor[0] + p.term[0]) & b.mask
	x ^= x >> (b.shift & 31)
	x = (x*p.factor[1] + p.term[1]) & b.mask
	x ^= x >> (b.shift & 31)
	return (x*p.factor[2] + p.term[2]) & b.mask
}

// inverted is a permutation made ready to be asked for ranks.
type inverted struct {
	factor [3]uint32 // inverses modulo 2^24
	term   [3]uint32
}

func (p *permutation) invert() inverted {
	v := inverted{term: p.term}
	for i := range p.factor {
		v.factor[i] = inverseOdd(p.factor[i])
	}
	return v
}

// rank returns the rank of a slot.
func (v *inverted) rank(slot uint32, b slotBits) uint32 {
	x := (slot - v.term[2]) * v.factor[2] & b.mask
	x ^= x >> (b.shift & 31)
	x = (x - v.term[1]) * v.factor[1] & b.mask
	x ^= x >> (b.shift & 31)
	return (x - v.term[0]) * v.factor[0] & b.mask
}

// inverseOdd returns the inverse of an odd number modulo 2^24, which is more
// than MaxSlots. An odd x is its own inverse in the lowest three bits; each
// Newton step doubles them.
func inverseOdd(x uint32) uint32 {
	inverse := x
	for range 3 {
		inverse *= 2 - x*inverse
	}
	return inverse
}
