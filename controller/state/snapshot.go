package state

import (
	"cmp"
	"net/netip"
	"slices"
	"strings"
	"time"

	"brlb/controller/config"
	"brlb/maglev"
	"brlb/openflow"
)

// Snapshot is one immutable picture of what should be: services, pools,
// members and slot tables. Two snapshots of the same facts are equal but for
// Revision.
type Snapshot struct {
	Revision uint64
	Bridge   string
	MAC      openflow.MAC // source MAC of VIPs and gateways
	Zone     uint16       // conntrack zone of pools without one of their own
	// FlushReused has the old entry of a port flushed before a SYN from it meets
	// that: the switch's conntrack needs it.
	FlushReused bool
	// Kernel says that the datapath is the kernel's. The controller does for it what
	// it cannot: answer neighbour solicitations, and end SCTP associations.
	Kernel   bool
	NoMeters bool // the switch has none
	Drop     bool // what is none of brlb's business: drop instead of NORMAL
	Gateways []netip.Prefix
	Services []Service // sorted by name
	Pools    []Pool    // sorted by id
	Ports    []Port    // sorted by number
}

// Service is what clients talk to.
type Service struct {
	Name      string
	Addresses []netip.Addr
	Ports     []config.Port
	Pool      string // that serves it
	Primary   string // that the configuration names first
	PoolID    uint16
	PoolIDs   []uint16 // of all pools that serve it at one time or another
	Stateless bool     // so are these pools
	Zone      uint16   // their own conntrack zone; 0 if they have none
	// Affinity is that of the pool that serves.
	Affinity config.Affinity
	// OtherPorts is what becomes of packets to ports of the VIPs that no service
	// has.
	OtherPorts config.OtherPorts
}

// Equal says whether two services are the same.
func (s *Service) Equal(o *Service) bool {
	return s.Name == o.Name && s.Pool == o.Pool && s.Primary == o.Primary && s.PoolID == o.PoolID && s.OtherPorts == o.OtherPorts && s.Stateless == o.Stateless && s.Zone == o.Zone && s.Affinity == o.Affinity &&
		slices.Equal(s.Addresses, o.Addresses) && slices.Equal(s.Ports, o.Ports) && slices.Equal(s.PoolIDs, o.PoolIDs)
}

// Pool is a set of members behind a slot table.
type Pool struct {
	Name    string
	ID      uint16
	Slots   int
	Layout  string // name
	Version string // of the layout; part of Digest
	Mode    string
	Zone    uint16        // its own conntrack zone; 0 if it has none
	Limited bool          // the zone of its connections has a limit
	Tunnel  config.Tunnel // of mode tunnel
	// Moving are the slots whose open connections another member than the owner
	// still has; nil if there are none. Only stateless pools have them.
	Moving *Moving
	IPv6   bool // of the members; others own no slots and have no rows
	// Affinity says what of a packet decides the slot.
	Affinity config.Affinity
	// Rejects says that clients are told when no member is active.
	Rejects bool
	Check   string
	Nested  []config.Nested // whose members are among Members
	Names   []Name          // sorted by name; their addresses are among Members
	Members []Member        // sorted by key
	Active  int
	// Settled is false while the pool waits for first verdicts: what the
	// switch holds of it must stay as it is.
	Settled bool
	// Anchor is the anchor of layout v2; nil for the others, and before the
	// first table.
	Anchor       *Anchor
	BalanceSlack uint8
	Pins         []maglev.Pin
	// Table is the slot table, nil when no member is active.
	Table  *maglev.Table
	Digest string // of Table; "" without one
	// Emergency is the rule in force, if one is, and Alarm a sentence about it.
	Emergency Emergency
	Alarm     string
	// Problem says why there is no table although members are active.
	Problem string
}

// Equal says whether two pools are the same. Tables are never changed, so equal
// ones of the same state are one.
func (p *Pool) Equal(o *Pool) bool {
	return p.Name == o.Name && p.ID == o.ID && p.Slots == o.Slots && p.Layout == o.Layout && p.Mode == o.Mode && p.Zone == o.Zone && p.Limited == o.Limited && p.Tunnel == o.Tunnel &&
		p.Check == o.Check && p.Active == o.Active && p.Settled == o.Settled && p.Table == o.Table &&
		p.Digest == o.Digest && p.Problem == o.Problem && p.Emergency == o.Emergency && p.Alarm == o.Alarm &&
		p.IPv6 == o.IPv6 && p.Moving == o.Moving && p.Affinity == o.Affinity && p.Rejects == o.Rejects &&
		p.Version == o.Version && p.Anchor == o.Anchor && p.BalanceSlack == o.BalanceSlack && slices.Equal(p.Pins, o.Pins) &&
		slices.Equal(p.Nested, o.Nested) && slices.Equal(p.Names, o.Names) && sameMembers(p.Members, o.Members)
}

