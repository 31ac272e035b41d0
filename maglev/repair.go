package maglev

import "slices"

// repairer turns a table that fits other members or weights into one that
// fits these.
type repairer struct {
	market   market
	seats    seats
	quota    []int32 // slots due to each member
	inverses []inverted
	surplus  []uint64
}

// begin makes the members the bidders and works out their quotas.
func (r *repairer) begin(in Input, members []Member) {
	r.market.enter(in.Pool, in.Slots, members)
	r.quota = r.seats.divide(r.quota[:0], in.Slots, r.market.bidders)
}

// repair fills owner, the table under construction, starting from the table
// from: slot s was the old member's whose number is from[s mod len(from)], and
// member says which of the members that is now, if any. Each member keeps its
// slots up to its quota and gives up those that come last in its permutation;
// the market assigns these and the free ones to the members that lack slots.
// So the number of moves is the least that the quotas allow.
//
// With slack above 0, each member may end up with that many slots more or
// less than its quota, though with one at least. The market then first brings
// everybody up to the least, and lets the arrival times decide about the rest,
// which spares moves when several members are away.
func (r *repairer) repair(owner, from, member []uint16, slack int32) {
	m := &r.market
	m.want = append(m.want[:0], r.quota...)
	want, mask := m.want, len(from)-1
	surplus := int32(0) // less than 0 if somebody has more than its quota
	for slot := range owner {
		o := from[slot&mask]
		if o != NoOwner {
			o = member[o]
		}
		owner[slot] = o
		if o != NoOwner {
			want[o]--
			surplus = min(surplus, want[o])
		}
	}
	if surplus < 0 {
		r.release(owner)
	}
	if slack > 0 {
		for i, quota := range r.quota {
			least := min(quota, max(1, quota-slack))
			want[i] -= quota - least
		}
	}
	m.clear(owner)
	if slack > 0 {
		r.allow(owner, slack)
		m.clear(owner)
	}
}

// allow lets every member have slack slots more than its quota.
func (r *repairer) allow(owner []uint16, slack int32) {
	for i, quota := range r.quota {
		r.market.want[i] = 0
		if quota > 0 {
			r.market.want[i] = quota + slack
		}
	}
	for _, o := range owner {
		if o != NoOwner {
			r.market.want[o]--
		}
	}
}

// release frees the slots that members have beyond their quotas.
func (r *repairer) release(owner []uint16) {
	m := &r.market
	r.inverses = r.inverses[:0]
	for i := range m.bidders {
		r.inverses = append(r.inverses, m.bidders[i].order.invert())
	}
	// The slots of those members, by member and rank.
	r.surplus = r.surplus[:0]
	for slot, o := range owner {
		if o != NoOwner && m.want[o] < 0 {
			rank := r.inverses[o].rank(uint32(slot), m.bits)
			r.surplus = append(r.surplus, uint64(o)<<32|uint64(rank)<<16|uint64(slot))
		}
	}
	slices.Sort(r.surplus)
	// From the end, so that a member's last ranks go first.
	for _, packed := range slices.Backward(r.surplus) {
		slot := uint16(packed)
		if o := owner[slot]; m.want[o] < 0 {
			m.want[o]++
			owner[slot] = NoOwner
		}
	}
}
