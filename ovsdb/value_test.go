package ovsdb

import (
	"bytes"
	"math"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func column(key, val Kind, min, max int) *Column {
	return &Column{Name: "c", Key: BaseType{Kind: key}, Value: BaseType{Kind: val}, Min: min, Max: max}
}

func decodeValue(text string, c *Column) (Value, error) {
	r := newReader(strings.NewReader(text), int64(len(text))+1)
	if err := r.value(c); err != nil {
		return Value{}, err
	}
	return Value{string(r.values.buf)}, nil
}

func TestDecodeValue(t *testing.T) {
	const u = "12345678-9abc-def0-1234-56789abcdef0"
	uuid, err := ParseUUID(strings.ToUpper(u))
	if err != nil {
		t.Fatal(err)
	}
	set, one := math.MaxInt, 1
	for _, tt := range []struct {
		text     string
		key, val Kind
		max      int
		want     Value
		err      string
	}{
		{`9223372036854775807`, IntegerKind, 0, one, Integer(math.MaxInt64), ""},
		{`-9223372036854775808`, IntegerKind, 0, one, Integer(math.MinInt64), ""},
		{`9223372036854775808`, IntegerKind, 0, one, Value{}, "64 bits"},
		{`9007199254740993`, IntegerKind, 0, one, Integer(1<<53 + 1), ""},
		{`1e3`, IntegerKind, 0, one, Integer(1000), ""},
		{`5.0`, IntegerKind, 0, one, Integer(5), ""},
		{`5.5`, IntegerKind, 0, one, Value{}, "64 bits"},
		{`1e999999999`, IntegerKind, 0, one, Value{}, "64 bits"},
		{`"5"`, IntegerKind, 0, one, Value{}, "belongs"},
		{`null`, IntegerKind, 0, one, Value{}, "belongs"},
		{`5`, RealKind, 0, one, Real(5), ""},
		{`-0`, RealKind, 0, one, Real(0), ""},
		{`1e400`, RealKind, 0, one, Value{}, "64 bits"},
		{`true`, BooleanKind, 0, one, Boolean(true), ""},
		{`1`, BooleanKind, 0, one, Value{}, "belongs"},
		{`"a\"\u00e9\n"`, StringKind, 0, one, String("a\"é\n"), ""},
		{`5`, StringKind, 0, one, Value{}, "belongs"},
		{`["uuid","` + u + `"]`, UUIDKind, 0, one, Ref(uuid), ""},
		{`["uuid","` + u[1:] + `"]`, UUIDKind, 0, one, Value{}, "not a uuid"},
		{`["uuid","` + u + `",1]`, UUIDKind, 0, one, Value{}, "longer"},
		{`["named-uuid","x"]`, UUIDKind, 0, one, Value{}, "named-uuid"},
		{`["set",[]]`, IntegerKind, 0, set, Integers(), ""},
		{`["set",[3,1,2,1]]`, IntegerKind, 0, set, Integers(1, 2, 3), ""},
		{`["set",["b","","aa"]]`, StringKind, 0, set, Strings("", "aa", "b"), ""},
		{`["set",[["uuid","` + u + `"]]]`, UUIDKind, 0, set, Refs(uuid), ""},
		{`7`, IntegerKind, 0, set, Integers(7), ""},
		{`["map",[]]`, IntegerKind, 0, set, Value{}, "belong"},
		{`["set",[1,[2]]]`, IntegerKind, 0, set, Value{}, "belongs"},
		{`["set"]`, IntegerKind, 0, set, Value{}, "belongs"},
		{`[]`, IntegerKind, 0, set, Value{}, "belongs"},
		{`{}`, IntegerKind, 0, set, Value{}, "belongs"},
		{`["map",[["b","2"],["a","1"]]]`, StringKind, StringKind, set, StringMap(map[string]string{"a": "1", "b": "2"}), ""},
		{`["map",[["a",1],["a",2]]]`, StringKind, IntegerKind, set, IntegerMap(map[string]int64{"a": 2}), ""},
		{`["map",[["a"]]]`, StringKind, IntegerKind, set, Value{}, "belongs"},
		{`["map",[["a",1,2]]]`, StringKind, IntegerKind, set, Value{}, "longer"},
		{`["set",[]]`, StringKind, IntegerKind, set, Value{}, "belong"},
		{`"x"`, StringKind, IntegerKind, set, Value{}, "belongs"},
		{`["map",[[0,["uuid","` + u + `"]]]]`, IntegerKind, UUIDKind, set, MapOf(Pair{IntegerAtom(0), UUIDAtom(uuid)}), ""},
	} {
		got, err := decodeValue(tt.text, column(tt.key, tt.val, 0, tt.max))
		if tt.err == "" && (err != nil || got != tt.want) {
			t.Errorf("%s: got %v, %v; want %v", tt.text, got, err, tt.want)
		}
		if tt.err != "" && (!isContentError(err) || !strings.Contains(err.Error(), tt.err)) {
			t.Errorf("%s: got %v, %v; want an error about %q", tt.text, got, err, tt.err)
		}
	}
}

func TestAccessors(t *testing.T) {
	u := UUID{1}
	m := StringMap(map[string]string{"b": "2", "a": "1"})
	for _, tt := range []struct{ got, want any }{
		{first(Integer(-3).AsInteger()), int64(-3)},
		{first(Integers(1, 2).AsInteger()), int64(0)},
		{first(String("x").AsInteger()), int64(0)},
		{first(Real(1.5).AsReal()), 1.5},
		{first(Boolean(true).AsBoolean()), true},
		{first(String("").AsString()), ""},
		{first(Ref(u).AsUUID()), u},
		{Strings("b", "a", "b").AsStrings(), []string{"a", "b"}},
		{Strings().AsStrings(), []string(nil)},
		{Integers(3, -1).AsIntegers(), []int64{-1, 3}},
		{Refs(u).AsUUIDs(), []UUID{u}},
		{m.AsStrings(), []string(nil)},
		{m.AsStringMap(), map[string]string{"a": "1", "b": "2"}},
		{m.AsIntegerMap(), map[string]int64(nil)},
		{IntegerMap(map[string]int64{"x": -5}).AsIntegerMap(), map[string]int64{"x": -5}},
		{first(m.Lookup(StringAtom("b"))), StringAtom("2")},
		{m.Contains(StringAtom("c")), false},
		{Strings("a").Contains(StringAtom("a")), true},
		{m.Len(), 2},
		{Value{}.Len(), 0},
		{Value{}.IsAbsent(), true},
		{EmptySet().IsAbsent(), false},
		{EmptySet().Equal(Integers()), true},
		{EmptySet().Equal(EmptyMap()), false},
		{EmptyMap().Equal(StringMap(nil)), true},
		{EmptySet().Equal(Value{}), false},
		{MapOf(Pair{StringAtom("a"), IntegerAtom(1)}, Pair{IntegerAtom(1), IntegerAtom(1)}).IsAbsent(), true},
		{MapOf().Equal(EmptyMap()), true},
		{m.String(), `{"a"="1", "b"="2"}`},
		{Strings("x", "y").String(), `["x", "y"]`},
		{Integer(4).String(), "4"},
		{EmptySet().String(), "[]"},
		{NamedRef("r").String(), "@r"},
		{Ref(u).String(), "01000000-0000-0000-0000-000000000000"},
	} {
		if !reflect.DeepEqual(tt.got, tt.want) {
			t.Errorf("got %#v, want %#v", tt.got, tt.want)
		}
	}
}

func first[T any](v T, _ bool) T { return v }

func genAtom(k Kind) *rapid.Generator[Atom] {
	switch k {
	case IntegerKind:
		return rapid.Map(rapid.Int64(), IntegerAtom)
	case RealKind:
		return rapid.Map(rapid.Float64(), RealAtom)
	case BooleanKind:
		return rapid.Map(rapid.Bool(), BooleanAtom)
	case StringKind:
		return rapid.Map(rapid.StringOfN(rapid.RuneFrom([]rune{'a', 'b', '"', '\\', 'é', '\n', '😀'}), 0, 5, -1), StringAtom)
	}
	return rapid.Map(rapid.SliceOfN(rapid.Byte(), 16, 16), func(b []byte) Atom { return UUIDAtom(UUID(b)) })
}

func genKind() *rapid.Generator[Kind] {
	return rapid.SampledFrom([]Kind{IntegerKind, RealKind, BooleanKind, StringKind, UUIDKind})
}

// model is a value as a map, with the zero Atom for the values of a set.
type model map[Atom]Atom

func genModel(t *rapid.T, key, val Kind) model {
	m := make(model)
	// Few different keys, so that values overlap.
	keys := rapid.SliceOfNDistinct(genAtom(key), 0, 6, rapid.ID).Draw(t, "keys")
	for _, k := range keys {
		if val == NoKind {
			m[k] = Atom{}
		} else {
			m[k] = genAtom(val).Draw(t, "value")
		}
	}
	return m
}

func (m model) value(key, val Kind) Value {
	var b valueBuilder
	b.begin(key, val)
	for k, v := range m { // in random order
		if val == NoKind {
			b.add(k)
		} else {
			b.add(k, v)
		}
	}
	b.finish()
	return Value{string(b.buf)}
}

func TestValueProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		key := genKind().Draw(t, "key")
		val := NoKind
		if rapid.Bool().Draw(t, "map") {
			val = genKind().Draw(t, "val")
		}
		c := column(key, val, 0, math.MaxInt)
		x, y := genModel(t, key, val), genModel(t, key, val)
		for k := range x { // let the values share keys, with equal values or not
			switch rapid.IntRange(0, 2).Draw(t, "share") {
			case 0:
				y[k] = x[k]
			case 1:
				if val != NoKind {
					y[k] = genAtom(val).Draw(t, "other")
				}
			}
		}
		old, diff := x.value(key, val), y.value(key, val)
		if old.Len() != len(x) || old != x.value(key, val) {
			t.Fatalf("%v is not canonical", old)
		}

		text, err := appendValue(nil, old)
		if err != nil {
			t.Fatal(err)
		}
		if back, err := decodeValue(string(text), c); err != nil || back != old {
			t.Fatalf("%v became %s became %v: %v", old, text, back, err)
		}

		want := make(model)
		for k, v := range x {
			want[k] = v
		}
		for k, v := range y {
			if w, there := want[k]; there && w == v {
				delete(want, k)
			} else {
				want[k] = v
			}
		}
		var b valueBuilder
		b.buf = []byte("before")
		applyDiff(&b, old, diff)
		got := Value{string(b.buf[len("before"):])}
		if got != want.value(key, val) || b.count != len(want) {
			t.Fatalf("%v changed by %v is %v (%d), want %v", old, diff, got, b.count, want.value(key, val))
		}
	})
}