// sameMembers says whether two lists are the same.
func sameMembers(a, b []Member) bool { return shared(a, b) || slices.Equal(a, b) }

// SameServices says whether two lists are the same.
func SameServices(a, b []Service) bool {
	return shared(a, b) || slices.EqualFunc(a, b, func(x, y Service) bool { return x.Equal(&y) })
}

// shared says whether two lists are one. Snapshots share the lists of what has
// not changed, and then there is nothing to compare.
func shared[T any](a, b []T) bool { return len(a) > 0 && len(a) == len(b) && &a[0] == &b[0] }

// Member returns the pool's member with that key, or nil. A name is no key: a
// member's name may be another one's address.
func (p *Pool) Member(key string) *Member {
	i, ok := slices.BinarySearchFunc(p.Members, key, func(m Member, key string) int { return cmp.Compare(m.ID.Key, key) })
	if !ok {
		return nil
	}
	return &p.Members[i]
}

// MemberNear is Member for whoever goes through another list of much the same
// members in the same order: the member has that place there.
func (p *Pool) MemberNear(place int, key string) *Member {
	if place < len(p.Members) && p.Members[place].ID.Key == key {
		return &p.Members[place]
	}
	return p.Member(key)
}

// Stateless says whether the switch knows none of the pool's connections.
func (p *Pool) Stateless() bool { return p.Mode != config.ModeNAT }

// Serves says whether connections find members: there is a slot table, and the
// pool waits for nothing.
func (p *Pool) Serves() bool { return p.Settled && p.Table != nil }

// Owner returns the member that owns a slot, or nil.
func (p *Pool) Owner(slot int) *Member {
	if p.Table == nil || slot < 0 || slot >= p.Table.Slots() {
		return nil
	}
	return p.Member(p.Table.Key(slot))
}

// Pool returns the pool of that name, or nil.
func (s *Snapshot) Pool(name string) *Pool {
	for i := range s.Pools {
		if s.Pools[i].Name == name {
			return &s.Pools[i]
		}
	}
	return nil
}

// Find returns the members that a person may mean by "be1", "web/be1" or
// "10.30.0.11:8080". A member that a pool has from one inside it is meant only
// with the outer pool's name before it: "all/web/be1".
func (s *Snapshot) Find(what string) []*Member {
	var found []*Member
	for i := range s.Pools {
		p := &s.Pools[i]
		for j := range p.Members {
			m := &p.Members[j]
			if m.Origin == (MemberID{}) && (what == m.Name || what == m.ID.Key) || what == p.Name+"/"+m.Name || what == p.Name+"/"+m.ID.Key {
				found = append(found, m)
			}
		}
	}
	return found
}

// Snapshot returns the picture of the facts as they are now. It returns the
// previous one while nothing has changed.
func (s *State) Snapshot() *Snapshot {
	snap := &Snapshot{
		Revision:    s.revision,
		Bridge:      s.cfg.Bridge,
		MAC:         s.mac,
		Zone:        s.cfg.Zone,
		FlushReused: s.flushReused,
		Kernel:      s.kernel,
		NoMeters:    s.noMeters,
		Drop:        s.cfg.Miss == config.MissDrop,
		Gateways:    s.cfg.Gateways,
		Ports:       s.portList,
	}
	if s.cfg.MAC.IsSet() {
		snap.MAC = openflow.MAC(s.cfg.MAC)
	}
	s.retireNumbers()
	s.judgePorts()
	for _, c := range s.innerFirst {
		s.updatePicture(c)
	}
	snap.Pools = s.pictures()
	s.noteWorking()
	snap.Services = s.serviceList()
	s.lastConfig = s.cfg
	if s.last != nil && s.last.equal(snap) {
		return s.last
	}
	s.revision++
	snap.Revision = s.revision
	s.last = snap
	return snap
}

// pictures lists the pools' pictures: the last list if none has changed.
func (s *State) pictures() []Pool {
	changed := func(c *config.Pool) bool { return s.pools[c.Name].changed }
	if s.last != nil && len(s.last.Pools) == len(s.byID) && !slices.ContainsFunc(s.byID, changed) {
		return s.last.Pools
	}
	list := make([]Pool, len(s.byID))
	for i, c := range s.byID {
		list[i] = s.pools[c.Name].picture
	}
	return list
}

