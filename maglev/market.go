package maglev

import "slices"

// market assigns free slots to members by deferred acceptance (Gale and
// Shapley, College Admissions and the Stability of Marriage, 1962). Each
// member visits slots in the order of its own permutation for as long as it
// wants more; a free slot takes whoever comes, and a held slot prefers the
// visitor if its arrival time is less than the holder's, who is then bumped
// and walks on from where it had stopped.
//
// The cost of a pair (member, slot) is the arrival time of the member at the
// slot, ties settled by a hash of the pair. Members and slots rank each other
// by this one cost, so there is exactly one stable assignment and it does not
// depend on who walks first: it is the one in which the cheapest pair holds,
// then the cheapest of those still possible, and so on.
type market struct {
	bits    slotBits
	bidders []bidder // one a member, by its index in the table
	want    []int32  // how many more slots each of them would take

	// owner is the table under construction: the holder of each slot.
	owner []uint16
	// turn is, for each slot, the holder's rank plus 1: 0 if the slot is not
	// for sale, so that nobody arrives earlier; anyone if it is free.
	turn []uint32

	free    []uint16 // slots for sale, if they are few
	ranks   []uint32 // of those, for the member that searches
	waiting []uint16 // members who want more slots

	weighted bool     // whether the weights of those differ
	arrivals []uint32 // see the function of that name
	slots    int      // for which arrivals holds, or 0
}

const anyone = 1<<32 - 1

// bidder is a member in the market.
type bidder struct {
	order  permutation
	tie    uint64
	weight uint32
	next   uint32 // the rank that it visits next
}

// enter makes the members the bidders.
func (m *market) enter(pool uint16, slots int, members []Member) {
	m.bits = newSlotBits(slots)
	m.bidders = slices.Grow(m.bidders[:0], len(members))[:len(members)]
	for i := range members {
		b := &m.bidders[i]
		words := seed(pool, members[i].Key)
		b.tie = words.next()
		b.order.draw(&words)
		b.weight = members[i].Weight
	}
}

// clear assigns the slots of owner that have no owner to the members who want
// some. If there are more wants than slots, the dearest pairs go without.
func (m *market) clear(owner []uint16) {
	m.owner = owner
	m.waiting = m.waiting[:0]
	m.weighted = false
	for i, want := range m.want {
		if want > 0 {
			m.bidders[i].next = 0
			m.waiting = append(m.waiting, uint16(i))
			m.weighted = m.weighted || m.bidders[i].weight != m.bidders[m.waiting[0]].weight
		}
	}
	if len(m.waiting) == 0 {
		return
	}
	if m.weighted && m.slots != len(owner) {
		m.slots = len(owner)
		m.arrivals = arrivals(m.arrivals[:0], m.slots)
	}
	proceed := m.walk
	if m.open() {
		proceed = m.search
	}
	for len(m.waiting) > 0 {
		last := len(m.waiting) - 1
		i := m.waiting[last]
		m.waiting = m.waiting[:last]
		proceed(i)
	}
}

// open puts the slots without an owner up for sale. It reports whether they
// are so few that it is better to ask each of them for its rank than to walk,
// which passes M/n slots to find one of n.
func (m *market) open() (few bool) {
	slots := len(m.owner)
	if cap(m.turn) < slots {
		m.turn = make([]uint32, slots)
	}
	m.turn = m.turn[:slots]
	m.free = m.free[:0]
	for slot, o := range m.owner {
		if o != NoOwner {
			continue
		}
		m.free = append(m.free, uint16(slot))
		if 2*len(m.free)*len(m.free) > slots {
			for slot, o := range m.owner {
				m.turn[slot] = 0
				if o == NoOwner {
					m.turn[slot] = anyone
				}
			}
			return false
		}
	}
	for _, slot := range m.free {
		m.turn[slot] = anyone // nobody looks at the turns of other slots
	}
	return true
}

// walk lets a member visit slots until it wants no more or has seen all.
func (m *market) walk(i uint16) {
	b := &m.bidders[i]
	bits, order := m.bits, b.order
	turn := m.turn
	rank := b.next
	for rank <= bits.mask {
		slot := order.at(rank, bits)
		rank++
		held := turn[slot]
		if held < rank && (held == 0 || !m.weighted) {
			continue
		}
		if held != anyone && !m.bump(b, rank, slot) {
			continue
		}
		m.owner[slot] = i
		turn[slot] = rank
		if m.want[i]--; m.want[i] == 0 {
			break
		}
	}
	b.next = rank
}

// search does the same by asking each slot for sale for its rank.
func (m *market) search(i uint16) {
	b := &m.bidders[i]
	order := b.order.invert()
	m.ranks = m.ranks[:0]
	for _, slot := range m.free {
		m.ranks = append(m.ranks, order.rank(uint32(slot), m.bits))
	}
	for m.want[i] > 0 {
		nearest, next := -1, uint32(anyone)
		for k, rank := range m.ranks {
			if rank >= b.next && rank < next {
				nearest, next = k, rank
			}
		}
		if nearest < 0 {
			return
		}
		b.next = next + 1
		slot := uint32(m.free[nearest])
		if m.turn[slot] == anyone || m.bump(b, b.next, slot) {
			m.owner[slot] = i
			m.turn[slot] = b.next
			m.want[i]--
		}
	}
}

// bump sends the holder of a slot away if b, who comes at the given turn,
// arrives earlier than the holder did. It reports whether b does.
func (m *market) bump(b *bidder, turn, slot uint32) bool {
	holder := m.owner[slot]
	h := &m.bidders[holder]
	x, y := uint64(turn), uint64(m.turn[slot])
	if m.weighted {
		x = uint64(m.arrivals[x]) * uint64(h.weight)
		y = uint64(m.arrivals[y]) * uint64(b.weight)
	}
	if x > y || x == y && mix64(b.tie^uint64(slot)) > mix64(h.tie^uint64(slot)) {
		return false
	}
	if m.want[holder]++; m.want[holder] == 1 {
		m.waiting = append(m.waiting, holder)
	}
	return true
}
