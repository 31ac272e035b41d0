package openflow

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"strings"
)

// OXM is one field of a match with the value that it must have, or a field to
// be set with its value (OF1.4 section 7.2.3.2). It is a comparable value:
// two OXMs that are == match the same. Make one with the methods of Field
// (IPv4Dst.Addr(a), Reg1.Exact(5)), or RawOXM for what this package does not know.
//
// It has no pointers: matches of many thousand flows cost the garbage collector
// nothing.
type OXM struct {
	Field  Field
	masked bool
	size   uint16 // octets of an unknown or variable-length field: see oxm_raw.go
	header uint32 // of an unknown field, without length and mask flag
	value  uint128
	mask   uint128
}

// uint128 holds values up to 16 octets; shorter ones are in the low bits.
type uint128 struct{ hi, lo uint64 }

// Exact is f with the value v, which must fit into f (Append says if not).
func (f Field) Exact(v uint64) OXM {
	return OXM{Field: f, value: uint128{lo: v}}
}

// Exact128 is f, a field of 16 octets, with the value hi<<64 | lo.
func (f Field) Exact128(hi, lo uint64) OXM {
	return OXM{Field: f, value: uint128{hi, lo}}
}

// Masked is f with those bits of v that are set in mask. A mask of all ones
// gives the same as Exact. Bits of v outside the mask are dropped, since a
// switch refuses them.
func (f Field) Masked(v, mask uint64) OXM {
	return f.Masked128(0, v, 0, mask)
}

// Masked128 is Masked for fields of 16 octets.
func (f Field) Masked128(hi, lo, maskHi, maskLo uint64) OXM {
	mask := uint128{maskHi, maskLo}
	value := uint128{hi & maskHi, lo & maskLo}
	if mask == allOnes(f.Size()) {
		return OXM{Field: f, value: value}
	}
	return OXM{Field: f, masked: true, value: value, mask: mask}
}

// Addr is f, a field that holds an IPv4 or an IPv6 address, with the address
// a. An address of the other family does not fit: Append says so.
func (f Field) Addr(a netip.Addr) OXM {
	return OXM{Field: f, value: addrValue(a)}
}

// Prefix is f, a field that holds an address, with the addresses in p.
func (f Field) Prefix(p netip.Prefix) OXM {
	width := 128
	if p.Addr().Is4() {
		width = 32
	}
	v, m := addrValue(p.Addr()), prefixMask(p.Bits(), width)
	return f.Masked128(v.hi, v.lo, m.hi, m.lo)
}

// MAC is f, a field that holds an Ethernet address, with the address m.
func (f Field) MAC(m MAC) OXM {
	return OXM{Field: f, value: uint128{lo: m.uint64()}}
}

// MaskedMAC is f with those bits of m that are set in mask.
func (f Field) MaskedMAC(m, mask MAC) OXM {
	return f.Masked(m.uint64(), mask.uint64())
}

// Uint64 returns the low 64 bits of the value.
func (o OXM) Uint64() uint64 { return o.value.lo }

// Uint128 returns the value as two halves.
func (o OXM) Uint128() (hi, lo uint64) { return o.value.hi, o.value.lo }

// IsMasked reports whether only some bits of the value count.
func (o OXM) IsMasked() bool { return o.masked }

// Mask returns the low 64 bits of the mask, all ones of the field's size if
// there is none.
func (o OXM) Mask() uint64 {
	_, lo := o.Mask128()
	return lo
}

// Mask128 returns the mask as two halves, all ones of the field's size if
// there is none.
func (o OXM) Mask128() (hi, lo uint64) {
	if o.masked {
		return o.mask.hi, o.mask.lo
	}
	m := allOnes(o.Field.Size())
	return m.hi, m.lo
}

// IP returns the value of a field of 4 or 16 octets as an address; the zero
// Addr for others.
func (o OXM) IP() netip.Addr { return addrFromValue(o.value, o.Field.Size()) }

// MAC returns the low 48 bits of the value as an Ethernet address.
func (o OXM) MAC() MAC { return macFromUint64(o.value.lo) }

func addrValue(a netip.Addr) uint128 {
	if a.Is4() {
		b := a.As4()
		return uint128{lo: uint64(binary.BigEndian.Uint32(b[:]))}
	}
	b := a.As16()
	return uint128{binary.BigEndian.Uint64(b[:8]), binary.BigEndian.Uint64(b[8:])}
}

