package oftest

import (
	"cmp"
	"encoding/binary"
	"maps"
	"slices"

	"brlb/openflow"
)

// flow is a flow of the table. Counters change in place, all else never: a flow
// that is modified is replaced.
type flow = openflow.FlowStats

// flowTable holds the flows of all tables by flowKey. Bundles work on a clone.
type flowTable map[string]*flow

// change is what a message did to one flow.
type change struct {
	event  openflow.FlowEvent
	reason openflow.FlowRemovedReason
	flow   *flow
}

const knownFlags = openflow.FlowSendFlowRem | openflow.FlowCheckOverlap | openflow.FlowResetCounts |
	openflow.FlowNoPacketCount | openflow.FlowNoByteCount

// lastTable is the last table that a controller can use.
const lastTable = 253

// checkMessage says what the switch finds wrong with a message by itself, before
// it looks at its flows.
func checkMessage(m openflow.Message) openflow.ErrorCode {
	f, ok := m.(*openflow.FlowMod)
	if !ok {
		return 0
	}
	deletes := f.Command == openflow.FlowDelete || f.Command == openflow.FlowDeleteStrict
	switch {
	case f.Command > openflow.FlowDeleteStrict:
		return openflow.FlowModFailedBadCommand
	case f.Table > lastTable && !(deletes && f.Table == openflow.TableAll):
		return openflow.FlowModFailedBadTableID
	case f.Flags&^knownFlags != 0:
		return openflow.FlowModFailedBadFlags
	case f.BufferID != openflow.NoBuffer:
		return openflow.BadRequestBufferUnknown
	}
	if code := checkMatch(f.Match); code != 0 {
		return code
	}
	for _, i := range f.Instructions {
		if next, ok := i.(openflow.GotoTable); ok && !deletes && (uint8(next) <= f.Table || uint8(next) > lastTable) {
			return openflow.BadInstructionBadTableID
		}
	}
	return 0
}

// applyAll applies the messages of a bundle in order. It stops at the first that
// fails and says which one that was; the table is then of no use.
func (t flowTable) applyAll(messages []openflow.Message, refuse Refusal) (changes []change, failed int, code openflow.ErrorCode) {
	for i, m := range messages {
		if refuse != nil {
			code = refuse(m)
		}
		if f, ok := m.(*openflow.FlowMod); ok && code == 0 {
			var some []change
			some, code = t.apply(f)
			changes = append(changes, some...)
		}
		if code != 0 {
			return nil, i, code
		}
	}
	return changes, 0, 0
}

// apply does one flow-mod: all of it or, with an error, nothing.
func (t flowTable) apply(m *openflow.FlowMod) ([]change, openflow.ErrorCode) {
	switch m.Command {
	case openflow.FlowAdd:
		return t.add(m)
	case openflow.FlowModify, openflow.FlowModifyStrict:
		return t.modify(m), 0
	}
	return t.remove(m), 0
}

// add adds a flow or replaces the one with its match and priority, whose
// counters it keeps unless told otherwise.
func (t flowTable) add(m *openflow.FlowMod) ([]change, openflow.ErrorCode) {
	f := &flow{
		Table: m.Table, Priority: m.Priority, IdleTimeout: m.IdleTimeout, HardTimeout: m.HardTimeout,
		Flags: m.Flags, Importance: m.Importance, Cookie: m.Cookie,
		Match: canonical(m.Match), Instructions: m.Instructions,
	}
	key := flowKey(f.Table, f.Priority, f.Match)
	if m.Flags&openflow.FlowCheckOverlap != 0 {
		for other, old := range t {
			if other != key && old.Table == f.Table && old.Priority == f.Priority && overlap(old.Match, f.Match) {
				return nil, openflow.FlowModFailedOverlap
			}
		}
	}
	if old := t[key]; old != nil && m.Flags&openflow.FlowResetCounts == 0 {
		f.PacketCount, f.ByteCount = old.PacketCount, old.ByteCount
	}
	t[key] = f
	return []change{{event: openflow.EventAdded, flow: f}}, 0
}

// modify gives flows other instructions and leaves the rest of them alone.
func (t flowTable) modify(m *openflow.FlowMod) []change {
	var changes []change
	for key, old := range t.chosen(m) {
		f := *old
		f.Instructions = m.Instructions
		if m.Flags&openflow.FlowResetCounts != 0 {
			f.PacketCount, f.ByteCount = 0, 0
		}
		t[key] = &f
		if !sameInstructions(old.Instructions, f.Instructions) {
			changes = append(changes, change{event: openflow.EventModified, flow: &f})
		}
	}
	sortChanges(changes)
	return changes
}

