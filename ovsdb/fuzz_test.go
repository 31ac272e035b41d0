package ovsdb

import (
	"bytes"
	"math"
	"strings"
	"testing"
)

type deafPeer struct{}

func (deafPeer) notification(_ string, r *reader) error { return r.dec.SkipValue() }
func (deafPeer) stray()                                 {}

func FuzzMessage(f *testing.F) {
	for _, s := range []string{
		`{"id":1,"result":[{"uuid":["uuid","12345678-9abc-def0-1234-56789abcdef0"]},{"rows":[{"name":"a","n":1}]},{"count":1}],"error":null}`,
		`{"result":[{"error":"x","details":"y"},null],"id":1,"error":null}`,
		`{"id":1,"error":{"error":"unknown database","details":"d"}}{"id":1,"error":"unknown method"}`,
		`{"id":null,"method":"update2","params":[1,{}]}`, `{"method":"echo","params":[],"id":"echo"}`, `{}[]`,
	} {
		f.Add(s)
	}
	schema := &Schema{Name: "db", Tables: map[string]*Table{"T": {Name: "T", Root: true, Columns: map[string]*Column{
		"name": column(StringKind, NoKind, 1, 1), "n": column(IntegerKind, NoKind, 0, 1)}}}}
	ops := []Op{Insert{Table: "T"}, Select{Table: "T"}, Delete{Table: "T"}}
	f.Fuzz(func(t *testing.T, s string) {
		c := &conn{peer: deafPeer{}, pending: make(map[uint64]*call), wake: make(chan struct{}, 1)}
		c.in = newReader(strings.NewReader(s), 1<<20)
		answers := 0
		k := &call{
			method: "transact",
			result: func(r *reader) error {
				out, refused, err := r.results(schema, ops)
				if err == nil && refused == nil && len(out) != len(ops) {
					t.Errorf("%d results", len(out))
				}
				return err
			},
			done: func(error) { answers++ },
		}
		c.pending[1] = k
		for i := 0; c.readMessage() == nil; i++ {
			c.in.nextMessage()
		}
		if answers > 1 {
			t.Errorf("one call was answered %d times", answers)
		}
	})
}

func FuzzUpdate(f *testing.F) {
	const u = `"00000000-0000-0000-0000-00000000000`
	for _, s := range []string{
		`{"T":{` + u + `1":{"initial":{"name":"a","n":1,"set":["set",["x","y"]],"map":["map",[["k",1]]]}}}}`,
		`{"T":{` + u + `1":{"modify":{"set":["set",["x","z"]],"map":["map",[["k",1],["l",2]]],"ref":["set",[]]}}}}`,
		`{"T":{` + u + `1":{"delete":null},` + u + `2":{"insert":{"ref":["uuid",` + u + `1"]}}}}`,
		`{"T":{` + u + `1":{"old":{"n":1},"new":{"n":2}},` + u + `2":{"new":{}}}}`,
		`{"T":{` + u + `1":{"old":{"n":1}}}}`, `{"T":{"x":{}}}`, `{"U":{}}`,
	} {
		f.Add(s, true)
		f.Add(s, false)
	}
	const base = `{"T":{` + u + `1":{"initial":{"name":"a","set":["set",["x","y"]],"map":["map",[["k",1]]]}}}}`
	f.Fuzz(func(t *testing.T, s string, rfc bool) {
		format := formatCond
		if rfc {
			format = formatRFC
		}
		d := replicaOf(t)
		if err := newReader(strings.NewReader(base), 1<<20).tableUpdates(d, formatCond); err != nil {
			t.Fatal(err)
		}
		before := d.next
		d = newDraft(before, true)
		if newReader(strings.NewReader(s), 1<<20).tableUpdates(d, format) == nil {
			checkSnapshot(t, d.next)
		}
		checkSnapshot(t, before)
		if before.Len("T") != 1 {
			t.Error("an older snapshot has changed")
		}
	})
}

func FuzzValue(f *testing.F) {
	for _, s := range []string{`1`, `"a"`, `["set",[1,2]]`, `["map",[["a",1]]]`, `["uuid","12345678-9abc-def0-1234-56789abcdef0"]`, `1e400`, `[[`} {
		for k := range byte(5) {
			f.Add(s, k, k)
		}
	}
	f.Fuzz(func(t *testing.T, s string, key, val byte) {
		c := column(IntegerKind+Kind(key%5), Kind(val%6), 0, math.MaxInt)
		v, err := decodeValue(s, c)
		if err != nil {
			return
		}
		text, err := appendValue(nil, v)
		if err != nil {
			return // U+0000 is read but not written
		}
		if back, err := decodeValue(string(text), c); err != nil || back != v {
			t.Errorf("%s was read as %v, which was written as %s and read as %v: %v", s, v, text, back, err)
		}
	})
}

func FuzzSchema(f *testing.F) {
	f.Add([]byte(`{"name":"db","version":"1.0.0","tables":{"T":{"isRoot":true,"indexes":[["n"]],"columns":{"n":{"type":"integer","mutable":false},
		"s":{"type":{"key":{"type":"string","enum":["set",["a","b"]]},"min":0,"max":"unlimited"},"ephemeral":true},
		"m":{"type":{"key":"string","value":{"type":"uuid","refTable":"T"},"min":0,"max":2}}}}}}`))
	f.Add([]byte(`{"tables":{"T":{"columns":{"c":{"type":{"key":"integer","max":0}}}}}}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		s, err := ParseSchema(bytes.Clone(text))
		if err != nil {
			return
		}
		for _, table := range s.Tables {
			for name, c := range table.Columns {
				if err := c.check(c.defaultValue()); err != nil {
					t.Errorf("column %s: its own default %v", name, err)
				}
			}
		}
	})
}