func TestDefaults(t *testing.T) {
	for _, tt := range []struct {
		c    *Column
		want Value
	}{
		{column(StringKind, NoKind, 1, 1), String("")},
		{column(UUIDKind, NoKind, 1, 1), Ref(UUID{})},
		{column(IntegerKind, NoKind, 1, 1), Integer(0)},
		{column(RealKind, NoKind, 1, 1), Real(0)},
		{column(BooleanKind, NoKind, 1, 1), Boolean(false)},
		{column(StringKind, NoKind, 0, 1), Strings()},
		{column(StringKind, IntegerKind, 0, 9), IntegerMap(nil)},
		{column(StringKind, IntegerKind, 1, 9), IntegerMap(map[string]int64{"": 0})},
	} {
		if got := tt.c.defaultValue(); got != tt.want {
			t.Errorf("%+v: %v, want %v", tt.c, got, tt.want)
		}
	}
}

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

func TestUUID(t *testing.T) {
	for _, s := range []string{"", "12345678-9abc-def0-1234-56789abcdef", "12345678-9abc-def0-1234-56789abcdefg", "123456789-abc-def0-1234-56789abcdef0", strings.Repeat("x", 1000)} {
		if u, err := ParseUUID(s); err == nil || len(err.Error()) > 400 {
			t.Errorf("%s: %v, %v", s, u, err)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		u := UUID(rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, "uuid"))
		if back, err := ParseUUID(u.String()); err != nil || back != u {
			t.Fatalf("%v became %v: %v", u, back, err)
		}
		v := UUID(rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, "other"))
		if u.Compare(v) != strings.Compare(u.String(), v.String()) {
			t.Fatalf("%v and %v have another order than their text", u, v)
		}
	})
}

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