func (t flowTable) remove(m *openflow.FlowMod) []change {
	var changes []change
	for key, f := range t.chosen(m) {
		delete(t, key)
		changes = append(changes, change{event: openflow.EventRemoved, reason: openflow.RemovedDelete, flow: f})
	}
	sortChanges(changes)
	return changes
}

// chosen returns the flows that a modify or delete is for.
func (t flowTable) chosen(m *openflow.FlowMod) flowTable {
	match := canonical(m.Match)
	if m.Command == openflow.FlowModifyStrict || m.Command == openflow.FlowDeleteStrict {
		found := flowTable{}
		tables := []uint8{m.Table}
		if m.Table == openflow.TableAll {
			tables = tables[:0]
			for table := range lastTable + 1 {
				tables = append(tables, uint8(table))
			}
		}
		for _, table := range tables {
			key := flowKey(table, m.Priority, match)
			if f := t[key]; f != nil && selects(selectorOf(m), match, f) {
				found[key] = f
			}
		}
		return found
	}
	return t.selected(selectorOf(m))
}

// selectorOf is the selection that a modify or delete makes; out port and group
// count only for deletes.
func selectorOf(m *openflow.FlowMod) openflow.FlowSelector {
	s := openflow.FlowSelector{
		Table: m.Table, OutPort: openflow.PortAny, OutGroup: openflow.GroupAny,
		Cookie: m.Cookie, CookieMask: m.CookieMask, Match: m.Match,
	}
	if m.Command == openflow.FlowDelete || m.Command == openflow.FlowDeleteStrict {
		s.OutPort, s.OutGroup = m.OutPort, m.OutGroup
	}
	return s
}

// selected returns the flows that a selector selects.
func (t flowTable) selected(s openflow.FlowSelector) flowTable {
	match := canonical(s.Match)
	found := flowTable{}
	for key, f := range t {
		if selects(s, match, f) {
			found[key] = f
		}
	}
	return found
}

// selects says whether s, whose match is given in canonical form, selects f.
func selects(s openflow.FlowSelector, match openflow.Match, f *flow) bool {
	return (s.Table == openflow.TableAll || s.Table == f.Table) &&
		(f.Cookie^s.Cookie)&s.CookieMask == 0 &&
		includes(match, f.Match) &&
		(s.OutPort == openflow.PortAny || outputsTo(f.Instructions, openflow.Output{Port: s.OutPort})) &&
		(s.OutGroup == openflow.GroupAny || outputsTo(f.Instructions, openflow.Group(s.OutGroup)))
}

// outputsTo says whether instructions output to a port or group.
func outputsTo(list openflow.Instructions, to openflow.Action) bool {
	for _, i := range list {
		var actions []openflow.Action
		switch i := i.(type) {
		case openflow.ApplyActions:
			actions = i
		case openflow.WriteActions:
			actions = i
		}
		for _, a := range actions {
			if out, ok := a.(openflow.Output); ok {
				a = openflow.Output{Port: out.Port}
			}
			if a, ok := a.(openflow.Output); ok && to == openflow.Action(a) {
				return true
			}
			if a, ok := a.(openflow.Group); ok && to == openflow.Action(a) {
				return true
			}
		}
	}
	return false
}

// stats returns copies of the flows that a selector selects, sorted.
func (t flowTable) stats(s openflow.FlowSelector) []openflow.FlowStats {
	var list []openflow.FlowStats
	for _, f := range t.selected(s) {
		list = append(list, *f)
	}
	slices.SortFunc(list, func(a, b openflow.FlowStats) int { return compareFlows(&a, &b) })
	return list
}

func (t flowTable) clone() flowTable { return maps.Clone(t) }

func compareFlows(a, b *flow) int {
	if c := cmp.Or(cmp.Compare(a.Table, b.Table), cmp.Compare(b.Priority, a.Priority)); c != 0 {
		return c
	}
	return cmp.Compare(flowKey(a.Table, a.Priority, a.Match), flowKey(b.Table, b.Priority, b.Match))
}

func sortChanges(list []change) {
	slices.SortFunc(list, func(a, b change) int { return compareFlows(a.flow, b.flow) })
}

// flowKey is what makes a flow that flow: table, priority and match, which must
// be canonical.
func flowKey(table uint8, priority uint16, m openflow.Match) string {
	key := binary.BigEndian.AppendUint16([]byte{table}, priority)
	b, err := openflow.Append(key, 0, &openflow.FlowMod{Match: m})
	if err != nil {
		return err.Error() // no switch ever sees a match that does not encode
	}
	return string(b)
}

// sameInstructions compares instructions as the wire has them.
func sameInstructions(a, b openflow.Instructions) bool {
	x, errX := openflow.Append(nil, 0, &openflow.FlowMod{Instructions: a})
	y, errY := openflow.Append(nil, 0, &openflow.FlowMod{Instructions: b})
	return errX == nil && errY == nil && string(x) == string(y)
}
