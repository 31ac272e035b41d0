package maglev

// seats divides M slots among members in proportion to their weights, by the
// method of Webster (Sainte-Lague), with the first seat free: as long as there
// are seats, the next one goes to the member with the greatest
// weight/(2*seats+1), and a member without a seat comes before all others.
// Equal claims are settled by the members' tie words, the smaller first.
//
// Webster's is a divisor method: each seat has a claim of its own, and the M
// greatest claims win. So a member that leaves frees its own seats and takes
// none from the others, and one that joins or grows takes from the others and
// gives them nothing. (No method that stays within the rounded-down and
// rounded-up exact share for all weights has this property: Balinski and
// Young, Fair Representation, 1982. Webster's leaves those bounds only for
// weights so lopsided that many small members round up together.)
type seats struct {
	heap []claim
}

// claim is a member's claim to its next seat, or to the last one it has. The
// claim to the seat that makes it odd = 2*seats+1 in the rule above is
// weight/odd.
type claim struct {
	weight uint32
	odd    uint32
	tie    uint64
	member int32
}

// stronger reports whether a comes before b.
func (a *claim) stronger(b *claim) bool {
	x, y := uint64(a.weight)*uint64(b.odd), uint64(b.weight)*uint64(a.odd)
	if x != y {
		return x > y
	}
	if a.tie != b.tie {
		return a.tie < b.tie
	}
	return a.member < b.member
}

// divide appends to dst the number of slots of each bidder. Those with a
// weight are at least one and at most slots.
func (s *seats) divide(dst []int32, slots int, bidders []bidder) []int32 {
	total := uint64(0)
	for i := range bidders {
		total += uint64(bidders[i].weight)
	}
	// All claims of total/(2*slots) and more, and the free first seats: the
	// outcome of the method for some number of seats near to slots.
	given := 0
	weight, quota := uint32(0), int32(0)
	for i := range bidders {
		b := &bidders[i]
		if b.weight != weight { // else the division would give the same
			weight = b.weight
			quota = 0
			if weight > 0 {
				quota = max(1, int32((2*uint64(slots)*uint64(weight)+total)/(2*total)))
			}
		}
		dst = append(dst, quota)
		given += int(quota)
	}
	switch {
	case given < slots:
		s.grant(slots-given, dst, bidders)
	case given > slots:
		s.withdraw(given-slots, dst, bidders)
	}
	return dst
}

// grant hands out n more seats to the strongest claims.
func (s *seats) grant(n int, quota []int32, bidders []bidder) {
	s.heap = s.heap[:0]
	for i := range bidders {
		if b := &bidders[i]; b.weight > 0 {
			s.heap = append(s.heap, claim{b.weight, 2*uint32(quota[i]) + 1, b.tie, int32(i)})
		}
	}
	s.heapify((*claim).stronger)
	for range n {
		top := &s.heap[0]
		quota[top.member]++
		top.odd += 2
		s.sift(0, (*claim).stronger)
	}
}

// withdraw takes back the n weakest seats, but nobody's first.
func (s *seats) withdraw(n int, quota []int32, bidders []bidder) {
	weaker := func(a, b *claim) bool { return b.stronger(a) }
	s.heap = s.heap[:0]
	for i := range bidders {
		if b := &bidders[i]; quota[i] > 1 {
			s.heap = append(s.heap, claim{b.weight, 2*uint32(quota[i]) - 1, b.tie, int32(i)})
		}
	}
	s.heapify(weaker)
	for range n {
		top := &s.heap[0]
		if quota[top.member]--; quota[top.member] > 1 {
			top.odd -= 2
		} else {
			last := len(s.heap) - 1
			s.heap[0] = s.heap[last]
			s.heap = s.heap[:last]
		}
		s.sift(0, weaker)
	}
}

func (s *seats) heapify(first func(a, b *claim) bool) {
	for i := len(s.heap)/2 - 1; i >= 0; i-- {
		s.sift(i, first)
	}
}

// sift moves the claim at i down to its place in the heap.
func (s *seats) sift(i int, first func(a, b *claim) bool) {
	for {
		child := 2*i + 1
		if child >= len(s.heap) {
			return
		}
		if right := child + 1; right < len(s.heap) && first(&s.heap[right], &s.heap[child]) {
			child = right
		}
		if !first(&s.heap[child], &s.heap[i]) {
			return
		}
		s.heap[i], s.heap[child] = s.heap[child], s.heap[i]
		i = child
	}
}