func TestParseSchema(t *testing.T) {
	for text, want := range map[string]string{
		`{`:  "schema",
		`[]`: "schema",
		`{"tables":{"T":{"columns":{"c":{"type":"color"}}}}}`:                                                "unknown type",
		`{"tables":{"T":{"columns":{"c":{"type":{"key":"integer","min":2}}}}}}`:                              "minimum",
		`{"tables":{"T":{"columns":{"c":{"type":{"key":"integer","max":0}}}}}}`:                              "minimum",
		`{"tables":{"T":{"columns":{"c":{"type":{"key":"integer","max":[]}}}}}}`:                             `column "T"."c"`,
		`{"tables":{"T":{"columns":{"c":{}}}}}`:                                                              `column "T"."c"`,
		`{"tables":{"T":{"columns":{"c":{"type":{"key":{"type":"string","enum":["set",["a",1]]}}}}}}}`:       "enum",
		`{"tables":{"T":{"columns":{"c":{"type":{"key":{"type":"string","enum":["set",["a"]]},"max":1}}}}}}`: "",
	} {
		s, err := ParseSchema([]byte(text))
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v, %v", text, s, err)
		}
		if err == nil && (s.Tables["T"].Columns["c"].Key.Enum != Strings("a") || !s.Tables["T"].Root) {
			t.Errorf("%+v", s.Tables["T"])
		}
	}
}
