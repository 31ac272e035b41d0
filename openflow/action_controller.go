package openflow

// Controller sends the packet to controllers, with more choices than Output.
type Controller struct {
	MaxLen       uint16 // at most so many octets of the packet, MaxLenAll for all
	ControllerID uint16 // connections with this id; 0 is the default id
	Reason       PacketInReason
}

// Controller2 is Controller with still more choices. Properties that have the
// default are not written.
type Controller2 struct {
	MaxLen       uint16 // as Controller.MaxLen; the default is MaxLenAll, not 0
	ControllerID uint16
	Reason       PacketInReason // the default is PacketInAction, not 0
	UserData     []byte         // comes back in the packet-in; aliases the parsed octets
	Pause        bool           // the controller may resume the packet's way
	MeterID      uint32         // 0: the port's default meter
}

func (a Controller) appendAction(b []byte) ([]byte, error) {
	b = append16(nxStart(b, 16, nxController), a.MaxLen)
	return append(append16(b, a.ControllerID), byte(a.Reason), 0), nil
}

// Properties of Controller2.
const (
	ctlrMaxLen   = 0
	ctlrID       = 1
	ctlrReason   = 2
	ctlrUserData = 3
	ctlrPause    = 4
	ctlrMeterID  = 5
)

func (a Controller2) appendAction(b []byte) ([]byte, error) {
	start := len(b)
	b = appendZeros(nxStart(b, 0, nxController2), 6)
	if a.MaxLen != MaxLenAll {
		b = append(b, 0, ctlrMaxLen, 0, 8, byte(a.MaxLen>>8), byte(a.MaxLen), 0, 0)
	}
	if a.ControllerID != 0 {
		b = append(b, 0, ctlrID, 0, 8, byte(a.ControllerID>>8), byte(a.ControllerID), 0, 0)
	}
	if a.Reason != PacketInAction {
		b = append(b, 0, ctlrReason, 0, 5, byte(a.Reason), 0, 0, 0)
	}
	if len(a.UserData) > 0 {
		property := len(b)
		b = append(append(b, 0, ctlrUserData, 0, 0), a.UserData...)
		var err error
		if b, err = patchLen(b, property, "user data"); err != nil {
			return b, err
		}
		b = pad8(b, property)
	}
	if a.Pause {
		b = append(b, 0, ctlrPause, 0, 4, 0, 0, 0, 0)
	}
	if a.MeterID != 0 {
		b = append32(append(b, 0, ctlrMeterID, 0, 8), a.MeterID)
	}
	return patchLen(b, start, "controller")
}

func parseController2(d *decoder) (Action, bool) {
	d.skip(6)
	c := Controller2{MaxLen: MaxLenAll, Reason: PacketInAction}
	for d.left() > 0 {
		typ, length, outer := d.tlv(4, "property of action controller")
		switch typ {
		case ctlrMaxLen:
			c.MaxLen = d.u16()
		case ctlrID:
			c.ControllerID = d.u16()
		case ctlrReason:
			c.Reason = PacketInReason(d.u8())
		case ctlrUserData:
			c.UserData = d.rest()
		case ctlrPause:
			c.Pause = true
		case ctlrMeterID:
			c.MeterID = d.u32()
		default:
			return nil, false
		}
		d.leave(outer)
		d.skip(-length & 7)
	}
	return c, true
}
