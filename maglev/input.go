package maglev

import (
	"cmp"
	"errors"
	"fmt"
	"math/bits"
	"slices"
)

// Limits of a pool.
const (
	// MinSlots is the smallest M. With a single slot there is nothing to
	// balance, and v1's skip (a hash mod M-1) is not defined.
	MinSlots = 2

	// MaxSlots is the largest M.
	MaxSlots = 65536

	// MaxMembers is how many members a table can name: an owner is a uint16,
	// and its largest value marks a slot without an owner.
	MaxMembers = 65535
)

// Member is one member of a pool as a layout sees it.
type Member struct {
	// Key names the member; see [CanonicalKey]. Layouts take it as opaque
	// bytes and order members by it.
	Key string

	// Weight is the member's part of the pool relative to the others. A
	// member of weight 0 owns no slot.
	Weight uint32

	// Domain is the failure domain that the member is in, from the widest to
	// the narrowest, as in "zone-a/rack-3/host-7". Only crush looks at it.
	Domain string
}

// Input is all that a layout may depend on.
type Input struct {
	// Pool is the pool's id, 1..65535. It salts the hashes, so that two pools
	// with the same members have unrelated layouts.
	Pool uint16

	// Slots is M, a power of two in [MinSlots]..[MaxSlots].
	Slots int

	// Members are the active members in any order. Build does not change them.
	Members []Member

	// Anchor is the list of members, with nominal weights, whose table v2
	// repairs to fit Members. It should be the members that the pool normally
	// has, up or not, and stay the same while they come and go. If it is
	// empty, Members are their own anchor.
	Anchor []Member

	// Slack is by how many slots a member of a v2 table may miss its exact
	// quota while it owns at least one; 0 for none. See docs/layouts.md for
	// what 1 spares.
	Slack uint8

	// Previous is the table that sticky repairs: the one that the switch has.
	// Without one, or with one without slots, sticky builds v2's table.
	Previous *Table

	// Pins fix slots to members after the layout has done its work. They are
	// part of the table, hence of its digest.
	Pins []Pin
}

// ErrNoMembers means that no member has a weight above 0, so there is no
// layout: the pool's connections have nowhere to go.
var ErrNoMembers = errors.New("no active member with a weight above 0")

// ErrEmptyKey means that a member has no key.
var ErrEmptyKey = errors.New("a member has an empty key: give each member its address:port")

// SlotsError means that a pool's number of slots is not one a layout can have.
type SlotsError struct {
	Pool  uint16
	Slots int
}

func (e *SlotsError) Error() string {
	return fmt.Sprintf("pool %d has %d slots: use a power of two from %d to %d",
		e.Pool, e.Slots, MinSlots, MaxSlots)
}

// DuplicateKeyError means that two members of a pool have the same key. They
// would always want the same slots.
type DuplicateKeyError struct {
	Pool uint16
	Key  string
}

func (e *DuplicateKeyError) Error() string {
	return fmt.Sprintf("pool %d lists %.80q twice: remove one of the two", e.Pool, e.Key)
}

// TooManyMembersError means that a pool has more members than it can serve:
// each member of a weight above 0 needs at least one slot.
type TooManyMembersError struct {
	Pool    uint16
	Members int
	Slots   int
}

// SlotsNeeded is the least number of slots that would do, or 0 if no
// permitted number would.
func (e *TooManyMembersError) SlotsNeeded() int {
	if e.Members > MaxMembers {
		return 0
	}
	return max(MinSlots, 1<<bits.Len(uint(e.Members-1)))
}

func (e *TooManyMembersError) Error() string {
	need := e.SlotsNeeded()
	if need == 0 {
		return fmt.Sprintf("pool %d has %d members: a pool holds at most %d, split it",
			e.Pool, e.Members, MaxMembers)
	}
	return fmt.Sprintf("pool %d has %d members but only %d slots: set its slots to %d or more",
		e.Pool, e.Members, e.Slots, need)
}

// CheckSlots reports whether a pool may have that many slots.
func CheckSlots(pool uint16, slots int) error {
	if slots < MinSlots || slots > MaxSlots || slots&(slots-1) != 0 {
		return &SlotsError{Pool: pool, Slots: slots}
	}
	return nil
}

// sorter puts members in key order. It keeps a copy only of unsorted ones.
type sorter struct {
	copied []Member
}

// sorted returns the members in key order and reports a key that is empty or
// listed twice. The result is valid until the next call.
func (s *sorter) sorted(pool uint16, members []Member) ([]Member, error) {
	if len(members) > MaxMembers {
		return nil, &TooManyMembersError{Pool: pool, Members: len(members)}
	}
	if !ascending(members) {
		s.copied = append(s.copied[:0], members...)
		members = s.copied
		slices.SortFunc(members, func(a, b Member) int { return cmp.Compare(a.Key, b.Key) })
		for i := 1; i < len(members); i++ {
			if members[i-1].Key == members[i].Key {
				return nil, &DuplicateKeyError{Pool: pool, Key: members[i].Key}
			}
		}
	}
	if len(members) > 0 && members[0].Key == "" {
		return nil, ErrEmptyKey
	}
	return members, nil
}

// ascending reports whether the keys rise strictly.
func ascending(members []Member) bool {
	for i := 1; i < len(members); i++ {
		if members[i-1].Key >= members[i].Key {
			return false
		}
	}
	return true
}

// start checks in, puts its members in key order into t and makes room for the
// slots, all of them without an owner. It returns the ordered members.
func (s *sorter) start(in Input, version string, t *Table) ([]Member, error) {
	t.reset()
	if err := CheckSlots(in.Pool, in.Slots); err != nil {
		return nil, err
	}
	members, err := s.sorted(in.Pool, in.Members)
	if err != nil {
		return nil, err
	}
	weighted := 0
	for i := range members {
		if members[i].Weight > 0 {
			weighted++
		}
	}
	if weighted == 0 {
		return nil, ErrNoMembers
	}
	if weighted > in.Slots {
		return nil, &TooManyMembersError{Pool: in.Pool, Members: weighted, Slots: in.Slots}
	}
	t.prepare(in, version, members)
	return members, nil
}
