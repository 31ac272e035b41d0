package maglev

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
)

// v2 is anchored deferred acceptance. It divides the slots exactly (see
// [seats]) and moves as few of them as that allows whenever one thing changes:
//
//  1. The base table is a function of the anchor, a declared list of members
//     with nominal weights: each anchor member's slots are those of the one
//     stable assignment (see [market]).
//  2. The table for the current members repairs the base (see [repairer]):
//     what a member owns in the base and may keep, it keeps, whoever else is
//     away.
//
// So any single step away from the anchor (a failure, a drain, another weight,
// a new member) and the step back move exactly the lower bound, none of it
// collateral. No layout without an anchor or a memory can promise that while it
// also divides the slots exactly.
type v2 struct {
	sorter   sorter
	repairer repairer

	// The base table is kept, for the next build has the same anchor, as a
	// rule. It is a cache only: the anchor alone decides what it holds.
	base         Table
	anchorSorter sorter
	member       []uint16 // for each anchor member, its index in the table
}

func (*v2) Name() string    { return "v2" }
func (*v2) Version() string { return "v2" }

func (l *v2) Build(in Input, t *Table) error {
	members, err := l.sorter.start(in, l.Version(), t)
	if err != nil {
		return err
	}
	if err := l.buildBase(in, members); err != nil {
		t.reset()
		return err
	}
	l.member = match(l.member[:0], l.base.Members, members)
	l.repairer.begin(in, members)
	l.repairer.repair(t.Owner, l.base.Owner, l.member, int32(in.Slack))
	return nil
}

// buildBase makes l.base the table of the anchor, which is the members
// themselves if the input declares none.
func (l *v2) buildBase(in Input, members []Member) error {
	anchor := members
	if len(in.Anchor) > 0 {
		var err error
		if anchor, err = l.anchorSorter.sorted(in.Pool, in.Anchor); err != nil {
			return fmt.Errorf("anchor: %w", err)
		}
	}
	if l.base.Pool == in.Pool && l.base.Slots() == in.Slots && slices.Equal(l.base.Members, anchor) {
		return nil
	}
	in.Members = anchor
	if _, err := l.anchorSorter.start(in, l.Version(), &l.base); err != nil {
		return fmt.Errorf("anchor: %w", err)
	}
	l.repairer.begin(in, anchor)
	l.repairer.repair(l.base.Owner, l.base.Owner, nil, 0)
	return nil
}

// match appends to dst, for each of the old members, its index among the new
// ones, or NoOwner. Both are in key order.
func match(dst []uint16, old, new []Member) []uint16 {
	i := 0
	for o := range old {
		for i < len(new) && new[i].Key < old[o].Key {
			i++
		}
		if i < len(new) && new[i].Key == old[o].Key {
			dst = append(dst, uint16(i))
		} else {
			dst = append(dst, NoOwner)
		}
	}
	return dst
}

// AnchorDigest summarises what a v2 table depends on beside the current
// members, in 16 hex digits: the start of the SHA-256 over
// "brlb-anchor v2 pool=POOL slots=M\n" and then, for each anchor member in key
// order, its key, a space, its weight and "\n". Nodes with different anchors
// may have different tables for the same members.
func AnchorDigest(pool uint16, slots int, anchor []Member) string {
	var s sorter
	sorted, err := s.sorted(pool, anchor)
	if err != nil {
		return ""
	}
	text := fmt.Appendf(nil, "brlb-anchor v2 pool=%d slots=%d\n", pool, slots)
	for _, m := range sorted {
		text = append(text, m.Key...)
		text = append(text, ' ')
		text = strconv.AppendUint(text, uint64(m.Weight), 10)
		text = append(text, '\n')
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:8])
}
