package openflow

import (
	"fmt"
	"strings"
)

// DefaultPriority is the priority that ovs-ofctl gives a flow, and leaves out
// of what it prints.
const DefaultPriority = 32768

// String returns the flow as ovs-ofctl dump-flows prints it with --no-names
// and --no-stats: "cookie=0x1234, table=11, priority=100,reg1=0x5 actions=...".
func (f *FlowStats) String() string {
	return flowText(f.Cookie, f.Table, f.IdleTimeout, f.HardTimeout, f.Importance, f.Flags, f.Priority, f.Match, f.Instructions)
}

// String returns what the message does, as ovs-ofctl prints it: "ADD table:11
// priority=100,reg1=0x5 actions=...".
func (m *FlowMod) String() string {
	var s strings.Builder
	if int(m.Command) < len(flowCommands) {
		s.WriteString(flowCommands[m.Command])
	} else {
		fmt.Fprintf(&s, "command(%d)", m.Command)
	}
	if m.Table != 0 {
		fmt.Fprintf(&s, " table:%d", m.Table)
	}
	s.WriteByte(' ')
	start := s.Len()
	writePriorityMatch(&s, m.Priority, m.Match)
	if s.Len() > start {
		s.WriteByte(' ')
	}
	if m.Cookie != 0 {
		fmt.Fprintf(&s, "cookie:%#x", m.Cookie)
	}
	if m.CookieMask != 0 {
		fmt.Fprintf(&s, "/%#x", m.CookieMask)
	}
	if m.Cookie != 0 || m.CookieMask != 0 {
		s.WriteByte(' ')
	}
	if m.IdleTimeout != 0 {
		fmt.Fprintf(&s, "idle:%d ", m.IdleTimeout)
	}
	if m.HardTimeout != 0 {
		fmt.Fprintf(&s, "hard:%d ", m.HardTimeout)
	}
	if m.Importance != 0 {
		fmt.Fprintf(&s, "importance:%d ", m.Importance)
	}
	if m.BufferID != NoBuffer {
		fmt.Fprintf(&s, "buf:%#x ", m.BufferID)
	}
	if m.OutPort != PortAny {
		fmt.Fprintf(&s, "out_port:%v ", m.OutPort)
	}
	writeFlowFlags(&s, m.Flags)
	s.WriteString("actions=" + m.Instructions.String())
	return s.String()
}

var flowCommands = [...]string{"ADD", "MOD", "MOD_STRICT", "DEL", "DEL_STRICT"}

var flowFlagNames = [...]string{"send_flow_rem", "check_overlap", "reset_counts", "no_packet_counts", "no_byte_counts"}

// writeFlowFlags writes the names of flags, each followed by a space.
func writeFlowFlags(s *strings.Builder, flags FlowModFlags) {
	for i, name := range flowFlagNames {
		if flags>>i&1 != 0 {
			s.WriteString(name + " ")
		}
	}
}

// writePriorityMatch writes the priority, unless it is the default, and the match.
func writePriorityMatch(s *strings.Builder, priority uint16, m Match) {
	if priority != DefaultPriority {
		fmt.Fprintf(s, "priority=%d", priority)
		if len(m) > 0 {
			s.WriteByte(',')
		}
	}
	writeMatch(s, m)
}

func flowText(cookie uint64, table uint8, idle, hard, importance uint16, flags FlowModFlags, priority uint16, m Match, i Instructions) string {
	var s strings.Builder
	if cookie != 0 {
		fmt.Fprintf(&s, "cookie=%#x, ", cookie)
	}
	if table != 0 {
		fmt.Fprintf(&s, "table=%d, ", table)
	}
	if idle != 0 {
		fmt.Fprintf(&s, "idle_timeout=%d, ", idle)
	}
	if hard != 0 {
		fmt.Fprintf(&s, "hard_timeout=%d, ", hard)
	}
	writeFlowFlags(&s, flags)
	if importance != 0 {
		fmt.Fprintf(&s, "importance=%d, ", importance)
	}
	start := s.Len()
	writePriorityMatch(&s, priority, m)
	if s.Len() > start {
		s.WriteByte(' ')
	}
	s.WriteString("actions=" + i.String())
	return s.String()
}
