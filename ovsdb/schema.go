package ovsdb

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Schema is a database's schema as the server reports it (RFC 7047 §3.2). It is
// immutable.
type Schema struct {
	Name    string
	Version string
	Tables  map[string]*Table
}

// Table is one table of a [Schema].
type Table struct {
	Name string
	// Root tables keep rows that nothing refers to. Rows of every other table
	// vanish at commit once nothing refers to them.
	Root    bool
	Columns map[string]*Column
	// Indexes are the sets of columns whose values no two rows share.
	Indexes [][]string
}

// Column is one column of a [Table].
type Column struct {
	Name string
	// Key is the type of the elements, or of a map's keys.
	Key BaseType
	// Value is the type of a map's values; its Kind is NoKind for sets.
	Value BaseType
	// Min (0 or 1) and Max bound the number of elements. Max is math.MaxInt if
	// the schema says "unlimited".
	Min, Max int
	// Mutable is false for columns that are set when the row is inserted and
	// never again.
	Mutable bool
	// Ephemeral columns are lost when ovsdb-server restarts. Until their writer
	// fills them again their default means "unknown".
	Ephemeral bool
}

// BaseType is the type of an atom in a column.
type BaseType struct {
	Kind Kind
	// RefTable is the table that a UUIDKind refers to, "" for none.
	RefTable string
	// Weak references do not keep the row they refer to alive, and vanish with
	// it.
	Weak bool
	// Enum is the set of permitted values, the zero Value if all are.
	Enum Value
}

// SchemaError says that the server's schema lacks something that is needed.
// The database must be upgraded, or another one used; trying again does not
// help.
type SchemaError struct {
	Database, Version string
	Table, Column     string // Column is "" if the whole table is missing
}

func (e *SchemaError) Error() string {
	if e.Column == "" {
		return fmt.Sprintf("ovsdb: database %s has no table %s in its schema version %s", e.Database, e.Table, e.Version)
	}
	return fmt.Sprintf("ovsdb: database %s has no column %s.%s in its schema version %s", e.Database, e.Table, e.Column, e.Version)
}

func (s *Schema) table(name string) (*Table, error) {
	t := s.Tables[name]
	if t == nil {
		return nil, &SchemaError{s.Name, s.Version, name, ""}
	}
	return t, nil
}

func (s *Schema) column(t *Table, name string) (*Column, error) {
	switch name {
	case "_uuid", "_version":
		return &Column{Name: name, Key: BaseType{Kind: UUIDKind}, Min: 1, Max: 1}, nil
	}
	c := t.Columns[name]
	if c == nil {
		return nil, &SchemaError{s.Name, s.Version, t.Name, name}
	}
	return c, nil
}

// composite tells whether the column can hold more than one element, which
// decides how update2 and update3 write a modification.
func (c *Column) composite() bool { return c.Max > 1 }

// defaultValue is what a row holds when the wire does not mention the column
// (RFC 7047 §5.2.1).
func (c *Column) defaultValue() Value {
	var b valueBuilder
	b.begin(c.Key.Kind, c.Value.Kind)
	if c.Min > 0 {
		if c.Value.Kind == NoKind {
			b.add(Atom{kind: c.Key.Kind})
		} else {
			b.add(Atom{kind: c.Key.Kind}, Atom{kind: c.Value.Kind})
		}
	}
	b.finish()
	return Value{string(b.buf)}
}

// check says what is wrong with v as a value of this column, given from a
// caller. Named uuids and empty values fit wherever the schema allows them.
func (c *Column) check(v Value) error {
	if v.IsAbsent() {
		return errors.New("has no value; use EmptySet or EmptyMap to clear it")
	}
	if v.IsMap() != (c.Value.Kind != NoKind) {
		if v.IsMap() {
			return errors.New("is not a map")
		}
		return errors.New("is a map")
	}
	key, val := v.kinds()
	if v.body() != "" {
		if !kindFits(key, c.Key.Kind) {
			return fmt.Errorf("holds %ss, not %ss", c.Key.Kind, key)
		}
		if val != NoKind && !kindFits(val, c.Value.Kind) {
			return fmt.Errorf("maps to %ss, not %ss", c.Value.Kind, val)
		}
	}
	return nil
}

func kindFits(k, column Kind) bool {
	return k == column || k == NamedUUIDKind && column == UUIDKind
}

// maxVersion is the longest version of a schema that is believed.
const maxVersion = 64

type schemaJSON struct {
	Name    string               `json:"name"`
	Version string               `json:"version"`
	Tables  map[string]tableJSON `json:"tables"`
}

