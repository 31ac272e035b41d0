package openflow

// Sample sends some packets to an IPFIX exporter (ovs-actions(7), "sample").
type Sample struct {
	Probability    uint16 // of 65535
	CollectorSetID uint32
	ObsDomainID    uint32
	ObsPointID     uint32
	SamplingPort   PortNo // whose tunnel's metadata to add; PortAny for none
	Direction      SampleDirection
}

// SampleDirection says on which way the packet is.
type SampleDirection uint8

// The directions.
const (
	SampleDefault SampleDirection = 0
	SampleIngress SampleDirection = 1
	SampleEgress  SampleDirection = 2
)

func (a Sample) appendAction(b []byte) ([]byte, error) {
	port, err := a.SamplingPort.uint16()
	if err != nil {
		return b, err
	}
	subtype, length := uint16(nxSample3), uint16(32)
	switch {
	case a.Direction != SampleDefault:
	case a.SamplingPort != PortAny:
		subtype = nxSample2
	default:
		subtype, length = nxSample, 24
	}
	b = append16(nxStart(b, length, subtype), a.Probability)
	b = append32(append32(append32(b, a.CollectorSetID), a.ObsDomainID), a.ObsPointID)
	if subtype == nxSample {
		return b, nil
	}
	return append(append16(b, port), byte(a.Direction), 0, 0, 0, 0, 0), nil
}

func parseSample(d *decoder, subtype uint16) (Action, bool) {
	a := Sample{
		Probability: d.u16(), CollectorSetID: d.u32(), ObsDomainID: d.u32(), ObsPointID: d.u32(),
		SamplingPort: PortAny,
	}
	if subtype == nxSample {
		return a, true
	}
	a.SamplingPort, a.Direction = portFrom16(d.u16()), SampleDirection(d.u8())
	d.skip(5)
	// What would be written with another code than it was read stays as octets.
	if subtype == nxSample3 {
		return a, a.Direction != SampleDefault
	}
	return a, a.Direction == SampleDefault && a.SamplingPort != PortAny
}

// Encap adds a header (ovs-actions(7), "encap").
type Encap struct {
	HeaderSize uint16 // 0 for the default
	PacketType uint32 // namespace<<16 | type: PacketTypeEthernet, PacketTypeNSH
	Properties []EncapProperty
}

// Packet types of Encap, Decap and the PacketType field.
const (
	PacketTypeEthernet = 0
	PacketTypeNSH      = 1<<16 | 0x894f
)

// EncapProperty is a detail of the new header. Data aliases the parsed octets.
type EncapProperty struct {
	Class uint16 // EncapClassNSH
	Type  uint8  // EncapNSHMDType, EncapNSHTLV
	Data  []byte // a TLV's is padded to a multiple of 8 less 4
}

// Classes and types of EncapProperty.
const (
	EncapClassNSH  = 4
	EncapNSHMDType = 1 // Data is the metadata type, 1 or 2
	EncapNSHTLV    = 2 // Data is class 16 bits, type 8, length 8, value
)

func (a Encap) appendAction(b []byte) ([]byte, error) {
	start := len(b)
	b = append32(append16(nxStart(b, 0, nxEncap), a.HeaderSize), a.PacketType)
	for _, p := range a.Properties {
		if len(p.Data) > 255-4 {
			return b, encodeErrorf("encap property of %d octets; it has at most %d", len(p.Data), 255-4)
		}
		property := len(b)
		b = append(append16(b, p.Class), p.Type, byte(len(p.Data)+4))
		b = pad8(append(b, p.Data...), property)
	}
	return patchLen(b, start, "encap")
}

func parseEncap(d *decoder) (Action, bool) {
	a := Encap{HeaderSize: d.u16(), PacketType: d.u32()}
	for d.left() > 0 {
		p := EncapProperty{Class: d.u16(), Type: d.u8()}
		length := int(d.u8())
		if !d.bad && length < 4 {
			d.failf(ErrBadLength, "encap property: length %d is below 4", length)
		}
		p.Data = d.take(length - 4)
		d.skip(min(-length&7, d.left()))
		a.Properties = append(a.Properties, p)
	}
	return a, true
}
