package openflow

import "fmt"

// Subtypes of Open vSwitch's own actions (ovs-actions(7), nx_action_subtype).
const (
	nxResubmit        = 1
	nxRegMove         = 6
	nxRegLoad         = 7
	nxNote            = 8
	nxMultipath       = 10
	nxResubmitTable   = 14
	nxOutputReg       = 15
	nxLearn           = 16
	nxController      = 20
	nxStackPush       = 27
	nxStackPop        = 28
	nxCT              = 35
	nxNAT             = 36
	nxController2     = 37
	nxCTClear         = 43
	nxResubmitTableCT = 44
	nxLearn2          = 45
)

// maxNesting is how deep actions may hold actions and still be decoded; deeper
// ones are kept as octets. Open vSwitch itself needs two levels.
const maxNesting = 16

// RegLoad sets some bits of a field to a value ("load:6->NXM_NX_REG2[]").
type RegLoad struct {
	Dst   Subfield // at most 64 bits
	Value uint64
}

// RegMove copies bits of one field into as many bits of another.
type RegMove struct {
	Src, Dst Subfield // Dst.Bits equals Src.Bits
}

// Multipath hashes the packet's headers and writes a link number, 0 to
// MaxLink, into Dst: Open vSwitch's way to choose one of many. Permitted in
// ApplyActions only.
type Multipath struct {
	Fields    HashFields
	Basis     uint16 // salts the hash
	Algorithm LinkAlgorithm
	MaxLink   uint16 // number of links - 1
	Arg       uint32 // for LinkIterHash
	Dst       Subfield
}

// HashFields says what the hash of Multipath covers.
type HashFields uint16

// The hashes of Open vSwitch 3.1.
const (
	HashEthSrc           HashFields = 0
	HashSymmetricL4      HashFields = 1 // MACs, VLAN, addresses, and ports of TCP and SCTP
	HashSymmetricL3L4    HashFields = 2 // addresses and ports of TCP and SCTP
	HashSymmetricL3L4UDP HashFields = 3 // and ports of UDP
	HashNwSrc            HashFields = 4
	HashNwDst            HashFields = 5
	HashSymmetricL3      HashFields = 6
)

// LinkAlgorithm says how Multipath makes a link number of the hash.
type LinkAlgorithm uint16

// The link algorithms of Open vSwitch.
const (
	LinkModuloN       LinkAlgorithm = 0
	LinkHashThreshold LinkAlgorithm = 1
	LinkHRW           LinkAlgorithm = 2
	LinkIterHash      LinkAlgorithm = 3
)

// Resubmit searches a table again, with the packet as it is now, and goes on
// after that with what follows it.
type Resubmit struct {
	Port  PortNo // ingress port for the search; PortInPort keeps it
	Table uint8  // TableAll: the current table
	CT    bool   // search with the connection's original tuple
}

// OutputReg sends the packet to the port whose number a field holds.
type OutputReg struct {
	Src    Subfield
	MaxLen uint16 // as Output.MaxLen; Open vSwitch writes MaxLenAll
}

// StackPush pushes bits of a field on the packet's stack.
type StackPush struct{ Src Subfield }

// StackPop pops the packet's stack into bits of a field.
type StackPop struct{ Dst Subfield }

// Note does nothing; it carries a remark in the flow. Its length on the wire is
// a multiple of 8 less 2, so that zeros may follow what was set.
type Note []byte

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
	Reason       PacketInReason // default PacketInNoMatch + 1, the action
	UserData     []byte         // comes back in the packet-in; aliases the parsed octets
	Pause        bool           // the controller may resume the packet's way
	MeterID      uint32         // 0: the port's default meter
}

// nxStart appends the header of an action of Open vSwitch with length len.
func nxStart(b []byte, length, subtype uint16) []byte {
	return append(b, 0xff, 0xff, byte(length>>8), byte(length), 0, 0, 0x23, 0x20, byte(subtype>>8), byte(subtype))
}

// fieldHeader32 is the 4-octet header by which fixed-size actions name a field.
func fieldHeader32(f Field) (uint32, error) {
	header := f.actionHeader()
	if header == 0 || isExperimenter(header) {
		return 0, encodeErrorf("%v cannot be named in this action", f)
	}
	return header, nil
}

// appendFieldHeader appends the header of f, 8 octets long where it has an
// experimenter id.
func appendFieldHeader(b []byte, f Field) ([]byte, error) {
	header := f.actionHeader()
	if header == 0 {
		return b, encodeErrorf("%v cannot be named in an action", f)
	}
	b = append32(b, header)
	if isExperimenter(header) {
		b = append32(b, f.info().experimenter)
	}
	return b, nil
}

