package openflow

// Experimenter is a message of an experimenter that this package does not know
// (OF1.4 section 7.5.5). Data follows ExpType and aliases the parsed octets.
type Experimenter struct {
	Experimenter uint32
	ExpType      uint32
	Data         []byte
}

// Type returns TypeExperimenter.
func (*Experimenter) Type() Type { return TypeExperimenter }

func (m *Experimenter) appendBody(b []byte) ([]byte, error) {
	return append(append32(append32(b, m.Experimenter), m.ExpType), m.Data...), nil
}

// Types of Open vSwitch's own messages.
const (
	nxtSetPacketInFormat = 16
	nxtSetControllerID   = 20
	nxtTLVTableMod       = 24
	nxtTLVTableRequest   = 25
	nxtTLVTableReply     = 26
	nxtSetAsync2         = 27
	nxtResume            = 28
	nxtCTFlushZone       = 29
	nxtPacketIn2         = 30
	nxtCTFlush           = 32
)

// appendNXT appends what begins a message of Open vSwitch's own.
func appendNXT(b []byte, typ uint32) []byte {
	return append32(append32(b, ExperimenterNicira), typ)
}

func parseExperimenter(d *decoder) Message {
	m := &Experimenter{Experimenter: d.u32(), ExpType: d.u32()}
	if m.Experimenter != ExperimenterNicira {
		m.Data = d.rest()
		return m
	}
	switch m.ExpType {
	case nxtSetPacketInFormat:
		return &SetPacketInFormat{Format: PacketInFormat(d.u32())}
	case nxtSetControllerID:
		d.skip(6)
		return &SetControllerID{ID: d.u16()}
	case nxtTLVTableMod:
		return parseTLVTableMod(d)
	case nxtTLVTableRequest:
		return &TLVTableRequest{}
	case nxtTLVTableReply:
		return parseTLVTableReply(d)
	case nxtSetAsync2:
		return &SetAsync2{Properties: parseAsync(d)}
	case nxtResume:
		return &Resume{PacketIn2: *parsePacketIn2(d)}
	case nxtPacketIn2:
		return parsePacketIn2(d)
	case nxtCTFlushZone:
		d.skip(6)
		return &CTFlushZone{Zone: d.u16()}
	case nxtCTFlush:
		body := d.pos
		if f := parseCTFlush(d); f != nil {
			return f
		}
		if !d.bad {
			d.pos = body
		}
	}
	m.Data = d.rest()
	return m
}

// SetControllerID sets the id by which action Controller names connections
// (NXT_SET_CONTROLLER_ID). It is 0 at first.
type SetControllerID struct{ ID uint16 }

// SetPacketInFormat says in which message packets come (NXT_SET_PACKET_IN_FORMAT).
type SetPacketInFormat struct{ Format PacketInFormat }

// PacketInFormat is a message that carries packets.
type PacketInFormat uint32

// The formats.
const (
	PacketInStandard PacketInFormat = 0 // PacketIn
	PacketInNXT      PacketInFormat = 1 // of OpenFlow 1.0 times
	PacketInNXT2     PacketInFormat = 2 // PacketIn2
)

// SetAsync2 is SetAsync for versions before 1.4 (NXT_SET_ASYNC_CONFIG2). On a
// connection of 1.4 Open vSwitch refuses it.
type SetAsync2 struct{ Properties AsyncProperties }

// Type returns TypeExperimenter.
func (*SetControllerID) Type() Type { return TypeExperimenter }

// Type returns TypeExperimenter.
func (*SetPacketInFormat) Type() Type { return TypeExperimenter }

// Type returns TypeExperimenter.
func (*SetAsync2) Type() Type { return TypeExperimenter }

func (m *SetControllerID) appendBody(b []byte) ([]byte, error) {
	return append16(appendZeros(appendNXT(b, nxtSetControllerID), 6), m.ID), nil
}

func (m *SetPacketInFormat) appendBody(b []byte) ([]byte, error) {
	return append32(appendNXT(b, nxtSetPacketInFormat), uint32(m.Format)), nil
}

func (m *SetAsync2) appendBody(b []byte) ([]byte, error) {
	return m.Properties.append(appendNXT(b, nxtSetAsync2))
}