// serviceList lists the services. Of one configuration, these differ only by the
// pools that serve.
func (s *State) serviceList() []Service {
	serving := make([]string, len(s.cfg.Services))
	same := s.last != nil && s.lastConfig == s.cfg
	for i := range s.cfg.Services {
		serving[i] = s.servingPool(&s.cfg.Services[i])
		same = same && s.last.Services[i].Pool == serving[i]
	}
	if same {
		return s.last.Services
	}
	list := make([]Service, len(s.cfg.Services))
	for i := range s.cfg.Services {
		c := &s.cfg.Services[i]
		service := Service{Name: c.Name, Addresses: c.Addresses, Ports: c.Ports, Pool: serving[i], Primary: c.Pool, OtherPorts: c.OtherPorts}
		if p := s.pools[service.Pool]; p != nil {
			service.PoolID, service.Stateless, service.Affinity, service.Zone = p.picture.ID, p.picture.Stateless(), p.picture.Affinity, p.picture.Zone
		}
		for _, name := range candidates(c) {
			if p := s.pools[name]; p != nil {
				service.PoolIDs = append(service.PoolIDs, p.picture.ID)
			}
		}
		list[i] = service
	}
	return list
}

// equal says whether two pictures are the same but for Revision.
func (s *Snapshot) equal(o *Snapshot) bool {
	return s.Bridge == o.Bridge && s.MAC == o.MAC && s.Zone == o.Zone && s.FlushReused == o.FlushReused && s.Kernel == o.Kernel && s.NoMeters == o.NoMeters && s.Drop == o.Drop &&
		slices.Equal(s.Gateways, o.Gateways) && slices.Equal(s.Ports, o.Ports) &&
		SameServices(s.Services, o.Services) &&
		(shared(s.Pools, o.Pools) || slices.EqualFunc(s.Pools, o.Pools, func(a, b Pool) bool { return a.Equal(&b) }))
}

// updatePicture takes what has changed into a pool's picture. While nothing is
// different the picture stays the same, members and all.
func (s *State) updatePicture(c *config.Pool) {
	kept := s.pools[c.Name]
	kept.changed = false
	for _, n := range c.Nested {
		kept.current = kept.current && !s.pools[n.Pool].changed
	}
	// Time alone may end a pool's waiting.
	if kept.current && kept.settled {
		return
	}
	if now := s.poolSnapshot(c); !now.Equal(&kept.picture) {
		kept.picture, kept.changed = now, true
	}
	kept.current = true
}

func (s *State) poolSnapshot(c *config.Pool) Pool {
	p := Pool{
		Name: c.Name, ID: c.ID, Slots: c.Slots, Layout: c.Layout, Mode: c.Mode, Zone: c.Zone, Limited: s.cfg.Limited(c), Tunnel: c.Tunnel, Check: c.Check,
		IPv6: c.IPv6, Affinity: c.Affinity, Rejects: c.OnAllDown == config.OnAllDownReject, Nested: c.Nested, BalanceSlack: c.BalanceSlack, Pins: pinsOf(c),
	}
	kept := s.pools[c.Name]
	p.Names = s.namesOf(c)
	asks := s.asks(c)
	p.Members = make([]Member, 0, len(kept.members)+len(kept.lent))
	for i := range kept.members {
		p.Members = append(p.Members, s.memberSnapshot(&kept.members[i]))
	}
	for i := range kept.lent {
		p.Members = append(p.Members, s.lentSnapshot(c.Name, &kept.lent[i]))
	}
	if len(kept.lent) > 0 {
		slices.SortFunc(p.Members, func(a, b Member) int { return cmp.Compare(a.ID.Key, b.ID.Key) })
	}
	settled := !asks && !slices.ContainsFunc(p.Members, func(m Member) bool { return s.waitsFor(&m) })
	if s.numbered && (settled || !s.now.Before(s.deadline)) {
		kept.settled = true
	}
	p.Settled = kept.settled
	s.applyPolicies(c, kept, &p)
	for i := range p.Members {
		p.Members[i].Cut = cut(c, &p.Members[i])
	}
	if len(c.Nested) > 0 {
		s.divide(c, &p)
	}
	// An anchor that is taken while a name is asked for would lack its addresses.
	p.Anchor = kept.chooseAnchor(c, &p, p.Active > 0 && (p.Settled || !asks))
	kept.build(c, &p)
	p.Version, p.Table, p.Digest, p.Problem = kept.version, kept.table, kept.digest, kept.problem
	p.Moving = kept.move(c, &p, s.now)
	if p.Table != nil {
		counts := p.Table.Counts(nil)
		for i := range p.Table.Members {
			if m := p.MemberNear(i, p.Table.Members[i].Key); m != nil {
				m.Slots = counts[i]
			}
		}
	}
	return p
}

