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

// tables are what messages change: the flows of all tables and the groups.
// Bundles work on a clone.
type tables struct {
	flows  map[string]*flow // by flowKey
	groups map[uint32]*openflow.GroupMod
	meters map[uint32]*openflow.MeterMod
	// sorted holds, for tables that were looked into since the last change, the
	// flows by descending priority.
	sorted map[uint8][]*flow
}

func newTables() *tables {
	return &tables{flows: map[string]*flow{}, groups: map[uint32]*openflow.GroupMod{}, meters: map[uint32]*openflow.MeterMod{}}
}

// clone returns a copy that can be changed without changing t. The flows are
// shared, and so are their counters.
func (t *tables) clone() *tables {
	return &tables{flows: maps.Clone(t.flows), groups: maps.Clone(t.groups), meters: maps.Clone(t.meters)}
}

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
func (t *tables) applyAll(messages []openflow.Message, refuse Refusal) (changes []change, failed int, code openflow.ErrorCode) {
	for i, m := range messages {
		if refuse != nil {
			code = refuse(m)
		}
		var some []change
		if code == 0 {
			some, code = t.apply(m)
		}
		if code != 0 {
			return nil, i, code
		}
		changes = append(changes, some...)
	}
	return changes, 0, 0
}

// apply does one message: all of it or, with an error, nothing.
func (t *tables) apply(m openflow.Message) ([]change, openflow.ErrorCode) {
	t.sorted = nil
	switch m := m.(type) {
	case *openflow.GroupMod:
		return t.changeGroup(m)
	case *openflow.MeterMod:
		return t.changeMeter(m)
	case *openflow.FlowMod:
		switch m.Command {
		case openflow.FlowAdd:
			return t.add(m)
		case openflow.FlowModify, openflow.FlowModifyStrict:
			return t.modify(m)
		}
		return t.remove(m, openflow.RemovedDelete), 0
	}
	return nil, 0
}

// add adds a flow or replaces the one with its match and priority, whose
// counters it keeps unless told otherwise.
func (t *tables) add(m *openflow.FlowMod) ([]change, openflow.ErrorCode) {
	if !t.haveGroups(m.Instructions) {
		return nil, openflow.BadActionBadOutGroup
	}
	if !t.haveMeters(m.Instructions) {
		return nil, openflow.MeterModFailedInvalidMeter
	}
	f := &flow{
		Table: m.Table, Priority: m.Priority, IdleTimeout: m.IdleTimeout, HardTimeout: m.HardTimeout,
		Flags: m.Flags, Importance: m.Importance, Cookie: m.Cookie,
		Match: canonical(m.Match), Instructions: m.Instructions,
	}
	key := flowKey(f.Table, f.Priority, f.Match)
	if m.Flags&openflow.FlowCheckOverlap != 0 {
		for other, old := range t.flows {
			if other != key && old.Table == f.Table && old.Priority == f.Priority && overlap(old.Match, f.Match) {
				return nil, openflow.FlowModFailedOverlap
			}
		}
	}
	if old := t.flows[key]; old != nil && m.Flags&openflow.FlowResetCounts == 0 {
		f.PacketCount, f.ByteCount = old.PacketCount, old.ByteCount
	}
	t.flows[key] = f
	return []change{{event: openflow.EventAdded, flow: f}}, 0
}

// modify gives flows other instructions and leaves the rest of them alone.
func (t *tables) modify(m *openflow.FlowMod) ([]change, openflow.ErrorCode) {
	if !t.haveGroups(m.Instructions) {
		return nil, openflow.BadActionBadOutGroup
	}
	if !t.haveMeters(m.Instructions) {
		return nil, openflow.MeterModFailedInvalidMeter
	}
	var changes []change
	for key, old := range t.chosen(m) {
		f := *old
		f.Instructions = m.Instructions
		if m.Flags&openflow.FlowResetCounts != 0 {
			f.PacketCount, f.ByteCount = 0, 0
		}
		t.flows[key] = &f
		if !sameInstructions(old.Instructions, f.Instructions) {
			changes = append(changes, change{event: openflow.EventModified, flow: &f})
		}
	}
	sortChanges(changes)
	return changes, 0
}

func (t *tables) remove(m *openflow.FlowMod, reason openflow.FlowRemovedReason) []change {
	var changes []change
	for key, f := range t.chosen(m) {
		delete(t.flows, key)
		changes = append(changes, change{event: openflow.EventRemoved, reason: reason, flow: f})
	}
	sortChanges(changes)
	return changes
}

// chosen returns the flows that a modify or delete is for.
func (t *tables) chosen(m *openflow.FlowMod) map[string]*flow {
	match := canonical(m.Match)
	if m.Command == openflow.FlowModifyStrict || m.Command == openflow.FlowDeleteStrict {
		found := map[string]*flow{}
		tables := []uint8{m.Table}
		if m.Table == openflow.TableAll {
			tables = tables[:0]
			for table := range lastTable + 1 {
				tables = append(tables, uint8(table))
			}
		}
		for _, table := range tables {
			key := flowKey(table, m.Priority, match)
			if f := t.flows[key]; f != nil && selects(selectorOf(m), match, f) {
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
func (t *tables) selected(s openflow.FlowSelector) map[string]*flow {
	match := canonical(s.Match)
	found := map[string]*flow{}
	for key, f := range t.flows {
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
	return slices.ContainsFunc(actionsOf(list), func(a openflow.Action) bool {
		switch a := a.(type) {
		case openflow.Output:
			return to == openflow.Action(openflow.Output{Port: a.Port})
		case openflow.Group:
			return to == openflow.Action(a)
		}
		return false
	})
}

// actionsOf returns the actions of instructions, at once or later.
func actionsOf(list openflow.Instructions) []openflow.Action {
	var actions []openflow.Action
	for _, i := range list {
		switch i := i.(type) {
		case openflow.ApplyActions:
			actions = append(actions, i...)
		case openflow.WriteActions:
			actions = append(actions, i...)
		}
	}
	return actions
}

// stats returns copies of the flows that a selector selects, sorted.
func (t *tables) stats(s openflow.FlowSelector) []openflow.FlowStats {
	var list []openflow.FlowStats
	for _, f := range t.selected(s) {
		list = append(list, *f)
	}
	slices.SortFunc(list, func(a, b openflow.FlowStats) int { return compareFlows(&a, &b) })
	return list
}

// find returns the flow that f is a copy of, or nil.
func (t *tables) find(f *flow) *flow { return t.flows[flowKey(f.Table, f.Priority, f.Match)] }

// lookup returns the flow of a table that a packet matches, or nil.
func (t *tables) lookup(table uint8, p *Packet) *flow {
	list, ok := t.sorted[table]
	if !ok {
		for _, f := range t.flows {
			if f.Table == table {
				list = append(list, f)
			}
		}
		slices.SortFunc(list, compareFlows)
		if t.sorted == nil {
			t.sorted = map[uint8][]*flow{}
		}
		t.sorted[table] = list
	}
	for _, f := range list {
		if p.matches(f.Match) {
			return f
		}
	}
	return nil
}

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
