package oftest

import (
	"slices"

	"brlb/openflow"
)

// bits128 is a value of up to 16 octets.
type bits128 struct{ hi, lo uint64 }

func (a bits128) and(b bits128) bits128 { return bits128{a.hi & b.hi, a.lo & b.lo} }
func (a bits128) xor(b bits128) bits128 { return bits128{a.hi ^ b.hi, a.lo ^ b.lo} }
func (a bits128) zero() bool            { return a.hi == 0 && a.lo == 0 }

func (a bits128) shiftLeft(n uint) bits128 {
	if n >= 64 {
		return bits128{hi: a.lo << (n - 64)}
	}
	return bits128{hi: a.hi<<n | a.lo>>(64-n), lo: a.lo << n}
}

func (a bits128) shiftRight(n uint) bits128 {
	if n >= 64 {
		return bits128{lo: a.hi >> (n - 64)}
	}
	return bits128{hi: a.hi >> n, lo: a.lo>>n | a.hi<<(64-n)}
}

// lowBits is a mask of the low n bits.
func lowBits(n uint) bits128 {
	if n >= 128 {
		return bits128{^uint64(0), ^uint64(0)}
	}
	m := bits128{lo: 1}.shiftLeft(n)
	if m.lo == 0 {
		m.hi--
	}
	m.lo--
	return m
}

func valueOf(o openflow.OXM) bits128 {
	hi, lo := o.Uint128()
	return bits128{hi, lo}
}

func maskOf(o openflow.OXM) bits128 {
	hi, lo := o.Mask128()
	return bits128{hi, lo}
}

// canonical returns a match as the switch keeps it: sorted by field, without
// fields of which no bit matters, and with wide registers as the 32-bit ones
// that they are made of.
func canonical(m openflow.Match) openflow.Match {
	out := make(openflow.Match, 0, len(m))
	for _, o := range m {
		first, n := registersOf(o.Field)
		if n < 2 {
			if o.Field == openflow.FieldUnknown || !maskOf(o).zero() {
				out = append(out, o)
			}
			continue
		}
		value, mask := valueOf(o), maskOf(o)
		for i := range n {
			v, k := word(value, n-1-i), word(mask, n-1-i)
			if k != 0 {
				out = append(out, openflow.Reg(first+i).Masked(uint64(v), uint64(k)))
			}
		}
	}
	slices.SortStableFunc(out, func(a, b openflow.OXM) int { return int(a.Field) - int(b.Field) })
	return out
}

// registersOf returns the 32-bit registers that make up a register: the first,
// which is the most significant, and how many. n is 0 if f is no register.
func registersOf(f openflow.Field) (first, n int) {
	switch {
	case f >= openflow.Reg0 && f <= openflow.Reg15:
		return int(f - openflow.Reg0), 1
	case f >= openflow.XReg0 && f <= openflow.XReg7:
		return 2 * int(f-openflow.XReg0), 2
	case f >= openflow.XXReg0 && f <= openflow.XXReg3:
		return 4 * int(f-openflow.XXReg0), 4
	}
	return 0, 0
}

// word returns the 32-bit word i of v, counted from the least significant.
func word(v bits128, i int) uint32 {
	if i >= 2 {
		v.lo, i = v.hi, i-2
	}
	return uint32(v.lo >> (32 * i))
}

// includes says whether every packet that narrow matches, wide matches too. Both
// are canonical.
func includes(wide, narrow openflow.Match) bool {
	for _, w := range wide {
		n, ok := narrow.Get(w.Field)
		if !ok {
			return false
		}
		if n == w {
			continue
		}
		mask := maskOf(w)
		if w.Field == openflow.FieldUnknown || maskOf(n).and(mask) != mask || !valueOf(n).xor(valueOf(w)).and(mask).zero() {
			return false
		}
	}
	return true
}

// overlap says whether some packet may match both.
func overlap(a, b openflow.Match) bool {
	for _, x := range a {
		if y, ok := b.Get(x.Field); ok && !valueOf(x).xor(valueOf(y)).and(maskOf(x)).and(maskOf(y)).zero() {
			return false
		}
	}
	return true
}

// checkMatch refuses a field that is there twice and one whose prerequisite is
// missing, as far as the fields below go.
func checkMatch(m openflow.Match) openflow.ErrorCode {
	for i, o := range m {
		if o.Field != openflow.FieldUnknown && slices.ContainsFunc(m[:i], func(p openflow.OXM) bool { return p.Field == o.Field }) {
			return openflow.BadMatchDupField
		}
		if !prerequisite(m[:i], o.Field) {
			return openflow.BadMatchBadPrereq
		}
	}
	return 0
}

// prerequisite says whether the fields before f make it meaningful.
func prerequisite(before openflow.Match, f openflow.Field) bool {
	etherType := exact(before, openflow.EthType)
	proto := exact(before, openflow.IPProto)
	ip4, ip6 := etherType == 0x0800, etherType == 0x86dd
	ip := ip4 || ip6
	switch f {
	case openflow.IPv4Src, openflow.IPv4Dst:
		return ip4
	case openflow.IPv6Src, openflow.IPv6Dst, openflow.IPv6FLabel:
		return ip6
	case openflow.IPProto, openflow.IPDSCP, openflow.IPECN, openflow.IPTTL, openflow.IPFrag:
		return ip
	case openflow.ARPOp, openflow.ARPSPA, openflow.ARPTPA, openflow.ARPSHA, openflow.ARPTHA:
		return etherType == 0x0806
	case openflow.TCPSrc, openflow.TCPDst, openflow.TCPFlags:
		return ip && proto == 6
	case openflow.UDPSrc, openflow.UDPDst:
		return ip && proto == 17
	case openflow.SCTPSrc, openflow.SCTPDst:
		return ip && proto == 132
	case openflow.ICMPv4Type, openflow.ICMPv4Code:
		return ip4 && proto == 1
	case openflow.ICMPv6Type, openflow.ICMPv6Code:
		return ip6 && proto == 58
	case openflow.IPv6NDTarget, openflow.IPv6NDSLL, openflow.IPv6NDTLL:
		icmpType := exact(before, openflow.ICMPv6Type)
		return ip6 && proto == 58 && (icmpType == 135 || icmpType == 136)
	}
	return true
}

// exact returns the value of a field that is matched without a mask, or -1.
func exact(m openflow.Match, f openflow.Field) int64 {
	if o, ok := m.Get(f); ok && !o.IsMasked() {
		return int64(o.Uint64())
	}
	return -1
}
