package state

import (
	"fmt"
	"sort"
	"strconv"
	"strings"
)

// Numbers gives every member a number that outlives restarts: conntrack
// entries carry it in ct_mark, and they outlive both brlb and, on the kernel
// datapath, Open vSwitch. A number is not given to another member before all
// 65,535 have been used once, so that an entry left by a removed member is not
// taken for one of a new member.
type Numbers struct {
	byID map[MemberID]uint16
	used map[uint16]MemberID
	next uint16
	text string // what String returns; "" when that is not known
}

// NewNumbers returns an empty assignment that starts at 1.
func NewNumbers() *Numbers {
	return &Numbers{byID: map[MemberID]uint16{}, used: map[uint16]MemberID{}, next: 1}
}

// Get returns the number of a member, assigning one if it has none. It returns
// 0 when all numbers are in use; 0 is never assigned.
func (n *Numbers) Get(id MemberID) uint16 {
	if number, ok := n.byID[id]; ok {
		return number
	}
	for range 65535 {
		number := n.next
		n.advance(number)
		if _, taken := n.used[number]; !taken {
			n.set(id, number)
			return number
		}
	}
	return 0
}

// Adopt records a number found elsewhere (on the switch, in OVSDB), unless the
// member has another one or the number is another's. It says whether the
// member has the number now.
func (n *Numbers) Adopt(id MemberID, number uint16) bool {
	if known, ok := n.byID[id]; ok || number == 0 {
		return ok && known == number
	}
	if _, taken := n.used[number]; taken {
		return false
	}
	n.set(id, number)
	n.advance(number)
	return true
}

// Len returns how many members have a number.
func (n *Numbers) Len() int { return len(n.byID) }

// Release forgets members that are no longer wanted. Their numbers stay
// unused until the counter has gone round.
func (n *Numbers) Release(keep func(MemberID) bool) {
	for id, number := range n.byID {
		if !keep(id) {
			delete(n.byID, id)
			delete(n.used, number)
			n.text = ""
		}
	}
}

func (n *Numbers) set(id MemberID, number uint16) {
	n.byID[id] = number
	n.used[number] = id
	n.text = ""
}

func (n *Numbers) advance(past uint16) {
	if past >= n.next {
		n.next = past + 1
		if n.next == 0 {
			n.next = 1
		}
		n.text = ""
	}
}

// String encodes the assignment for storage: the counter, then pool/key=number
// sorted by number, separated by spaces.
func (n *Numbers) String() string {
	if n.text != "" {
		return n.text
	}
	ids := make([]MemberID, 0, len(n.byID))
	for id := range n.byID {
		ids = append(ids, id)
	}
	sort.Slice(ids, func(i, j int) bool { return n.byID[ids[i]] < n.byID[ids[j]] })
	var b strings.Builder
	fmt.Fprintf(&b, "next=%d", n.next)
	for _, id := range ids {
		fmt.Fprintf(&b, " %s/%s=%d", id.Pool, id.Key, n.byID[id])
	}
	n.text = b.String()
	return n.text
}

// maxStoredNumbers bounds what Load reads from a string that anybody with
// access to OVSDB may have written.
const maxStoredNumbers = 65535

// Load adds the assignments of a string made by String. Entries that are
// malformed or contradict what is known are left out and reported.
func (n *Numbers) Load(text string) error {
	var bad []string
	next := uint16(0)
	fields := strings.Fields(text)
	if len(fields) > maxStoredNumbers+1 {
		return fmt.Errorf("stored member numbers: %d entries, at most %d are possible", len(fields), maxStoredNumbers)
	}
	for _, field := range fields {
		left, right, ok := strings.Cut(field, "=")
		value, err := strconv.ParseUint(right, 10, 16)
		if !ok || err != nil || value == 0 {
			bad = append(bad, field)
			continue
		}
		if left == "next" {
			next = uint16(value)
			continue
		}
		pool, key, ok := strings.Cut(left, "/")
		if !ok || !n.Adopt(MemberID{Pool: pool, Key: key}, uint16(value)) {
			bad = append(bad, field)
		}
	}
	if next != 0 {
		n.next, n.text = next, ""
	}
	if len(bad) > 0 {
		return fmt.Errorf("stored member numbers: %d entries are malformed or contradict others, the first is %.60q", len(bad), bad[0])
	}
	return nil
}
