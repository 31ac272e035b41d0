package openflow

import (
	"fmt"
	"strings"
)

// ParseFlow reads a flow in the syntax of ovs-ofctl add-flow, such as
// "table=11,priority=100,reg1=5,actions=load:6->NXM_NX_REG2[],goto_table:12".
// As in the files of ovs-ofctl bundle, one of the words add, modify,
// modify_strict, delete and delete_strict may come first; without it the flow
// is added.
func ParseFlow(s string) (*FlowMod, error) {
	m := NewFlowMod(FlowAdd)
	m.Priority = DefaultPriority
	text := strings.TrimSpace(s)
	text = strings.TrimPrefix(text, "flow ")
	for i, word := range []string{"add", "modify", "modify_strict", "delete", "delete_strict"} {
		if rest, ok := strings.CutPrefix(text, word); ok && (rest == "" || rest[0] == ' ' || rest[0] == '\t') {
			m.Command, text = FlowModCommand(i), rest
			break
		}
	}
	if m.Command == FlowDelete || m.Command == FlowDeleteStrict {
		m.Table = TableAll
	}
	matchText, actionText, hasActions := cutActions(text)
	parts, err := splitList(matchText)
	if err != nil {
		return nil, err
	}
	var p matchParser
	for _, part := range parts {
		key, value, hasValue := strings.Cut(part, "=")
		ok, err := m.parseAttribute(key, value, hasValue)
		if err == nil && !ok {
			ok, err = p.add(key, value, hasValue)
		}
		if err != nil {
			return nil, err
		}
		if !ok {
			return nil, textError("flow", part, "not a field, protocol or attribute")
		}
	}
	if m.Match, err = p.finish(); err != nil {
		return nil, err
	}
	isDelete := m.Command == FlowDelete || m.Command == FlowDeleteStrict
	if hasActions == isDelete {
		return nil, textError("flow", s, "flows to delete have no actions=, all others have")
	}
	if hasActions {
		m.Instructions, err = parseInstructionText(actionText, m.Match)
	}
	return m, err
}

// cutActions cuts s at the word "actions=" or "action=".
func cutActions(s string) (match, actions string, found bool) {
	for _, word := range []string{"actions=", "action="} {
		i := strings.Index(s, word)
		if i == 0 || i > 0 && strings.IndexByte(", \t", s[i-1]) >= 0 {
			return s[:i], s[i+len(word):], true
		}
	}
	return s, "", false
}

// parseAttribute reads what a flow has beside match and actions; false if key
// is none of it.
func (m *FlowMod) parseAttribute(key, value string, hasValue bool) (bool, error) {
	if !hasValue {
		for i, name := range flowFlagNames {
			if key == name {
				m.Flags |= 1 << i
				return true, nil
			}
		}
		return false, nil
	}
	number := func(n int) (v uint64, err error) {
		if v, err = parseUint(value, n); err != nil {
			err = fmt.Errorf("%s: %w", key, err)
		}
		return v, err
	}
	var v uint64
	var err error
	switch key {
	case "table":
		v, err = number(8)
		m.Table = uint8(v)
	case "priority":
		v, err = number(16)
		m.Priority = uint16(v)
	case "idle_timeout":
		v, err = number(16)
		m.IdleTimeout = uint16(v)
	case "hard_timeout":
		v, err = number(16)
		m.HardTimeout = uint16(v)
	case "importance":
		v, err = number(16)
		m.Importance = uint16(v)
	case "cookie":
		value, mask, masked := strings.Cut(value, "/")
		if m.Cookie, err = parseUint(value, 64); err == nil && masked {
			m.CookieMask, err = parseUint(mask, 64)
			if mask == "-1" {
				m.CookieMask, err = ^uint64(0), nil
			}
		}
	case "out_port":
		m.OutPort, err = ParsePort(value)
	case "out_group":
		v, err = number(32)
		m.OutGroup = uint32(v)
	case "duration", "n_packets", "n_bytes", "idle_age", "hard_age": // what dump-flows adds
	default:
		return false, nil
	}
	return true, err
}