func addrFromValue(v uint128, size int) netip.Addr {
	switch size {
	case 4:
		var b [4]byte
		binary.BigEndian.PutUint32(b[:], uint32(v.lo))
		return netip.AddrFrom4(b)
	case 16:
		var b [16]byte
		binary.BigEndian.PutUint64(b[:8], v.hi)
		binary.BigEndian.PutUint64(b[8:], v.lo)
		return netip.AddrFrom16(b)
	}
	return netip.Addr{}
}

// prefixMask is a mask of n ones followed by zeros, width bits in all.
func prefixMask(n, width int) uint128 {
	if n < 0 || n > width {
		return uint128{}
	}
	zeros := uint(width - n)
	ones := allOnes(width / 8)
	if zeros >= 64 {
		return uint128{hi: ones.hi &^ (1<<(zeros-64) - 1)}
	}
	return uint128{ones.hi, ones.lo &^ (1<<zeros - 1)}
}

// allOnes is the greatest value of size octets.
func allOnes(size int) uint128 {
	switch {
	case size >= 16:
		return uint128{^uint64(0), ^uint64(0)}
	case size >= 8:
		return uint128{lo: ^uint64(0)}
	}
	return uint128{lo: 1<<(8*uint(size)) - 1}
}

// fits reports whether v is at most size octets wide.
func (v uint128) fits(size int) bool {
	switch {
	case size >= 16:
		return true
	case size >= 8:
		return v.hi == 0
	}
	return v.hi == 0 && v.lo>>(8*uint(size)) == 0
}

// appendOXM appends o with the code that a match has for it.
func appendOXM(b []byte, o *OXM) ([]byte, error) {
	info := o.Field.info()
	if info.size == 0 || info.format == formatBytes {
		return appendRawOXM(b, Match{*o})
	}
	size := int(info.size)
	if !o.value.fits(size) || !o.mask.fits(size) {
		return b, encodeErrorf("%v: value %#x or mask %#x has more than %d octets", o.Field, o.value.lo, o.mask.lo, size)
	}
	header := info.match
	if o.masked {
		header = header | oxmHasMask + uint32(size)
	}
	b = append32(b, header)
	if info.experimenter != 0 {
		b = append32(b, info.experimenter)
	}
	b = appendValue(b, o.value, size)
	if o.masked {
		b = appendValue(b, o.mask, size)
	}
	return b, nil
}

// appendValue appends the low size octets of v.
func appendValue(b []byte, v uint128, size int) []byte {
	switch size {
	case 4:
		return append32(b, uint32(v.lo))
	case 2:
		return append16(b, uint16(v.lo))
	case 1:
		return append(b, byte(v.lo))
	case 6:
		return append32(append16(b, uint16(v.lo>>32)), uint32(v.lo))
	case 8:
		return append64(b, v.lo)
	}
	return append64(append64(b, v.hi), v.lo)
}

// value reads size octets.
func (d *decoder) value(size int) uint128 {
	switch size {
	case 4:
		return uint128{lo: uint64(d.u32())}
	case 2:
		return uint128{lo: uint64(d.u16())}
	case 1:
		return uint128{lo: uint64(d.u8())}
	case 6:
		hi := uint64(d.u16())
		return uint128{lo: hi<<32 | uint64(d.u32())}
	case 8:
		return uint128{lo: d.u64()}
	}
	hi := d.u64()
	return uint128{hi, d.u64()}
}

// parseOXM reads one OXM into o, of which it sets all. It returns the octets of
// an unknown or variable-length field that o has no room for.
func parseOXM(d *decoder, o *OXM) (more []byte) {
	header := d.u32()
	n := oxmLen(header)
	if n > d.left() {
		d.failf(ErrBadLength, "match field %08x: length %d is more than the %d octets left", header, n, d.left())
		return nil
	}
	experimenter := uint32(0)
	if isExperimenter(header) && n >= 4 {
		experimenter = binary.BigEndian.Uint32(d.b[d.pos:])
	}
	f := fieldByHeader(header, experimenter)
	info := f.info()
	masked := header&oxmHasMask != 0
	if info.size == 0 || info.format == formatBytes {
		*o = OXM{Field: f, masked: masked, size: uint16(n)}
		if f == FieldUnknown {
			o.header = header &^ (oxmLenMask | oxmHasMask)
		} else if masked && n%2 != 0 {
			d.failf(ErrBadLength, "%v: value and mask of %d octets", f, n)
		}
		return o.putOctets(d.take(n))
	}
	size := int(info.size)
	want := size
	if masked {
		want += size
	}
	if experimenter != 0 {
		want += 4
	}
	if n != want {
		d.failf(ErrBadLength, "%v: length %d, want %d", f, n, want)
		return nil
	}
	if experimenter != 0 {
		d.skip(4)
	}
	o.Field, o.masked, o.size, o.header = f, masked, 0, 0
	o.value, o.mask = d.value(size), uint128{}
	if masked {
		o.mask = d.value(size)
	}
	return nil
}

