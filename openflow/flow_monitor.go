package openflow

// FlowMonitorRequest asks to be told of changes to flows (OF1.4 section
// 7.3.5.18). Open vSwitch has it since 3.0: an older one misreads it, and all
// versions answer a request that they refuse with garbage, so send nothing that
// is not known to be good.
type FlowMonitorRequest []FlowMonitor

// FlowMonitor is one monitor: the flows it is for, and what to tell of them.
type FlowMonitor struct {
	ID       uint32
	OutPort  PortNo // only flows that output there; PortAny for all
	OutGroup uint32 // only flows that use the group; GroupAny for all
	Flags    FlowMonitorFlags
	Table    uint8 // TableAll for all
	Command  FlowMonitorCommand
	Match    Match
}

// FlowMonitorFlags say what to tell.
type FlowMonitorFlags uint16

// The flags.
const (
	MonitorInitial      FlowMonitorFlags = 1 << 0 // the flows that are there already
	MonitorAdd          FlowMonitorFlags = 1 << 1
	MonitorRemoved      FlowMonitorFlags = 1 << 2
	MonitorModify       FlowMonitorFlags = 1 << 3
	MonitorInstructions FlowMonitorFlags = 1 << 4 // with their instructions
	MonitorNoAbbrev     FlowMonitorFlags = 1 << 5 // refused by Open vSwitch
	MonitorOnlyOwn      FlowMonitorFlags = 1 << 6
)

// FlowMonitorCommand says what to do with a monitor.
type FlowMonitorCommand uint8

// The commands.
const (
	MonitorCommandAdd    FlowMonitorCommand = 0
	MonitorCommandModify FlowMonitorCommand = 1
	MonitorCommandDelete FlowMonitorCommand = 2
)

// FlowMonitorReply is a list of updates. The first ones answer the request;
// later ones come with transaction id 0.
type FlowMonitorReply []FlowUpdate

// FlowUpdate tells of one change.
type FlowUpdate struct {
	Event FlowEvent

	// With EventInitial, EventAdded, EventRemoved and EventModified:
	Table        uint8
	Reason       FlowRemovedReason // with EventRemoved
	IdleTimeout  uint16            // seconds
	HardTimeout  uint16            // seconds
	Priority     uint16
	Cookie       uint64
	Match        Match
	Instructions Instructions

	// With EventAbbrev: the transaction id of our own request that made the
	// change, of its first message if it was a bundle.
	Xid uint32

	// Data is the body of an event that this package does not know. It aliases
	// the parsed octets.
	Data []byte
}

// FlowEvent says what happened.
type FlowEvent uint16

// The events. Open vSwitch pauses when too much is waiting to be sent, and
// tells after EventResumed only of what is new since.
const (
	EventInitial  FlowEvent = 0
	EventAdded    FlowEvent = 1
	EventRemoved  FlowEvent = 2
	EventModified FlowEvent = 3
	EventAbbrev   FlowEvent = 4
	EventPaused   FlowEvent = 5
	EventResumed  FlowEvent = 6
)

// MultipartType returns MultipartFlowMonitor.
func (FlowMonitorRequest) MultipartType() MultipartType { return MultipartFlowMonitor }

// MultipartType returns MultipartFlowMonitor.
func (FlowMonitorReply) MultipartType() MultipartType { return MultipartFlowMonitor }

func (r FlowMonitorRequest) appendRequest(b []byte) ([]byte, error) {
	var err error
	for _, m := range r {
		b = append32(append32(append32(b, m.ID), uint32(m.OutPort)), m.OutGroup)
		b = append(append16(b, uint16(m.Flags)), m.Table, byte(m.Command))
		if b, err = appendMatch(b, m.Match); err != nil {
			return b, err
		}
	}
	return b, nil
}

func parseFlowMonitorRequest(d *decoder) FlowMonitorRequest {
	var list FlowMonitorRequest
	for d.left() > 0 {
		m := FlowMonitor{
			ID: d.u32(), OutPort: PortNo(d.u32()), OutGroup: d.u32(),
			Flags: FlowMonitorFlags(d.u16()), Table: d.u8(), Command: FlowMonitorCommand(d.u8()),
		}
		m.Match = parseMatch(d, nil)
		if !d.bad {
			list = append(list, m)
		}
	}
	return list
}

func (r FlowMonitorReply) appendReply(b []byte) ([]byte, error) {
	var err error
	for i := range r {
		if b, err = appendFlowUpdate(b, &r[i]); err != nil {
			return b, err
		}
	}
	return b, nil
}

func appendFlowUpdate(b []byte, u *FlowUpdate) ([]byte, error) {
	start := len(b)
	b = append16(append(b, 0, 0), uint16(u.Event))
	var err error
	switch u.Event {
	case EventInitial, EventAdded, EventRemoved, EventModified:
		b = append(b, u.Table, byte(u.Reason))
		b = append16(append16(append16(b, u.IdleTimeout), u.HardTimeout), u.Priority)
		b = append64(append(b, 0, 0, 0, 0), u.Cookie)
		if b, err = appendMatch(b, u.Match); err == nil {
			b, err = appendInstructions(b, u.Instructions)
		}
	case EventAbbrev:
		b = append32(b, u.Xid)
	case EventPaused, EventResumed:
		b = append(b, 0, 0, 0, 0)
	default:
		b = append(b, u.Data...)
	}
	if err != nil {
		return b, err
	}
	if n := len(b) - start; n%8 != 0 {
		return b, encodeErrorf("flow update of %d octets; its length is a multiple of 8", n)
	}
	return patchLenAt(b, start, start, "flow update")
}

func parseFlowMonitorReply(d *decoder) FlowMonitorReply {
	var list FlowMonitorReply
	var slabs flowSlabs
	for d.left() > 0 {
		list = append(list, FlowUpdate{})
		parseFlowUpdate(d, &list[len(list)-1], &slabs)
	}
	return list
}

// flowUpdateMinLen is the length of the shortest update.
const flowUpdateMinLen = 8

func parseFlowUpdate(d *decoder, u *FlowUpdate, slabs *flowSlabs) {
	outer := d.entry(flowUpdateMinLen, "flow update")
	u.Event = FlowEvent(d.u16())
	switch u.Event {
	case EventInitial, EventAdded, EventRemoved, EventModified:
		u.Table, u.Reason = d.u8(), FlowRemovedReason(d.u8())
		u.IdleTimeout, u.HardTimeout, u.Priority = d.u16(), d.u16(), d.u16()
		d.skip(4)
		u.Cookie = d.u64()
		u.Match = slabs.parseMatch(d)
		u.Instructions = parseInstructions(d, slabs)
	case EventAbbrev:
		u.Xid = d.u32()
	case EventPaused, EventResumed:
		d.skip(4)
	default:
		u.Data = d.rest()
	}
	if d.pos != d.end {
		d.failf(ErrBadLength, "flow update: %d octets too many", d.left())
	}
	d.leave(outer)
}
