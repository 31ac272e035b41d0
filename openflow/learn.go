package openflow

// Learn adds or changes a flow made of what the packet has (ovs-actions(7),
// "learn").
type Learn struct {
	IdleTimeout, HardTimeout       uint16 // seconds
	Priority                       uint16
	Cookie                         uint64
	Flags                          LearnFlags
	Table                          uint8
	FinIdleTimeout, FinHardTimeout uint16 // seconds, after a FIN or RST
	Specs                          []LearnSpec

	// Limit and Result need the newer code of the action, which is written if
	// either is set.
	Limit  uint32   // at most so many flows in the table with this cookie; 0: any number
	Result Subfield // one bit that says whether the flow was added; zero for none
}

// LearnFlags of a Learn action.
type LearnFlags uint16

// The flags.
const (
	LearnSendFlowRem   LearnFlags = 1 // of the learned flow: tell of its removal
	LearnDeleteLearned LearnFlags = 2 // delete the learned flows with this flow
	LearnWriteResult   LearnFlags = 4 // there is a Result (set by Append)
)

// LearnSpec is one part of the learned flow: where a value comes from and what
// becomes of it.
type LearnSpec struct {
	Kind LearnKind
	Bits uint16   // of the value, 1 to 2047
	Src  Subfield // the value is in this field of the packet, unless Value is set
	// Value is the value itself, right-aligned in (Bits+15)/16*2 octets. It
	// aliases the parsed octets.
	Value []byte
	Dst   Subfield // to match or to load; not for LearnOutput
}

// LearnKind says what becomes of the value of a LearnSpec.
type LearnKind uint8

// The kinds.
const (
	LearnMatch  LearnKind = 0 // the learned flow matches it in Dst
	LearnLoad   LearnKind = 1 // the learned flow loads it into Dst
	LearnOutput LearnKind = 2 // the learned flow sends to that port
)

const (
	learnBits      = 0x07ff
	learnKindShift = 11
	learnImmediate = 1 << 13
)

func (a Learn) appendAction(b []byte) ([]byte, error) {
	start := len(b)
	newer := a.Limit != 0 || a.Result != Subfield{}
	subtype, flags := uint16(nxLearn), a.Flags&^LearnWriteResult
	if newer {
		subtype = nxLearn2
	}
	if a.Result != (Subfield{}) {
		flags |= LearnWriteResult
	}
	b = nxStart(b, 0, subtype)
	b = append16(append16(append16(b, a.IdleTimeout), a.HardTimeout), a.Priority)
	b = append16(append64(b, a.Cookie), uint16(flags))
	b = append(b, a.Table, 0)
	b = append16(append16(b, a.FinIdleTimeout), a.FinHardTimeout)
	var err error
	if newer {
		b = append32(b, a.Limit)
		b = append(append16(b, a.Result.Offset), 0, 0)
		if flags&LearnWriteResult != 0 {
			if a.Result.Bits != 1 {
				return b, encodeErrorf("learn: result of %d bits; it has one", a.Result.Bits)
			}
			if b, err = appendFieldHeader(b, a.Result.Field); err != nil {
				return b, err
			}
		}
	}
	for i := range a.Specs {
		if b, err = appendLearnSpec(b, &a.Specs[i]); err != nil {
			return b, err
		}
	}
	return patchLen(pad8(b, start), start, "learn")
}

func appendLearnSpec(b []byte, s *LearnSpec) ([]byte, error) {
	if s.Bits == 0 || s.Bits > learnBits || s.Kind > LearnOutput {
		return b, encodeErrorf("learn: spec of kind %d with %d bits (1 to %d)", s.Kind, s.Bits, learnBits)
	}
	header := s.Bits | uint16(s.Kind)<<learnKindShift
	var err error
	if s.Value != nil {
		if want := learnValueLen(s.Bits); len(s.Value) != want {
			return b, encodeErrorf("learn: value of %d bits in %d octets, want %d", s.Bits, len(s.Value), want)
		}
		b = append(append16(b, header|learnImmediate), s.Value...)
	} else {
		if b, err = appendFieldHeader(append16(b, header), s.Src.Field); err != nil {
			return b, err
		}
		b = append16(b, s.Src.Offset)
	}
	if s.Kind == LearnOutput {
		return b, nil
	}
	if b, err = appendFieldHeader(b, s.Dst.Field); err != nil {
		return b, err
	}
	return append16(b, s.Dst.Offset), nil
}

// learnValueLen is the number of octets of an immediate value.
func learnValueLen(bits uint16) int { return (int(bits) + 15) / 16 * 2 }

func parseLearn(d *decoder, subtype uint16) (Action, bool) {
	a := Learn{IdleTimeout: d.u16(), HardTimeout: d.u16(), Priority: d.u16(), Cookie: d.u64(), Flags: LearnFlags(d.u16()), Table: d.u8()}
	d.skip(1)
	a.FinIdleTimeout, a.FinHardTimeout = d.u16(), d.u16()
	if subtype == nxLearn2 {
		a.Limit = d.u32()
		a.Result.Offset = d.u16()
		d.skip(2)
		if a.Flags&LearnWriteResult != 0 {
			a.Result.Field, a.Result.Bits = d.fieldHeader(), 1
			if a.Result.Field == FieldUnknown {
				return nil, false
			}
		} else if a.Result.Offset != 0 || a.Limit == 0 {
			return nil, false
		}
	} else if a.Flags&LearnWriteResult != 0 {
		return nil, false
	}
	// A zero header, or fewer octets than one, is padding.
	for d.left() >= 2 {
		header := d.u16()
		if header == 0 {
			break
		}
		spec, ok := parseLearnSpec(d, header)
		if !ok {
			return nil, false
		}
		a.Specs = append(a.Specs, spec)
	}
	d.skipPad()
	return a, true
}

func parseLearnSpec(d *decoder, header uint16) (s LearnSpec, ok bool) {
	s.Bits, s.Kind = header&learnBits, LearnKind(header>>learnKindShift&3)
	if s.Bits == 0 || s.Kind > LearnOutput || header>>14 != 0 {
		return s, false
	}
	if header&learnImmediate != 0 {
		s.Value = d.take(learnValueLen(s.Bits))
	} else {
		s.Src = Subfield{Field: d.fieldHeader(), Offset: d.u16(), Bits: s.Bits}
		if s.Src.Field == FieldUnknown {
			return s, false
		}
	}
	if s.Kind != LearnOutput {
		s.Dst = Subfield{Field: d.fieldHeader(), Offset: d.u16(), Bits: s.Bits}
		if s.Dst.Field == FieldUnknown {
			return s, false
		}
	}
	return s, true
}
