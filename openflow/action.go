package openflow

// Action is one action of OF1.4 section 7.2.5 or of ovs-actions(7). The
// implementations are values (Output, SetField, RegLoad, CT, ...); RawAction is
// for what this package does not know. String returns ovs-ofctl's syntax.
type Action interface {
	String() string
	appendAction(b []byte) ([]byte, error)
}

// Types of actions (ofp_action_type).
const (
	actionOutput       = 0
	actionCopyTTLOut   = 11
	actionCopyTTLIn    = 12
	actionSetMPLSTTL   = 15
	actionDecMPLSTTL   = 16
	actionPushVLAN     = 17
	actionPopVLAN      = 18
	actionPushMPLS     = 19
	actionPopMPLS      = 20
	actionSetQueue     = 21
	actionGroup        = 22
	actionSetNwTTL     = 23
	actionDecNwTTL     = 24
	actionSetField     = 25
	actionPushPBB      = 26
	actionPopPBB       = 27
	actionExperimenter = 0xffff
)

// actionMinLen is the least length of an action; all are multiples of it.
const actionMinLen = 8

// MaxLenAll is the MaxLen of an Output that sends the whole packet to the
// controller (OFPCML_NO_BUFFER).
const MaxLenAll = 0xffff

// Output sends the packet to a port.
type Output struct {
	Port   PortNo
	MaxLen uint16 // with PortController: at most so many octets of the packet, MaxLenAll for all
}

// Group hands the packet to a group.
type Group uint32

// PushVLAN adds a VLAN tag with this EtherType (0x8100 or 0x88a8).
type PushVLAN uint16

// PopVLAN removes the outer VLAN tag.
type PopVLAN struct{}

// PushMPLS adds an MPLS label with this EtherType (0x8847 or 0x8848).
type PushMPLS uint16

// PopMPLS removes the outer MPLS label and sets this EtherType.
type PopMPLS uint16

// SetMPLSTTL sets the TTL of the outer MPLS label.
type SetMPLSTTL uint8

// DecMPLSTTL decrements the TTL of the outer MPLS label.
type DecMPLSTTL struct{}

// SetQueue chooses the queue of later outputs.
type SetQueue uint32

// SetNwTTL sets the IPv4 TTL or IPv6 hop limit.
type SetNwTTL uint8

// DecNwTTL decrements the IPv4 TTL or IPv6 hop limit. Open vSwitch sends a
// packet whose TTL runs out to the controller, if that asked for it, and stops.
type DecNwTTL struct{}

// CopyTTLOut copies the TTL outwards. Open vSwitch does not have it.
type CopyTTLOut struct{}

// CopyTTLIn copies the TTL inwards. Open vSwitch does not have it.
type CopyTTLIn struct{}

// PushPBB adds a provider backbone header with this EtherType. Open vSwitch
// does not have it.
type PushPBB uint16

// PopPBB removes a provider backbone header. Open vSwitch does not have it.
type PopPBB struct{}

// SetField sets a whole field. OpenFlow 1.4 has no mask here: use RegLoad for
// some bits of a field, and SetTunnelOption for more than 32 octets.
type SetField struct{ OXM OXM }

// RawAction is an action that this package does not know: its type and all
// that follows its length. Data aliases the parsed octets.
type RawAction struct {
	Type uint16
	Data []byte
}

func (a Output) appendAction(b []byte) ([]byte, error) {
	b = append(b, 0, actionOutput, 0, 16)
	b = append16(append32(b, uint32(a.Port)), a.MaxLen)
	return appendZeros(b, 6), nil
}

func (a Group) appendAction(b []byte) ([]byte, error) {
	return append32(append(b, 0, actionGroup, 0, 8), uint32(a)), nil
}

func (a SetQueue) appendAction(b []byte) ([]byte, error) {
	return append32(append(b, 0, actionSetQueue, 0, 8), uint32(a)), nil
}

func (a PushVLAN) appendAction(b []byte) ([]byte, error) {
	return appendTypeAction(b, actionPushVLAN, uint16(a))
}

func (a PushMPLS) appendAction(b []byte) ([]byte, error) {
	return appendTypeAction(b, actionPushMPLS, uint16(a))
}

func (a PopMPLS) appendAction(b []byte) ([]byte, error) {
	return appendTypeAction(b, actionPopMPLS, uint16(a))
}

func (a PushPBB) appendAction(b []byte) ([]byte, error) {
	return appendTypeAction(b, actionPushPBB, uint16(a))
}

func (a SetMPLSTTL) appendAction(b []byte) ([]byte, error) {
	return append(b, 0, actionSetMPLSTTL, 0, 8, byte(a), 0, 0, 0), nil
}

func (a SetNwTTL) appendAction(b []byte) ([]byte, error) {
	return append(b, 0, actionSetNwTTL, 0, 8, byte(a), 0, 0, 0), nil
}

func (PopVLAN) appendAction(b []byte) ([]byte, error) { return appendBareAction(b, actionPopVLAN) }

func (DecMPLSTTL) appendAction(b []byte) ([]byte, error) {
	return appendBareAction(b, actionDecMPLSTTL)
}

