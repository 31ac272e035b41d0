package state

import (
	"cmp"
	"errors"
	"math/bits"
	"slices"

	"brlb/controller/config"
	"brlb/maglev"
)

// Anchor is the list of members, with their nominal weights, whose table layout
// v2 repairs to fit the members that are active. It is taken from the pool's
// members when the pool gets its first table, and stays as it is when members
// come and go, until somebody rebases the pool. The configuration may pin it.
type Anchor struct {
	Members []maglev.Member // sorted by key
	Digest  string
	Pinned  bool

	pool  uint16 // what Digest was made for
	slots int
}

// Input is what the pool's table is built from, but for the table before, which
// only sticky looks at.
func (p *Pool) Input() maglev.Input {
	in := maglev.Input{Pool: p.ID, Slots: p.Slots, Slack: p.BalanceSlack, Pins: p.Pins, Members: p.active()}
	if p.Anchor != nil {
		in.Anchor = p.Anchor.Members
	}
	return in
}

// Nominal is the anchor that the pool would have if it were rebased: its
// members, active or not.
func (p *Pool) Nominal() []maglev.Member {
	nominal := make([]maglev.Member, len(p.Members))
	for i := range p.Members {
		nominal[i] = maglev.Member{Key: p.Members[i].ID.Key, Weight: p.Members[i].Nominal}
	}
	return nominal
}

// Stale says whether the pool has an anchor that is not the pool's members.
func (p *Pool) Stale() bool {
	return p.Anchor != nil && !slices.EqualFunc(p.Anchor.Members, p.Members, func(a maglev.Member, m Member) bool {
		return a.Key == m.ID.Key && a.Weight == m.Nominal
	})
}

// Rebased returns the table that the pool would have if it were rebased, nil if
// it would have none.
func (p *Pool) Rebased() *maglev.Table {
	in := p.Input()
	in.Anchor = p.Nominal()
	layout, err := maglev.ByName(p.Layout)
	if err != nil {
		return nil
	}
	table := new(maglev.Table)
	if layout.Build(in, table) != nil {
		return nil
	}
	return table
}

// chooseAnchor brings the pool's anchor up to date and returns it; nil if the
// layout has none, or before the first table.
func (p *pool) chooseAnchor(c *config.Pool, now *Pool, first bool) *Anchor {
	if c.Layout != config.LayoutV2 {
		return nil
	}
	var wanted []maglev.Member
	switch {
	case len(c.Anchor) > 0:
		wanted = pinnedAnchor(c)
	case p.anchor != nil && usable(p.anchor.Members, c.Slots):
		wanted = p.anchor.Members
	case first:
		// Those that cannot serve as an anchor cannot have a table either.
		if wanted = now.Nominal(); !usable(wanted, c.Slots) {
			return nil
		}
	default:
		return nil
	}
	p.setAnchor(c, wanted)
	return p.anchor
}

// setAnchor makes a list the anchor. While nothing changes, so does not what
// p.anchor points to.
func (p *pool) setAnchor(c *config.Pool, members []maglev.Member) {
	pinned := len(c.Anchor) > 0
	if a := p.anchor; a != nil && a.pool == c.ID && a.slots == c.Slots && a.Pinned == pinned && slices.Equal(a.Members, members) {
		return
	}
	p.anchor = &Anchor{
		Members: members, Pinned: pinned, Digest: maglev.AnchorDigest(c.ID, c.Slots, members),
		pool: c.ID, slots: c.Slots,
	}
	p.current = false
}

func pinnedAnchor(c *config.Pool) []maglev.Member {
	members := make([]maglev.Member, len(c.Anchor))
	for i := range c.Anchor {
		members[i] = maglev.Member{Key: c.Anchor[i].Key(), Weight: c.Anchor[i].Weight}
	}
	slices.SortFunc(members, byKey)
	return members
}

func pinsOf(c *config.Pool) []maglev.Pin {
	var pins []maglev.Pin
	for _, pin := range c.Pins {
		pins = append(pins, maglev.Pin{Slot: pin.Slot, Key: pin.Key})
	}
	return pins
}

func byKey(a, b maglev.Member) int { return cmp.Compare(a.Key, b.Key) }