// fieldHeader reads a header of 4 or 8 octets; FieldUnknown if it names no
// known whole field.
func (d *decoder) fieldHeader() Field {
	header := d.u32()
	experimenter, size := uint32(0), oxmLen(header)
	if isExperimenter(header) {
		experimenter = d.u32()
		size -= 4
	}
	f := fieldByHeader(header, experimenter)
	if header&oxmHasMask != 0 || size != f.Size() {
		return FieldUnknown
	}
	return f
}

// fieldHeader32 reads a header of 4 octets.
func (d *decoder) fieldHeader32() Field {
	header := d.u32()
	f := fieldByHeader(header, 0)
	if header&oxmHasMask != 0 || oxmLen(header) != f.Size() {
		return FieldUnknown
	}
	return f
}

func (a RegLoad) appendAction(b []byte) ([]byte, error) {
	ofs, err := a.Dst.offsetBits()
	if err != nil {
		return b, err
	}
	header, err := fieldHeader32(a.Dst.Field)
	if err != nil {
		return b, err
	}
	if a.Dst.Bits < 64 && a.Value>>a.Dst.Bits != 0 {
		return b, encodeErrorf("load of %#x into %v: it has %d bits", a.Value, a.Dst, a.Dst.Bits)
	}
	b = append16(nxStart(b, 24, nxRegLoad), ofs)
	return append64(append32(b, header), a.Value), nil
}

func (a RegMove) appendAction(b []byte) ([]byte, error) {
	if a.Src.Bits != a.Dst.Bits {
		return b, encodeErrorf("move of %d bits of %v into %d bits of %v", a.Src.Bits, a.Src.Field, a.Dst.Bits, a.Dst.Field)
	}
	start := len(b)
	b = append16(nxStart(b, 0, nxRegMove), a.Src.Bits)
	b = append16(append16(b, a.Src.Offset), a.Dst.Offset)
	b, err := appendFieldHeader(b, a.Src.Field)
	if err != nil {
		return b, err
	}
	b, err = appendFieldHeader(b, a.Dst.Field)
	if err != nil {
		return b, err
	}
	return patchLen(pad8(b, start), start, "move")
}

func (a Multipath) appendAction(b []byte) ([]byte, error) {
	ofs, err := a.Dst.offsetBits()
	if err != nil {
		return b, err
	}
	header, err := fieldHeader32(a.Dst.Field)
	if err != nil {
		return b, err
	}
	b = append16(nxStart(b, 32, nxMultipath), uint16(a.Fields))
	b = append(append16(b, a.Basis), 0, 0)
	b = append16(append16(b, uint16(a.Algorithm)), a.MaxLink)
	b = append(append32(b, a.Arg), 0, 0)
	return append32(append16(b, ofs), header), nil
}

func (a Resubmit) appendAction(b []byte) ([]byte, error) {
	port, err := a.Port.uint16()
	if err != nil {
		return b, err
	}
	switch {
	case a.CT:
		b = append16(nxStart(b, 16, nxResubmitTableCT), port)
	case a.Table == TableAll:
		return append(append16(nxStart(b, 16, nxResubmit), port), 0, 0, 0, 0), nil
	default:
		b = append16(nxStart(b, 16, nxResubmitTable), port)
	}
	return append(b, a.Table, 0, 0, 0), nil
}

func (a OutputReg) appendAction(b []byte) ([]byte, error) {
	ofs, err := a.Src.offsetBits()
	if err != nil {
		return b, err
	}
	header, err := fieldHeader32(a.Src.Field)
	if err != nil {
		return b, err
	}
	b = append16(nxStart(b, 24, nxOutputReg), ofs)
	return appendZeros(append16(append32(b, header), a.MaxLen), 6), nil
}

func (a StackPush) appendAction(b []byte) ([]byte, error) {
	return appendStackAction(b, nxStackPush, a.Src)
}

func (a StackPop) appendAction(b []byte) ([]byte, error) {
	return appendStackAction(b, nxStackPop, a.Dst)
}

func appendStackAction(b []byte, subtype uint16, s Subfield) ([]byte, error) {
	start := len(b)
	b = append16(nxStart(b, 24, subtype), s.Offset)
	b, err := appendFieldHeader(b, s.Field)
	if err != nil {
		return b, err
	}
	b = append16(b, s.Bits)
	return appendZeros(b, 24-(len(b)-start)), nil
}

