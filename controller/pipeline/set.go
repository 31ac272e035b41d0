package pipeline

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"brlb/openflow"
)

// Row is one flow, encoded once: two rows are the same flow when they are in the
// same place (table, priority and match), and the same in all else when their
// Wires are equal.
type Row struct {
	Wire     string // the flow as an ADD message, cookie and instructions included
	Mod      *openflow.FlowMod
	matchEnd int // in Wire
}

// Offsets in an encoded FlowMod (OF1.4 section 7.3.4.2, struct ofp_flow_mod).
const (
	wireTable    = 24
	wirePriority = 30
	wireMatch    = 48
)

// compare orders rows by table, priority and match.
func (r *Row) compare(o *Row) int {
	if r.Mod == o.Mod {
		return 0
	}
	if c := cmp.Compare(r.Wire[wireTable], o.Wire[wireTable]); c != 0 {
		return c
	}
	if c := strings.Compare(r.Wire[wirePriority:wirePriority+2], o.Wire[wirePriority:wirePriority+2]); c != 0 {
		return c
	}
	return strings.Compare(r.Wire[wireMatch:r.matchEnd], o.Wire[wireMatch:o.matchEnd])
}

// encoder makes rows. Its buffer is used again for each of them.
type encoder struct{ buf []byte }

func (e *encoder) row(mod *openflow.FlowMod) (Row, error) {
	slices.SortStableFunc(mod.Match, func(a, b openflow.OXM) int { return cmp.Compare(a.Field, b.Field) })
	wire, err := openflow.Append(e.buf[:0], 0, mod)
	if err != nil {
		return Row{}, fmt.Errorf("flow %s: %w", mod, err)
	}
	e.buf = wire
	length := int(wire[wireMatch+2])<<8 | int(wire[wireMatch+3])
	return Row{Wire: string(wire), Mod: mod, matchEnd: wireMatch + length}, nil
}

// GroupID names rows that belong together: a kind, and the pool whose rows
// they are (0 for rows of no pool).
type GroupID struct {
	Kind Kind
	Pool uint16
}

// Group is an immutable list of rows, sorted by table, priority and match.
type Group struct{ Rows []Row }

// Set is a set of flows. Its groups are never modified, so that sets can share
// them and a comparison can skip what is shared.
type Set map[GroupID]*Group

// Len returns the number of flows.
func (s Set) Len() int {
	n := 0
	for _, g := range s {
		n += len(g.Rows)
	}
	return n
}

// Flows returns all flows, sorted by table, then by descending priority, then
// by match.
func (s Set) Flows() []*openflow.FlowMod {
	var rows []Row
	for _, g := range s {
		rows = append(rows, g.Rows...)
	}
	slices.SortFunc(rows, func(a, b Row) int {
		return cmp.Or(
			cmp.Compare(a.Mod.Table, b.Mod.Table),
			cmp.Compare(b.Mod.Priority, a.Mod.Priority),
			a.compare(&b))
	})
	flows := make([]*openflow.FlowMod, len(rows))
	for i := range rows {
		flows[i] = rows[i].Mod
	}
	return flows
}

func newGroup(mods []*openflow.FlowMod) (*Group, error) {
	rows, err := sortedRows(mods)
	return &Group{Rows: rows}, err
}

func sortedRows(mods []*openflow.FlowMod) ([]Row, error) {
	rows := make([]Row, 0, len(mods))
	var e encoder
	for _, mod := range mods {
		row, err := e.row(mod)
		if err != nil {
			return nil, err
		}
		rows = append(rows, row)
	}
	slices.SortFunc(rows, func(a, b Row) int { return a.compare(&b) })
	for i := 1; i < len(rows); i++ {
		if rows[i].compare(&rows[i-1]) == 0 {
			return nil, fmt.Errorf("two flows with one match: %s and %s", rows[i-1].Mod, rows[i].Mod)
		}
	}
	return rows, nil
}

