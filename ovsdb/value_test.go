package ovsdb

import (
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
