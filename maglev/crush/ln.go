package crush

import "math/bits"

// ln is crush_ln: 2^44 * log2(x+1), roughly, for x in 0..65535.
func ln(x uint32) uint64 {
	x++
	// Normalise to 2^15 <= x <= 2^16.
	exponent := uint64(15)
	if shift := 16 - bits.Len32(x); shift > 0 {
		x <<= shift
		exponent -= uint64(shift)
	}
	k := x>>8 - 128
	// The reciprocal of 1 + k/128 leaves a fraction below 1/128 for lnFine.
	reciprocal := (1<<55 + uint64(128+k) - 1) / uint64(128+k)
	fine := uint64(x) * reciprocal >> 48 & 0xff
	return exponent<<44 + (lnCoarse[k]+lnFine[fine])>>4
}

// exponential draws a number below 0 that is the logarithm of a uniform 16-bit
// number over a 16.16 weight above 0: the larger the weight, the nearer to 0.
func exponential(u, weight uint32) int64 {
	return (int64(ln(u&0xffff)) - 1<<48) / int64(weight)
}
