package openflow

import "time"

// PortMod changes what operators can set of a port (OF1.4 section 7.3.4.3).
type PortMod struct {
	No         PortNo
	HWAddr     MAC        // must be the port's
	Config     PortConfig // new values of the bits in Mask
	Mask       PortConfig
	Properties []PortModProperty
}

// PortModProperty is a property of a PortMod.
type PortModProperty struct {
	Type      uint16
	Advertise uint32 // with type PortModEthernet: features to advertise
	Data      []byte // with other types; aliases the parsed octets
}

// PortModEthernet is the type of the property for Ethernet ports.
const PortModEthernet = 0

// Type returns TypePortMod.
func (*PortMod) Type() Type { return TypePortMod }

func (m *PortMod) appendBody(b []byte) ([]byte, error) {
	b = append(append32(b, uint32(m.No)), 0, 0, 0, 0)
	b = append(append(b, m.HWAddr[:]...), 0, 0)
	b = append32(append32(b, uint32(m.Config)), uint32(m.Mask))
	for _, p := range m.Properties {
		var err error
		if p.Type == PortModEthernet {
			b = append32(append(b, 0, PortModEthernet, 0, 8), p.Advertise)
		} else if b, err = appendRawProperties(b, []RawProperty{{p.Type, p.Data}}); err != nil {
			return b, err
		}
	}
	return b, nil
}

func parsePortMod(d *decoder) *PortMod {
	m := &PortMod{No: PortNo(d.u32())}
	d.skip(4)
	m.HWAddr = d.mac()
	d.skip(2)
	m.Config, m.Mask = PortConfig(d.u32()), PortConfig(d.u32())
	for d.left() > 0 {
		typ, length, outer := d.tlv(4, "port mod property")
		p := PortModProperty{Type: typ}
		switch {
		case typ == PortModEthernet && length == 8:
			p.Advertise = d.u32()
		case typ == PortModEthernet:
			d.failf(ErrBadLength, "port mod property type %d: length %d, want 8", typ, length)
		default:
			p.Data = d.rest()
		}
		d.leave(outer)
		d.skip(-length & 7)
		if !d.bad {
			m.Properties = append(m.Properties, p)
		}
	}
	return m
}

// PortStatsRequest asks for PortStatsReply; PortAny for all ports.
type PortStatsRequest struct{ Port PortNo }

// PortStatsReply lists what ports counted (OF1.4 section 7.3.5.6).
type PortStatsReply []PortStats

// PortStats is what a port counted. A counter that the switch does not have is
// all ones.
type PortStats struct {
	Port         PortNo
	DurationSec  uint32 // how long the port is there
	DurationNSec uint32 // beyond DurationSec

	RxPackets, TxPackets uint64
	RxBytes, TxBytes     uint64
	RxDropped, TxDropped uint64
	RxErrors, TxErrors   uint64

	Ethernet   *EthernetStats // nil: not sent
	Properties []RawProperty  // of other types
}

// EthernetStats is what an Ethernet port counted.
type EthernetStats struct {
	RxFrameErr, RxOverErr, RxCRCErr, Collisions uint64
}

// Duration is how long the port is there.
func (p *PortStats) Duration() time.Duration { return duration(p.DurationSec, p.DurationNSec) }

// MultipartType returns MultipartPortStats.
func (PortStatsRequest) MultipartType() MultipartType { return MultipartPortStats }

// MultipartType returns MultipartPortStats.
func (PortStatsReply) MultipartType() MultipartType { return MultipartPortStats }

func (r PortStatsRequest) appendRequest(b []byte) ([]byte, error) {
	return append(append32(b, uint32(r.Port)), 0, 0, 0, 0), nil
}

func parsePortStatsRequest(d *decoder) PortStatsRequest {
	r := PortStatsRequest{Port: PortNo(d.u32())}
	d.skip(4)
	return r
}

func (r PortStatsReply) appendReply(b []byte) ([]byte, error) {
	var err error
	for i := range r {
		p, start := &r[i], len(b)
		b = append32(append(b, 0, 0, 0, 0), uint32(p.Port))
		b = append32(append32(b, p.DurationSec), p.DurationNSec)
		for _, n := range [...]uint64{p.RxPackets, p.TxPackets, p.RxBytes, p.TxBytes, p.RxDropped, p.TxDropped, p.RxErrors, p.TxErrors} {
			b = append64(b, n)
		}
		if e := p.Ethernet; e != nil {
			b = append(b, 0, portPropertyEthernet, 0, 40, 0, 0, 0, 0)
			b = append64(append64(append64(append64(b, e.RxFrameErr), e.RxOverErr), e.RxCRCErr), e.Collisions)
		}
		if b, err = appendRawProperties(b, p.Properties); err == nil {
			b, err = patchLenAt(b, start, start, "port statistics")
		}
		if err != nil {
			return b, err
		}
	}
	return b, nil
}

const portStatsMinLen = 80

func parsePortStatsReply(d *decoder) PortStatsReply {
	var list PortStatsReply
	for d.left() > 0 {
		outer := d.entry(portStatsMinLen, "port statistics")
		d.skip(2)
		p := PortStats{
			Port: PortNo(d.u32()), DurationSec: d.u32(), DurationNSec: d.u32(),
			RxPackets: d.u64(), TxPackets: d.u64(), RxBytes: d.u64(), TxBytes: d.u64(),
			RxDropped: d.u64(), TxDropped: d.u64(), RxErrors: d.u64(), TxErrors: d.u64(),
		}
		for d.left() > 0 {
			typ, length, inner := d.tlv(4, "port statistics property")
			if typ == portPropertyEthernet && length == 40 && p.Ethernet == nil && p.Properties == nil {
				d.skip(4)
				p.Ethernet = &EthernetStats{d.u64(), d.u64(), d.u64(), d.u64()}
			} else {
				p.Properties = append(p.Properties, RawProperty{typ, d.rest()})
			}
			d.leave(inner)
			d.skip(-length & 7)
		}
		d.leave(outer)
		if !d.bad {
			list = append(list, p)
		}
	}
	return list
}
