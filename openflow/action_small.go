package openflow

// Actions of Open vSwitch with one or two arguments (ovs-actions(7)).

// RegLoad2 sets those bits of a field that are set in the OXM's mask, for
// fields that RegLoad cannot name. Text has it as "set_field" with a mask.
type RegLoad2 struct{ OXM OXM }

// SetTunnelOption sets a tunnel option (TunnelMetadata) of more than 32 octets,
// for which SetField and RegLoad2 have no room. It is one field, made with
// Field.Bytes, or with Field.MaskedBytes to set only the bits in the mask.
type SetTunnelOption Match

// SetTunnel sets the tunnel id to a number of 32 bits. Open vSwitch returns it
// as a SetField of TunnelID.
type SetTunnel uint32

// SetTunnel64 is SetTunnel for numbers of 64 bits.
type SetTunnel64 uint64

// PopQueue undoes SetQueue.
type PopQueue struct{}

// Exit stops the actions of this flow, and of those that resubmitted to it.
type Exit struct{}

// FinTimeout shortens the flow's timeouts when a TCP packet with FIN or RST
// passes. 0 leaves a timeout as it is.
type FinTimeout struct{ Idle, Hard uint16 } // seconds

// WriteMetadataAction is WriteMetadata as an action.
type WriteMetadataAction struct{ Metadata, Mask uint64 }

// DecTTLCntIDs is DecNwTTL that tells controllers with these ids of a TTL that
// runs out.
type DecTTLCntIDs []uint16

// Conjunction says that this flow is one clause of a conjunctive match.
type Conjunction struct {
	ID      uint32 // to be matched by ConjID
	Clause  uint8  // 0 to Clauses-1; text counts from 1
	Clauses uint8  // 2 to 64
}

// OutputTrunc is Output of at most MaxLen octets of the packet, at least 14.
type OutputTrunc struct {
	Port   PortNo
	MaxLen uint32
}

// Clone carries out actions on a copy of the packet and its state.
type Clone []Action

// Decap removes the outermost header. PacketType is namespace<<16 | type of
// what is within, or DecapNextProto to take it from the header.
type Decap struct{ PacketType uint32 }

// DecapNextProto is the PacketType by which Decap goes by the header.
const DecapNextProto = 0xfffe

// DecNSHTTL decrements the TTL of a network service header.
type DecNSHTTL struct{}

// CheckPktLarger sets one bit of a field to whether the packet is longer than
// Len octets.
type CheckPktLarger struct {
	Len uint16
	Dst Subfield // one bit
}

// DeleteField removes a tunnel option.
type DeleteField struct{ Field Field }

func (a RegLoad2) appendAction(b []byte) ([]byte, error) {
	start := len(b)
	b, err := appendOXM(nxStart(b, 0, nxRegLoad2), &a.OXM)
	if err != nil {
		return b, err
	}
	return patchLen(pad8(b, start), start, "set_field")
}

func (a SetTunnelOption) appendAction(b []byte) ([]byte, error) {
	m := Match(a)
	if len(m) == 0 || m[0].Field.info().format != formatBytes || m.parts(0) != len(m) {
		return b, encodeErrorf("a tunnel option is to be set, but this is no value of one: %v", m)
	}
	start := len(b)
	if m[0].masked {
		b = nxStart(b, 0, nxRegLoad2)
	} else {
		b = append(b, 0, actionSetField, 0, 0)
	}
	b, err := appendRawOXM(b, m)
	if err != nil {
		return b, err
	}
	return patchLen(pad8(b, start), start, "set_field")
}

// setTunnelOption is the action that sets o with the octets that it has no room
// for; false if that is no tunnel option, or not by the code for it, which
// depends on whether it has a mask.
func setTunnelOption(o OXM, more []byte, masked bool) (Action, bool) {
	if o.Field.info().format != formatBytes || o.masked != masked {
		return nil, false
	}
	return SetTunnelOption(appendMore(Match{o}, more)), true
}

func (a SetTunnel) appendAction(b []byte) ([]byte, error) {
	return append32(append(nxStart(b, 16, nxSetTunnel), 0, 0), uint32(a)), nil
}

func (a SetTunnel64) appendAction(b []byte) ([]byte, error) {
	return append64(appendZeros(nxStart(b, 24, nxSetTunnel64), 6), uint64(a)), nil
}

func (PopQueue) appendAction(b []byte) ([]byte, error) {
	return appendZeros(nxStart(b, 16, nxPopQueue), 6), nil
}

func (Exit) appendAction(b []byte) ([]byte, error) {
	return appendZeros(nxStart(b, 16, nxExit), 6), nil
}

func (a FinTimeout) appendAction(b []byte) ([]byte, error) {
	b = append16(append16(nxStart(b, 16, nxFinTimeout), a.Idle), a.Hard)
	return append(b, 0, 0), nil
}

