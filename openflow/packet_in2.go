package openflow

// PacketIn2 is Open vSwitch's PacketIn with user data and continuation
// (NXT_PACKET_IN2). It comes after SetPacketInFormat, and for packets that
// action Controller2 sends with Pause.
type PacketIn2 struct {
	Packet       []byte // from its Ethernet header, maybe its beginning only; aliases the parsed octets
	FullLen      uint32 // of the packet, if Packet is its beginning only; else 0
	BufferID     uint32 // NoBuffer, with Open vSwitch
	Table        uint8
	Cookie       uint64 // of the flow that sent it; all ones for none
	Reason       PacketInReason
	Metadata     Match  // InPort and metadata, registers, tunnel fields, ... of the packet
	UserData     []byte // of action Controller2; aliases the parsed octets
	Continuation []byte // opaque: goes back in Resume; aliases the parsed octets
	Properties   []RawProperty
}

// Resume lets a paused packet go on, with what the controller changed of it
// (NXT_RESUME). Its Continuation is that of the PacketIn2.
type Resume struct{ PacketIn2 }

// Properties of packet-in messages.
const (
	packetIn2Packet       = 0
	packetIn2FullLen      = 1
	packetIn2BufferID     = 2
	packetIn2TableID      = 3
	packetIn2Cookie       = 4
	packetIn2Reason       = 5
	packetIn2Metadata     = 6
	packetIn2UserData     = 7
	packetIn2Continuation = 8
)

const noCookie = ^uint64(0)

// Type returns TypeExperimenter.
func (*PacketIn2) Type() Type { return TypeExperimenter }

func (m *PacketIn2) appendBody(b []byte) ([]byte, error) {
	return m.appendProperties(appendNXT(b, nxtPacketIn2))
}

func (m *Resume) appendBody(b []byte) ([]byte, error) {
	return m.appendProperties(appendNXT(b, nxtResume))
}

func (m *PacketIn2) appendProperties(b []byte) ([]byte, error) {
	b, err := appendDataProperty(b, packetIn2Packet, m.Packet)
	if err != nil {
		return b, err
	}
	if m.FullLen != 0 {
		b = append32(append(b, 0, packetIn2FullLen, 0, 8), m.FullLen)
	}
	if m.BufferID != NoBuffer {
		b = append32(append(b, 0, packetIn2BufferID, 0, 8), m.BufferID)
	}
	b = append(b, 0, packetIn2TableID, 0, 5, m.Table, 0, 0, 0)
	if m.Cookie != noCookie {
		b = append64(append(b, 0, packetIn2Cookie, 0, 16, 0, 0, 0, 0), m.Cookie)
	}
	b = append(b, 0, packetIn2Reason, 0, 5, byte(m.Reason), 0, 0, 0)
	start := len(b)
	if b, err = appendOXMs(append(b, 0, packetIn2Metadata, 0, 0), m.Metadata); err == nil {
		b, err = patchLen(b, start, "metadata")
	}
	if err != nil {
		return b, err
	}
	b = pad8(b, start)
	if b, err = appendDataProperty(b, packetIn2Continuation, m.Continuation); err != nil {
		return b, err
	}
	if b, err = appendDataProperty(b, packetIn2UserData, m.UserData); err != nil {
		return b, err
	}
	return appendRawProperties(b, m.Properties)
}

// appendDataProperty appends a property unless it is empty.
func appendDataProperty(b []byte, typ uint16, data []byte) ([]byte, error) {
	if len(data) == 0 {
		return b, nil
	}
	return appendRawProperties(b, []RawProperty{{typ, data}})
}

