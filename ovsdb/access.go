package ovsdb

import (
	"iter"
	"strconv"
	"strings"
)

func (v Value) kinds() (key, val Kind) {
	if v.enc == "" {
		return NoKind, NoKind
	}
	return Kind(v.enc[0]), Kind(v.enc[1])
}

func (v Value) body() string {
	if v.enc == "" {
		return ""
	}
	return v.enc[valueHeader:]
}

// IsAbsent tells whether v is the zero Value: the row has no such column.
func (v Value) IsAbsent() bool { return v.enc == "" }

// IsMap tells whether v is a map.
func (v Value) IsMap() bool {
	_, val := v.kinds()
	return val != NoKind
}

// Len returns the number of elements or map entries; 0 for the zero Value.
func (v Value) Len() int {
	key, val := v.kinds()
	n := 0
	for range rawElements(key, val, v.body()) {
		n++
	}
	return n
}

// Equal tells whether v and w hold the same elements. Two empty sets are equal
// whatever their type, and so are two empty maps.
func (v Value) Equal(w Value) bool {
	if v.enc == w.enc {
		return true
	}
	return v.enc != "" && w.enc != "" && v.body() == "" && w.body() == "" && v.IsMap() == w.IsMap()
}

// Atoms yields the elements of a set, or the keys of a map, in ascending order.
func (v Value) Atoms() iter.Seq[Atom] {
	return func(yield func(Atom) bool) {
		key, val := v.kinds()
		for elem := range rawElements(key, val, v.body()) {
			if a, _ := readAtom(key, elem); !yield(a) {
				return
			}
		}
	}
}

// Pairs yields the entries of a map in ascending order of their keys, and
// nothing for a set.
func (v Value) Pairs() iter.Seq2[Atom, Atom] {
	return func(yield func(Atom, Atom) bool) {
		key, val := v.kinds()
		if val == NoKind {
			return
		}
		for elem := range rawElements(key, val, v.body()) {
			k, n := readAtom(key, elem)
			a, _ := readAtom(val, elem[n:])
			if !yield(k, a) {
				return
			}
		}
	}
}

// only returns the element of a set that holds exactly one, of kind k.
func (v Value) only(k Kind) (Atom, bool) {
	key, val := v.kinds()
	if key != k || val != NoKind {
		return Atom{}, false
	}
	body := v.body()
	if body == "" || atomSize(k, body) != len(body) {
		return Atom{}, false
	}
	a, _ := readAtom(k, body)
	return a, true
}

// AsInteger returns the integer of a column that holds one; false if it holds
// none, several, or another type.
func (v Value) AsInteger() (int64, bool) {
	a, ok := v.only(IntegerKind)
	return a.Integer(), ok
}

// AsReal returns the real of a column that holds one; false if it holds none,
// several, or another type.
func (v Value) AsReal() (float64, bool) {
	a, ok := v.only(RealKind)
	return a.Real(), ok
}

// AsBoolean returns the boolean of a column that holds one; false for ok if it
// holds none, several, or another type.
func (v Value) AsBoolean() (b, ok bool) {
	a, ok := v.only(BooleanKind)
	return a.Boolean(), ok
}

// AsString returns the string of a column that holds one; false if it holds
// none, several, or another type.
func (v Value) AsString() (string, bool) {
	a, ok := v.only(StringKind)
	return a.Text(), ok
}

// AsUUID returns the reference of a column that holds one; false if it holds
// none, several, or another type.
func (v Value) AsUUID() (UUID, bool) {
	a, ok := v.only(UUIDKind)
	return a.UUID(), ok
}

// AsIntegers returns the elements of a set of integers, ascending; nil if it is
// empty or of another type.
func (v Value) AsIntegers() []int64 { return elements(v, IntegerKind, Atom.Integer) }

// AsStrings returns the elements of a set of strings, ascending; nil if it is
// empty or of another type.
func (v Value) AsStrings() []string { return elements(v, StringKind, Atom.Text) }

// AsUUIDs returns the elements of a set of references, ascending; nil if it is
// empty or of another type.
func (v Value) AsUUIDs() []UUID { return elements(v, UUIDKind, Atom.UUID) }

func elements[T any](v Value, k Kind, get func(Atom) T) []T {
	if key, val := v.kinds(); key != k || val != NoKind || v.body() == "" {
		return nil
	}
	out := make([]T, 0, v.Len())
	for a := range v.Atoms() {
		out = append(out, get(a))
	}
	return out
}

// AsStringMap returns a map of strings to strings; nil if it is empty or of
// another type. The caller owns it.
func (v Value) AsStringMap() map[string]string { return entries(v, StringKind, Atom.Text) }

// AsIntegerMap returns a map of strings to integers; nil if it is empty or of
// another type. The caller owns it.
func (v Value) AsIntegerMap() map[string]int64 { return entries(v, IntegerKind, Atom.Integer) }

func entries[T any](v Value, k Kind, get func(Atom) T) map[string]T {
	if key, val := v.kinds(); key != StringKind || val != k || v.body() == "" {
		return nil
	}
	out := make(map[string]T, v.Len())
	for key, a := range v.Pairs() {
		out[key.Text()] = get(a)
	}
	return out
}

// Lookup returns what a map holds for key.
func (v Value) Lookup(key Atom) (Atom, bool) {
	for k, a := range v.Pairs() {
		if k == key {
			return a, true
		}
	}
	return Atom{}, false
}

// Contains tells whether key is an element of a set or a key of a map.
func (v Value) Contains(key Atom) bool {
	for a := range v.Atoms() {
		if a == key {
			return true
		}
	}
	return false
}

// String writes v as ovs-vsctl does: a bare atom, [a, b] or {k=v, k=v}.
func (v Value) String() string {
	var b strings.Builder
	switch {
	case v.IsAbsent():
		return "(no such column)"
	case v.IsMap():
		b.WriteByte('{')
		for k, a := range v.Pairs() {
			if b.Len() > 1 {
				b.WriteString(", ")
			}
			b.WriteString(k.String() + "=" + a.String())
		}
		b.WriteByte('}')
		return b.String()
	}
	n := 0
	for a := range v.Atoms() {
		if n > 0 {
			b.WriteString(", ")
		}
		b.WriteString(a.String())
		n++
	}
	if n == 1 {
		return b.String()
	}
	return "[" + b.String() + "]"
}

// String writes strings quoted, and everything else bare.
func (a Atom) String() string {
	switch a.kind {
	case IntegerKind:
		return strconv.FormatInt(a.Integer(), 10)
	case RealKind:
		return strconv.FormatFloat(a.Real(), 'g', -1, 64)
	case BooleanKind:
		return strconv.FormatBool(a.Boolean())
	case StringKind:
		return strconv.Quote(a.text)
	case UUIDKind:
		return a.uuid.String()
	case NamedUUIDKind:
		return "@" + a.text
	}
	return "(nothing)"
}
