package state

import (
	"maps"
	"time"

	"brlb/controller/config"
	"brlb/maglev"
)

// Moving says which slots of a stateless pool take new connections to their
// owner while the member that owned them before keeps the open ones: the switch
// knows which is which by the SYN alone.
type Moving struct {
	From map[int]Leaving // by slot
	// Until is when the last of them have moved.
	Until time.Time
	// Hold is how long a slot takes to move.
	Hold time.Duration
}

// Leaving is how far a slot has moved.
type Leaving struct {
	Key string // of the member before
	// Open says that the owner gets new connections. For the first moments it does
	// not: the switch counts a SYN up to half a second after it has passed, and
	// would then take the connection for a new one of the owner. Therefore it first
	// remembers new connections as those of the member before.
	Open bool
}

// openAfter is how long the switch takes, and more, to count what has passed: its
// revalidators come by every 500 ms (max-revalidator).
const openAfter = 2 * time.Second

// Len returns the number of slots.
func (m *Moving) Len() int {
	if m == nil {
		return 0
	}
	return len(m.From)
}

// Soon says that some slots' owners do not get new connections yet.
func (m *Moving) Soon() bool {
	for _, l := range m.From {
		if !l.Open {
			return true
		}
	}
	return false
}

// moves is what a stateless pool remembers of its slots' owners.
type moves struct {
	table *maglev.Table // the last one that was applied, or found on the switch
	from  map[int]leaving
	told  *Moving // of the last snapshot
}

// leaving is who has the open connections of a slot that has moved.
type leaving struct {
	key         string
	open, until time.Time
}

func (m moves) clone() moves {
	m.from = maps.Clone(m.from)
	return m
}

// move notes which slots the new table moves, and forgets those that have moved:
// their time is over, or nobody lives who could have kept their connections.
func (p *pool) move(c *config.Pool, now *Pool, at time.Time) *Moving {
	m := &p.moves
	if !c.Stateless() || now.Table == nil {
		*m = moves{}
		return nil
	}
	if !now.Settled {
		return m.told
	}
	changed := m.begin(now.Table, at, c.Transition)
	told := &Moving{From: make(map[int]Leaving, len(m.from)), Hold: c.Transition}
	for slot, l := range m.from {
		if slot >= now.Table.Slots() || l.key == now.Table.Key(slot) || !at.Before(l.until) || !now.KeepsConnections(l.key) {
			delete(m.from, slot)
			changed = true
			continue
		}
		open := !at.Before(l.open)
		if m.told == nil || m.told.From[slot].Open != open {
			changed = true
		}
		if !open {
			p.wakeAt(l.open)
		}
		told.From[slot] = Leaving{Key: l.key, Open: open}
		if l.until.After(told.Until) {
			told.Until = l.until
		}
		p.wakeAt(l.until)
	}
	if changed {
		m.told = nil
		if len(told.From) > 0 {
			m.told = told
		}
	}
	return m.told
}

// begin notes the slots that a table moves. It reports whether there are any.
func (m *moves) begin(table *maglev.Table, at time.Time, hold time.Duration) (moved bool) {
	was := m.table
	m.table = table
	if was == nil || was == table || was.Slots() != table.Slots() {
		return was != table
	}
	for slot := range table.Slots() {
		key := was.Key(slot)
		if key == table.Key(slot) || key == "" {
			continue
		}
		moved = true
		if _, already := m.from[slot]; already {
			continue // connections opened since then are known one by one
		}
		if m.from == nil {
			m.from = map[int]leaving{}
		}
		m.from[slot] = leaving{key: key, open: at.Add(openAfter), until: at.Add(hold)}
	}
	return moved
}

// KeepsConnections says whether a member may go on serving open connections.
func (p *Pool) KeepsConnections(key string) bool {
	m := p.Member(key)
	return m != nil && m.HasNext && !m.Cut
}
