package ovsdb

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"
)

// Columns are the values of some columns, by name.
type Columns map[string]Value

// Op is one operation of a transaction (RFC 7047 §5.2): an [Insert], [Select],
// [Update], [Mutate], [Delete], [Wait], [Comment], [Assert] or [Abort], by value.
type Op interface {
	// appendTo writes the operation; what it names is checked against schema.
	appendTo(b []byte, schema *Schema) ([]byte, error)
	// what returns the operation's name and table for messages.
	what() (op, table string)
}

// Insert adds a row. Columns that Row does not mention get their default.
type Insert struct {
	Table string
	Row   Columns
	// Name is how other operations of the transaction refer to the row, by
	// [NamedRef]. A row in a table that is not a root vanishes at commit unless
	// one does.
	Name string
}

// Select reads rows.
type Select struct {
	Table string
	Where []Condition // all must hold; none selects every row
	// Columns of the result; none means all, with _uuid and _version.
	Columns []string
}

// Update overwrites columns in rows.
type Update struct {
	Table string
	Where []Condition // all must hold; none selects every row
	Row   Columns
}

// Mutate changes columns in rows by what they hold.
type Mutate struct {
	Table     string
	Where     []Condition // all must hold; none selects every row
	Mutations []Mutation  // in this order
}

// Delete removes rows. Rows of tables that are not roots are removed by
// removing the references to them.
type Delete struct {
	Table string
	Where []Condition // all must hold; none selects every row
}

// Wait delays the transaction until the selected rows are, or are not, those of
// Rows.
type Wait struct {
	Table   string
	Where   []Condition // all must hold; none selects every row
	Columns []string    // that are compared
	Until   Until
	Rows    []Columns
	// Timeout after which the transaction fails with [ErrTimedOut], in whole
	// milliseconds. Below one the condition must hold at once; negative waits
	// without end.
	Timeout time.Duration
}

// Until is the comparison of a [Wait].
type Until string

// The comparisons of a [Wait].
const (
	UntilEqual    Until = "=="
	UntilNotEqual Until = "!="
)

// Comment puts text into the database's log.
type Comment struct{ Text string }

// Assert makes the transaction fail with [ErrNotOwner] unless this client holds
// the lock.
type Assert struct{ Lock string }

// Abort makes the transaction fail with code "aborted".
type Abort struct{}

// Function compares a column with a value in a [Condition].
type Function string

// The functions of RFC 7047 §5.1. The comparisons by size are for integer and
// real columns, which hold at most one element.
const (
	Less         Function = "<"
	LessEqual    Function = "<="
	Equal        Function = "=="
	NotEqual     Function = "!="
	GreaterEqual Function = ">="
	Greater      Function = ">"
	Includes     Function = "includes"
	Excludes     Function = "excludes"
)

// Condition selects rows by one column.
type Condition struct {
	Column   string
	Function Function
	Value    Value
}

// IsRow is the condition that selects the row u.
func IsRow(u UUID) Condition { return Condition{"_uuid", Equal, Ref(u)} }

// Is is the condition that column holds exactly v.
func Is(column string, v Value) Condition { return Condition{column, Equal, v} }

// Mutator changes a column in a [Mutation].
type Mutator string

// The mutators of RFC 7047 §5.1: arithmetic on integers and reals, also on each
// element of a set; insertion into and deletion from sets and maps. Inserting
// into a map leaves keys alone that are there. Deleting takes a set of keys, or
// a map of pairs that must match.
const (
	MutateAdd       Mutator = "+="
	MutateSubtract  Mutator = "-="
	MutateMultiply  Mutator = "*="
	MutateDivide    Mutator = "/="
	MutateRemainder Mutator = "%="
	MutateInsert    Mutator = "insert"
	MutateDelete    Mutator = "delete"
)

// Mutation is one change of a [Mutate].
type Mutation struct {
	Column  string
	Mutator Mutator
	Value   Value
}

