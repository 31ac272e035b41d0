package maglev

import (
	"fmt"

	"brlb/maglev/crush"
)

// straw2 is the choice that Ceph makes in one bucket: each member draws a straw
// for each slot, by [crush.DrawStraw2], and the longest has it. Slot s of pool p
// stands for input [crush.Hash2](s, p), as placement groups do; a member's id is
// [crush.HashString] of its key (in the unlikely case that an id is taken, by a
// member with a smaller key, the next free one). Like rendezvous it never moves
// anything between members that did not change, and shares are only random.
type straw2 struct {
	sorter  sorter
	ids     []int32
	weights []uint32
	owners  []uint16
	taken   map[int32]bool
}

// maxCrushWeight is the largest sum of weights that CRUSH can hold in 16.16.
const maxCrushWeight = 65535

func (*straw2) Name() string    { return "straw2" }
func (*straw2) Version() string { return "straw2-1" }

func (l *straw2) Build(in Input, t *Table) error {
	members, err := l.sorter.start(in, l.Version(), t)
	if err != nil {
		return err
	}
	if err := CheckWeights(l.Name(), members); err != nil {
		t.reset()
		return fmt.Errorf("pool %d: %w", in.Pool, err)
	}
	l.ids, l.weights, l.owners = l.ids[:0], l.weights[:0], l.owners[:0]
	if l.taken == nil {
		l.taken = make(map[int32]bool)
	}
	clear(l.taken)
	for i := range members {
		if m := &members[i]; m.Weight > 0 {
			l.ids = append(l.ids, freeID(l.taken, m.Key))
			l.weights = append(l.weights, m.Weight*crush.One)
			l.owners = append(l.owners, uint16(i))
		}
	}
	for slot := range t.Owner {
		x := crush.Hash2(uint32(slot), uint32(in.Pool))
		t.Owner[slot] = l.owners[crush.DrawStraw2(x, 0, l.ids, l.weights)]
	}
	return nil
}

// freeID returns the id of a name and marks it as taken.
func freeID(taken map[int32]bool, name string) int32 {
	id := int32(crush.HashString(name))
	for taken[id] {
		id++
	}
	taken[id] = true
	return id
}
