package ovsdb

import "math"

// Kind is the type of an atom (RFC 7047 §3.1).
type Kind uint8

// The five atomic types of the protocol, and NamedUUIDKind: the name of a row
// that an Insert of the same transaction creates. No row ever holds the latter.
const (
	NoKind Kind = iota
	IntegerKind
	RealKind
	BooleanKind
	StringKind
	UUIDKind
	NamedUUIDKind
)

func (k Kind) String() string {
	switch k {
	case IntegerKind:
		return "integer"
	case RealKind:
		return "real"
	case BooleanKind:
		return "boolean"
	case StringKind:
		return "string"
	case UUIDKind:
		return "uuid"
	case NamedUUIDKind:
		return "named-uuid"
	}
	return "none"
}

// Value is the value of one column: an immutable set of atoms or map of atoms
// to atoms, where a scalar is a set of one. The zero Value means "no such
// column", which is not the same as an empty set.
//
// Two Values of one column are equal exactly if they are ==. To compare values
// of different origin, an empty set from a row with [EmptySet] say, use
// [Value.Equal].
type Value struct {
	// enc is the canonical form: the kind of the elements or keys, the kind of
	// the map's values (NoKind for a set), then the elements in ascending order
	// without duplicates, for maps each key followed by its value. Atoms are
	// zig-zag varints (integers), 8 bytes (reals), 1 byte (booleans), a varint
	// length and the bytes (strings, names), 16 bytes (uuids).
	//
	// One string per value keeps a replica near the size of its wire form and
	// makes equality a comparison of bytes.
	enc string
}

// emptyMapMark stands where the kind of the map's values would: the map is
// empty and fits maps of any type.
const emptyMapMark = Kind(0xff)

const valueHeader = 2

// Integer returns the value of an integer column.
func Integer(n int64) Value { return Integers(n) }

// Real returns the value of a real column. NaN and infinities cannot be
// expressed in JSON; a transaction that holds one is refused before sending.
func Real(f float64) Value {
	return Value{string(appendAtom([]byte{byte(RealKind), 0}, RealAtom(f)))}
}

// Boolean returns the value of a boolean column.
func Boolean(b bool) Value {
	return Value{string(appendAtom([]byte{byte(BooleanKind), 0}, BooleanAtom(b)))}
}

// String returns the value of a string column.
func String(s string) Value { return Strings(s) }

// Ref returns a reference to the row u.
func Ref(u UUID) Value { return Refs(u) }

// NamedRef returns a reference to the row that the Insert of that Name in the
// same transaction creates.
func NamedRef(name string) Value { return NamedRefs(name) }

// Integers returns a set of integers; order and repetition do not matter.
func Integers(ns ...int64) Value { return setOf(IntegerKind, ns, IntegerAtom) }

// Strings returns a set of strings; order and repetition do not matter.
func Strings(ss ...string) Value { return setOf(StringKind, ss, StringAtom) }

// Refs returns a set of references; order and repetition do not matter.
func Refs(us ...UUID) Value { return setOf(UUIDKind, us, UUIDAtom) }

// NamedRefs returns a set of references to rows that the same transaction
// inserts; order and repetition do not matter.
func NamedRefs(names ...string) Value { return setOf(NamedUUIDKind, names, NamedUUIDAtom) }

func setOf[T any](k Kind, elems []T, atom func(T) Atom) Value {
	var b valueBuilder
	b.begin(k, NoKind)
	for _, e := range elems {
		b.add(atom(e))
	}
	b.finish()
	return Value{string(b.buf)}
}

func mapOf(k, v Kind, pairs []Pair) Value {
	var b valueBuilder
	b.begin(k, v)
	for _, p := range pairs {
		b.add(p.Key, p.Value)
	}
	b.finish()
	return Value{string(b.buf)}
}

// StringMap returns a map of strings to strings, as external_ids is one.
func StringMap(m map[string]string) Value {
	pairs := make([]Pair, 0, len(m))
	for k, v := range m {
		pairs = append(pairs, Pair{StringAtom(k), StringAtom(v)})
	}
	return mapOf(StringKind, StringKind, pairs)
}

// IntegerMap returns a map of strings to integers, as statistics is one.
func IntegerMap(m map[string]int64) Value {
	pairs := make([]Pair, 0, len(m))
	for k, v := range m {
		pairs = append(pairs, Pair{StringAtom(k), IntegerAtom(v)})
	}
	return mapOf(StringKind, IntegerKind, pairs)
}

// MapOf returns a map of atoms to atoms. All keys must have one kind, and so
// must all values; else the result is the zero Value, which a transaction
// refuses. Of several values for one key the last is taken.
func MapOf(pairs ...Pair) Value {
	if len(pairs) == 0 {
		return EmptyMap()
	}
	k, v := pairs[0].Key.kind, pairs[0].Value.kind
	for _, p := range pairs {
		if p.Key.kind != k || p.Value.kind != v {
			return Value{}
		}
	}
	return mapOf(k, v, pairs)
}

// EmptySet returns the set that holds nothing: "not set" for optional columns.
func EmptySet() Value { return Value{"\x00\x00"} }

// EmptyMap returns the map that holds nothing.
func EmptyMap() Value { return Value{string([]byte{0, byte(emptyMapMark)})} }

// Pair is one entry of a map.
type Pair struct{ Key, Value Atom }

// Atom is one element of a set, or a key or value of a map. It is comparable.
type Atom struct {
	kind Kind
	text string // StringKind, NamedUUIDKind
	bits uint64 // IntegerKind, RealKind, BooleanKind
	uuid UUID
}

// IntegerAtom returns an integer atom.
func IntegerAtom(n int64) Atom { return Atom{kind: IntegerKind, bits: uint64(n)} }

// RealAtom returns a real atom. The database knows no negative zero.
func RealAtom(f float64) Atom {
	if f == 0 {
		f = 0
	}
	return Atom{kind: RealKind, bits: math.Float64bits(f)}
}

// BooleanAtom returns a boolean atom.
func BooleanAtom(b bool) Atom {
	a := Atom{kind: BooleanKind}
	if b {
		a.bits = 1
	}
	return a
}

// StringAtom returns a string atom.
func StringAtom(s string) Atom { return Atom{kind: StringKind, text: s} }

// UUIDAtom returns a uuid atom.
func UUIDAtom(u UUID) Atom { return Atom{kind: UUIDKind, uuid: u} }

// NamedUUIDAtom returns the name of a row that the same transaction inserts.
func NamedUUIDAtom(name string) Atom { return Atom{kind: NamedUUIDKind, text: name} }

// Kind returns the type of the atom.
func (a Atom) Kind() Kind { return a.kind }

// Integer returns the integer, or 0 for another kind.
func (a Atom) Integer() int64 {
	if a.kind != IntegerKind {
		return 0
	}
	return int64(a.bits)
}

// Real returns the real, or 0 for another kind.
func (a Atom) Real() float64 {
	if a.kind != RealKind {
		return 0
	}
	return math.Float64frombits(a.bits)
}

// Boolean returns the boolean, or false for another kind.
func (a Atom) Boolean() bool { return a.kind == BooleanKind && a.bits != 0 }

// Text returns the string or the name, or "" for another kind.
func (a Atom) Text() string { return a.text }

// UUID returns the uuid, or the zero UUID for another kind.
func (a Atom) UUID() UUID { return a.uuid }
