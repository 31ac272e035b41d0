package oftest

import (
	"maps"
	"net/netip"
	"slices"

	"brlb/openflow"
	"brlb/openflow/multipath"
)

// Packet is what a switch knows of a packet while it goes through the tables:
// the values of its header fields and its metadata. Fields that were never set
// are zero. It has no octets.
type Packet struct {
	values map[openflow.Field]bits128
	// tags are the VLAN tags inside the outer one, which is in values as VLANTCI.
	tags  []bits128
	stack []bits128
}

// defaultTTL is the TTL of an IP packet that was not given one.
const defaultTTL = 64

// NewPacket returns a packet with the values that a match without masks has, in
// any order: what openflow.ParseMatch makes of the text that ofproto/trace
// takes. An IP packet gets a TTL of 64 unless it has one.
func NewPacket(fields openflow.Match) *Packet {
	p := &Packet{values: map[openflow.Field]bits128{}}
	for _, o := range fields {
		p.Set(o)
	}
	if etherType := p.Uint64(openflow.EthType); (etherType == 0x0800 || etherType == 0x86dd) && p.Uint64(openflow.IPTTL) == 0 {
		p.Set(openflow.IPTTL.Exact(defaultTTL))
	}
	return p
}

// TCPPacket returns a TCP packet over IPv4 or IPv6 that came in by a port, with
// the flags given (SYN is 2, ACK 0x10), and no MAC addresses.
func TCPPacket(in openflow.PortNo, src, dst netip.AddrPort, flags uint16) *Packet {
	srcField, dstField, etherType := openflow.IPv4Src, openflow.IPv4Dst, uint64(0x0800)
	if src.Addr().Is6() {
		srcField, dstField, etherType = openflow.IPv6Src, openflow.IPv6Dst, 0x86dd
	}
	return NewPacket(openflow.Match{
		openflow.InPort.Exact(uint64(in)), openflow.EthType.Exact(etherType), openflow.IPProto.Exact(6),
		srcField.Addr(src.Addr()), dstField.Addr(dst.Addr()),
		openflow.TCPSrc.Exact(uint64(src.Port())), openflow.TCPDst.Exact(uint64(dst.Port())),
		openflow.TCPFlags.Exact(uint64(flags)),
	})
}

// Clone returns a copy.
func (p *Packet) Clone() *Packet {
	return &Packet{values: maps.Clone(p.values), tags: slices.Clone(p.tags), stack: slices.Clone(p.stack)}
}

// With returns a copy with other values.
func (p *Packet) With(fields ...openflow.OXM) *Packet {
	q := p.Clone()
	for _, o := range fields {
		q.Set(o)
	}
	return q
}

// Set sets a field, or those bits of it that the mask has.
func (p *Packet) Set(o openflow.OXM) {
	mask := maskOf(o)
	old := p.get(o.Field)
	p.put(o.Field, old.xor(old.xor(valueOf(o)).and(mask)))
}

// Uint64 returns the low 64 bits of a field.
func (p *Packet) Uint64(f openflow.Field) uint64 { return p.get(f).lo }

// OXM returns a field with its value.
func (p *Packet) OXM(f openflow.Field) openflow.OXM {
	v := p.get(f)
	return f.Exact128(v.hi, v.lo)
}

// Fields returns the fields that are not zero, in the order of a match.
func (p *Packet) Fields() openflow.Match {
	var m openflow.Match
	for _, f := range slices.Sorted(maps.Keys(p.values)) {
		if !p.values[f].zero() {
			m = append(m, p.OXM(f))
		}
	}
	return m
}

// String returns the fields that are not zero as ovs-ofctl writes a match.
func (p *Packet) String() string { return p.Fields().String() }

// Source and Destination return the addresses and ports of an IP packet. The
// port is 0 for protocols without.
func (p *Packet) Source() netip.AddrPort {
	addr, port := p.endpoint(true)
	return netip.AddrPortFrom(p.OXM(addr).IP(), uint16(p.Uint64(port)))
}

// Destination: see Source.
func (p *Packet) Destination() netip.AddrPort {
	addr, port := p.endpoint(false)
	return netip.AddrPortFrom(p.OXM(addr).IP(), uint16(p.Uint64(port)))
}

// endpoint returns the fields in which one end's address and port are.
func (p *Packet) endpoint(source bool) (addr, port openflow.Field) {
	pick := func(src, dst openflow.Field) openflow.Field {
		if source {
			return src
		}
		return dst
	}
	addr = pick(openflow.IPv4Src, openflow.IPv4Dst)
	if p.Uint64(openflow.EthType) == 0x86dd {
		addr = pick(openflow.IPv6Src, openflow.IPv6Dst)
	}
	switch p.Uint64(openflow.IPProto) {
	case 6:
		port = pick(openflow.TCPSrc, openflow.TCPDst)
	case 17:
		port = pick(openflow.UDPSrc, openflow.UDPDst)
	case 132:
		port = pick(openflow.SCTPSrc, openflow.SCTPDst)
	}
	return addr, port
}