func parsePacketIn2(d *decoder) *PacketIn2 {
	m := &PacketIn2{BufferID: NoBuffer, Cookie: noCookie}
	for d.left() > 0 {
		typ, length, outer := d.tlv(4, "packet-in property")
		switch typ {
		case packetIn2Packet:
			m.Packet = d.rest()
		case packetIn2FullLen:
			m.FullLen = d.u32()
		case packetIn2BufferID:
			m.BufferID = d.u32()
		case packetIn2TableID:
			m.Table = d.u8()
		case packetIn2Cookie:
			d.skip(4)
			m.Cookie = d.u64()
		case packetIn2Reason:
			m.Reason = PacketInReason(d.u8())
		case packetIn2Metadata:
			m.Metadata = parseOXMs(d, m.Metadata)
		case packetIn2UserData:
			m.UserData = d.rest()
		case packetIn2Continuation:
			m.Continuation = d.rest()
		default:
			m.Properties = append(m.Properties, RawProperty{typ, d.rest()})
		}
		d.leave(outer)
		d.skip(min(-length&7, d.left()))
	}
	return m
}

// TLVTableMod says which tunnel options the TunnelMetadata fields are
// (NXT_TLV_TABLE_MOD).
type TLVTableMod struct {
	Command TLVTableCommand
	Maps    []TLVMap
}

// TLVTableCommand says what a TLVTableMod does.
type TLVTableCommand uint16

// The commands.
const (
	TLVTableAdd    TLVTableCommand = 0
	TLVTableDelete TLVTableCommand = 1
	TLVTableClear  TLVTableCommand = 2
)

// TLVMap says that a tunnel option is a field.
type TLVMap struct {
	Class uint16
	Type  uint8
	Len   uint8  // octets, a multiple of 4
	Index uint16 // of TunnelMetadata
}

// TLVTableRequest asks for TLVTableReply.
type TLVTableRequest struct{}

// TLVTableReply lists the tunnel options that are fields.
type TLVTableReply struct {
	MaxOptionSpace uint32 // octets of all options together
	MaxFields      uint16
	Maps           []TLVMap
}

// Type returns TypeExperimenter.
func (*TLVTableMod) Type() Type { return TypeExperimenter }

// Type returns TypeExperimenter.
func (*TLVTableRequest) Type() Type { return TypeExperimenter }

// Type returns TypeExperimenter.
func (*TLVTableReply) Type() Type { return TypeExperimenter }

func (m *TLVTableMod) appendBody(b []byte) ([]byte, error) {
	b = append16(appendNXT(b, nxtTLVTableMod), uint16(m.Command))
	return appendTLVMaps(appendZeros(b, 6), m.Maps), nil
}

func (*TLVTableRequest) appendBody(b []byte) ([]byte, error) {
	return appendNXT(b, nxtTLVTableRequest), nil
}

func (m *TLVTableReply) appendBody(b []byte) ([]byte, error) {
	b = append16(append32(appendNXT(b, nxtTLVTableReply), m.MaxOptionSpace), m.MaxFields)
	return appendTLVMaps(appendZeros(b, 10), m.Maps), nil
}

func appendTLVMaps(b []byte, list []TLVMap) []byte {
	for _, m := range list {
		b = append(append16(append(append16(b, m.Class), m.Type, m.Len), m.Index), 0, 0)
	}
	return b
}

func parseTLVTableMod(d *decoder) *TLVTableMod {
	m := &TLVTableMod{Command: TLVTableCommand(d.u16())}
	d.skip(6)
	m.Maps = parseTLVMaps(d)
	return m
}

func parseTLVTableReply(d *decoder) *TLVTableReply {
	m := &TLVTableReply{MaxOptionSpace: d.u32(), MaxFields: d.u16()}
	d.skip(10)
	m.Maps = parseTLVMaps(d)
	return m
}

func parseTLVMaps(d *decoder) []TLVMap {
	var list []TLVMap
	for d.left() > 0 {
		m := TLVMap{Class: d.u16(), Type: d.u8(), Len: d.u8(), Index: d.u16()}
		d.skip(2)
		if !d.bad {
			list = append(list, m)
		}
	}
	return list
}
