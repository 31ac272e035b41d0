package ovsdb

import (
	"bytes"
	"encoding/binary"
	"math/bits"
)

// A tree is an ordered map from keys to rows of which old versions stay valid:
// a change copies the path from the root to the row, and shares the rest. That
// makes a snapshot of any size free, and the difference of two snapshots cheap
// where they share. The path to a key is its nibbles; a node holds only the
// branches that exist, and a row hangs at the first node where it is alone.
type tree[K key] struct {
	root *node[K]
	size int
}

type key interface {
	comparable
	// nibble returns the i-th step of the path to the key. Different keys have
	// different paths, and their order is the order of the tree.
	nibble(i int) uint8
}

// indexKey orders rows by a hash of the indexed value, then by row, so the rows
// of one value are neighbours and several may have it.
type indexKey [8 + 16]byte

func newIndexKey(hash uint64, u UUID) (k indexKey) {
	binary.BigEndian.PutUint64(k[:8], hash)
	copy(k[8:], u[:])
	return k
}

func (k indexKey) nibble(i int) uint8 {
	if i&1 == 0 {
		return k[i>>1] >> 4
	}
	return k[i>>1] & 15
}

type node[K key] struct {
	present uint16 // bit n: there is a slot for nibble n
	slots   []slot[K]
	// owner is the edit that made the node and may change it in place.
	owner *edit
}

type slot[K key] struct {
	child *node[K] // or, if nil:
	row   *Row
	key   K
}

// edit is one update in the making. Nodes that it made are not shared yet.
type edit struct{ _ byte }

func (n *node[K]) find(nibble uint8) (index int, ok bool) {
	bit := uint16(1) << nibble
	return bits.OnesCount16(n.present & (bit - 1)), n.present&bit != 0
}

// editable returns n if e owns it, else a copy that e owns.
func (n *node[K]) editable(e *edit) *node[K] {
	if n.owner == e {
		return n
	}
	c := &node[K]{present: n.present, owner: e, slots: make([]slot[K], len(n.slots), len(n.slots)+1)}
	copy(c.slots, n.slots)
	return c
}

func (t *tree[K]) get(k K) *Row {
	n := t.root
	for depth := 0; n != nil; depth++ {
		i, ok := n.find(k.nibble(depth))
		if !ok {
			return nil
		}
		s := &n.slots[i]
		if s.child == nil {
			if s.key == k {
				return s.row
			}
			return nil
		}
		n = s.child
	}
	return nil
}

// set puts row at k, and replaces what was there.
func (t *tree[K]) set(e *edit, k K, row *Row) {
	if t.root == nil {
		t.root = &node[K]{owner: e}
	}
	var added bool
	t.root, added = t.root.set(e, 0, slot[K]{row: row, key: k})
	if added {
		t.size++
	}
}

func (n *node[K]) set(e *edit, depth int, s slot[K]) (out *node[K], added bool) {
	n = n.editable(e)
	nibble := s.key.nibble(depth)
	i, ok := n.find(nibble)
	if !ok {
		n.slots = append(n.slots, slot[K]{})
		copy(n.slots[i+1:], n.slots[i:])
		n.slots[i] = s
		n.present |= 1 << nibble
		return n, true
	}
	at := &n.slots[i]
	switch {
	case at.child != nil:
		at.child, added = at.child.set(e, depth+1, s)
		return n, added
	case at.key == s.key:
		at.row = s.row
		return n, false
	}
	below := &node[K]{owner: e, slots: make([]slot[K], 0, 2)}
	below, _ = below.set(e, depth+1, *at)
	below, _ = below.set(e, depth+1, s)
	*at = slot[K]{child: below}
	return n, true
}

// remove deletes k, which must be there.
func (t *tree[K]) remove(e *edit, k K) {
	t.root = t.root.remove(e, 0, k)
	t.size--
}

func (n *node[K]) remove(e *edit, depth int, k K) *node[K] {
	n = n.editable(e)
	nibble := k.nibble(depth)
	i, _ := n.find(nibble)
	at := &n.slots[i]
	if at.child != nil {
		at.child = at.child.remove(e, depth+1, k)
		// A row that is alone below moves up, so that equal contents have
		// equal trees.
		switch c := at.child; {
		case c == nil:
		case len(c.slots) == 1 && c.slots[0].child == nil:
			*at = c.slots[0]
			return n
		default:
			return n
		}
	}
	n.slots = append(n.slots[:i], n.slots[i+1:]...)
	n.present &^= 1 << nibble
	if len(n.slots) == 0 {
		return nil
	}
	return n
}

// walk yields the rows of a subtree in order.
func (n *node[K]) walk(yield func(K, *Row) bool) bool {
	if n == nil {
		return true
	}
	for i := range n.slots {
		s := &n.slots[i]
		if s.child != nil {
			if !s.child.walk(yield) {
				return false
			}
		} else if !yield(s.key, s.row) {
			return false
		}
	}
	return true
}

// hashRows yields the rows of an index whose value has the hash.
func hashRows(t *tree[indexKey], hash uint64, yield func(*Row) bool) {
	prefix := newIndexKey(hash, UUID{})
	n := t.root
	for depth := 0; n != nil && depth < 16; depth++ {
		i, ok := n.find(prefix.nibble(depth))
		if !ok {
			return
		}
		s := &n.slots[i]
		if s.child == nil {
			if bytes.Equal(s.key[:8], prefix[:8]) {
				yield(s.row)
			}
			return
		}
		n = s.child
	}
	n.walk(func(_ indexKey, r *Row) bool { return yield(r) })
}

// diff calls f for each key whose row is not the same pointer in a and b, in no
// particular order; the missing one is nil.
func diff[K key](a, b *node[K], f func(old, new *Row)) {
	if a == b {
		return
	}
	if a == nil {
		b.walk(func(_ K, r *Row) bool { f(nil, r); return true })
		return
	}
	if b == nil {
		a.walk(func(_ K, r *Row) bool { f(r, nil); return true })
		return
	}
	for nibble := range uint8(16) {
		i, inA := a.find(nibble)
		j, inB := b.find(nibble)
		switch {
		case inA && inB:
			diffSlots(&a.slots[i], &b.slots[j], f)
		case inA:
			a.slots[i].each(func(_ K, r *Row) bool { f(r, nil); return true })
		case inB:
			b.slots[j].each(func(_ K, r *Row) bool { f(nil, r); return true })
		}
	}
}

func (s *slot[K]) each(yield func(K, *Row) bool) bool {
	if s.child != nil {
		return s.child.walk(yield)
	}
	return yield(s.key, s.row)
}

func diffSlots[K key](a, b *slot[K], f func(old, new *Row)) {
	switch {
	case a.child != nil && b.child != nil:
		diff(a.child, b.child, f)
	case a.child == nil && b.child == nil && a.key == b.key:
		if a.row != b.row {
			f(a.row, b.row)
		}
	case a.child == nil && b.child == nil:
		f(a.row, nil)
		f(nil, b.row)
	case a.child == nil:
		found := false
		b.child.walk(func(k K, r *Row) bool {
			if k != a.key {
				f(nil, r)
			} else if found = true; r != a.row {
				f(a.row, r)
			}
			return true
		})
		if !found {
			f(a.row, nil)
		}
	default:
		found := false
		a.child.walk(func(k K, r *Row) bool {
			if k != b.key {
				f(r, nil)
			} else if found = true; r != b.row {
				f(r, b.row)
			}
			return true
		})
		if !found {
			f(nil, b.row)
		}
	}
}