func (a WriteMetadataAction) appendAction(b []byte) ([]byte, error) {
	b = appendZeros(nxStart(b, 32, nxWriteMetadata), 6)
	return append64(append64(b, a.Metadata), a.Mask), nil
}

func (a DecTTLCntIDs) appendAction(b []byte) ([]byte, error) {
	if len(a) > MaxMessageLen/2 {
		return b, encodeErrorf("dec_ttl with %d controllers", len(a))
	}
	start := len(b)
	b = append16(nxStart(b, 0, nxDecTTLCntIDs), uint16(len(a)))
	b = append(b, 0, 0, 0, 0)
	for _, id := range a {
		b = append16(b, id)
	}
	return patchLen(pad8(b, start), start, "dec_ttl")
}

func (a Conjunction) appendAction(b []byte) ([]byte, error) {
	return append32(append(nxStart(b, 16, nxConjunction), a.Clause, a.Clauses), a.ID), nil
}

func (a OutputTrunc) appendAction(b []byte) ([]byte, error) {
	port, err := a.Port.uint16()
	if err != nil {
		return b, err
	}
	return append32(append16(nxStart(b, 16, nxOutputTrunc), port), a.MaxLen), nil
}

func (a Clone) appendAction(b []byte) ([]byte, error) {
	start := len(b)
	b, err := appendActions(appendZeros(nxStart(b, 0, nxClone), 6), a)
	if err != nil {
		return b, err
	}
	return patchLen(b, start, "clone")
}

func (a Decap) appendAction(b []byte) ([]byte, error) {
	return append32(append(nxStart(b, 16, nxDecap), 0, 0), a.PacketType), nil
}

func (DecNSHTTL) appendAction(b []byte) ([]byte, error) {
	return appendZeros(nxStart(b, 16, nxDecNSHTTL), 6), nil
}

func (a CheckPktLarger) appendAction(b []byte) ([]byte, error) {
	if a.Dst.Bits != 1 {
		return b, encodeErrorf("check_pkt_larger into %d bits of %v; it sets one", a.Dst.Bits, a.Dst.Field)
	}
	start := len(b)
	b = append16(append16(nxStart(b, 24, nxCheckPktLarger), a.Len), a.Dst.Offset)
	b, err := appendFieldHeader(b, a.Dst.Field)
	if err != nil {
		return b, err
	}
	return pad8(b, start), nil
}

func (a DeleteField) appendAction(b []byte) ([]byte, error) {
	start := len(b)
	b, err := appendFieldHeader(nxStart(b, 24, nxDeleteField), a.Field)
	if err != nil {
		return b, err
	}
	return appendZeros(b, 24-(len(b)-start)), nil
}

// parseSmallAction reads the actions of this file, after their subtype; false
// if it is none of them.
func parseSmallAction(d *decoder, subtype uint16) (Action, bool) {
	switch subtype {
	case nxRegLoad2:
		var o OXM
		more := parseOXM(d, &o)
		d.skipPad()
		if len(more) > 0 {
			return setTunnelOption(o, more, true)
		}
		return RegLoad2{OXM: o}, true
	case nxSetTunnel:
		d.skip(2)
		return SetTunnel(d.u32()), true
	case nxSetTunnel64:
		d.skip(6)
		return SetTunnel64(d.u64()), true
	case nxPopQueue:
		d.skip(6)
		return PopQueue{}, true
	case nxExit:
		d.skip(6)
		return Exit{}, true
	case nxFinTimeout:
		a := FinTimeout{Idle: d.u16(), Hard: d.u16()}
		d.skip(2)
		return a, true
	case nxWriteMetadata:
		d.skip(6)
		return WriteMetadataAction{Metadata: d.u64(), Mask: d.u64()}, true
	case nxDecTTLCntIDs:
		n := int(d.u16())
		d.skip(4)
		ids := make(DecTTLCntIDs, 0, min(n, d.left()/2))
		for ; n > 0 && !d.bad; n-- {
			ids = append(ids, d.u16())
		}
		d.skipPad()
		return ids, true
	case nxConjunction:
		return Conjunction{Clause: d.u8(), Clauses: d.u8(), ID: d.u32()}, true
	case nxOutputTrunc:
		return OutputTrunc{Port: portFrom16(d.u16()), MaxLen: d.u32()}, true
	case nxDecap:
		d.skip(2)
		return Decap{PacketType: d.u32()}, true
	case nxDecNSHTTL:
		d.skip(6)
		return DecNSHTTL{}, true
	case nxCheckPktLarger:
		a := CheckPktLarger{Len: d.u16(), Dst: Subfield{Offset: d.u16(), Field: d.fieldHeader(), Bits: 1}}
		d.skipPad()
		return a, a.Dst.Field != FieldUnknown
	case nxDeleteField:
		a := DeleteField{Field: d.fieldHeader()}
		d.rest()
		return a, a.Field != FieldUnknown
	}
	return nil, false
}