func (a Note) appendAction(b []byte) ([]byte, error) {
	start := len(b)
	b = append(nxStart(b, 0, nxNote), a...)
	if len(a) < 6 {
		b = appendZeros(b, 6-len(a))
	}
	return patchLen(pad8(b, start), start, "note")
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
		b = append(b, 0, ctlrMaxLen, 0, 6, byte(a.MaxLen>>8), byte(a.MaxLen), 0, 0)
	}
	if a.ControllerID != 0 {
		b = append(b, 0, ctlrID, 0, 6, byte(a.ControllerID>>8), byte(a.ControllerID), 0, 0)
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

// parseExperimenterAction reads what follows the length of an experimenter's
// action; false if it is not known, whatever was read then.
func parseExperimenterAction(d *decoder) (a Action, known bool) {
	vendor, subtype := d.u32(), d.u16()
	if vendor != ExperimenterNicira {
		return nil, false
	}
	switch subtype {
	case nxResubmit:
		port := d.u16()
		d.skip(4)
		return Resubmit{Port: portFrom16(port), Table: TableAll}, true
	case nxResubmitTable, nxResubmitTableCT:
		r := Resubmit{Port: portFrom16(d.u16()), Table: d.u8(), CT: subtype == nxResubmitTableCT}
		d.skip(3)
		// The same action has two codes; the shorter is the one that is written.
		return r, subtype == nxResubmitTableCT || r.Table != TableAll
	case nxRegMove:
		bits, srcOfs, dstOfs := d.u16(), d.u16(), d.u16()
		src, dst := d.fieldHeader(), d.fieldHeader()
		if d.left() < 8 {
			d.skip(d.left())
		}
		return RegMove{Src: Subfield{src, srcOfs, bits}, Dst: Subfield{dst, dstOfs, bits}}, src != FieldUnknown && dst != FieldUnknown
	case nxRegLoad:
		ofs, f := d.u16(), d.fieldHeader32()
		r := RegLoad{Dst: subfieldFrom(f, ofs), Value: d.u64()}
		return r, f != FieldUnknown && (r.Dst.Bits == 64 || r.Value>>r.Dst.Bits == 0)
	case nxNote:
		return Note(d.rest()), true
	case nxMultipath:
		return parseMultipath(d)
	case nxOutputReg:
		ofs, f := d.u16(), d.fieldHeader32()
		o := OutputReg{Src: subfieldFrom(f, ofs), MaxLen: d.u16()}
		d.skip(6)
		return o, f != FieldUnknown
	case nxLearn, nxLearn2:
		return parseLearn(d, subtype)
	case nxController:
		c := Controller{MaxLen: d.u16(), ControllerID: d.u16(), Reason: PacketInReason(d.u8())}
		d.skip(1)
		return c, true
	case nxController2:
		return parseController2(d)
	case nxStackPush, nxStackPop:
		s := Subfield{Offset: d.u16(), Field: d.fieldHeader()}
		s.Bits = d.u16()
		d.rest()
		if subtype == nxStackPush {
			return StackPush{Src: s}, s.Field != FieldUnknown
		}
		return StackPop{Dst: s}, s.Field != FieldUnknown
	case nxCT:
		return parseCT(d)
	case nxNAT:
		return parseNAT(d)
	case nxCTClear:
		d.skip(6)
		return CTClear{}, true
	}
	return nil, false
}

func parseMultipath(d *decoder) (Action, bool) {
	m := Multipath{Fields: HashFields(d.u16()), Basis: d.u16()}
	d.skip(2)
	m.Algorithm = LinkAlgorithm(d.u16())
	m.MaxLink, m.Arg = d.u16(), d.u32()
	d.skip(2)
	ofs, f := d.u16(), d.fieldHeader32()
	m.Dst = subfieldFrom(f, ofs)
	return m, f != FieldUnknown
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

// String returns ovs-ofctl's name of the hash.
func (h HashFields) String() string {
	switch h {
	case HashEthSrc:
		return "eth_src"
	case HashSymmetricL4:
		return "symmetric_l4"
	case HashSymmetricL3L4:
		return "symmetric_l3l4"
	case HashSymmetricL3L4UDP:
		return "symmetric_l3l4+udp"
	case HashNwSrc:
		return "nw_src"
	case HashNwDst:
		return "nw_dst"
	case HashSymmetricL3:
		return "symmetric_l3"
	}
	return fmt.Sprintf("hash(%d)", uint16(h))
}

// String returns ovs-ofctl's name of the algorithm.
func (a LinkAlgorithm) String() string {
	switch a {
	case LinkModuloN:
		return "modulo_n"
	case LinkHashThreshold:
		return "hash_threshold"
	case LinkHRW:
		return "hrw"
	case LinkIterHash:
		return "iter_hash"
	}
	return fmt.Sprintf("algorithm(%d)", uint16(a))
}