func (o Insert) what() (op, table string)  { return "insert", o.Table }
func (o Select) what() (op, table string)  { return "select", o.Table }
func (o Update) what() (op, table string)  { return "update", o.Table }
func (o Mutate) what() (op, table string)  { return "mutate", o.Table }
func (o Delete) what() (op, table string)  { return "delete", o.Table }
func (o Wait) what() (op, table string)    { return "wait", o.Table }
func (o Comment) what() (op, table string) { return "comment", "" }
func (o Assert) what() (op, table string)  { return "assert", "" }
func (o Abort) what() (op, table string)   { return "abort", "" }

func (o Insert) appendTo(b []byte, schema *Schema) ([]byte, error) {
	t, b, err := openOp(b, schema, "insert", o.Table)
	if err != nil {
		return nil, err
	}
	b = append(b, `,"row":`...)
	if b, err = appendRow(b, schema, t, o.Row); err != nil {
		return nil, err
	}
	if o.Name != "" {
		if err := checkRowName(o.Name); err != nil {
			return nil, err
		}
		b = append(b, `,"uuid-name":`...)
		b = appendQuoted(b, o.Name)
	}
	return append(b, '}'), nil
}

func (o Select) appendTo(b []byte, schema *Schema) ([]byte, error) {
	t, b, err := openOp(b, schema, "select", o.Table)
	if err != nil {
		return nil, err
	}
	if b, err = appendOpWhere(b, schema, t, o.Where); err != nil {
		return nil, err
	}
	lay, err := o.layout(schema)
	if err != nil {
		return nil, err
	}
	b = append(b, `,"columns":`...)
	return append(appendStrings(b, lay.names()...), '}'), nil
}

// layout is that of the result's rows.
func (o Select) layout(schema *Schema) (*layout, error) {
	t, err := schema.table(o.Table)
	if err != nil {
		return nil, err
	}
	columns := o.Columns
	if len(columns) == 0 {
		columns = append(slices.Sorted(maps.Keys(t.Columns)), "_uuid", "_version")
	}
	return newLayout(schema, t, columns, nil)
}

func (o Update) appendTo(b []byte, schema *Schema) ([]byte, error) {
	t, b, err := openOp(b, schema, "update", o.Table)
	if err != nil {
		return nil, err
	}
	if b, err = appendOpWhere(b, schema, t, o.Where); err != nil {
		return nil, err
	}
	b = append(b, `,"row":`...)
	if b, err = appendRow(b, schema, t, o.Row); err != nil {
		return nil, err
	}
	return append(b, '}'), nil
}

func (o Mutate) appendTo(b []byte, schema *Schema) ([]byte, error) {
	t, b, err := openOp(b, schema, "mutate", o.Table)
	if err != nil {
		return nil, err
	}
	if b, err = appendOpWhere(b, schema, t, o.Where); err != nil {
		return nil, err
	}
	b = append(b, `,"mutations":[`...)
	for i, m := range o.Mutations {
		if i > 0 {
			b = append(b, ',')
		}
		c, err := schema.column(t, m.Column)
		if err != nil {
			return nil, err
		}
		deleteKeys := m.Mutator == MutateDelete && c.Value.Kind != NoKind && !m.Value.IsMap()
		if deleteKeys {
			c = &Column{Name: c.Name, Key: c.Key, Max: c.Max}
		}
		if err := c.check(m.Value); err != nil {
			return nil, fmt.Errorf("column %s %w", c.Name, err)
		}
		if b, err = appendTriple(b, m.Column, string(m.Mutator), m.Value); err != nil {
			return nil, err
		}
	}
	return append(b, "]}"...), nil
}

func (o Delete) appendTo(b []byte, schema *Schema) ([]byte, error) {
	t, b, err := openOp(b, schema, "delete", o.Table)
	if err != nil {
		return nil, err
	}
	if b, err = appendOpWhere(b, schema, t, o.Where); err != nil {
		return nil, err
	}
	return append(b, '}'), nil
}

