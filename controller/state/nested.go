package state

import (
	"cmp"
	"math/bits"
	"slices"

	"brlb/controller/config"
)

// A pool inside another one lends it its members: each is a member of both, and
// has a number in each. What is decided about it where it belongs holds in the
// outer pool too; operators may take it out of the outer pool alone.

// lent is a member that a pool has from one inside it.
type lent struct {
	origin MemberID      // where it belongs
	from   config.Nested // by which it comes
}

// listLent lists the members that a pool has from those inside it, whose lists
// are up to date. OVSDB may declare a member twice: then the first one counts,
// and the pool's own are before all others.
func (s *State) listLent(c *config.Pool) {
	p := s.pools[c.Name]
	p.lent = nil
	seen := map[string]bool{}
	for i := range p.members {
		seen[p.members[i].id.Key] = true
	}
	for _, n := range c.Nested {
		add := func(origin MemberID) {
			if !seen[origin.Key] {
				seen[origin.Key] = true
				p.lent = append(p.lent, lent{origin: origin, from: n})
			}
		}
		inner := s.pools[n.Pool]
		for i := range inner.members {
			add(inner.members[i].id)
		}
		for i := range inner.lent {
			add(inner.lent[i].origin)
		}
	}
	slices.SortFunc(p.lent, func(a, b lent) int { return cmp.Compare(a.origin.Key, b.origin.Key) })
}

// borrowed returns the member that id is where it belongs, and whether that is
// another pool.
func (s *State) borrowed(id MemberID) (origin MemberID, is bool) {
	p := s.pools[id.Pool]
	if p == nil {
		return id, false
	}
	i, ok := slices.BinarySearchFunc(p.lent, id.Key, func(l lent, key string) int { return cmp.Compare(l.origin.Key, key) })
	if !ok {
		return id, false
	}
	return p.lent[i].origin, true
}

// lentSnapshot is a member as it is in the pool inside, but for what operators
// say of it in the outer one.
func (s *State) lentSnapshot(outer string, l *lent) Member {
	m := *s.pools[l.from.Pool].picture.Member(l.origin.Key)
	if m.Origin == (MemberID{}) {
		m.Origin, m.Name = m.ID, m.ID.Pool+"/"+m.Name
	}
	m.ID.Pool, m.Number, m.Slots = outer, 0, 0
	if s.numbered {
		m.Number = s.numbers.Get(m.ID)
	}
	own := s.adminOf(m.ID)
	if own.Weighting.To != "" {
		_, percent := own.Weighting.To.of(0)
		m.Admin.Weighting = own.Weighting
		m.Percent = min(m.Percent*percent/100, MaxPercent)
	}
	if l.from.Weight == 0 {
		m.Percent = 0
	}
	if own.State != Enabled {
		own.Weighting = m.Admin.Weighting
		m.Admin, m.Reason = own, describeOverride(own)
	} else if s.numbered && m.Number == 0 {
		m.Reason = noNumber
	} else {
		return m
	}
	m.Active, m.Despite, m.Ramp, m.fit = false, "", 0, false
	return m
}

// sameAtOrigin says whether a member is in another pool what it is there, where
// it belongs, so that nothing need be told twice.
func (s *Snapshot) sameAtOrigin(m *Member) bool {
	p := s.Pool(m.Origin.Pool)
	if p == nil {
		return false
	}
	origin := p.Member(m.Origin.Key)
	return origin != nil && origin.Reason == m.Reason
}

// Around lists the pools that contain a pool directly, if those alone use it: no
// service does.
func (s *Snapshot) Around(pool string) []string {
	if slices.ContainsFunc(s.Services, func(x Service) bool { return x.Pool == pool || x.Primary == pool }) {
		return nil
	}
	var around []string
	for i := range s.Pools {
		if slices.ContainsFunc(s.Pools[i].Nested, func(n config.Nested) bool { return n.Pool == pool }) {
			around = append(around, s.Pools[i].Name)
		}
	}
	return around
}

// divide gives the members of a pool that contains others their parts of it: in
// the anchor, and in the table.
func (s *State) divide(c *config.Pool, p *Pool) {
	row := func(origin MemberID) *Member {
		if m := p.Member(origin.Key); m != nil && (m.Origin == origin || m.ID == origin) {
			return m
		}
		return &Member{}
	}
	origins, nominal := s.parts(c, func(id MemberID) uint64 { return 100 * uint64(row(id).Configured) })
	_, inForce := s.parts(c, func(id MemberID) uint64 {
		if m := row(id); m.Active {
			return uint64(m.Weight) * uint64(m.Percent)
		}
		return 0
	})
	for i, id := range origins {
		m := row(id)
		m.Nominal, m.Part = nominal[i], inForce[i]
	}
}

// parts divides a pool among its members and those of the pools inside it, given
// the weights in hundredths that members have where they belong.
func (s *State) parts(c *config.Pool, weight func(MemberID) uint64) (origins []MemberID, parts []uint32) {
	var groups []group
	for i := range s.pools[c.Name].members {
		id := s.pools[c.Name].members[i].id
		origins = append(origins, id)
		groups = append(groups, group{weight: weight(id), parts: []uint32{1}})
	}
	for _, n := range c.Nested {
		inner, _ := s.cfg.Pool(n.Pool)
		members, parts := s.parts(&inner, weight)
		origins = append(origins, members...)
		groups = append(groups, group{weight: 100 * uint64(n.Weight), parts: parts})
	}
	return origins, weigh(groups)
}

// group is what has a weight in a pool: a member, or a pool inside it with the
// parts of that one's members.
type group struct {
	weight uint64 // at most MaxWeight * MaxPercent
	parts  []uint32
}

// weigh gives each part of each group a weight, so that groups whose parts are
// not all 0 relate as their weights do, and the parts of a group as they are. It
// is exact as long as the common denominator fits in 31 bits; beyond that, it
// rounds there.
func weigh(groups []group) []uint32 {
	// A part x of a group of weight w, whose parts have the sum s, is worth w*x/s.
	const most = config.MaxAnchorWeight
	denominator := uint64(1)
	for _, g := range groups {
		sum, divisor := sumOf(g.parts)
		if sum == 0 || g.weight == 0 {
			continue
		}
		sum /= divisor
		sum /= gcd(sum, g.weight)
		factor := sum / gcd(sum, denominator)
		if factor > most/denominator {
			denominator = most
			break
		}
		denominator *= factor
	}
	var worth []uint64
	divisor, greatest := uint64(0), uint64(0)
	for _, g := range groups {
		sum, _ := sumOf(g.parts)
		for _, x := range g.parts {
			value := uint64(0)
			if x > 0 && g.weight > 0 {
				high, low := bits.Mul64(g.weight*uint64(x), denominator)
				value, _ = bits.Div64(high, low, sum)
				value = max(1, value)
			}
			worth = append(worth, value)
			divisor, greatest = gcd(divisor, value), max(greatest, value)
		}
	}
	weights := make([]uint32, len(worth))
	for i, value := range worth {
		switch {
		case value == 0:
		case greatest/divisor <= most:
			weights[i] = uint32(value / divisor)
		default:
			high, low := bits.Mul64(value, most)
			value, _ = bits.Div64(high, low, greatest)
			weights[i] = uint32(max(1, value))
		}
	}
	return weights
}

// sumOf returns the sum of parts, and their greatest common divisor.
func sumOf(parts []uint32) (sum, divisor uint64) {
	for _, x := range parts {
		sum += uint64(x)
		divisor = gcd(divisor, uint64(x))
	}
	return sum, divisor
}

func gcd(a, b uint64) uint64 {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}
