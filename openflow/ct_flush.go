package openflow

import (
	"encoding/binary"
	"net/netip"
)

// CTFlushZone forgets all connections of a zone (Open vSwitch since 2.6). There
// is no reply: a BarrierRequest after it tells that it is done.
type CTFlushZone struct{ Zone uint16 }

// Type returns TypeExperimenter.
func (*CTFlushZone) Type() Type { return TypeExperimenter }

func (m *CTFlushZone) appendBody(b []byte) ([]byte, error) {
	return append16(appendZeros(appendNXT(b, nxtCTFlushZone), 6), m.Zone), nil
}

// CTFlush forgets the connections that agree with all that is set (Open vSwitch
// since 3.1). The zero CTFlush forgets all connections of all zones, with the
// kernel's datapath those of the whole host: set something. There is no reply:
// a BarrierRequest after it tells that it is done.
//
// A whole Orig tuple without a zone is searched in zone 0, not in all zones.
//
// Set Proto, and never to ICMPv6: Open vSwitch (seen with 3.1) aborts when it is
// to flush an ICMPv6 connection of the userspace datapath, be it named or matched
// (lib/conntrack.c:tuple_to_conn_key asks reverse_icmp_type about a type that it
// does not know).
type CTFlush struct {
	Proto       uint8   // IP protocol, 0 for any
	Orig, Reply CTTuple // in the direction of the first packet, and back
	HasZone     bool
	Zone        uint16
}

// CTTuple is one direction of a connection. A part that is not valid or zero is
// not compared.
type CTTuple struct {
	Src, Dst         netip.Addr
	SrcPort, DstPort uint16
	// ICMP identity, used if HasICMP is set.
	HasICMP            bool
	ICMPID             uint16
	ICMPType, ICMPCode uint8
}

// Properties of a CTFlush message and of the tuples in it.
const (
	ctFlushOrig  = 0
	ctFlushReply = 1
	ctFlushZone  = 2

	ctTupleSrc      = 0
	ctTupleDst      = 1
	ctTupleSrcPort  = 2
	ctTupleDstPort  = 3
	ctTupleICMPID   = 4
	ctTupleICMPType = 5
	ctTupleICMPCode = 6
)

// Type returns TypeExperimenter.
func (*CTFlush) Type() Type { return TypeExperimenter }

func (m *CTFlush) appendBody(b []byte) ([]byte, error) {
	b = appendZeros(append(appendNXT(b, nxtCTFlush), m.Proto), 7)
	b = appendCTTuple(b, ctFlushOrig, m.Orig)
	b = appendCTTuple(b, ctFlushReply, m.Reply)
	if m.HasZone {
		b = appendCTProperty(b, ctFlushZone, m.Zone)
	}
	return b, nil
}

// appendCTProperty appends a 16-bit property as Open vSwitch does: its padding
// counts as data, unlike that of an 8-bit one.
func appendCTProperty(b []byte, typ byte, v uint16) []byte {
	return append(b, 0, typ, 0, 8, byte(v>>8), byte(v), 0, 0)
}

func appendCTTuple(b []byte, typ byte, t CTTuple) []byte {
	if t == (CTTuple{}) {
		return b
	}
	start := len(b)
	b = append(b, 0, typ, 0, 0, 0, 0, 0, 0)
	b = appendCTAddr(b, ctTupleSrc, t.Src)
	b = appendCTAddr(b, ctTupleDst, t.Dst)
	if t.SrcPort != 0 {
		b = appendCTProperty(b, ctTupleSrcPort, t.SrcPort)
	}
	if t.DstPort != 0 {
		b = appendCTProperty(b, ctTupleDstPort, t.DstPort)
	}
	if t.HasICMP {
		b = appendCTProperty(b, ctTupleICMPID, t.ICMPID)
		b = append(b, 0, ctTupleICMPType, 0, 5, t.ICMPType, 0, 0, 0)
		b = append(b, 0, ctTupleICMPCode, 0, 5, t.ICMPCode, 0, 0, 0)
	}
	binary.BigEndian.PutUint16(b[start+2:], uint16(len(b)-start))
	return b
}

func appendCTAddr(b []byte, typ byte, a netip.Addr) []byte {
	if !a.IsValid() {
		return b
	}
	v := a.As16() // an IPv4 address is mapped into IPv6
	return append(append(append(b, 0, typ, 0, 20), v[:]...), 0, 0, 0, 0)
}

// parseCTFlush returns nil if the message has parts that are not known: a
// switch that dropped them would flush too much.
func parseCTFlush(d *decoder) *CTFlush {
	m := &CTFlush{Proto: d.u8()}
	d.skip(7)
	for d.left() > 0 {
		typ, length, outer := d.tlv(4, "connection flush property")
		switch {
		case typ == ctFlushOrig && m.Orig == CTTuple{}:
			if !parseCTTuple(d, &m.Orig) {
				d.leave(outer)
				return nil
			}
		case typ == ctFlushReply && m.Reply == CTTuple{}:
			if !parseCTTuple(d, &m.Reply) {
				d.leave(outer)
				return nil
			}
		case typ == ctFlushZone && !m.HasZone && length == 8:
			m.HasZone, m.Zone = true, d.u16()
			d.skip(2)
		default:
			d.leave(outer)
			return nil
		}
		d.leave(outer)
		d.skip(-length & 7)
	}
	return m
}

// parseCTTuple reports whether all parts of the tuple are known.
func parseCTTuple(d *decoder, t *CTTuple) bool {
	d.skip(4)
	for d.left() > 0 {
		typ, length, outer := d.tlv(5, "connection tuple property")
		switch {
		case typ <= ctTupleDst && length == 20:
			a := addrFromValue(d.value(16), 16)
			if a.Is4In6() {
				a = a.Unmap()
			}
			if typ == ctTupleSrc {
				t.Src = a
			} else {
				t.Dst = a
			}
		case typ == ctTupleSrcPort:
			t.SrcPort = d.u16()
		case typ == ctTupleDstPort:
			t.DstPort = d.u16()
		case typ == ctTupleICMPID:
			t.HasICMP, t.ICMPID = true, d.u16()
		case typ == ctTupleICMPType:
			t.HasICMP, t.ICMPType = true, d.u8()
		case typ == ctTupleICMPCode:
			t.HasICMP, t.ICMPCode = true, d.u8()
		default:
			d.leave(outer)
			return d.bad // a fault needs no second look
		}
		d.leave(outer)
		d.skip(-length & 7)
	}
	return true
}