// usable says whether a table of so many slots can have this anchor: somebody
// has a weight, and everybody who has one gets a slot.
func usable(anchor []maglev.Member, slots int) bool {
	weighted := 0
	for i := range anchor {
		if anchor[i].Weight > 0 {
			weighted++
		}
	}
	return weighted > 0 && weighted <= slots
}

// LoadAnchors takes over anchors, by pool, that are stored. It must be called
// before the first table is built, that is, before LoadNumbers.
func (s *State) LoadAnchors(anchors map[string][]maglev.Member) {
	for i := range s.cfg.Pools {
		c := &s.cfg.Pools[i]
		if members := anchors[c.Name]; len(members) > 0 {
			s.pools[c.Name].setAnchor(c, slices.SortedFunc(slices.Values(members), byKey))
		}
	}
}

// Anchors returns every pool's anchor, for LoadAnchors of a later run.
func (s *State) Anchors() map[string][]maglev.Member {
	anchors := map[string][]maglev.Member{}
	for name, p := range s.pools {
		if p.anchor != nil {
			anchors[name] = p.anchor.Members
		}
	}
	return anchors
}

// Rebase makes the pool's members, as they are now, its anchor. It is false for
// a pool that keeps what it has: its layout has no anchor, the anchor is pinned,
// or the members cannot be one, for nobody has a weight above 0.
func (s *State) Rebase(pool string) bool {
	c, ok := s.cfg.Pool(pool)
	now := s.Snapshot().Pool(pool)
	if !ok || now.Anchor == nil || now.Anchor.Pinned || !usable(now.Nominal(), c.Slots) {
		return false
	}
	s.pools[pool].setAnchor(&c, now.Nominal())
	return true
}

// AdoptTables makes the tables that were found on the switch those from which
// pools of layout sticky go on, and stateless ones move.
func (s *State) AdoptTables(found []Adopted) {
	for i := range s.cfg.Pools {
		c := &s.cfg.Pools[i]
		p := s.pools[c.Name]
		if c.Layout != config.LayoutSticky && !c.Stateless() {
			continue
		}
		table, err := maglev.NewTable(config.LayoutSticky, c.ID, nil, adoptedOwners(c.ID, found))
		if err != nil {
			continue
		}
		p.current = false
		p.moves.table = table
		if c.Layout == config.LayoutSticky {
			p.previous = table
			p.layout = "" // what was built from another is void
		}
	}
}

// adoptedOwners lists the keys of a pool's slots' owners.
func adoptedOwners(pool uint16, found []Adopted) []string {
	var owners []string
	for _, f := range found {
		for _, slot := range f.Slots {
			if f.PoolID != pool {
				continue
			}
			if need := 1 << bits.Len(uint(slot)); need > len(owners) {
				owners = append(owners, make([]string, need-len(owners))...)
			}
			owners[slot] = f.Address.String()
		}
	}
	return owners
}

// build makes the slot table, unless the last one was made from the same.
func (p *pool) build(c *config.Pool, now *Pool) {
	in := now.Input()
	if p.layout == c.Layout && sameInput(&p.input, &in) {
		return
	}
	p.input, p.table, p.digest, p.problem = in, nil, "", ""
	if p.layout != c.Layout || p.builder == nil {
		var err error
		if p.builder, err = maglev.ByName(c.Layout); err != nil {
			p.problem = err.Error()
			return
		}
	}
	p.layout, p.version = c.Layout, p.builder.Version()
	in.Previous = p.previous
	table := new(maglev.Table)
	err := p.builder.Build(in, table)
	switch {
	case err == nil:
		p.table, p.digest = table, table.Digest()
	case !errors.Is(err, maglev.ErrNoMembers):
		p.problem = err.Error()
	}
	// A pool that waits for first verdicts stays as it is on the switch, and so
	// does what its next table goes on from.
	if now.Settled && p.table != nil {
		p.previous = p.table
	}
}

func sameInput(a, b *maglev.Input) bool {
	return a.Pool == b.Pool && a.Slots == b.Slots && a.Slack == b.Slack &&
		slices.Equal(a.Members, b.Members) && slices.Equal(a.Anchor, b.Anchor) && slices.Equal(a.Pins, b.Pins)
}
