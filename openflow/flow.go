package openflow

import "time"

// FlowMod changes flow tables (OF1.4 section 7.3.4.1).
type FlowMod struct {
	Cookie       uint64 // the controller's own mark on the flow
	CookieMask   uint64 // for Modify and Delete: which bits of the cookie must agree; 0 for all flows
	Table        uint8  // TableAll: with Delete all tables
	Command      FlowModCommand
	IdleTimeout  uint16 // seconds without a packet until the flow goes, 0 for never
	HardTimeout  uint16 // seconds until the flow goes, 0 for never
	Priority     uint16 // the greatest that matches wins
	BufferID     uint32 // packet to send through, NoBuffer for none. Open vSwitch refuses others.
	OutPort      PortNo // with Delete: only flows that output there; PortAny for all
	OutGroup     uint32 // with Delete: only flows that use the group; GroupAny for all
	Flags        FlowModFlags
	Importance   uint16 // flows of lesser importance are evicted first
	Match        Match
	Instructions Instructions
}

// NewFlowMod returns a FlowMod with the values that select nothing: no buffer,
// any port, any group.
func NewFlowMod(command FlowModCommand) *FlowMod {
	return &FlowMod{Command: command, BufferID: NoBuffer, OutPort: PortAny, OutGroup: GroupAny}
}

// FlowModCommand says what a FlowMod does.
type FlowModCommand uint8

// The commands. Strict ones are for the one flow with this match and priority,
// the others for all flows that the match includes.
const (
	FlowAdd          FlowModCommand = 0 // replaces the flow with this match and priority
	FlowModify       FlowModCommand = 1
	FlowModifyStrict FlowModCommand = 2
	FlowDelete       FlowModCommand = 3
	FlowDeleteStrict FlowModCommand = 4
)

// FlowModFlags of a flow.
type FlowModFlags uint16

// The flags.
const (
	FlowSendFlowRem   FlowModFlags = 1  // tell when the flow goes
	FlowCheckOverlap  FlowModFlags = 2  // refuse a flow that overlaps one of the same priority
	FlowResetCounts   FlowModFlags = 4  // start counting at zero
	FlowNoPacketCount FlowModFlags = 8  // need not count packets
	FlowNoByteCount   FlowModFlags = 16 // need not count octets
)

// Type returns TypeFlowMod.
func (*FlowMod) Type() Type { return TypeFlowMod }

func (m *FlowMod) appendBody(b []byte) ([]byte, error) {
	b = append64(append64(b, m.Cookie), m.CookieMask)
	b = append(b, m.Table, byte(m.Command))
	b = append16(append16(append16(b, m.IdleTimeout), m.HardTimeout), m.Priority)
	b = append32(append32(append32(b, m.BufferID), uint32(m.OutPort)), m.OutGroup)
	b = append16(append16(b, uint16(m.Flags)), m.Importance)
	b, err := appendMatch(b, m.Match)
	if err != nil {
		return b, err
	}
	return appendInstructions(b, m.Instructions)
}

func parseFlowMod(d *decoder) *FlowMod {
	m := &FlowMod{
		Cookie: d.u64(), CookieMask: d.u64(), Table: d.u8(), Command: FlowModCommand(d.u8()),
		IdleTimeout: d.u16(), HardTimeout: d.u16(), Priority: d.u16(),
		BufferID: d.u32(), OutPort: PortNo(d.u32()), OutGroup: d.u32(),
		Flags: FlowModFlags(d.u16()), Importance: d.u16(),
	}
	m.Match = parseMatch(d, nil)
	m.Instructions = parseInstructions(d, new(flowSlabs))
	return m
}

// FlowRemoved tells that a flow is gone (OF1.4 section 7.4.2). It is sent for
// flows with FlowSendFlowRem.
type FlowRemoved struct {
	Cookie       uint64
	Priority     uint16
	Reason       FlowRemovedReason
	Table        uint8
	DurationSec  uint32 // how long it was there
	DurationNSec uint32 // beyond DurationSec
	IdleTimeout  uint16 // seconds
	HardTimeout  uint16 // seconds
	PacketCount  uint64
	ByteCount    uint64
	Match        Match
}

// FlowRemovedReason says why a flow is gone.
type FlowRemovedReason uint8

// The reasons.
const (
	RemovedIdleTimeout FlowRemovedReason = 0
	RemovedHardTimeout FlowRemovedReason = 1
	RemovedDelete      FlowRemovedReason = 2
	RemovedGroupDelete FlowRemovedReason = 3
	RemovedMeterDelete FlowRemovedReason = 4
	RemovedEviction    FlowRemovedReason = 5
)

// Duration is how long the flow was there.
func (m *FlowRemoved) Duration() time.Duration { return duration(m.DurationSec, m.DurationNSec) }

// duration adds seconds and nanoseconds.
func duration(sec, nsec uint32) time.Duration {
	return time.Duration(sec)*time.Second + time.Duration(nsec)
}

// Type returns TypeFlowRemoved.
func (*FlowRemoved) Type() Type { return TypeFlowRemoved }

func (m *FlowRemoved) appendBody(b []byte) ([]byte, error) {
	b = append16(append64(b, m.Cookie), m.Priority)
	b = append32(append32(append(b, byte(m.Reason), m.Table), m.DurationSec), m.DurationNSec)
	b = append16(append16(b, m.IdleTimeout), m.HardTimeout)
	b = append64(append64(b, m.PacketCount), m.ByteCount)
	return appendMatch(b, m.Match)
}

func parseFlowRemoved(d *decoder) *FlowRemoved {
	m := &FlowRemoved{
		Cookie: d.u64(), Priority: d.u16(), Reason: FlowRemovedReason(d.u8()), Table: d.u8(),
		DurationSec: d.u32(), DurationNSec: d.u32(), IdleTimeout: d.u16(), HardTimeout: d.u16(),
		PacketCount: d.u64(), ByteCount: d.u64(),
	}
	m.Match = parseMatch(d, nil)
	return m
}