func (o Wait) appendTo(b []byte, schema *Schema) ([]byte, error) {
	t, b, err := openOp(b, schema, "wait", o.Table)
	if err != nil {
		return nil, err
	}
	if b, err = appendOpWhere(b, schema, t, o.Where); err != nil {
		return nil, err
	}
	for _, name := range o.Columns {
		if _, err := schema.column(t, name); err != nil {
			return nil, err
		}
	}
	b = append(b, `,"columns":`...)
	b = appendStrings(b, o.Columns...)
	b = append(b, `,"until":`...)
	b = appendQuoted(b, string(o.Until))
	b = append(b, `,"rows":[`...)
	for i, row := range o.Rows {
		if i > 0 {
			b = append(b, ',')
		}
		if b, err = appendRow(b, schema, t, row); err != nil {
			return nil, err
		}
	}
	b = append(b, ']')
	if o.Timeout >= 0 {
		b = append(b, `,"timeout":`...)
		b = strconv.AppendInt(b, o.Timeout.Milliseconds(), 10)
	}
	return append(b, '}'), nil
}

func (o Comment) appendTo(b []byte, _ *Schema) ([]byte, error) {
	if err := checkText(o.Text); err != nil {
		return nil, err
	}
	b = append(b, `{"op":"comment","comment":`...)
	return append(appendQuoted(b, o.Text), '}'), nil
}

func (o Assert) appendTo(b []byte, _ *Schema) ([]byte, error) {
	if err := checkRowName(o.Lock); err != nil {
		return nil, err
	}
	b = append(b, `{"op":"assert","lock":`...)
	return append(appendQuoted(b, o.Lock), '}'), nil
}

func (o Abort) appendTo(b []byte, _ *Schema) ([]byte, error) {
	return append(b, `{"op":"abort"}`...), nil
}

func openOp(b []byte, schema *Schema, op, table string) (*Table, []byte, error) {
	t, err := schema.table(table)
	if err != nil {
		return nil, nil, err
	}
	b = append(b, `{"op":`...)
	b = appendQuoted(b, op)
	b = append(b, `,"table":`...)
	return t, appendQuoted(b, table), nil
}

// appendRow writes a <row>, its columns in the order of their names.
func appendRow(b []byte, schema *Schema, t *Table, row Columns) ([]byte, error) {
	b = append(b, '{')
	for i, name := range slices.Sorted(maps.Keys(row)) {
		if i > 0 {
			b = append(b, ',')
		}
		c, err := schema.column(t, name)
		if err != nil {
			return nil, err
		}
		if err := c.check(row[name]); err != nil {
			return nil, fmt.Errorf("column %s %w", name, err)
		}
		b = appendQuoted(b, name)
		b = append(b, ':')
		if b, err = appendValue(b, row[name]); err != nil {
			return nil, fmt.Errorf("column %s: %w", name, err)
		}
	}
	return append(b, '}'), nil
}

func appendOpWhere(b []byte, schema *Schema, t *Table, where []Condition) ([]byte, error) {
	for _, c := range where {
		if err := c.check(schema, t); err != nil {
			return nil, err
		}
	}
	return appendWhere(append(b, `,"where":`...), where)
}

func appendWhere(b []byte, where []Condition) ([]byte, error) {
	b = append(b, '[')
	for i, c := range where {
		if i > 0 {
			b = append(b, ',')
		}
		var err error
		if b, err = appendTriple(b, c.Column, string(c.Function), c.Value); err != nil {
			return nil, err
		}
	}
	return append(b, ']'), nil
}

// appendTriple writes a <condition> or <mutation>.
func appendTriple(b []byte, column, function string, v Value) ([]byte, error) {
	b = append(b, '[')
	b = appendQuoted(b, column)
	b = append(b, ',')
	b = appendQuoted(b, function)
	b = append(b, ',')
	b, err := appendValue(b, v)
	if err != nil {
		return nil, fmt.Errorf("column %s: %w", column, err)
	}
	return append(b, ']'), nil
}

// check says what is wrong with the condition on a table of the schema.
func (c Condition) check(schema *Schema, t *Table) error {
	switch c.Function {
	case Less, LessEqual, Equal, NotEqual, GreaterEqual, Greater, Includes, Excludes:
	default:
		return fmt.Errorf("column %s: unknown function %s in a condition", c.Column, quoteCut(string(c.Function)))
	}
	column, err := schema.column(t, c.Column)
	if err != nil {
		return err
	}
	if err := column.check(c.Value); err != nil {
		return fmt.Errorf("column %s %w", c.Column, err)
	}
	return nil
}
