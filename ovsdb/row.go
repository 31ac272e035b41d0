package ovsdb

import (
	"iter"
	"slices"
)

// layout says which columns the rows of a replica or a result have, and in
// which order.
type layout struct {
	table    string
	columns  []*Column
	index    map[string]int
	defaults []Value
}

// newLayout fails with a [SchemaError] if a column of required is missing, and
// leaves out those of optional that are.
func newLayout(s *Schema, t *Table, required, optional []string) (*layout, error) {
	lay := &layout{table: t.Name, index: make(map[string]int)}
	add := func(name string) error {
		if _, dup := lay.index[name]; dup {
			return nil
		}
		c, err := s.column(t, name)
		if err != nil {
			return err
		}
		lay.index[name] = len(lay.columns)
		lay.columns = append(lay.columns, c)
		lay.defaults = append(lay.defaults, c.defaultValue())
		return nil
	}
	for _, name := range required {
		if err := add(name); err != nil {
			return nil, err
		}
	}
	for _, name := range optional {
		_ = add(name) // its absence is what optional permits
	}
	return lay, nil
}

func (l *layout) names() []string {
	names := make([]string, len(l.columns))
	for i, c := range l.columns {
		names[i] = c.Name
	}
	return names
}

// same tells whether rows of both layouts can be compared column by column.
func (l *layout) same(m *layout) bool {
	return l == m || l.table == m.table && slices.EqualFunc(l.columns, m.columns, func(c, d *Column) bool {
		return c.Name == d.Name && c.Key.Kind == d.Key.Kind && c.Value.Kind == d.Value.Kind && c.Min == d.Min && c.Max == d.Max
	})
}

// Row is one row as it was at one moment. It is immutable.
type Row struct {
	layout *layout
	uuid   UUID
	values []Value
}

// UUID returns the row's identity. It is the zero UUID for rows of a Select that
// did not ask for _uuid.
func (r *Row) UUID() UUID { return r.uuid }

// Table returns the name of the row's table.
func (r *Row) Table() string { return r.layout.table }

// Get returns the value of a column, or the zero Value if the column was not
// asked for or the server's schema lacks it. A nil row has no columns.
func (r *Row) Get(column string) Value {
	if r == nil {
		return Value{}
	}
	i, ok := r.layout.index[column]
	if !ok {
		return Value{}
	}
	return r.values[i]
}

// Columns yields the row's columns and their values.
func (r *Row) Columns() iter.Seq2[string, Value] {
	return func(yield func(string, Value) bool) {
		for i, c := range r.layout.columns {
			if !yield(c.Name, r.values[i]) {
				return
			}
		}
	}
}

// equal tells whether both rows have the same columns with the same values.
func (r *Row) equal(s *Row) bool {
	if r == s {
		return true
	}
	if r.layout != s.layout && !r.layout.same(s.layout) {
		return false
	}
	return slices.Equal(r.values, s.values)
}