// get reads a field. Some are views of another: wide registers of the 32-bit
// ones, the parts of a VLAN tag of the tag, the 16-bit ingress port of the port.
func (p *Packet) get(f openflow.Field) bits128 {
	if first, n := registersOf(f); n > 1 {
		var v bits128
		for i := range n {
			v = v.shiftLeft(32)
			v.lo |= p.values[openflow.Reg(first+i)].lo
		}
		return v
	}
	switch f {
	case openflow.FieldUnknown:
		return bits128{}
	case openflow.InPortNXM:
		return bits128{lo: p.values[openflow.InPort].lo & 0xffff}
	case openflow.VLANVID:
		return bits128{lo: p.values[openflow.VLANTCI].lo & 0x1fff}
	case openflow.VLANPCP:
		return bits128{lo: p.values[openflow.VLANTCI].lo >> 13}
	}
	return p.values[f]
}

func (p *Packet) put(f openflow.Field, v bits128) {
	if first, n := registersOf(f); n > 1 {
		for i := range n {
			p.values[openflow.Reg(first+i)] = bits128{lo: uint64(word(v, n-1-i))}
		}
		return
	}
	const present, pcpShift, vidMask = 0x1000, 13, 0x0fff
	tci := p.values[openflow.VLANTCI].lo
	switch f {
	case openflow.FieldUnknown:
		return
	case openflow.InPortNXM:
		f, v.lo = openflow.InPort, port32(v.lo)
	case openflow.VLANVID:
		f, v.lo = openflow.VLANTCI, tci&^vidMask|v.lo&vidMask|present
	case openflow.VLANPCP:
		f, v.lo = openflow.VLANTCI, tci&^(7<<pcpShift)|v.lo<<pcpShift|present
	}
	p.values[f] = v
}

// port32 is the port with a number of 16 bits.
func port32(n uint64) uint64 {
	if n >= 0xff00 {
		return uint64(openflow.PortMax) | n
	}
	return n
}

// pushVLAN and popVLAN add and remove the outer tag.
func (p *Packet) pushVLAN() {
	if outer := p.get(openflow.VLANTCI); !outer.zero() {
		p.tags = append(p.tags, outer)
	}
	p.put(openflow.VLANTCI, bits128{lo: 0x1000})
}

func (p *Packet) popVLAN() {
	var outer bits128
	if n := len(p.tags); n > 0 {
		outer, p.tags = p.tags[n-1], p.tags[:n-1]
	}
	p.put(openflow.VLANTCI, outer)
}

// read and write access some bits of a field.
func (p *Packet) read(s openflow.Subfield) bits128 {
	return p.get(s.Field).shiftRight(uint(s.Offset)).and(lowBits(uint(s.Bits)))
}

func (p *Packet) write(s openflow.Subfield, v bits128) {
	mask := lowBits(uint(s.Bits)).shiftLeft(uint(s.Offset))
	old := p.get(s.Field)
	p.put(s.Field, old.xor(old.xor(v.shiftLeft(uint(s.Offset))).and(mask)))
}

// matches says whether the packet has what a match asks for.
func (p *Packet) matches(m openflow.Match) bool {
	for _, o := range m {
		if o.Field == openflow.FieldUnknown || !p.get(o.Field).xor(valueOf(o)).and(maskOf(o)).zero() {
			return false
		}
	}
	return true
}

// hashed returns the parts of the packet that a multipath action hashes.
func (p *Packet) hashed() *multipath.Packet {
	h := &multipath.Packet{
		EthSrc: p.OXM(openflow.EthSrc).MAC(), EthDst: p.OXM(openflow.EthDst).MAC(),
		EthType: uint16(p.Uint64(openflow.EthType)), Proto: uint8(p.Uint64(openflow.IPProto)),
	}
	src, dst := p.Source(), p.Destination()
	h.Src, h.SrcPort = src.Addr(), src.Port()
	h.Dst, h.DstPort = dst.Addr(), dst.Port()
	for _, tag := range append(p.tags[:len(p.tags):len(p.tags)], p.get(openflow.VLANTCI)) {
		if !tag.zero() {
			h.VLANs = append(h.VLANs, uint16(tag.lo))
		}
	}
	switch p.Uint64(openflow.IPFrag) {
	case 1:
		h.Frag = multipath.FirstFrag
	case 3:
		h.Frag = multipath.LaterFrag
	}
	return h
}