func (DecNwTTL) appendAction(b []byte) ([]byte, error) { return appendBareAction(b, actionDecNwTTL) }

func (CopyTTLOut) appendAction(b []byte) ([]byte, error) {
	return appendBareAction(b, actionCopyTTLOut)
}

func (CopyTTLIn) appendAction(b []byte) ([]byte, error) {
	return appendBareAction(b, actionCopyTTLIn)
}

func (PopPBB) appendAction(b []byte) ([]byte, error) { return appendBareAction(b, actionPopPBB) }

func (a SetField) appendAction(b []byte) ([]byte, error) {
	if a.OXM.masked {
		return b, encodeErrorf("set_field of %v with a mask: OpenFlow 1.4 has none there", a.OXM.Field)
	}
	start := len(b)
	b = append(b, 0, actionSetField, 0, 0)
	b, err := appendOXM(b, &a.OXM)
	if err != nil {
		return b, err
	}
	return patchLen(pad8(b, start), start, "set_field")
}

func (a RawAction) appendAction(b []byte) ([]byte, error) {
	if len(a.Data)%8 != 4 {
		return b, encodeErrorf("action of type %d with %d octets: the length of an action is a multiple of 8", a.Type, len(a.Data)+4)
	}
	start := len(b)
	b = append(append16(b, a.Type), 0, 0)
	return patchLen(append(b, a.Data...), start, "action")
}

func appendBareAction(b []byte, typ byte) ([]byte, error) {
	return append(b, 0, typ, 0, 8, 0, 0, 0, 0), nil
}

func appendTypeAction(b []byte, typ byte, etherType uint16) ([]byte, error) {
	return append(b, 0, typ, 0, 8, byte(etherType>>8), byte(etherType), 0, 0), nil
}

// appendActions appends the actions one after the other.
func appendActions(b []byte, actions []Action) ([]byte, error) {
	var err error
	for _, a := range actions {
		if a == nil {
			return b, encodeErrorf("nil action in an action list")
		}
		// The commonest actions are spared the indirect call.
		switch a := a.(type) {
		case RegLoad:
			b, err = a.appendAction(b)
		case Output:
			b, err = a.appendAction(b)
		default:
			b, err = a.appendAction(b)
		}
		if err != nil {
			return b, err
		}
	}
	return b, nil
}

// parseActions reads actions until the window ends and appends them to list.
func parseActions(d *decoder, list []Action) []Action {
	for d.left() > 0 {
		a := parseAction(d)
		if d.bad {
			break
		}
		list = append(list, a)
	}
	return list
}

// parseAction reads one action.
func parseAction(d *decoder) Action {
	start := d.pos
	typ, length, outer := d.tlv(actionMinLen, "action")
	if length%8 != 0 {
		d.failf(ErrBadLength, "action type %d: length %d is no multiple of 8", typ, length)
	}
	if d.bad {
		return nil
	}
	known, end := true, d.end
	var a Action
	switch typ {
	case actionOutput:
		a = Output{Port: PortNo(d.u32()), MaxLen: d.u16()}
		d.skip(6)
	case actionGroup:
		a = Group(d.u32())
	case actionSetQueue:
		a = SetQueue(d.u32())
	case actionPushVLAN:
		a = PushVLAN(d.u16())
		d.skip(2)
	case actionPushMPLS:
		a = PushMPLS(d.u16())
		d.skip(2)
	case actionPopMPLS:
		a = PopMPLS(d.u16())
		d.skip(2)
	case actionPushPBB:
		a = PushPBB(d.u16())
		d.skip(2)
	case actionSetMPLSTTL:
		a = SetMPLSTTL(d.u8())
		d.skip(3)
	case actionSetNwTTL:
		a = SetNwTTL(d.u8())
		d.skip(3)
	case actionPopVLAN:
		a = PopVLAN{}
		d.skip(4)
	case actionDecMPLSTTL:
		a = DecMPLSTTL{}
		d.skip(4)
	case actionDecNwTTL:
		a = DecNwTTL{}
		d.skip(4)
	case actionCopyTTLOut:
		a = CopyTTLOut{}
		d.skip(4)
	case actionCopyTTLIn:
		a = CopyTTLIn{}
		d.skip(4)
	case actionPopPBB:
		a = PopPBB{}
		d.skip(4)
	case actionSetField:
		var o OXM
		more := parseOXM(d, &o)
		d.skipPad()
		if len(more) == 0 {
			a = SetField{OXM: o}
		} else {
			a, known = setTunnelOption(o, more, false)
		}
	case actionExperimenter:
		a, known = parseExperimenterAction(d)
	default:
		known = false
	}
	if d.bad {
		return nil
	}
	if !known {
		d.pos, d.end = start+4, end
		a = RawAction{Type: typ, Data: d.take(length - 4)}
	}
	if d.pos != d.end {
		d.failf(ErrBadLength, "action type %d: length %d, but %d octets are not part of it", typ, length, d.left())
	}
	d.leave(outer)
	return a
}
