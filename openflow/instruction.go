package openflow

import (
	"bytes"
	"strings"
)

// Instruction is one instruction of a flow (OF1.4 section 7.2.4). The
// implementations are values; RawInstruction is for what this package does not
// know.
type Instruction interface {
	String() string
	appendInstruction(b []byte) ([]byte, error)
}

// Instructions is what a flow does with its packets. The order is kept. Open
// vSwitch returns them in the order Meter, ApplyActions, ClearActions,
// WriteActions, WriteMetadata, GotoTable. No instructions: the packet is dropped.
type Instructions []Instruction

// Types of instructions (ofp_instruction_type).
const (
	instructionGotoTable     = 1
	instructionWriteMetadata = 2
	instructionWriteActions  = 3
	instructionApplyActions  = 4
	instructionClearActions  = 5
	instructionMeter         = 6
)

// ApplyActions carries out the actions at once, in order.
type ApplyActions []Action

// WriteActions adds the actions to the packet's action set, which is carried
// out when the pipeline ends.
type WriteActions []Action

// ClearActions empties the packet's action set.
type ClearActions struct{}

// GotoTable goes on in a table with a greater number.
type GotoTable uint8

// WriteMetadata sets those bits of the metadata field that are set in Mask.
type WriteMetadata struct{ Metadata, Mask uint64 }

// Meter sends the packet through a meter.
type Meter uint32

// RawInstruction is an instruction that this package does not know: its type
// and all that follows its length. Data aliases the parsed octets.
type RawInstruction struct {
	Type uint16
	Data []byte
}

func (i ApplyActions) appendInstruction(b []byte) ([]byte, error) {
	return appendActionInstruction(b, instructionApplyActions, i)
}

func (i WriteActions) appendInstruction(b []byte) ([]byte, error) {
	return appendActionInstruction(b, instructionWriteActions, i)
}

func (ClearActions) appendInstruction(b []byte) ([]byte, error) {
	return append(b, 0, instructionClearActions, 0, 8, 0, 0, 0, 0), nil
}

func (i GotoTable) appendInstruction(b []byte) ([]byte, error) {
	return append(b, 0, instructionGotoTable, 0, 8, byte(i), 0, 0, 0), nil
}

func (i WriteMetadata) appendInstruction(b []byte) ([]byte, error) {
	b = append(b, 0, instructionWriteMetadata, 0, 24, 0, 0, 0, 0)
	return append64(append64(b, i.Metadata), i.Mask), nil
}

func (i Meter) appendInstruction(b []byte) ([]byte, error) {
	return append32(append(b, 0, instructionMeter, 0, 8), uint32(i)), nil
}

func (i RawInstruction) appendInstruction(b []byte) ([]byte, error) {
	start := len(b)
	b = append(append16(b, i.Type), 0, 0)
	return patchLen(append(b, i.Data...), start, "instruction")
}

func appendActionInstruction(b []byte, typ byte, actions []Action) ([]byte, error) {
	start := len(b)
	b = append(b, 0, typ, 0, 0, 0, 0, 0, 0)
	b, err := appendActions(b, actions)
	if err != nil {
		return b, err
	}
	return patchLen(b, start, "instruction")
}

func appendInstructions(b []byte, list Instructions) ([]byte, error) {
	var err error
	for _, i := range list {
		if i == nil {
			return b, encodeErrorf("nil instruction")
		}
		// The commonest instructions are spared the indirect call.
		switch i := i.(type) {
		case ApplyActions:
			b, err = appendActionInstruction(b, instructionApplyActions, i)
		case GotoTable:
			b = append(b, 0, instructionGotoTable, 0, 8, byte(i), 0, 0, 0)
		default:
			b, err = i.appendInstruction(b)
		}
		if err != nil {
			return b, err
		}
	}
	return b, nil
}

// parseInstructions reads instructions until the window ends.
func parseInstructions(d *decoder, s *flowSlabs) Instructions {
	known := s.known(d)
	if known == nil {
		return parseNewInstructions(d, s)
	}
	octets := d.b[d.pos:d.end]
	if !bytes.Equal(known.octets, octets) {
		if list := parseNewInstructions(d, s); !d.bad {
			known.octets, known.list = octets, list
			return list
		}
		return nil
	}
	d.pos = d.end
	return known.list
}

func parseNewInstructions(d *decoder, s *flowSlabs) Instructions {
	first := len(s.instructions)
	for d.left() > 0 {
		i := parseInstruction(d, s)
		if d.bad {
			break
		}
		s.instructions = append(s.instructions, i)
	}
	return fullSlice(s.instructions, first)
}

func parseInstruction(d *decoder, s *flowSlabs) Instruction {
	typ, length, outer := d.tlv(4, "instruction")
	if d.bad {
		return nil
	}
	var i Instruction
	switch typ {
	case instructionApplyActions, instructionWriteActions:
		d.skip(4)
		first := len(s.actions)
		s.actions = parseActions(d, s.actions)
		list := fullSlice(s.actions, first)
		if typ == instructionApplyActions {
			i = ApplyActions(list)
		} else {
			i = WriteActions(list)
		}
	case instructionGotoTable:
		i = GotoTable(d.u8())
		d.skip(3)
	case instructionWriteMetadata:
		d.skip(4)
		i = WriteMetadata{Metadata: d.u64(), Mask: d.u64()}
	case instructionClearActions:
		i = ClearActions{}
		d.skip(4)
	case instructionMeter:
		i = Meter(d.u32())
	default:
		i = RawInstruction{Type: typ, Data: d.take(length - 4)}
	}
	if d.pos != d.end {
		d.failf(ErrBadLength, "instruction type %d: length %d, but %d octets are not part of it", typ, length, d.left())
	}
	d.leave(outer)
	return i
}

// String returns the instructions as ovs-ofctl writes them after "actions=":
// the actions, then what the other instructions do; "drop" for none.
func (list Instructions) String() string {
	var s strings.Builder
	for _, i := range list {
		text := i.String()
		if text == "" {
			continue
		}
		if s.Len() > 0 {
			s.WriteByte(',')
		}
		s.WriteString(text)
	}
	if s.Len() == 0 {
		return "drop"
	}
	return s.String()
}
