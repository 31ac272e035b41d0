package openflow

import (
	"fmt"
	"strings"
)

// ParseActions reads actions in ovs-ofctl's syntax, such as
// "set_field:10.1.0.7->ip_dst,dec_ttl,output:2". "drop" and "" are no actions.
//
// Words of OpenFlow 1.0 become what Open vSwitch makes of them in OpenFlow 1.4:
// mod_nw_dst:10.1.0.7 becomes a SetField. Where that depends on the match
// (mod_tp_dst, mod_vlan_vid), use ParseFlow.
func ParseActions(s string) ([]Action, error) {
	list, err := parseInstructionText(s, nil)
	switch {
	case err != nil || len(list) == 0:
		return nil, err
	case len(list) == 1:
		if actions, ok := list[0].(ApplyActions); ok {
			return actions, nil
		}
	}
	return nil, textError("actions", s, "has instructions (use ParseInstructions)")
}

// ParseInstructions reads what ovs-ofctl has after "actions=": actions, which
// become one ApplyActions, and instructions (goto_table, write_actions,
// clear_actions, write_metadata, meter). They come in the order in which Open
// vSwitch returns them.
func ParseInstructions(s string) (Instructions, error) { return parseInstructionText(s, nil) }

// actionParser reads a list of actions for a flow with the match.
type actionParser struct {
	match   Match
	actions []Action
	depth   int

	meter, clear, write, metadata, gotoTable Instruction
}

func parseInstructionText(s string, match Match) (Instructions, error) {
	p := actionParser{match: match}
	if err := p.parse(s, true); err != nil {
		return nil, err
	}
	var list Instructions
	add := func(i Instruction) {
		if i != nil {
			list = append(list, i)
		}
	}
	add(p.meter)
	if len(p.actions) > 0 {
		add(ApplyActions(p.actions))
	}
	add(p.clear)
	add(p.write)
	add(p.metadata)
	add(p.gotoTable)
	return list, nil
}

// nested reads the actions within another.
func (p *actionParser) nested(s string) ([]Action, error) {
	if p.depth >= maxNesting {
		return nil, textError("actions", s, "nested too deep")
	}
	inner := actionParser{match: p.match, depth: p.depth + 1}
	err := inner.parse(s, false)
	return inner.actions, err
}

// parse reads a list of actions, and of instructions if they are allowed.
func (p *actionParser) parse(s string, instructions bool) error {
	parts, err := splitList(s)
	if err != nil {
		return err
	}
	if len(parts) == 1 && parts[0] == "drop" {
		return nil
	}
	for _, part := range parts {
		key, arg, rest := splitKey(part)
		isInstruction := false
		if instructions {
			isInstruction, err = p.instruction(key, arg)
		}
		if err == nil && !isInstruction {
			err = p.action(key, arg, rest, part)
		}
		if err != nil && p.depth == 0 {
			err = fmt.Errorf("%.40s: %w", part, err)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// instruction reads an instruction; false if key is none.
func (p *actionParser) instruction(key, arg string) (bool, error) {
	switch key {
	case "goto_table":
		n, err := parseUint(arg, 8)
		p.gotoTable = GotoTable(n)
		return true, err
	case "meter":
		n, err := parseUint(arg, 32)
		p.meter = Meter(n)
		return true, err
	case "clear_actions":
		p.clear = ClearActions{}
		return true, nil
	case "write_actions":
		list, err := p.nested(arg)
		p.write = WriteActions(list)
		return true, err
	case "write_metadata":
		value, mask, masked := strings.Cut(arg, "/")
		w := WriteMetadata{Mask: ^uint64(0)}
		var err error
		if w.Metadata, err = parseUint(value, 64); err == nil && masked {
			w.Mask, err = parseUint(mask, 64)
		}
		p.metadata = w
		return true, err
	}
	return false, nil
}

func (p *actionParser) add(list ...Action) { p.actions = append(p.actions, list...) }

// action reads one action: its name, its argument, what follows the argument's
// parentheses, and all of it.
func (p *actionParser) action(key, arg, rest, all string) error {
	if a, ok := bareAction(all); ok {
		p.add(a)
		return nil
	}
	for _, family := range []func(p *actionParser, key, arg, rest string) (bool, error){
		(*actionParser).outputAction, (*actionParser).headerAction, (*actionParser).mplsAction,
		(*actionParser).fieldAction, (*actionParser).controlAction, (*actionParser).stateAction,
	} {
		if ok, err := family(p, key, arg, rest); ok || err != nil {
			return err
		}
	}
	if port, err := ParsePort(all); err == nil {
		p.add(outputTo(port))
		return nil
	}
	return textError("action", all, "not known")
}

// bareAction finds the actions that are one word.
func bareAction(word string) (Action, bool) {
	switch word {
	case "pop_vlan", "strip_vlan":
		return PopVLAN{}, true
	case "dec_ttl":
		return DecNwTTL{}, true
	case "dec_mpls_ttl":
		return DecMPLSTTL{}, true
	case "dec_nsh_ttl":
		return DecNSHTTL{}, true
	case "pop_queue":
		return PopQueue{}, true
	case "exit":
		return Exit{}, true
	case "ct_clear":
		return CTClear{}, true
	case "ct":
		return CT{Table: CTNoTable}, true
	case "nat":
		return NAT{}, true
	case "decap", "decap()":
		return Decap{PacketType: DecapNextProto}, true
	case "copy_ttl_out":
		return CopyTTLOut{}, true
	case "copy_ttl_in":
		return CopyTTLIn{}, true
	case "pop_pbb":
		return PopPBB{}, true
	}
	return nil, false
}

// keyValues calls set for each "key=value" of a list. A key alone has an empty
// value.
func keyValues(s string, set func(key, value string) error) error {
	parts, err := splitList(s)
	if err != nil {
		return err
	}
	for _, part := range parts {
		key, value, _ := strings.Cut(part, "=")
		if strings.HasSuffix(key, "]") || strings.Contains(key, ":") || strings.Contains(key, "(") {
			key, value = part, "" // a subfield or an action within learn or ct
		}
		if err := set(key, value); err != nil {
			return err
		}
	}
	return nil
}

// unknownKey is the error for a key that an action does not have.
func unknownKey(key string) error { return textError("argument", key, "not known here") }

func parse16(s string) (uint16, error) {
	v, err := parseUint(s, 16)
	return uint16(v), err
}

func parse32(s string) (uint32, error) {
	v, err := parseUint(s, 32)
	return uint32(v), err
}

func outputTo(p PortNo) Action {
	if p == PortController {
		return Output{Port: p, MaxLen: MaxLenAll}
	}
	return Output{Port: p}
}
