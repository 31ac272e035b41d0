package crush

// The hashes are Bob Jenkins' 32-bit mix (http://burtleburtle.net/bob/hash/)
// with seed and paddings of CRUSH's own.

const (
	hashSeed = 1315423911
	padX     = 231232
	padY     = 1232
)

// mix stirs three words.
func mix(a, b, c uint32) (uint32, uint32, uint32) {
	a = (a - b - c) ^ c>>13
	b = (b - c - a) ^ a<<8
	c = (c - a - b) ^ b>>13
	a = (a - b - c) ^ c>>12
	b = (b - c - a) ^ a<<16
	c = (c - a - b) ^ b>>5
	a = (a - b - c) ^ c>>3
	b = (b - c - a) ^ a<<10
	c = (c - a - b) ^ b>>15
	return a, b, c
}

// Hash1 is crush_hash32.
func Hash1(a uint32) uint32 {
	h, b, x, y := hashSeed^a, a, uint32(padX), uint32(padY)
	_, _, h = mix(b, x, h)
	_, _, h = mix(y, a, h)
	return h
}

// Hash2 is crush_hash32_2.
func Hash2(a, b uint32) uint32 {
	h, x, y := hashSeed^a^b, uint32(padX), uint32(padY)
	a, b, h = mix(a, b, h)
	_, _, h = mix(x, a, h)
	_, _, h = mix(b, y, h)
	return h
}

// Hash3 is crush_hash32_3.
func Hash3(a, b, c uint32) uint32 {
	h, x, y := hashSeed^a^b^c, uint32(padX), uint32(padY)
	a, b, h = mix(a, b, h)
	c, x, h = mix(c, x, h)
	y, _, h = mix(y, a, h)
	_, _, h = mix(b, x, h)
	_, _, h = mix(y, c, h)
	return h
}

// Hash4 is crush_hash32_4.
func Hash4(a, b, c, d uint32) uint32 {
	h, x, y := hashSeed^a^b^c^d, uint32(padX), uint32(padY)
	a, b, h = mix(a, b, h)
	c, d, h = mix(c, d, h)
	_, x, h = mix(a, x, h)
	y, _, h = mix(y, b, h)
	_, _, h = mix(c, x, h)
	_, _, h = mix(y, d, h)
	return h
}

// Hash5 is crush_hash32_5.
func Hash5(a, b, c, d, e uint32) uint32 {
	h, x, y := hashSeed^a^b^c^d^e, uint32(padX), uint32(padY)
	a, b, h = mix(a, b, h)
	c, d, h = mix(c, d, h)
	e, x, h = mix(e, x, h)
	y, _, h = mix(y, a, h)
	_, x, h = mix(b, x, h)
	y, _, h = mix(y, c, h)
	_, _, h = mix(d, x, h)
	_, _, h = mix(y, e, h)
	return h
}

// HashString is ceph_str_hash_rjenkins, by which objects find their placement
// group.
func HashString(s string) uint32 {
	const golden = 0x9e3779b9
	a, b, c := uint32(golden), uint32(golden), uint32(0)
	length := uint32(len(s))
	for ; len(s) >= 12; s = s[12:] {
		a, b, c = mix(a+word(s), b+word(s[4:]), c+word(s[8:]))
	}
	// The lowest byte of c is the length's.
	c += length
	tail := [11]byte{}
	copy(tail[:], s)
	rest := string(tail[:])
	_, _, c = mix(a+word(rest), b+word(rest[4:]), c+word(rest[8:])<<8)
	return c
}

// word reads up to four bytes, the lowest first.
func word(s string) uint32 {
	w := uint32(0)
	for i := range min(4, len(s)) {
		w |= uint32(s[i]) << (8 * i)
	}
	return w
}

// StableMod is ceph_stable_mod: x modulo b, where mask is the next power of two
// above b, less 1. Growing b moves only the numbers that the new ones take.
func StableMod(x, b, mask uint32) uint32 {
	if x&mask < b {
		return x & mask
	}
	return x & (mask >> 1)
}