func (s *State) memberSnapshot(m *member) Member {
	out := Member{
		ID: m.id, Name: m.name, Address: m.address, Via: m.via, Check: m.check, Configured: m.weight,
		Nominal:  m.weight,
		Domain:   m.domain,
		Admin:    s.adminOf(m.id),
		Adopted:  s.adopted[m.id],
		Declared: m.declared,
		Rival:    m.rival,
		alien:    m.alien,
	}
	if s.numbered {
		out.Number = s.numbers.Get(m.id)
	}
	out.Weight, out.Percent = out.Admin.Weighting.To.of(m.weight)
	out.Health = Verdict{Health: Unknown}
	if v, ok := s.verdicts[m.probe()]; ok {
		out.Health = v
	}
	if says := out.Health.Says; says.HasWeight {
		out.Percent = min(out.Percent*says.Percent/100, MaxPercent)
	}
	out.Next, out.HasNext = s.nextHop(m)
	out.Reason = s.inactive(&out)
	out.Active = out.Reason == ""
	out.fit = out.Active
	if !out.Active && out.Health.Health != Up {
		well := out
		well.Health.Health = Up
		out.fit = s.inactive(&well) == ""
	}
	return out
}

// waitsFor says whether a pool that has just started should wait for this
// member: it may serve, but it has no verdict or no next hop yet.
func (s *State) waitsFor(m *Member) bool {
	if m.alien || m.Admin.State != Enabled || m.Health.Health == Down || !s.mayJudge(m) {
		return false
	}
	return m.Health.Health == Unknown || !m.HasNext
}

// Event is something that happened to a member or a pool, for people.
type Event struct {
	Time   time.Time `json:"time"`
	Pool   string    `json:"pool,omitempty"`
	Member string    `json:"member,omitempty"`
	Text   string    `json:"text"`
}

// Events tells what became different between two snapshots; old may be nil.
func Events(old, current *Snapshot, now time.Time) []Event {
	var events []Event
	for i := range current.Pools {
		p := &current.Pools[i]
		if old != nil && i < len(old.Pools) && old.Pools[i].Equal(p) {
			continue
		}
		var before *Pool
		if old != nil {
			before = old.Pool(p.Name)
		}
		for j := range p.Members {
			m := &p.Members[j]
			var was *Member
			if before != nil {
				was = before.MemberNear(j, m.ID.Key)
			}
			if was != nil && was.Active == m.Active && was.Reason == m.Reason || current.sameAtOrigin(m) {
				continue
			}
			text := "active"
			if !m.Active {
				text = m.Reason
			}
			events = append(events, Event{Time: now, Pool: p.Name, Member: m.Name, Text: text})
		}
		events = append(events, nameEvents(before, p, now)...)
		if before == nil {
			continue
		}
		for j := range before.Members {
			if m := &before.Members[j]; p.MemberNear(j, m.ID.Key) == nil && m.Origin == (MemberID{}) {
				events = append(events, Event{Time: now, Pool: p.Name, Member: m.Name, Text: "removed"})
			}
		}
		if before.Alarm != p.Alarm {
			text := p.Alarm
			if text == "" {
				text = "enough members are active again"
			}
			events = append(events, Event{Time: now, Pool: p.Name, Text: text})
		}
		if before.Active > 0 && p.Active == 0 && p.Alarm == "" {
			text := "no member is active: it serves nobody"
			if around := current.Around(p.Name); len(around) > 0 {
				text = "no member is active: it has no share of pool " + strings.Join(around, ", ")
			}
			events = append(events, Event{Time: now, Pool: p.Name, Text: text})
		}
	}
	if old == nil {
		return events
	}
	events = append(events, serviceEvents(old, current, now)...)
	for i := range old.Pools {
		p := &old.Pools[i]
		if there := i < len(current.Pools) && current.Pools[i].Name == p.Name; !there && current.Pool(p.Name) == nil {
			events = append(events, Event{Time: now, Pool: p.Name, Text: "removed"})
		}
	}
	return events
}

// AllActive is the picture of a configuration in which every member works:
// what a table would look like, with no switch and no probe.
func AllActive(cfg *config.Config) *Snapshot {
	s := New(cfg, time.Time{})
	s.numbered = true
	ports := []Port{{Number: 1, Name: "any", Live: true}}
	for i, kind := range cfg.Tunnels() {
		ports = append(ports, Port{Number: uint32(2 + i), Name: kind.Port(), Live: true})
	}
	s.SetPorts(ports, time.Time{})
	for _, id := range s.Probes() {
		s.SetVerdict(id, Verdict{Health: Up}, time.Time{})
	}
	for _, addr := range s.NextHops() {
		s.SetNextHop(addr, NextHop{Port: 1}, time.Time{})
	}
	return s.Snapshot()
}