// Match is what packets a flow is for: all its fields must agree (OF1.4
// section 7.2.3). The empty match is for all. The order is kept; a switch wants
// a field after those that it depends on (EthType before IPv4Dst).
type Match []OXM

// Get returns the first OXM of field f.
func (m Match) Get(f Field) (OXM, bool) {
	for i := range m {
		if m[i].Field == f {
			return m[i], true
		}
	}
	return OXM{}, false
}

// String returns the match as ovs-ofctl writes it, such as
// "tcp,nw_dst=10.0.0.100,tp_dst=80"; "" for the empty match.
func (m Match) String() string {
	var s strings.Builder
	writeMatch(&s, m)
	return s.String()
}

const matchTypeOXM = 1

// appendMatch appends the type and length of a match, its fields and its padding.
func appendMatch(b []byte, m Match) ([]byte, error) {
	start := len(b)
	b = append(b, 0, matchTypeOXM, 0, 0)
	b, err := appendOXMs(b, m)
	if err != nil {
		return b, err
	}
	b, err = patchLen(b, start, "match")
	if err != nil {
		return b, err
	}
	return pad8(b, start), nil
}

func appendOXMs(b []byte, m Match) ([]byte, error) {
	var err error
	for i := 0; i < len(m) && err == nil; i++ {
		if m[i].size > rawRoom {
			parts := m.parts(i)
			b, err = appendRawOXM(b, m[i:i+parts])
			i += parts - 1
		} else {
			b, err = appendOXM(b, &m[i])
		}
	}
	return b, err
}

// parseMatch reads a match and its padding, appending its fields to m.
func parseMatch(d *decoder, m Match) Match {
	typ, length := d.u16(), int(d.u16())
	switch {
	case d.bad:
		return m
	case typ != matchTypeOXM:
		d.failf(ErrBadValue, "match type %d, want %d (OXM)", typ, matchTypeOXM)
		return m
	case length < 4 || length-4 > d.left():
		d.failf(ErrBadLength, "match: length %d, %d octets left", length, d.left()+4)
		return m
	}
	outer := d.enter(length - 4)
	m = parseOXMs(d, m)
	d.leave(outer)
	d.skip(-length & 7)
	return m
}

// parseOXMs reads OXMs until the window ends.
func parseOXMs(d *decoder, m Match) Match {
	for d.left() > 0 {
		m = extend(m)
		if more := parseOXM(d, &m[len(m)-1]); len(more) > 0 {
			m = appendMore(m, more)
		}
	}
	return m
}

// Subfield is a run of bits of a field, as Open vSwitch's own actions read and
// write it.
type Subfield struct {
	Field  Field
	Offset uint16 // of the lowest bit
	Bits   uint16 // how many, 1 to 64 for most actions
}

// Whole is all bits of f.
func (f Field) Whole() Subfield { return Subfield{Field: f, Bits: f.info().bits} }

// Range is the bits first to last of f, both included, counted from the lowest.
func (f Field) Range(first, last uint16) Subfield {
	return Subfield{Field: f, Offset: first, Bits: last - first + 1}
}

// String returns the subfield as ovs-ofctl writes it: NXM_NX_REG0[0..15],
// NXM_NX_REG0[] for all bits.
func (s Subfield) String() string {
	name := s.Field.actionName()
	switch {
	case s == s.Field.Whole():
		return name + "[]"
	case s.Bits == 1:
		return fmt.Sprintf("%s[%d]", name, s.Offset)
	}
	return fmt.Sprintf("%s[%d..%d]", name, s.Offset, int(s.Offset)+int(s.Bits)-1)
}

// offsetBits packs a subfield into the 16 bits that most actions have for it:
// offset 0 to 1023, bits 1 to 64.
func (s Subfield) offsetBits() (uint16, error) {
	if s.Offset > 1023 || s.Bits < 1 || s.Bits > 64 {
		return 0, encodeErrorf("subfield %v: offset %d (at most 1023), %d bits (1 to 64)", s, s.Offset, s.Bits)
	}
	return s.Offset<<6 | (s.Bits - 1), nil
}

func subfieldFrom(f Field, offsetBits uint16) Subfield {
	return Subfield{Field: f, Offset: offsetBits >> 6, Bits: offsetBits&63 + 1}
}
