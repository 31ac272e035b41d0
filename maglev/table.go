package maglev

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strconv"
)

// NoOwner in [Table.Owner] marks a slot without an owner. No table that a
// layout built successfully contains it.
const NoOwner = 0xffff

// Table says who owns each slot of a pool. The zero Table has no slots and
// stands for "no layout".
type Table struct {
	// Version is the version of the layout that built the table.
	Version string

	// Pool is the pool's id.
	Pool uint16

	// Members are all members of the input in key order, with the weights
	// that the table was built for.
	Members []Member

	// Owner holds, for each slot, an index into Members.
	Owner []uint16
}

// Slots is M, or 0 when there is no layout.
func (t *Table) Slots() int { return len(t.Owner) }

// Key returns the key of the slot's owner, "" if it has none.
func (t *Table) Key(slot int) string {
	if owner := t.Owner[slot]; owner != NoOwner {
		return t.Members[owner].Key
	}
	return ""
}

// Counts appends to dst the number of slots of each member, in the order of
// Members, and returns the extended slice.
func (t *Table) Counts(dst []int) []int {
	from := len(dst)
	dst = append(dst, make([]int, len(t.Members))...)
	counts := dst[from:]
	for _, owner := range t.Owner {
		if owner != NoOwner {
			counts[owner]++
		}
	}
	return dst
}

// Clone returns a copy that shares no memory with t, other than the keys.
func (t *Table) Clone() *Table {
	c := *t
	c.Members = slices.Clone(t.Members)
	c.Owner = slices.Clone(t.Owner)
	return &c
}

// NewTable makes a table from the owners' keys, slot by slot, "" for a slot
// without an owner: a table that a switch was found to hold. members gives the
// weights; an owner that it lacks is added with weight 0. version says which
// layout is thought to have built it.
func NewTable(version string, pool uint16, members []Member, owners []string) (*Table, error) {
	if err := CheckSlots(pool, len(owners)); err != nil {
		return nil, err
	}
	t := &Table{Version: version, Pool: pool, Members: slices.Clone(members)}
	known := make(map[string]bool, len(members))
	for _, m := range members {
		known[m.Key] = true
	}
	for _, key := range owners {
		if key != "" && !known[key] {
			known[key] = true
			t.Members = append(t.Members, Member{Key: key})
		}
	}
	var s sorter
	sorted, err := s.sorted(pool, t.Members)
	if err != nil {
		return nil, err
	}
	t.Members = sorted
	for _, key := range owners {
		owner := uint16(NoOwner)
		if i, found := t.find(key); found {
			owner = uint16(i)
		}
		t.Owner = append(t.Owner, owner)
	}
	return t, nil
}

// Digest is the [Digest] of the table, "" when there is no layout.
func (t *Table) Digest() string {
	if len(t.Owner) == 0 {
		return ""
	}
	owners := make([]string, len(t.Owner))
	for slot := range owners {
		owners[slot] = t.Key(slot)
	}
	return Digest(t.Version, t.Pool, owners)
}

// Digest summarises a table in 16 hex digits, so that two nodes, or a node and
// its switch, can compare theirs. It is the start of the SHA-256 over
// "brlb-layout VERSION pool=POOL slots=M\n" and then, slot by slot, the
// owner's key (nothing for a slot without an owner) and "\n". It speaks of
// keys, hence does not depend on member numbers, names or their order.
func Digest(version string, pool uint16, owners []string) string {
	size := 64
	for _, key := range owners {
		size += len(key) + 1
	}
	text := make([]byte, 0, size)
	text = append(text, "brlb-layout "...)
	text = append(text, version...)
	text = append(text, " pool="...)
	text = strconv.AppendUint(text, uint64(pool), 10)
	text = append(text, " slots="...)
	text = strconv.AppendInt(text, int64(len(owners)), 10)
	text = append(text, '\n')
	for _, key := range owners {
		text = append(text, key...)
		text = append(text, '\n')
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:8])
}

// find returns the index of a key among the members.
func (t *Table) find(key string) (int, bool) {
	return slices.BinarySearchFunc(t.Members, key, func(m Member, key string) int {
		return cmp.Compare(m.Key, key)
	})
}

// reset makes t the table without slots and keeps its memory.
func (t *Table) reset() {
	t.Version = ""
	t.Pool = 0
	t.Members = t.Members[:0]
	t.Owner = t.Owner[:0]
}

// prepare fills in all but the owners; each slot is without one.
func (t *Table) prepare(in Input, version string, members []Member) {
	t.Version = version
	t.Pool = in.Pool
	t.Members = append(t.Members[:0], members...)
	if cap(t.Owner) < in.Slots {
		t.Owner = make([]uint16, in.Slots)
	}
	t.Owner = t.Owner[:in.Slots]
	for slot := range t.Owner {
		t.Owner[slot] = NoOwner
	}
}
