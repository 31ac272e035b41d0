package openflow

// Port is a switch port (OF1.4 section 7.2.1).
type Port struct {
	No         PortNo
	HWAddr     MAC
	Name       string // at most 16 octets
	Config     PortConfig
	State      PortState
	Properties []PortProperty
}

// PortConfig is what operators set.
type PortConfig uint32

// The bits of PortConfig.
const (
	PortDown       PortConfig = 1 << 0 // administratively down
	PortNoRecv     PortConfig = 1 << 2
	PortNoFwd      PortConfig = 1 << 5
	PortNoPacketIn PortConfig = 1 << 6
)

// PortState is what the switch found.
type PortState uint32

// The bits of PortState. Open vSwitch sets PortLive if the port has carrier
// and its BFD, CFM and LACP, where they are in use, say so too.
const (
	PortLinkDown PortState = 1 << 0
	PortBlocked  PortState = 1 << 1
	PortLive     PortState = 1 << 2
)

// PortProperty is a property of a Port: PortEthernet, PortOptical or RawPortProperty.
type PortProperty interface {
	appendProperty(b []byte) ([]byte, error)
}

// PortEthernet describes an Ethernet port; the features are bits of
// ofp_port_features, the speeds in kbit/s.
type PortEthernet struct {
	Current, Advertised, Supported, Peer uint32
	CurrentSpeed, MaxSpeed               uint32
}

// PortOptical describes an optical port.
type PortOptical struct {
	Supported                                uint32
	TxMinFreqLambda, TxMaxFreqLambda, TxGrid uint32
	RxMinFreqLambda, RxMaxFreqLambda, RxGrid uint32
	TxPowerMin, TxPowerMax                   uint16
}

// RawPortProperty is a property that this package does not know. Data aliases
// the parsed octets.
type RawPortProperty RawProperty

const (
	portPropertyEthernet = 0
	portPropertyOptical  = 1
)

func (p PortEthernet) appendProperty(b []byte) ([]byte, error) {
	b = append(b, 0, portPropertyEthernet, 0, 32, 0, 0, 0, 0)
	for _, v := range [...]uint32{p.Current, p.Advertised, p.Supported, p.Peer, p.CurrentSpeed, p.MaxSpeed} {
		b = append32(b, v)
	}
	return b, nil
}

func (p PortOptical) appendProperty(b []byte) ([]byte, error) {
	b = append(b, 0, portPropertyOptical, 0, 40, 0, 0, 0, 0)
	for _, v := range [...]uint32{p.Supported, p.TxMinFreqLambda, p.TxMaxFreqLambda, p.TxGrid, p.RxMinFreqLambda, p.RxMaxFreqLambda, p.RxGrid} {
		b = append32(b, v)
	}
	return append16(append16(b, p.TxPowerMin), p.TxPowerMax), nil
}

func (p RawPortProperty) appendProperty(b []byte) ([]byte, error) {
	return appendRawProperties(b, []RawProperty{RawProperty(p)})
}

// IsLive reports whether the port can carry packets, as far as the switch knows.
func (p *Port) IsLive() bool { return p.State&PortLive != 0 }

// Ethernet returns the Ethernet property, if there is one.
func (p *Port) Ethernet() (PortEthernet, bool) {
	for _, property := range p.Properties {
		if e, ok := property.(PortEthernet); ok {
			return e, true
		}
	}
	return PortEthernet{}, false
}

const portNameLen = 16

func appendPort(b []byte, p *Port) ([]byte, error) {
	start := len(b)
	b = append(append32(b, uint32(p.No)), 0, 0, 0, 0)
	b = append(append(b, p.HWAddr[:]...), 0, 0)
	b, err := appendText(b, p.Name, portNameLen, "port name")
	if err != nil {
		return b, err
	}
	b = append32(append32(b, uint32(p.Config)), uint32(p.State))
	for _, property := range p.Properties {
		if b, err = property.appendProperty(b); err != nil {
			return b, err
		}
	}
	return patchLenAt(b, start, start+4, "port")
}

const portMinLen = 40

func parsePort(d *decoder, p *Port) {
	p.No = PortNo(d.u32())
	outer := d.entryAfter(4, portMinLen, "port")
	d.skip(2)
	p.HWAddr = d.mac()
	d.skip(2)
	p.Name = d.text(portNameLen)
	p.Config, p.State = PortConfig(d.u32()), PortState(d.u32())
	for d.left() > 0 {
		property := parsePortProperty(d)
		if !d.bad {
			p.Properties = append(p.Properties, property)
		}
	}
	d.leave(outer)
}

func parsePortProperty(d *decoder) (p PortProperty) {
	typ, length, outer := d.tlv(4, "port property")
	switch {
	case typ == portPropertyEthernet && length == 32:
		d.skip(4)
		p = PortEthernet{d.u32(), d.u32(), d.u32(), d.u32(), d.u32(), d.u32()}
	case typ == portPropertyOptical && length == 40:
		d.skip(4)
		p = PortOptical{d.u32(), d.u32(), d.u32(), d.u32(), d.u32(), d.u32(), d.u32(), d.u16(), d.u16()}
	default:
		p = RawPortProperty{Type: typ, Data: d.rest()}
	}
	d.leave(outer)
	d.skip(-length & 7)
	return p
}

// PortStatus tells that a port came, went or changed (OF1.4 section 7.4.3).
type PortStatus struct {
	Reason PortReason
	Port   Port
}

// PortReason says what happened to a port.
type PortReason uint8

// The reasons.
const (
	PortAdded    PortReason = 0
	PortDeleted  PortReason = 1
	PortModified PortReason = 2
)

// Type returns TypePortStatus.
func (*PortStatus) Type() Type { return TypePortStatus }

func (m *PortStatus) appendBody(b []byte) ([]byte, error) {
	return appendPort(append(b, byte(m.Reason), 0, 0, 0, 0, 0, 0, 0), &m.Port)
}

func parsePortStatus(d *decoder) *PortStatus {
	m := &PortStatus{Reason: PortReason(d.u8())}
	d.skip(7)
	parsePort(d, &m.Port)
	return m
}