type tableJSON struct {
	Columns map[string]columnJSON `json:"columns"`
	IsRoot  bool                  `json:"isRoot"`
	Indexes [][]string            `json:"indexes"`
}

type columnJSON struct {
	Type      jsontext.Value `json:"type"`
	Ephemeral bool           `json:"ephemeral"`
	Mutable   *bool          `json:"mutable"`
}

type typeJSON struct {
	Key   jsontext.Value `json:"key"`
	Value jsontext.Value `json:"value"`
	Min   *int           `json:"min"`
	Max   jsontext.Value `json:"max"`
}

type baseTypeJSON struct {
	Type     string         `json:"type"`
	Enum     jsontext.Value `json:"enum"`
	RefTable string         `json:"refTable"`
	RefType  string         `json:"refType"`
}

// ParseSchema reads a <database-schema>: the result of get_schema, or a
// .ovsschema file.
func ParseSchema(text []byte) (*Schema, error) {
	var in schemaJSON
	if err := json.Unmarshal(text, &in); err != nil {
		return nil, fmt.Errorf("ovsdb: schema: %w", err)
	}
	if strings.Trim(in.Version, "0123456789.") != "" || len(in.Version) > maxVersion {
		return nil, fmt.Errorf("ovsdb: schema %s: its version %s is not of the form 1.2.3", quoteCut(in.Name), quoteCut(in.Version))
	}
	s := &Schema{Name: in.Name, Version: in.Version, Tables: make(map[string]*Table, len(in.Tables))}
	for name, tj := range in.Tables {
		t := &Table{Name: name, Root: tj.IsRoot, Indexes: tj.Indexes, Columns: make(map[string]*Column, len(tj.Columns))}
		for cname, cj := range tj.Columns {
			c, err := parseColumn(cname, cj)
			if err != nil {
				return nil, fmt.Errorf("ovsdb: schema %s: column %s.%s: %w", quoteCut(in.Name), quoteCut(name), quoteCut(cname), err)
			}
			t.Columns[cname] = c
		}
		s.Tables[name] = t
	}
	// Schemas from before the root flag existed never collect rows.
	if !slices.ContainsFunc(slices.Collect(maps.Values(s.Tables)), func(t *Table) bool { return t.Root }) {
		for _, t := range s.Tables {
			t.Root = true
		}
	}
	return s, nil
}

func parseColumn(name string, in columnJSON) (*Column, error) {
	c := &Column{Name: name, Min: 1, Max: 1, Mutable: in.Mutable == nil || *in.Mutable, Ephemeral: in.Ephemeral}
	if in.Type.Kind() == '"' {
		return c, parseBaseType(in.Type, &c.Key)
	}
	var tj typeJSON
	if err := json.Unmarshal(in.Type, &tj); err != nil {
		return nil, err
	}
	if err := parseBaseType(tj.Key, &c.Key); err != nil {
		return nil, err
	}
	if tj.Value != nil {
		if err := parseBaseType(tj.Value, &c.Value); err != nil {
			return nil, err
		}
	}
	if tj.Min != nil {
		c.Min = *tj.Min
	}
	switch {
	case tj.Max == nil:
	case tj.Max.Kind() == '"':
		c.Max = math.MaxInt
	default:
		if err := json.Unmarshal(tj.Max, &c.Max); err != nil {
			return nil, err
		}
	}
	if c.Min < 0 || c.Min > 1 || c.Max < 1 {
		return nil, fmt.Errorf("holds %d to %d elements: the minimum must be 0 or 1, the maximum at least 1", c.Min, c.Max)
	}
	return c, nil
}

func parseBaseType(text jsontext.Value, out *BaseType) error {
	var in baseTypeJSON
	var err error
	if text.Kind() == '"' {
		err = json.Unmarshal(text, &in.Type)
	} else {
		err = json.Unmarshal(text, &in)
	}
	if err != nil {
		return err
	}
	for k := IntegerKind; k <= UUIDKind; k++ {
		if k.String() == in.Type {
			out.Kind = k
		}
	}
	if out.Kind == NoKind {
		return fmt.Errorf("unknown type %s", quoteCut(in.Type))
	}
	out.RefTable, out.Weak = in.RefTable, in.RefType == "weak"
	if in.Enum != nil {
		r := newTextReader(in.Enum)
		c := Column{Key: BaseType{Kind: out.Kind}, Max: math.MaxInt}
		if err := r.value(&c); err != nil {
			return fmt.Errorf("enum: %w", err)
		}
		out.Enum = Value{string(r.values.buf)}
	}
	return nil
}
