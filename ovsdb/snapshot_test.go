package ovsdb

import (
	"bytes"
	"fmt"
	"testing"

	"pgregory.net/rapid"
)

// replicaOf returns the draft of a replica of one table with an index.
func replicaOf(t testing.TB) *draft {
	schema, err := ParseSchema([]byte(`{"name":"db","version":"1.0.0","tables":{"T":{"columns":{
		"name":{"type":"string"},"n":{"type":"integer"},"set":{"type":{"key":"string","min":0,"max":"unlimited"}},
		"map":{"type":{"key":"string","value":"integer","min":0,"max":"unlimited"}},
		"ref":{"type":{"key":{"type":"uuid","refTable":"T","refType":"weak"},"min":0,"max":1}}}}}}`))
	if err != nil {
		t.Fatal(err)
	}
	spec := &MonitorSpec{Tables: []TableSpec{{
		Table: "T", Columns: []string{"name", "n", "set", "map", "ref"}, OptionalColumns: []string{"absent"},
		Indexes: [][]string{{"name"}, {"n", "name"}},
	}}}
	c, err := newContents(schema, spec, nil)
	if err != nil {
		t.Fatal(err)
	}
	return newDraft(newSnapshot(c), true)
}

// checkSnapshot compares a snapshot's indexes with its rows.
func checkSnapshot(t interface{ Fatalf(string, ...any) }, s *Snapshot) {
	n := 0
	for r := range s.Rows("T") {
		n++
		if s.Row("T", r.UUID()) != r {
			t.Fatalf("row %v is not found", r.UUID())
		}
		for _, columns := range [][]string{{"name"}, {"n", "name"}} {
			values := make([]Value, len(columns))
			for i, c := range columns {
				values[i] = r.Get(c)
			}
			found, all := 0, 0
			for x := range s.FindAll("T", columns, values) {
				if x == r {
					found++
				}
				all++
			}
			slow := 0
			for x := range s.Rows("T") {
				same := true
				for i, c := range columns {
					same = same && x.Get(c) == values[i]
				}
				if same {
					slow++
				}
			}
			if found != 1 || all != slow {
				t.Fatalf("index %v finds %d rows instead of %d, and the row itself %d times", columns, all, slow, found)
			}
		}
	}
	for i := range s.tables {
		if s.tables[i].rows.size != n || s.Len("T") != n {
			t.Fatalf("%d rows, counted %d", n, s.tables[i].rows.size)
		}
		for j := range s.tables[i].indexes {
			if s.tables[i].indexes[j].size != n {
				t.Fatalf("index %d has %d of %d rows", j, s.tables[i].indexes[j].size, n)
			}
		}
	}
}

// Random changes to a replica against a plain map; older snapshots stay as they
// were.
func TestSnapshotProperties(t *testing.T) {
	empty := replicaOf(t).next
	lay := empty.contents.tables[0].layout
	rapid.Check(t, func(t *rapid.T) {
		type moment struct {
			s    *Snapshot
			rows map[UUID]*Row
		}
		moments := []moment{{empty, map[UUID]*Row{}}}
		for range rapid.IntRange(1, 8).Draw(t, "updates") {
			last := moments[len(moments)-1]
			d := newDraft(last.s, true)
			rows := make(map[UUID]*Row)
			for u, r := range last.rows {
				rows[u] = r
			}
			for range rapid.IntRange(0, 10).Draw(t, "rows") {
				// UUIDs that share long beginnings make deep trees.
				var u UUID
				u[rapid.SampledFrom([]int{0, 7, 15}).Draw(t, "byte")] = rapid.ByteRange(0, 17).Draw(t, "uuid")
				old := rows[u]
				if old != nil && rapid.Bool().Draw(t, "delete") {
					d.put(0, old, nil)
					delete(rows, u)
					continue
				}
				values := append([]Value(nil), lay.defaults...)
				values[0] = String(rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "name"))
				values[1] = Integer(rapid.Int64Range(0, 2).Draw(t, "n"))
				rows[u] = &Row{layout: lay, uuid: u, values: values}
				d.put(0, old, rows[u])
			}
			moments = append(moments, moment{d.next, rows})
		}
		for _, m := range moments {
			checkSnapshot(t, m.s)
			if m.s.Len("T") != len(m.rows) {
				t.Fatalf("%d rows, want %d", m.s.Len("T"), len(m.rows))
			}
			for u, r := range m.rows {
				if m.s.Row("T", u) != r {
					t.Fatalf("row %v differs", u)
				}
			}
		}
		a := moments[rapid.IntRange(0, len(moments)-1).Draw(t, "from")]
		b := moments[rapid.IntRange(0, len(moments)-1).Draw(t, "to")]
		changes := Diff(a.s, b.s)
		got := make(map[UUID]*Row)
		for u, r := range a.rows {
			got[u] = r
		}
		var before UUID
		for i, c := range changes {
			if i > 0 && c.UUID.Compare(before) <= 0 {
				t.Fatalf("changes are not in order")
			}
			before = c.UUID
			if got[c.UUID] != c.Old || c.Old != nil && c.New != nil && c.Old.equal(c.New) {
				t.Fatalf("change %+v", c)
			}
			if got[c.UUID] = c.New; c.New == nil {
				delete(got, c.UUID)
			}
		}
		if len(got) != len(b.rows) {
			t.Fatalf("the difference leads to %d rows, not %d", len(got), len(b.rows))
		}
		for u, r := range b.rows {
			if got[u] == nil || !got[u].equal(r) {
				t.Fatalf("the difference leads to another row %v", u)
			}
		}
	})
}

// BenchmarkApplyUpdate measures what one update of one row costs a replica of
// 5,000 rows, without the server: decoding, the new snapshot, and its index.
func BenchmarkApplyUpdate(b *testing.B) {
	d := replicaOf(b)
	lay := d.next.contents.tables[0].layout
	var rows []UUID
	for i := range 5000 {
		row := &Row{layout: lay, uuid: UUID{byte(i >> 8), byte(i), 7}, values: append([]Value(nil), lay.defaults...)}
		row.values[0] = String(fmt.Sprint("port", i))
		rows = append(rows, row.uuid)
		d.put(0, nil, row)
	}
	snap := d.next
	var text []byte
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		i++
		text = fmt.Appendf(text[:0], `{"T":{"%v":{"modify":{"n":%d,"map":["map",[["rx_bytes",%d],["tx_bytes",%d]]]}}}}`, rows[i%len(rows)], i, i, i)
		d := newDraft(snap, true)
		if err := newReader(bytes.NewReader(text), 1<<20).tableUpdates(d, formatCond); err != nil {
			b.Fatal(err)
		}
		snap = d.next
	}
}
