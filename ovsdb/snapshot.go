package ovsdb

import (
	"fmt"
	"hash/maphash"
	"iter"
	"slices"
)

// MonitorSpec says what a replica holds. It must not be changed after it was
// given to [Client.Monitor].
type MonitorSpec struct {
	Tables []TableSpec
}

// TableSpec says which part of one table a replica holds.
type TableSpec struct {
	Table string
	// Optional tells that the replica does without the table where the server's
	// schema lacks it.
	Optional bool
	// Columns must exist, else the monitor fails with a [SchemaError].
	Columns []string
	// OptionalColumns are left out where the server's schema lacks them.
	OptionalColumns []string
	// Where selects the rows for which any of the conditions holds. Empty means
	// all rows. The columns must be among those above: ovsdb-server 3.1 crashes
	// when rows change that are selected by a column that is not monitored.
	Where []Condition
	// Indexes are sets of columns for which [Snapshot.Find] is fast. Rows may
	// share the values; the columns must be among those above.
	Indexes [][]string
}

// contents is a MonitorSpec worked out against a schema.
type contents struct {
	tables []tableContents
	byName map[string]int
	seed   maphash.Seed
}

type tableContents struct {
	*layout
	where   []Condition
	indexes [][]int // positions of the columns of each index
}

// newContents works spec out; where has the conditions that replace those of
// spec, by table.
func newContents(s *Schema, spec *MonitorSpec, where map[string][]Condition) (*contents, error) {
	c := &contents{byName: make(map[string]int), seed: maphash.MakeSeed()}
	for i := range spec.Tables {
		ts := &spec.Tables[i]
		if _, dup := c.byName[ts.Table]; dup {
			return nil, fmt.Errorf("ovsdb: table %s appears twice in one monitor", ts.Table)
		}
		t, err := s.table(ts.Table)
		if err != nil {
			if ts.Optional {
				continue
			}
			return nil, err
		}
		lay, err := newLayout(s, t, ts.Columns, ts.OptionalColumns)
		if err != nil {
			return nil, err
		}
		tc := tableContents{layout: lay, where: ts.Where}
		if w, ok := where[ts.Table]; ok {
			tc.where = w
		}
		for _, columns := range ts.Indexes {
			var at []int
			for _, name := range columns {
				pos, ok := lay.index[name]
				if !ok {
					return nil, fmt.Errorf("ovsdb: index of table %s: column %s is not monitored", ts.Table, name)
				}
				at = append(at, pos)
			}
			tc.indexes = append(tc.indexes, at)
		}
		for _, cond := range tc.where {
			if err := cond.check(s, t); err != nil {
				return nil, fmt.Errorf("ovsdb: monitor of table %s: %w", ts.Table, err)
			}
			if _, ok := lay.index[cond.Column]; !ok {
				return nil, fmt.Errorf("ovsdb: monitor of table %s: there is a condition on column %s, which is not monitored; add it to the columns", ts.Table, cond.Column)
			}
		}
		c.byName[ts.Table] = len(c.tables)
		c.tables = append(c.tables, tc)
	}
	return c, nil
}

// sameRows tells whether rows held under d can stay under c.
func (c *contents) sameRows(d *contents) bool {
	return slices.EqualFunc(c.tables, d.tables, func(t, u tableContents) bool { return t.layout.same(u.layout) })
}

func (c *contents) hash(values iter.Seq[Value]) uint64 {
	var h maphash.Hash
	h.SetSeed(c.seed)
	for v := range values {
		h.WriteString(v.body())
		h.WriteByte(0) // a boundary; what collides is told apart by comparison
	}
	return h.Sum64()
}

// Snapshot is what a replica held after one update: the rows as one transaction
// left them. It is immutable, costs nothing to keep but the memory of what has
// changed since, and may be read from any goroutine.
type Snapshot struct {
	contents *contents
	tables   []tableRows
}

type tableRows struct {
	rows    tree[UUID]
	indexes []tree[indexKey]
}

func newSnapshot(c *contents) *Snapshot {
	s := &Snapshot{contents: c, tables: make([]tableRows, len(c.tables))}
	for i := range s.tables {
		s.tables[i].indexes = make([]tree[indexKey], len(c.tables[i].indexes))
	}
	return s
}

func (s *Snapshot) table(name string) *tableRows {
	i, ok := s.contents.byName[name]
	if !ok {
		return nil
	}
	return &s.tables[i]
}

// Has tells whether the server's schema has the table or column; false also for
// what the monitor did not ask for. Column "" asks for the table.
func (s *Snapshot) Has(table, column string) bool {
	i, ok := s.contents.byName[table]
	if !ok || column == "" {
		return ok
	}
	_, ok = s.contents.tables[i].index[column]
	return ok
}

// Len returns the number of rows of a table.
func (s *Snapshot) Len(table string) int {
	if t := s.table(table); t != nil {
		return t.rows.size
	}
	return 0
}

// Row returns the row u of a table, or nil.
func (s *Snapshot) Row(table string, u UUID) *Row {
	if t := s.table(table); t != nil {
		return t.rows.get(u)
	}
	return nil
}

