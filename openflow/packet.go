package openflow

// PacketIn hands a packet to the controller (OF1.4 section 7.4.1).
type PacketIn struct {
	BufferID uint32 // NoBuffer, with Open vSwitch
	TotalLen uint16 // of the packet, of which Data may be the beginning
	Reason   PacketInReason
	Table    uint8
	Cookie   uint64 // of the flow that sent it
	Match    Match  // InPort and metadata, registers, tunnel fields, ... of the packet
	Data     []byte // the packet from its Ethernet header; aliases the parsed octets
}

// PacketInReason says why a packet was handed to the controller.
type PacketInReason uint8

// The reasons.
const (
	PacketInTableMiss  PacketInReason = 0 // no flow matched, but for the table-miss flow
	PacketInAction     PacketInReason = 1 // an action of a flow (OFPR_APPLY_ACTION)
	PacketInInvalidTTL PacketInReason = 2
	PacketInActionSet  PacketInReason = 3
	PacketInGroup      PacketInReason = 4
	PacketInPacketOut  PacketInReason = 5
)

// InPort is the port where the packet came in; PortAny if the switch did not say.
func (m *PacketIn) InPort() PortNo {
	if o, ok := m.Match.Get(InPort); ok {
		return PortNo(o.Uint64())
	}
	return PortAny
}

// Type returns TypePacketIn.
func (*PacketIn) Type() Type { return TypePacketIn }

func (m *PacketIn) appendBody(b []byte) ([]byte, error) {
	b = append16(append32(b, m.BufferID), m.TotalLen)
	b = append64(append(b, byte(m.Reason), m.Table), m.Cookie)
	b, err := appendMatch(b, m.Match)
	if err != nil {
		return b, err
	}
	return append(append(b, 0, 0), m.Data...), nil
}

func parsePacketIn(d *decoder) *PacketIn {
	m := &PacketIn{BufferID: d.u32(), TotalLen: d.u16(), Reason: PacketInReason(d.u8()), Table: d.u8(), Cookie: d.u64()}
	m.Match = parseMatch(d, nil)
	d.skip(2)
	m.Data = d.rest()
	return m
}

// PacketOut sends a packet from the controller (OF1.4 section 7.3.6).
type PacketOut struct {
	BufferID uint32 // NoBuffer, and the packet in Data
	InPort   PortNo // as whose packet the actions see it; PortController or PortAny if of none
	Actions  []Action
	Data     []byte // the packet from its Ethernet header; aliases the parsed octets
}

// Type returns TypePacketOut.
func (*PacketOut) Type() Type { return TypePacketOut }

func (m *PacketOut) appendBody(b []byte) ([]byte, error) {
	b = append32(append32(b, m.BufferID), uint32(m.InPort))
	lenAt := len(b)
	b = appendZeros(b, 8)
	actions := len(b)
	b, err := appendActions(b, m.Actions)
	if err != nil {
		return b, err
	}
	n := len(b) - actions
	if n > MaxMessageLen {
		return b, encodeErrorf("actions of %d octets; a packet-out can have %d at most", n, MaxMessageLen)
	}
	b[lenAt], b[lenAt+1] = byte(n>>8), byte(n)
	return append(b, m.Data...), nil
}

func parsePacketOut(d *decoder) *PacketOut {
	m := &PacketOut{BufferID: d.u32(), InPort: PortNo(d.u32())}
	n := int(d.u16())
	d.skip(6)
	outer := d.enter(n)
	if !d.bad {
		m.Actions = parseActions(d, nil)
	}
	d.leave(outer)
	m.Data = d.rest()
	return m
}
