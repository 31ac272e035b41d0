package oftest

import (
	"slices"

	"brlb/openflow"
)

// multipart answers the multipart requests that brlb sends.
func (c *switchConn) multipart(r Received, m *openflow.MultipartRequest) {
	sw := c.sw
	one := func(body openflow.MultipartReplyBody) { c.reply(r, &openflow.MultipartReply{Body: body}) }
	switch body := m.Body.(type) {
	case openflow.DescRequest:
		one(defaultDesc(sw.opts.Software))
	case openflow.PortDescRequest:
		inParts(c, r, sw.sortedPortsLocked(), func(some []openflow.Port) openflow.MultipartReplyBody {
			return openflow.PortDescReply(some)
		})
	case openflow.FlowStatsRequest:
		inParts(c, r, sw.tables.stats(openflow.FlowSelector(body)), func(some []openflow.FlowStats) openflow.MultipartReplyBody {
			return openflow.FlowStatsReply(some)
		})
	case openflow.AggregateRequest:
		var sum openflow.AggregateReply
		for _, f := range sw.tables.selected(openflow.FlowSelector(body)) {
			sum.FlowCount++
			sum.PacketCount += f.PacketCount
			sum.ByteCount += f.ByteCount
		}
		one(sum)
	case openflow.GroupDescRequest:
		one(sw.tables.groupDesc())
	case openflow.TableStatsRequest:
		one(sw.tableStatsLocked())
	case openflow.MeterConfigRequest:
		one(sw.tables.meterConfig(body.ID))
	case openflow.MeterFeaturesRequest:
		one(sw.meterFeatures())
	case openflow.FlowMonitorRequest:
		c.monitor(r, body)
	default:
		c.refuse(r, openflow.BadRequestBadMultipart)
	}
}

// partRoom is how many octets of entries go into one part of a reply.
const partRoom = 60_000

// inParts answers with a list, cut into messages that have room for their part.
func inParts[T any](c *switchConn, r Received, list []T, body func([]T) openflow.MultipartReplyBody) {
	for first, size := 0, 0; ; {
		end := first
		for size = 0; end < len(list) && size < partRoom; end++ {
			size += entrySize(body(list[end : end+1]))
		}
		if end > first+1 && size > partRoom {
			end--
		}
		reply := &openflow.MultipartReply{Body: body(list[first:end:end])}
		if end < len(list) {
			reply.Flags = openflow.MultipartMore
		}
		c.reply(r, reply)
		if first = end; first == len(list) {
			return
		}
	}
}

// entrySize is the length of a body on the wire.
func entrySize(body openflow.MultipartReplyBody) int {
	b, err := openflow.Append(nil, 0, &openflow.MultipartReply{Body: body})
	if err != nil {
		panic("oftest: " + err.Error())
	}
	return len(b)
}

// tableStatsLocked counts the flows of every table, as Open vSwitch lists them.
func (sw *Switch) tableStatsLocked() openflow.TableStatsReply {
	tables := make(openflow.TableStatsReply, lastTable+1)
	for i := range tables {
		tables[i].Table = uint8(i)
	}
	for _, f := range sw.tables.flows {
		tables[f.Table].ActiveCount++
		tables[f.Table].MatchCount += f.PacketCount
	}
	return tables
}

// monitor starts, changes and stops flow monitors, and answers with the flows
// that are there already where that is asked for.
func (c *switchConn) monitor(r Received, request openflow.FlowMonitorRequest) {
	var initial openflow.FlowMonitorReply
	for _, m := range request {
		at := slices.IndexFunc(c.monitors, func(old openflow.FlowMonitor) bool { return old.ID == m.ID })
		if (m.Command == openflow.MonitorCommandAdd) != (at < 0) {
			c.refuse(r, openflow.BadRequestBadMultipart) // Open vSwitch answers with garbage here
			return
		}
		if at >= 0 {
			c.monitors = slices.Delete(c.monitors, at, at+1)
		}
		if m.Command == openflow.MonitorCommandDelete {
			continue
		}
		c.monitors = append(c.monitors, m)
		if m.Flags&openflow.MonitorInitial == 0 {
			continue
		}
		selector := openflow.FlowSelector{Table: m.Table, OutPort: m.OutPort, OutGroup: m.OutGroup, Match: m.Match}
		for _, f := range c.sw.tables.stats(selector) {
			initial = append(initial, update(change{event: openflow.EventInitial, flow: &f}, m.Flags))
		}
	}
	inParts(c, r, initial, func(some []openflow.FlowUpdate) openflow.MultipartReplyBody {
		return openflow.FlowMonitorReply(some)
	})
}

// update is what a monitor is told of a change.
func update(ch change, flags openflow.FlowMonitorFlags) openflow.FlowUpdate {
	f := ch.flow
	u := openflow.FlowUpdate{
		Event: ch.event, Reason: ch.reason, Table: f.Table, Priority: f.Priority,
		IdleTimeout: f.IdleTimeout, HardTimeout: f.HardTimeout, Cookie: f.Cookie, Match: f.Match,
	}
	if flags&openflow.MonitorInstructions != 0 {
		u.Instructions = f.Instructions
	}
	return u
}

// wanted is the flag with which a monitor asks for an event.
func wanted(e openflow.FlowEvent) openflow.FlowMonitorFlags {
	switch e {
	case openflow.EventAdded:
		return openflow.MonitorAdd
	case openflow.EventRemoved:
		return openflow.MonitorRemoved
	}
	return openflow.MonitorModify
}

// tellLocked tells of changes: the monitors of every connection, and with
// FLOW_REMOVED those who get such messages. by made the changes, with a message
// of this transaction id; its own monitors learn that and nothing more. by is
// nil for a controller that is not there.
func (sw *Switch) tellLocked(by *switchConn, xid uint32, changes []change) {
	for _, c := range sw.conns {
		var updates openflow.FlowMonitorReply
		for _, ch := range changes {
			if u, ok := c.sees(ch); ok {
				updates = append(updates, u)
			}
		}
		if c == by && len(updates) > 0 {
			updates = openflow.FlowMonitorReply{{Event: openflow.EventAbbrev, Xid: xid}}
		}
		for len(updates) > 0 {
			n := min(len(updates), 256)
			c.send(0, &openflow.MultipartReply{Body: updates[:n:n]})
			updates = updates[n:]
		}
	}
	for _, ch := range changes {
		if ch.event == openflow.EventRemoved && ch.flow.Flags&openflow.FlowSendFlowRem != 0 {
			f := ch.flow
			sw.asyncLocked(&openflow.FlowRemoved{
				Cookie: f.Cookie, Priority: f.Priority, Reason: ch.reason, Table: f.Table,
				IdleTimeout: f.IdleTimeout, HardTimeout: f.HardTimeout,
				PacketCount: f.PacketCount, ByteCount: f.ByteCount, Match: f.Match,
			})
		}
	}
}

// sees says what the monitors of a connection are told of a change, if anything.
func (c *switchConn) sees(ch change) (openflow.FlowUpdate, bool) {
	var flags openflow.FlowMonitorFlags
	for _, m := range c.monitors {
		selector := openflow.FlowSelector{Table: m.Table, OutPort: m.OutPort, OutGroup: m.OutGroup}
		if m.Flags&wanted(ch.event) != 0 && selects(selector, canonical(m.Match), ch.flow) {
			flags |= m.Flags
		}
	}
	return update(ch, flags), flags != 0
}
