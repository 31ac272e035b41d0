package multipath

// maxLinks is the greatest number of links the action can name: its max_link
// field is 16 bits wide and holds n-1.
const maxLinks = 1 << 16

// Link returns the link, 0 to n-1, that hash selects among n links. n is 1 to
// 65536; arg is used by [IterHash] alone. A number of links or an algorithm
// that no switch accepts gives 0.
func (b Build) Link(alg Algorithm, hash uint32, n int, arg uint32) uint16 {
	if n < 1 || n > maxLinks {
		return 0
	}
	links := uint32(n)
	switch alg {
	case ModuloN:
		return uint16(hash % links)
	case HashThreshold:
		if links == 1 {
			return 0
		}
		return uint16(hash / (0xffffffff/links + 1))
	case HRW:
		if links > 64 {
			return b.iterHash(hash, links, 0)
		}
		return b.hrw(hash, links)
	case IterHash:
		return b.iterHash(hash, links, arg)
	}
	return 0
}

// hrw takes the link of highest weight, the first of equals.
func (b Build) hrw(hash, links uint32) uint16 {
	best, bestWeight := uint32(0), b.twoWords(hash, 0)
	for l := uint32(1); l < links; l++ {
		if w := b.twoWords(hash, l); w > bestWeight {
			best, bestWeight = l, w
		}
	}
	return uint16(best)
}

// iterHash draws until the number drawn is a link. At least a third of the
// modulus are links, so a draw fails a few times at most.
func (b Build) iterHash(hash, links, modulo uint32) uint16 {
	if modulo < links || modulo/2 > links {
		modulo = 1
		for modulo < links {
			modulo <<= 1
		}
	}
	for i := uint32(0); ; i++ {
		// The switch keeps the draw in 16 bits before it compares.
		if l := uint16(b.twoWords(hash, i) % modulo); uint32(l) < links {
			return l
		}
	}
}
