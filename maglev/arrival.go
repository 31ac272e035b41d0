package maglev

// A member of weight w is pictured as visiting its slots at random moments, at
// a rate proportional to w; who comes first, has the slot. The r-th of M
// visits is then due at E[r]/w, where E[r] = -ln(1 - (r+1/2)/M) is the
// matching quantile of the exponential distribution.

// arrivalBits is the precision of arrival times: 28 bits behind the point
// leave 4 bits before it, enough for ln(2*65536) = 11.8.
const arrivalBits = 28

// arrivals appends to dst the table of E for M slots, in units of
// 2^-arrivalBits, behind one entry of 0: dst[r+1] is E[r]. It rises strictly.
//
// E[r] is ln(2M) - ln(2M-2r-1), a sum of logarithms of odd neighbours, and
// ln((n+2)/n) = 2 artanh(1/(n+1)) = 2 (x + x^3/3 + x^5/5 + ...), x = 1/(n+1).
// Integers carry it with 60 bits behind the point, so the table is the same on
// every CPU. Each entry is the exact value rounded down.
func arrivals(dst []uint32, slots int) []uint32 {
	const precision = 60
	dst = append(dst, 0)
	// E[0] = ln(2M/(2M-1)) = 2 artanh(1/(4M-1)).
	sum := twiceArtanhOfInverse(uint64(4*slots-1), precision)
	for n := uint64(2*slots - 1); ; n -= 2 {
		dst = append(dst, uint32(sum>>(precision-arrivalBits)))
		if n == 1 {
			return dst
		}
		// From ln(2M) - ln(n) to ln(2M) - ln(n-2).
		sum += twiceArtanhOfInverse(n-1, precision)
	}
}

// twiceArtanhOfInverse returns 2 artanh(1/d) for d >= 2 with that many bits
// behind the point.
func twiceArtanhOfInverse(d uint64, precision uint) uint64 {
	power := divideRound(2<<precision, d)
	sum := power
	for i := uint64(3); power > 0; i += 2 {
		power = divideRound(power, d*d)
		sum += divideRound(power, i)
	}
	return sum
}

// divideRound rounds to the nearest, so that errors do not pile up.
func divideRound(a, b uint64) uint64 { return (a + b/2) / b }