// FromSwitch turns the flows that a switch returned into a set. Flows of
// others are left out, and those that the switch has learned.
func FromSwitch(stats []openflow.FlowStats) (Set, error) {
	mods := map[GroupID][]*openflow.FlowMod{}
	for i := range stats {
		f := &stats[i]
		if !IsOwn(f.Cookie) {
			continue
		}
		kind, pool, _ := CookieParts(f.Cookie)
		if kind == KindLearned {
			continue
		}
		id := GroupID{Kind: kind, Pool: pool}
		mod := flow(f.Cookie, f.Table, f.Priority, f.Match, f.Instructions...)
		mod.IdleTimeout, mod.HardTimeout, mod.Flags, mod.Importance = f.IdleTimeout, f.HardTimeout, f.Flags, f.Importance
		mods[id] = append(mods[id], mod)
	}
	set := Set{}
	for id, list := range mods {
		g, err := newGroup(list)
		if err != nil {
			return nil, err
		}
		set[id] = g
	}
	return set, nil
}

// Plan is how to get from one set to another.
type Plan struct {
	// Mods are DELETE_STRICTs, which spare flows of others, and then ADDs,
	// which keep the counters of rows that they replace.
	Mods    []openflow.Message
	Deleted int
	Added   int
	// Result is what the switch holds when all of Mods have been applied.
	Result Set
}

// Diff plans the way from installed to desired. Groups for which held is true
// stay as they are installed; but if they are shared by all pools, as own
// addresses and replies are, they gain what is new.
func Diff(installed, desired Set, held func(GroupID) bool) Plan {
	plan := Plan{Result: maps.Clone(desired)}
	var deletes, adds []openflow.Message
	for _, id := range differing(installed, desired) {
		from, to := installed[id], desired[id]
		switch {
		case held(id) && id.Pool == 0:
			to = union(from, to)
		case held(id):
			to = from
		}
		if to != nil {
			plan.Result[id] = to
		} else {
			delete(plan.Result, id)
		}
		diffRows(from, to, func(was, want *Row) {
			switch {
			case want == nil:
				deletes = append(deletes, deletion(was.Mod))
			case was == nil || was.Wire != want.Wire:
				adds = append(adds, want.Mod)
			}
		})
	}
	plan.Deleted, plan.Added = len(deletes), len(adds)
	plan.Mods = append(deletes, adds...)
	return plan
}

// union returns the rows of both groups; where they differ, those of to.
func union(from, to *Group) *Group {
	if from == nil || to == nil {
		return cmp.Or(from, to)
	}
	all := &Group{Rows: make([]Row, 0, max(len(from.Rows), len(to.Rows)))}
	diffRows(from, to, func(was, want *Row) { all.Rows = append(all.Rows, *cmp.Or(want, was)) })
	return all
}

// diffRows walks two groups in step and calls visit for each place of either.
func diffRows(from, to *Group, visit func(was, want *Row)) {
	var a, b []Row
	if from != nil {
		a = from.Rows
	}
	if to != nil {
		b = to.Rows
	}
	for len(a) > 0 && len(b) > 0 {
		switch c := a[0].compare(&b[0]); {
		case c < 0:
			visit(&a[0], nil)
			a = a[1:]
		case c > 0:
			visit(nil, &b[0])
			b = b[1:]
		default:
			visit(&a[0], &b[0])
			a, b = a[1:], b[1:]
		}
	}
	for i := range a {
		visit(&a[i], nil)
	}
	for i := range b {
		visit(nil, &b[i])
	}
}

func deletion(mod *openflow.FlowMod) *openflow.FlowMod {
	d := openflow.NewFlowMod(openflow.FlowDeleteStrict)
	d.Cookie, d.CookieMask = Cookie(0, 0, 0), CookieMask
	d.Table, d.Priority, d.Match = mod.Table, mod.Priority, mod.Match
	return d
}

// differing returns the groups that two sets do not share, sorted.
func differing(a, b Set) []GroupID {
	var ids []GroupID
	common := 0
	for id, g := range a {
		other, both := b[id]
		if both {
			common++
		}
		if other != g {
			ids = append(ids, id)
		}
	}
	if common < len(b) {
		for id := range b {
			if a[id] == nil {
				ids = append(ids, id)
			}
		}
	}
	slices.SortFunc(ids, func(a, b GroupID) int {
		return cmp.Or(cmp.Compare(a.Pool, b.Pool), cmp.Compare(a.Kind, b.Kind))
	})
	return ids
}
