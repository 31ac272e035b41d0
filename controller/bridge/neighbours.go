package bridge

import (
	"net/netip"
	"slices"
	"time"
)

// How often an unanswered next hop is asked for: quickly at first, so that a
// lost frame costs little, then once a second for as long as it is wanted.
const (
	askFirst    = 100 * time.Millisecond
	askSlow     = time.Second
	quickRounds = 5
)

// Neighbours decides when to ask for which next hop. It is a pure state
// machine: time comes in as an argument, and it sends nothing itself.
type Neighbours struct {
	refresh time.Duration
	entries map[netip.Addr]*neighbour
}

type neighbour struct {
	known bool
	asked int // since it was last known
	next  time.Time
}

// NewNeighbours returns a machine that asks again for known next hops after
// refresh.
func NewNeighbours(refresh time.Duration) *Neighbours {
	return &Neighbours{refresh: refresh, entries: map[netip.Addr]*neighbour{}}
}

// SetRefresh changes how often known next hops are asked for.
func (n *Neighbours) SetRefresh(refresh time.Duration) { n.refresh = refresh }

// Want replaces the addresses of interest. New ones are due at once.
func (n *Neighbours) Want(addrs []netip.Addr, now time.Time) {
	old := n.entries
	n.entries = make(map[netip.Addr]*neighbour, len(addrs))
	for _, addr := range addrs {
		if e, ok := old[addr]; ok {
			n.entries[addr] = e
		} else {
			n.entries[addr] = &neighbour{next: now}
		}
	}
}

// Wanted says whether an address is of interest.
func (n *Neighbours) Wanted(addr netip.Addr) bool {
	_, ok := n.entries[addr]
	return ok
}

// Learned notes that an address answered.
func (n *Neighbours) Learned(addr netip.Addr, now time.Time) {
	if e, ok := n.entries[addr]; ok {
		e.known, e.asked, e.next = true, 0, now.Add(n.refresh)
	}
}

// Reset makes every address due, as if nothing were known.
func (n *Neighbours) Reset(now time.Time) {
	for _, e := range n.entries {
		e.known, e.asked, e.next = false, 0, now
	}
}

// Due returns the addresses to ask for now, in order, and when the next one
// falls due (the zero time if none is wanted).
func (n *Neighbours) Due(now time.Time) (ask []netip.Addr, next time.Time) {
	for addr, e := range n.entries {
		if !e.next.After(now) {
			ask = append(ask, addr)
			e.asked++
			if e.known || e.asked > quickRounds {
				e.next = now.Add(askSlow)
			} else {
				e.next = now.Add(askFirst)
			}
		}
		if next.IsZero() || e.next.Before(next) {
			next = e.next
		}
	}
	slices.SortFunc(ask, netip.Addr.Compare)
	return ask, next
}
