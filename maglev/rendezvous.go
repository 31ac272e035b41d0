package maglev

// rendezvous is weighted highest random weight hashing (Thaler, Ravishankar:
// A Name-Based Mapping Scheme for Rendezvous, 1996): each member draws an
// exponential arrival time at each slot, at a rate that is its weight, and the
// earliest has the slot. Nothing but the moves to and from the changed member
// ever happens, and shares are only random: of N members with M slots the
// largest share exceeds the mean by about sqrt(2 N ln N / M).
type rendezvous struct {
	sorter   sorter
	rivals   []rival
	arrivals []uint32
}

type rival struct {
	tie    uint64
	weight uint64
	owner  uint16
}

// quantiles is how finely arrival times are told apart; draws of the same
// quantile and weight are told apart by their lower bits.
const quantiles = 1 << 16

func (*rendezvous) Name() string    { return "rendezvous" }
func (*rendezvous) Version() string { return "rendezvous-1" }

func (l *rendezvous) Build(in Input, t *Table) error {
	members, err := l.sorter.start(in, l.Version(), t)
	if err != nil {
		return err
	}
	l.rivals = l.rivals[:0]
	equal := true
	for i := range members {
		if m := &members[i]; m.Weight > 0 {
			words := seed(in.Pool, m.Key)
			l.rivals = append(l.rivals, rival{words.next(), uint64(m.Weight), uint16(i)})
			equal = equal && uint64(m.Weight) == l.rivals[0].weight
		}
	}
	if !equal && len(l.arrivals) == 0 {
		l.arrivals = arrivals(nil, quantiles)
	}
	for slot := range t.Owner {
		if equal {
			t.Owner[slot] = l.earliestOfEqual(uint64(slot))
		} else {
			t.Owner[slot] = l.earliest(uint64(slot))
		}
	}
	return nil
}

// earliestOfEqual is earliest for equal weights, where draws compare directly.
func (l *rendezvous) earliestOfEqual(slot uint64) uint16 {
	best, bestDraw := &l.rivals[0], mix64(l.rivals[0].tie^slot)
	for i := 1; i < len(l.rivals); i++ {
		if draw := mix64(l.rivals[i].tie ^ slot); draw < bestDraw {
			best, bestDraw = &l.rivals[i], draw
		}
	}
	return best.owner
}

func (l *rendezvous) earliest(slot uint64) uint16 {
	best := &l.rivals[0]
	bestDraw := mix64(best.tie ^ slot)
	bestTime := uint64(l.arrivals[bestDraw>>48+1])
	for i := 1; i < len(l.rivals); i++ {
		rival := &l.rivals[i]
		draw := mix64(rival.tie ^ slot)
		time := uint64(l.arrivals[draw>>48+1])
		x, y := time*best.weight, bestTime*rival.weight
		if x < y || x == y && draw < bestDraw {
			best, bestDraw, bestTime = rival, draw, time
		}
	}
	return best.owner
}
