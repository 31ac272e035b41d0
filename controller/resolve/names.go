package resolve

import (
	"cmp"
	"net/netip"
	"slices"
	"time"
)

// Name is what is asked for: the addresses of one family that a host has.
type Name struct {
	Host string // complete, without the final dot
	V6   bool   // its IPv6 addresses, else its IPv4 ones
}

// Compare orders names, for sorting.
func (n Name) Compare(o Name) int {
	if c := cmp.Compare(n.Host, o.Host); c != 0 || n.V6 == o.V6 {
		return c
	}
	if o.V6 {
		return -1
	}
	return 1
}

// MaxAddrs is how many addresses of one name are taken.
const MaxAddrs = 64

// Answer is what became of a question. Addrs, sorted, is empty if there is no
// useful answer, and then Problem says why.
type Answer struct {
	Addrs   []netip.Addr
	TTL     time.Duration // how long the addresses may be used
	Problem string
}

// maxTTL is the longest time for which an answer is believed, whatever it says.
const maxTTL = time.Hour

// Names decides when to ask for which name: an answer holds for its TTL, but at
// least for a floor, and a failure for as long as the floor. It is a pure state
// machine: time comes in as an argument, and it sends nothing itself.
type Names struct {
	minTTL  time.Duration
	entries map[Name]*entry
}

type entry struct {
	asking bool // an answer is still to come
	next   time.Time
}

// NewNames returns a machine that wants no name yet.
func NewNames() *Names { return &Names{entries: map[Name]*entry{}} }

// Want replaces the names of interest, and the floor of TTLs. New names are due
// at once.
func (n *Names) Want(names []Name, minTTL time.Duration, now time.Time) {
	old := n.entries
	n.minTTL = minTTL
	n.entries = make(map[Name]*entry, len(names))
	for _, name := range names {
		if e, ok := old[name]; ok {
			n.entries[name] = e
		} else {
			n.entries[name] = &entry{next: now}
		}
	}
}

// Due returns the names to ask for now, in order, and when the next one falls
// due (the zero time if none does before an answer has come).
func (n *Names) Due(now time.Time) (ask []Name, next time.Time) {
	for name, e := range n.entries {
		switch {
		case e.asking:
		case !e.next.After(now):
			e.asking = true
			ask = append(ask, name)
		case next.IsZero() || e.next.Before(next):
			next = e.next
		}
	}
	slices.SortFunc(ask, Name.Compare)
	return ask, next
}

// Answered notes that a question has been answered, or that nobody did. It says
// whether the answer is still of interest.
func (n *Names) Answered(name Name, answer Answer, now time.Time) bool {
	e, ok := n.entries[name]
	if !ok {
		return false
	}
	hold := n.minTTL
	if len(answer.Addrs) > 0 {
		hold = max(n.minTTL, min(answer.TTL, maxTTL))
	}
	e.asking, e.next = false, now.Add(hold)
	return true
}
