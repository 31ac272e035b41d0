package ovsdb

import (
	"fmt"
	"iter"
)

// checkVanishing finds an Insert whose row the server would delete at commit,
// with success, because nothing refers to it: its table is not a root, and only
// operations of the same transaction can know the row.
func checkVanishing(schema *Schema, ops []Op) error {
	var referred map[string]bool
	for i, op := range ops {
		in, ok := op.(Insert)
		if !ok {
			continue
		}
		if t, err := schema.table(in.Table); err != nil || t.Root {
			continue // what is wrong with the table is told elsewhere
		}
		if referred == nil {
			referred = make(map[string]bool)
			for _, op := range ops {
				for name := range namedRefs(schema, op) {
					referred[name] = true
				}
			}
		}
		if !referred[in.Name] {
			return fmt.Errorf("ovsdb: operation %d (insert %s) not sent: no operation of the transaction refers to the row, so the server would delete it at commit; give it a Name and put a NamedRef to it into a row that stays", i, in.Table)
		}
	}
	return nil
}

// namedRefs yields the names that an operation puts into columns whose
// references keep rows alive.
func namedRefs(schema *Schema, op Op) iter.Seq[string] {
	return func(yield func(string) bool) {
		visit := func(table, column string, v Value) bool {
			t, err := schema.table(table)
			if err != nil {
				return true
			}
			c, err := schema.column(t, column)
			if err != nil {
				return true
			}
			for k := range v.Atoms() {
				if k.Kind() == NamedUUIDKind && !c.Key.Weak && !yield(k.Text()) {
					return false
				}
			}
			for _, a := range v.Pairs() {
				if a.Kind() == NamedUUIDKind && !c.Value.Weak && !yield(a.Text()) {
					return false
				}
			}
			return true
		}
		switch o := op.(type) {
		case Insert:
			for column, v := range o.Row {
				if !visit(o.Table, column, v) {
					return
				}
			}
		case Update:
			for column, v := range o.Row {
				if !visit(o.Table, column, v) {
					return
				}
			}
		case Mutate:
			for _, m := range o.Mutations {
				if m.Mutator == MutateInsert && !visit(o.Table, m.Column, m.Value) {
					return
				}
			}
		}
	}
}
