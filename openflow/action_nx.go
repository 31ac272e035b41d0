package openflow

// Subtypes of Open vSwitch's own actions (ovs-actions(7), nx_action_subtype).
const (
	nxResubmit        = 1
	nxSetTunnel       = 2
	nxPopQueue        = 5
	nxRegMove         = 6
	nxRegLoad         = 7
	nxNote            = 8
	nxSetTunnel64     = 9
	nxMultipath       = 10
	nxBundle          = 12
	nxBundleLoad      = 13
	nxResubmitTable   = 14
	nxOutputReg       = 15
	nxLearn           = 16
	nxExit            = 17
	nxFinTimeout      = 19
	nxController      = 20
	nxDecTTLCntIDs    = 21
	nxWriteMetadata   = 22
	nxStackPush       = 27
	nxStackPop        = 28
	nxSample          = 29
	nxOutputReg2      = 32
	nxRegLoad2        = 33
	nxConjunction     = 34
	nxCT              = 35
	nxNAT             = 36
	nxController2     = 37
	nxSample2         = 38
	nxOutputTrunc     = 39
	nxSample3         = 41
	nxClone           = 42
	nxCTClear         = 43
	nxResubmitTableCT = 44
	nxLearn2          = 45
	nxEncap           = 46
	nxDecap           = 47
	nxDecNSHTTL       = 48
	nxCheckPktLarger  = 49
	nxDeleteField     = 50
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

func (a Resubmit) appendAction(b []byte) ([]byte, error) {
	port, err := a.Port.uint16()
	if err != nil {
		return b, err
	}
	subtype := uint16(nxResubmitTable)
	if a.CT {
		subtype = nxResubmitTableCT
	}
	b = append16(nxStart(b, 16, subtype), port)
	return append(b, a.Table, 0, 0, 0), nil
}

func (a OutputReg) appendAction(b []byte) ([]byte, error) {
	ofs, err := a.Src.offsetBits()
	if err != nil {
		return b, err
	}
	header, err := fieldHeader32(a.Src.Field)
	if err == nil {
		b = append16(nxStart(b, 24, nxOutputReg), ofs)
		return appendZeros(append16(append32(b, header), a.MaxLen), 6), nil
	}
	// The newer code has room for the header of an experimenter's field.
	start := len(b)
	b = append16(append16(nxStart(b, 24, nxOutputReg2), ofs), a.MaxLen)
	b, err = appendFieldHeader(b, a.Src.Field)
	if err != nil {
		return b, err
	}
	return pad8(b, start), nil
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
		return r, true
	case nxRegMove:
		bits, srcOfs, dstOfs := d.u16(), d.u16(), d.u16()
		src, dst := d.fieldHeader(), d.fieldHeader()
		d.skipPad()
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
	case nxOutputReg2:
		ofs, max, f := d.u16(), d.u16(), d.fieldHeader()
		d.skipPad()
		return OutputReg{Src: subfieldFrom(f, ofs), MaxLen: max}, isExperimenter(f.actionHeader())
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
	case nxBundle, nxBundleLoad:
		return parseBundle(d, subtype)
	case nxSample, nxSample2, nxSample3:
		return parseSample(d, subtype)
	case nxClone:
		d.skip(6)
		list, ok := parseNestedActions(d)
		return Clone(list), ok
	case nxEncap:
		return parseEncap(d)
	}
	return parseSmallAction(d, subtype)
}