// Rows yields the rows of a table in ascending order of their UUIDs.
func (s *Snapshot) Rows(table string) iter.Seq[*Row] {
	return func(yield func(*Row) bool) {
		if t := s.table(table); t != nil {
			t.rows.root.walk(func(_ UUID, r *Row) bool { return yield(r) })
		}
	}
}

// Find yields the rows of a table that hold v in column, in ascending order of
// their UUIDs. It is fast if the column is declared as an index of its own, and
// else looks at every row.
func (s *Snapshot) Find(table, column string, v Value) iter.Seq[*Row] {
	return s.FindAll(table, []string{column}, []Value{v})
}

// FindAll is [Snapshot.Find] for several columns at once. The index that makes
// it fast must name the same columns in the same order.
func (s *Snapshot) FindAll(table string, columns []string, values []Value) iter.Seq[*Row] {
	return func(yield func(*Row) bool) {
		t := s.table(table)
		if t == nil || len(columns) != len(values) {
			return
		}
		match := func(r *Row) bool {
			for i, c := range columns {
				if !r.Get(c).Equal(values[i]) {
					return true
				}
			}
			return yield(r)
		}
		tc := &s.contents.tables[s.contents.byName[table]]
		for i, at := range tc.indexes {
			if slices.EqualFunc(at, columns, func(pos int, c string) bool { return tc.columns[pos].Name == c }) {
				hashRows(&t.indexes[i], s.contents.hash(slices.Values(values)), match)
				return
			}
		}
		t.rows.root.walk(func(_ UUID, r *Row) bool { return match(r) })
	}
}

// Change is one row that differs between two snapshots.
type Change struct {
	Table    string
	UUID     UUID
	Old, New *Row // nil for an insertion or a deletion
}

// Changed tells whether the change gave column another value. Inserting and
// deleting a row changes each of its columns.
func (c Change) Changed(column string) bool {
	if c.Old == nil || c.New == nil {
		return !c.Old.Get(column).IsAbsent() || !c.New.Get(column).IsAbsent()
	}
	return c.Old.Get(column) != c.New.Get(column)
}

// Columns yields the names of the columns that the change gave another value.
func (c Change) Columns() iter.Seq[string] {
	return func(yield func(string) bool) {
		r := c.New
		if r == nil {
			r = c.Old
		}
		for name := range r.Columns() {
			if c.Changed(name) && !yield(name) {
				return
			}
		}
	}
}

func newChange(old, new *Row) Change {
	r := new
	if r == nil {
		r = old
	}
	return Change{Table: r.layout.table, UUID: r.uuid, Old: old, New: new}
}

// Diff returns the rows that differ between two snapshots of one replica, table
// by table, in ascending order of their UUIDs. It takes time in proportion to
// what has changed between them, except across a reconnect.
func Diff(old, new *Snapshot) []Change {
	var out []Change
	for i := range new.tables {
		var before *node[UUID]
		if t := old.table(new.contents.tables[i].table); t != nil {
			before = t.rows.root
		}
		at := len(out)
		diff(before, new.tables[i].rows.root, func(o, n *Row) {
			if o == nil || n == nil || !o.equal(n) {
				out = append(out, newChange(o, n))
			}
		})
		slices.SortFunc(out[at:], func(x, y Change) int { return x.UUID.Compare(y.UUID) })
	}
	for i := range old.tables {
		if new.table(old.contents.tables[i].table) == nil {
			diff(old.tables[i].rows.root, nil, func(o, _ *Row) { out = append(out, newChange(o, nil)) })
		}
	}
	return out
}

// draft is a snapshot in the making. Nobody sees it before it is published, so
// an update that turns out wrong half way is simply dropped.
type draft struct {
	next    *Snapshot
	edit    *edit
	changes []Change
	// record tells to collect changes. A first copy is compared with what it
	// replaces once it is complete.
	record bool
}

func newDraft(base *Snapshot, record bool) *draft {
	next := &Snapshot{contents: base.contents, tables: slices.Clone(base.tables)}
	for i := range next.tables {
		next.tables[i].indexes = slices.Clone(next.tables[i].indexes)
	}
	return &draft{next: next, edit: new(edit), record: record}
}

// put replaces old, the row of that UUID, by row. Either may be nil.
func (d *draft) put(table int, old, row *Row) {
	t, tc := &d.next.tables[table], &d.next.contents.tables[table]
	if row != nil {
		t.rows.set(d.edit, row.uuid, row)
	} else {
		t.rows.remove(d.edit, old.uuid)
	}
	for i, at := range tc.indexes {
		var from, to indexKey
		if old != nil {
			from = d.indexKey(old, at)
		}
		if row != nil {
			to = d.indexKey(row, at)
		}
		if old != nil && (row == nil || from != to) {
			t.indexes[i].remove(d.edit, from)
		}
		if row != nil {
			t.indexes[i].set(d.edit, to, row)
		}
	}
	if d.record {
		d.changes = append(d.changes, newChange(old, row))
	}
}

func (d *draft) indexKey(r *Row, at []int) indexKey {
	hash := d.next.contents.hash(func(yield func(Value) bool) {
		for _, i := range at {
			if !yield(r.values[i]) {
				return
			}
		}
	})
	return newIndexKey(hash, r.uuid)
}
