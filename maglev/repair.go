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

// repair starts from owner, which holds for each slot the member that has it
// so far, or NoOwner. Each member keeps its slots up to its quota and gives up
// those that come last in its permutation; the market assigns these and the
// free ones to the members that lack slots. So the number of moves is the
// least that the quotas allow.
//
// With slack above 0, each member may end up with that many slots more or
// less than its quota, though with one at least. The market then first brings
// everybody up to the least, and lets the arrival times decide about the rest,
// which spares moves when several members are away.
func (r *repairer) repair(owner []uint16, slack int32) {
	m := &r.market
	r.wants(owner)
	for _, want := range m.want {
		if want < 0 {
			r.release(owner)
			break
		}
	}
	if slack > 0 {
		for i, quota := range r.quota {
			least := min(quota, max(1, quota-slack))
			m.want[i] -= quota - least
		}
	}
	m.clear(owner)
	if slack > 0 {
		r.wants(owner)
		for i, quota := range r.quota {
			if quota > 0 {
				m.want[i] += slack
			}
		}
		m.clear(owner)
	}
}

// wants sets what the members lack of their quotas, less than 0 if they have
// more.
func (r *repairer) wants(owner []uint16) {
	want := append(r.market.want[:0], r.quota...)
	for _, o := range owner {
		if o != NoOwner {
			want[o]--
		}
	}
	r.market.want = want
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
