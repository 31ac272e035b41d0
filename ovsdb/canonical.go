package ovsdb

import (
	"cmp"
	"encoding/binary"
	"math"
	"slices"
)

// This file owns the canonical form of a value that [Value] describes.

// valueBuilder writes one value after another into buf. The server's values
// mostly arrive in order, so order is checked on the way and made only if need
// be.
type valueBuilder struct {
	buf      []byte
	start    int // of the current value in buf
	prev     int // start of the element before, -1 if none
	count    int
	unsorted bool
	key, val Kind
}

// begin starts a value; val is NoKind for a set.
func (b *valueBuilder) begin(key, val Kind) {
	b.start = len(b.buf)
	b.prev, b.count, b.unsorted = -1, 0, false
	b.key, b.val = key, val
	b.buf = append(b.buf, byte(key), byte(val))
}

// add appends one element: an atom, or a key and its value.
func (b *valueBuilder) add(atoms ...Atom) {
	at := len(b.buf)
	for _, a := range atoms {
		b.buf = appendAtom(b.buf, a)
	}
	b.added(at)
}

// addRaw appends one element that is in canonical form already.
func (b *valueBuilder) addRaw(elem string) {
	at := len(b.buf)
	b.buf = append(b.buf, elem...)
	b.added(at)
}

// added accounts for the element that buf holds from at on.
func (b *valueBuilder) added(at int) {
	if b.prev >= 0 && compareAtoms(b.key, b.buf[b.prev:], b.buf[at:]) >= 0 {
		b.unsorted = true
	}
	b.prev = at
	b.count++
}

// finish completes the current value: the elements in order, each once. Of map
// entries with equal keys the last one stays.
func (b *valueBuilder) finish() {
	if !b.unsorted {
		return
	}
	body := string(b.buf[b.start+valueHeader:])
	elems := make([]string, 0, b.count)
	for elem := range rawElements(b.key, b.val, body) {
		elems = append(elems, elem)
	}
	slices.SortStableFunc(elems, func(x, y string) int { return compareAtoms(b.key, x, y) })
	b.buf = b.buf[:b.start+valueHeader]
	b.count = 0
	for i, elem := range elems {
		if i+1 < len(elems) && compareAtoms(b.key, elem, elems[i+1]) == 0 {
			continue
		}
		b.buf = append(b.buf, elem...)
		b.count++
	}
}

// rawElements yields each element of a value's body, with its map value if val
// is not NoKind.
func rawElements(key, val Kind, body string) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		for body != "" {
			n := elementSize(key, val, body)
			if !yield(body[:n]) {
				return
			}
			body = body[n:]
		}
	}
}

// encoded is canonical bytes, finished or in a builder's buffer.
type encoded interface{ string | []byte }

// uvarint reads a number that AppendUvarint wrote, and its size.
func uvarint[E encoded](s E) (n uint64, size int) {
	for shift := 0; ; shift += 7 {
		c := s[size]
		size++
		n |= uint64(c&0x7f) << shift
		if c < 0x80 {
			return n, size
		}
	}
}

func varint[E encoded](s E) int64 {
	u, _ := uvarint(s)
	return int64(u>>1) ^ -int64(u&1)
}

func beUint64[E encoded](s E) (n uint64) {
	for i := range 8 {
		n = n<<8 | uint64(s[i])
	}
	return n
}

// atomSize is the size of the atom at the start of s.
func atomSize[E encoded](k Kind, s E) int {
	switch k {
	case IntegerKind:
		_, size := uvarint(s)
		return size
	case RealKind:
		return 8
	case BooleanKind:
		return 1
	case StringKind, NamedUUIDKind:
		n, size := uvarint(s)
		return size + int(n)
	case UUIDKind:
		return 16
	}
	return len(s)
}

// readAtom returns the atom at the start of s and its size.
func readAtom(k Kind, s string) (Atom, int) {
	size := atomSize(k, s)
	a := Atom{kind: k}
	switch k {
	case IntegerKind:
		a.bits = uint64(varint(s))
	case RealKind:
		a.bits = beUint64(s)
	case BooleanKind:
		a.bits = uint64(s[0])
	case StringKind, NamedUUIDKind:
		_, prefix := uvarint(s)
		a.text = s[prefix:size]
	case UUIDKind:
		copy(a.uuid[:], s)
	}
	return a, size
}

// compareAtoms orders the atoms at the start of x and y as ovsdb-server does:
// numbers by value, strings by their bytes, uuids by their digits.
func compareAtoms[X, Y encoded](k Kind, x X, y Y) int {
	switch k {
	case IntegerKind:
		return cmp.Compare(varint(x), varint(y))
	case RealKind:
		return cmp.Compare(math.Float64frombits(beUint64(x)), math.Float64frombits(beUint64(y)))
	case StringKind, NamedUUIDKind:
		n, i := uvarint(x)
		m, j := uvarint(y)
		return compareBytes(x[i:i+int(n)], y[j:j+int(m)])
	case BooleanKind:
		return cmp.Compare(x[0], y[0])
	case UUIDKind:
		return compareBytes(x[:16], y[:16])
	}
	return 0
}

func compareBytes[X, Y encoded](x X, y Y) int {
	for i := range min(len(x), len(y)) {
		if x[i] != y[i] {
			return cmp.Compare(x[i], y[i])
		}
	}
	return cmp.Compare(len(x), len(y))
}

func appendAtom(b []byte, a Atom) []byte {
	switch a.kind {
	case IntegerKind:
		return binary.AppendVarint(b, int64(a.bits))
	case RealKind:
		return binary.BigEndian.AppendUint64(b, a.bits)
	case BooleanKind:
		return append(b, byte(a.bits))
	case StringKind, NamedUUIDKind:
		return appendText(b, a.text)
	case UUIDKind:
		return append(b, a.uuid[:]...)
	}
	return b
}

func appendText[E encoded](b []byte, text E) []byte {
	b = binary.AppendUvarint(b, uint64(len(text)))
	return append(b, text...)
}

// applyDiff writes to b old changed by a difference of the kind that update2 and
// update3 carry (ovsdb-server(7), "Update Notification v2"): of a set, elements
// toggle; of a map, a pair whose key is new is inserted, one with another value
// replaces, and one that is there already is removed. Both values have the
// column's kinds and can hold more than one element.
func applyDiff(b *valueBuilder, old, diff Value) {
	key, val := diff.kinds()
	b.begin(key, val)
	x, y := old.body(), diff.body()
	for x != "" || y != "" {
		var order int
		switch {
		case y == "":
			order = -1
		case x == "":
			order = 1
		default:
			order = compareAtoms(key, x, y)
		}
		switch {
		case order < 0:
			n := elementSize(key, val, x)
			b.addRaw(x[:n])
			x = x[n:]
		case order > 0:
			n := elementSize(key, val, y)
			b.addRaw(y[:n])
			y = y[n:]
		default:
			n, m := elementSize(key, val, x), elementSize(key, val, y)
			if x[:n] != y[:m] {
				b.addRaw(y[:m])
			}
			x, y = x[n:], y[m:]
		}
	}
	b.finish()
}

func elementSize(key, val Kind, s string) int {
	n := atomSize(key, s)
	if val != NoKind {
		n += atomSize(val, s[n:])
	}
	return n
}
