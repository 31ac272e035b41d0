package state

import (
	"cmp"
	"maps"
	"net/netip"
	"slices"
	"time"

	"brlb/controller/config"
	"brlb/controller/resolve"
	"brlb/maglev"
	"brlb/openflow"
)

// State holds the facts. It is not safe for concurrent use: one goroutine
// owns it and publishes Snapshots.
type State struct {
	cfg         *config.Config
	mac         openflow.MAC
	flushReused bool
	kernel      bool
	noMeters    bool
	own         map[netip.Addr]bool      // VIPs and gateways
	mustListen  map[string][]config.Port // where members of stateless pools have to
	byPort      map[string]bool          // checks of type port, by name
	declared    []Declared
	names       map[resolve.Name]resolution // every name that a pool has
	questions   []resolve.Name              // the same, sorted
	hops        map[netip.Addr]NextHop      // that OVSDB declares
	admin       map[MemberID]Override
	verdicts    map[ProbeID]Verdict
	falls       map[ProbeID][]time.Time // when members went down, oldest first
	arp         map[netip.Addr]NextHop
	ports       map[uint32]Port
	portList    []Port // sorted by number
	numbers     *Numbers
	numbered    bool // stored numbers were loaded; before that none is assigned
	adopted     map[MemberID]bool
	pools       map[string]*pool
	byID        []*config.Pool // the configuration's pools, sorted by id
	innerFirst  []*config.Pool // the same, each after those inside it
	backups     backups
	probes      []ProbeID    // sorted
	nextHops    []netip.Addr // sorted
	deadline    time.Time    // until then a pool waits for first verdicts
	drainEnd    time.Time    // when the next drain ends; zero if none does
	now         time.Time    // time of the newest event
	revision    uint64
	last        *Snapshot
	lastConfig  *config.Config // of last
}

// pool is the part of a pool's state that outlives a snapshot.
type pool struct {
	members  []member // sorted by key
	lent     []lent   // by pools inside this one; sorted by key
	settled  bool
	policies         // what the pool's rules remember
	picture  Pool    // in the last snapshot
	current  bool    // picture takes all facts into account
	changed  bool    // picture is another one than in the snapshot before
	anchor   *Anchor // nil before the first table of layout v2
	// The slot table as last built, by whom, and what it was built from.
	builder  maglev.Layout // of the layout of that name
	layout   string
	version  string
	input    maglev.Input
	table    *maglev.Table
	digest   string
	problem  string
	previous *maglev.Table // from which layout sticky goes on
	moves    moves
}

// Declared is a member declared on an OVSDB Interface row by
// external_ids:brlb-pool, brlb-address, brlb-name, brlb-weight and brlb-domain.
type Declared struct {
	Interface string
	Pool      string
	Name      string
	Address   netip.AddrPort
	Weight    uint32
	Domain    string       // failure domain, for layout crush
	MAC       openflow.MAC // external_ids:attached-mac; zero if not given
	OFPort    uint32       // 0 if Open vSwitch has assigned none (or -1)
}

// New returns the state for a configuration. Pools wait for their members'
// first verdicts, at most until now plus the configured start deadline.
func New(cfg *config.Config, now time.Time) *State {
	s := &State{
		admin:    map[MemberID]Override{},
		verdicts: map[ProbeID]Verdict{},
		falls:    map[ProbeID][]time.Time{},
		arp:      map[netip.Addr]NextHop{},
		ports:    map[uint32]Port{},
		numbers:  NewNumbers(),
		adopted:  map[MemberID]bool{},
		pools:    map[string]*pool{},
		backups:  newBackups(),
		deadline: now.Add(cfg.StartDeadline),
		now:      now,
	}
	s.SetConfig(cfg, now)
	return s
}

// Clone returns an independent copy, for asking what a change would do. It may be
// asked in another goroutine.
func (s *State) Clone() *State {
	c := *s
	c.admin = cloneMap(s.admin)
	c.verdicts = cloneMap(s.verdicts)
	c.falls = cloneMap(s.falls)
	c.backups = s.backups.clone()
	c.names = cloneMap(s.names)
	c.arp = cloneMap(s.arp)
	c.ports = cloneMap(s.ports)
	c.adopted = cloneMap(s.adopted)
	c.numbers = &Numbers{byID: cloneMap(s.numbers.byID), used: cloneMap(s.numbers.used), next: s.numbers.next}
	c.pools = map[string]*pool{}
	for name, p := range s.pools {
		copied := *p
		copied.builder = nil
		copied.policies = p.policies.clone()
		copied.moves = p.moves.clone()
		c.pools[name] = &copied
	}
	return &c
}

func cloneMap[K comparable, V any](m map[K]V) map[K]V {
	c := make(map[K]V, len(m))
	for k, v := range m {
		c[k] = v
	}
	return c
}

// Config returns the configuration in force.
func (s *State) Config() *config.Config { return s.cfg }

// SetConfig replaces the configuration. Verdicts, admin states and next hops
// of members that stay are kept. A pool that is new while others already
// serve waits for its first verdicts like any pool at the start.
func (s *State) SetConfig(cfg *config.Config, now time.Time) {
	s.now = now
	if s.cfg != nil {
		s.deadline = now.Add(cfg.StartDeadline)
	}
	s.cfg = cfg
	s.own = ownAddresses(cfg)
	s.mustListen = cfg.StatelessPorts()
	s.byPort = portChecks(cfg)
	pools := map[string]*pool{}
	s.byID = nil
	for i := range cfg.Pools {
		s.byID = append(s.byID, &cfg.Pools[i])
		name := cfg.Pools[i].Name
		if old, ok := s.pools[name]; ok {
			pools[name] = old
		} else {
			pools[name] = &pool{}
		}
	}
	s.pools = pools
	slices.SortFunc(s.byID, func(a, b *config.Pool) int { return cmp.Compare(a.ID, b.ID) })
	s.innerFirst = cfg.InnerFirst()
	s.listNames(now)
	s.listMembers()
	s.keepServing()
	s.forget()
	s.forgetServices()
	s.outdate()
}

// outdate notes that facts about all pools have changed.
func (s *State) outdate() {
	for _, p := range s.pools {
		p.current = false
	}
}

// ownAddresses returns the addresses that no member can have. The
// configuration's own members have none of them; those of OVSDB might.
func ownAddresses(cfg *config.Config) map[netip.Addr]bool {
	own := map[netip.Addr]bool{}
	for i := range cfg.Services {
		for _, addr := range cfg.Services[i].Addresses {
			own[addr] = true
		}
	}
	for _, g := range cfg.Gateways {
		own[g.Addr()] = true
	}
	return own
}

// keepServing lets active members go on when a new configuration probes them
// by another check: until that one's first verdict, the old verdict stands.
func (s *State) keepServing() {
	if s.last == nil {
		return
	}
	for i := range s.cfg.Pools {
		before := s.last.Pool(s.cfg.Pools[i].Name)
		if before == nil {
			continue
		}
		for _, m := range s.pools[s.cfg.Pools[i].Name].members {
			was := before.Member(m.id.Key)
			if _, known := s.verdicts[m.probe()]; !known && was != nil && was.Active {
				s.adopted[m.id] = true
			}
		}
	}
}

// forget drops verdicts of what is not probed any more, and what was adopted
// of members that may not serve: a member that comes back starts anew.
func (s *State) forget() {
	wanted := map[ProbeID]bool{}
	watched := map[ProbeID]bool{}
	present := map[MemberID]bool{}
	for _, p := range s.pools {
		for i := range p.members {
			m := &p.members[i]
			present[m.id] = true
			switch {
			case s.adminOf(m.id).State == Disabled:
			case s.byPort[m.check]:
				watched[m.probe()] = true
			case s.cfg.MayProbe(m.address.Addr()):
				wanted[m.probe()] = true
			}
		}
	}
	for id := range s.verdicts {
		if !wanted[id] && !watched[id] {
			delete(s.verdicts, id)
			delete(s.falls, id)
		}
	}
	for id := range s.adopted {
		// Before OVSDB has been read, the members that it declares are missing.
		if s.adminOf(id).State != Enabled || !present[id] && s.numbered {
			delete(s.adopted, id)
		}
	}
	s.probes = slices.SortedFunc(maps.Keys(wanted), func(a, b ProbeID) int {
		return cmp.Or(a.Address.Compare(b.Address), cmp.Compare(a.Check, b.Check))
	})
}

// Probes returns what must be probed, sorted: every member that is not
// disabled, if it may be and its check is not of type port. The list is not to be changed.
func (s *State) Probes() []ProbeID { return s.probes }

// NextHops returns the addresses whose MAC must be known, sorted: members that
// are neighbours, and the routers of the others. The list is not to be changed.
func (s *State) NextHops() []netip.Addr { return s.nextHops }

// listNextHops brings the list of next hops up to date. Where OVSDB says where
// a member is nobody need ask.
func (s *State) listNextHops() {
	wanted := map[netip.Addr]bool{}
	for _, p := range s.pools {
		for i := range p.members {
			m := &p.members[i]
			if m.tunnel != (config.Tunnel{}) {
				continue
			}
			if _, declared := s.hops[m.address.Addr()]; !declared || m.via.IsValid() {
				wanted[m.nextHopAddr()] = true
			}
		}
	}
	s.nextHops = slices.SortedFunc(maps.Keys(wanted), netip.Addr.Compare)
}

// SetMAC sets the MAC address of VIPs and gateways, used when the
// configuration names none.
func (s *State) SetMAC(mac openflow.MAC) { s.mac = mac }

// SetFlushReused says whether the switch's conntrack needs the entries of ports
// that are used again flushed.
func (s *State) SetFlushReused(flush bool) { s.flushReused = flush }

// SetKernel says whether the switch's datapath is the kernel's.
func (s *State) SetKernel(kernel bool) { s.kernel = kernel }

// SetNoMeters says whether the switch has no meters.
func (s *State) SetNoMeters(none bool) { s.noMeters = none }

// SetDeclared replaces the members declared in OVSDB.
func (s *State) SetDeclared(declared []Declared, now time.Time) {
	s.now = now
	s.declared = slices.Clone(declared)
	s.hops = map[netip.Addr]NextHop{}
	for _, d := range s.declared {
		addr := d.Address.Addr()
		if _, known := s.hops[addr]; !known && d.OFPort != 0 && d.MAC != (openflow.MAC{}) {
			s.hops[addr] = NextHop{MAC: d.MAC, Port: d.OFPort, Source: "ovsdb"}
		}
	}
	s.listMembers()
	s.forget()
	s.outdate()
}

// SetVerdict records what the probes found. While health stays the same, so
// does since when.
func (s *State) SetVerdict(id ProbeID, v Verdict, now time.Time) {
	s.now = now
	switch was, known := s.verdicts[id]; {
	case known && was.Health == v.Health:
		v.Since = was.Since
	case known && was.Health == Up && v.Health == Down:
		s.rememberFall(id, now)
	}
	s.verdicts[id] = v
	key := id.Address.String()
	for i := range s.cfg.Pools {
		if s.cfg.Pools[i].Check != id.Check {
			continue
		}
		member := MemberID{Pool: s.cfg.Pools[i].Name, Key: key}
		if v.Health != Unknown {
			delete(s.adopted, member)
		}
		if s.find(member) != nil {
			s.pools[member.Pool].current = false
		}
	}
}

// SetNextHop records where an address was found.
func (s *State) SetNextHop(addr netip.Addr, hop NextHop, now time.Time) {
	s.now = now
	if old, known := s.arp[addr]; !known || old != hop {
		s.arp[addr] = hop
		s.outdate()
	}
}

// SetPorts replaces the switch's ports. A port that is new may have the number
// of one that is gone, so who was found behind that must be found anew.
func (s *State) SetPorts(ports []Port, now time.Time) {
	s.now = now
	before := s.ports
	s.ports = make(map[uint32]Port, len(ports))
	for _, p := range ports {
		s.ports[p.Number] = p
	}
	for addr, hop := range s.arp {
		port, there := s.ports[hop.Port]
		if was, known := before[hop.Port]; there && (!known || was.Name != port.Name) {
			delete(s.arp, addr)
		}
	}
	s.portList = slices.SortedFunc(maps.Values(s.ports), func(a, b Port) int { return cmp.Compare(a.Number, b.Number) })
	s.outdate()
}

// retireNumbers frees the numbers of members that are long gone. Others keep
// theirs: a member that comes back is still the one that connections know.
func (s *State) retireNumbers() {
	wanted := 0
	for _, p := range s.pools {
		wanted += len(p.members) + len(p.lent)
	}
	if s.numbered && s.numbers.Len() > wanted+maxGone {
		s.numbers.Release(func(id MemberID) bool {
			_, borrowed := s.borrowed(id)
			return borrowed || s.find(id) != nil
		})
	}
}

// maxGone is how many numbers are kept for members that are gone. They are all
// stored in one column of one row of OVSDB.
const maxGone = 1024

// LoadNumbers adds member numbers stored by an earlier run ("" if none are).
// Until it is called, no member gets a number, hence none is active. It reports
// entries that it could not use.
func (s *State) LoadNumbers(text string) error {
	s.numbered = true
	s.outdate()
	return s.numbers.Load(text)
}

// ForgetNumbers forgets all member numbers. It is for a brlb that stands by and
// follows, before LoadNumbers, what the one that writes has stored.
func (s *State) ForgetNumbers() {
	s.numbers = NewNumbers()
	s.outdate()
}

// Numbers returns the member numbers in the form that LoadNumbers reads.
func (s *State) Numbers() string { return s.numbers.String() }

// Adopted is what the switch already holds of a member.
type Adopted struct {
	Number  uint16
	PoolID  uint16
	Address netip.AddrPort
	Next    NextHop
	HasNext bool
	Slots   []uint16 // whose rows name it
}

// Adopt takes over what was found on the switch: the numbers and next hops of
// its members, and which slots they own. Members without a verdict that own
// slots count as serving until their first verdict.
func (s *State) Adopt(found []Adopted, now time.Time) {
	s.now = now
	s.outdate()
	s.adoptNames(found)
	for _, f := range found {
		p := s.poolByID(f.PoolID)
		if p == nil {
			continue
		}
		id := MemberID{Pool: p.Name, Key: f.Address.String()}
		s.numbers.Adopt(id, f.Number)
		id, _ = s.borrowed(id)
		check := p.Check
		m := s.find(id)
		if m != nil {
			check = m.check
		}
		_, judged := s.verdicts[ProbeID{Address: f.Address, Check: check}]
		if len(f.Slots) > 0 && !judged {
			s.adopted[id] = true
		}
		if m == nil || !f.HasNext || m.tunnel != (config.Tunnel{}) || f.Next.Source == viaTunnel {
			continue
		}
		hop := m.nextHopAddr()
		if _, known := s.arp[hop]; !known {
			f.Next.Source = "adopted"
			s.arp[hop] = f.Next
		}
	}
	s.AdoptTables(found)
}

// Tick lets time pass: a pool that has waited until the deadline stops waiting,
// drains come to their ends, and so do slow starts and hold-downs.
func (s *State) Tick(now time.Time) {
	s.now = now
	if !s.drainEnd.IsZero() && !now.Before(s.drainEnd) {
		s.overridden()
	}
	for _, p := range s.pools {
		if !p.wake.IsZero() && !now.Before(p.wake) {
			p.current = false
		}
	}
}

// Waiting returns the time at which pools stop waiting for first verdicts, and
// whether any pool still waits.
func (s *State) Waiting() (deadline time.Time, waiting bool) {
	for _, p := range s.pools {
		if !p.settled {
			return s.deadline, true
		}
	}
	return time.Time{}, false
}

func (s *State) poolByID(id uint16) *config.Pool {
	for i := range s.cfg.Pools {
		if s.cfg.Pools[i].ID == id {
			return &s.cfg.Pools[i]
		}
	}
	return nil
}

// find returns a member, or nil.
func (s *State) find(id MemberID) *member {
	p := s.pools[id.Pool]
	if p == nil {
		return nil
	}
	i, ok := slices.BinarySearchFunc(p.members, id.Key, func(m member, key string) int { return cmp.Compare(m.id.Key, key) })
	if !ok {
		return nil
	}
	return &p.members[i]
}

// listMembers brings the pools' lists of members up to date: those of the
// file, the addresses of its names, and those declared in OVSDB if the pool takes
// them. Where they share an address, the first of these wins.
func (s *State) listMembers() {
	for i := range s.cfg.Pools {
		c := &s.cfg.Pools[i]
		list := make([]member, 0, len(c.Members))
		seen := map[string]bool{}
		for j := range c.Members {
			m := fromConfig(c, &c.Members[j])
			seen[m.id.Key] = true
			list = append(list, m)
		}
		for j := range c.Names {
			for _, addr := range s.names[question(c, &c.Names[j])].addrs {
				at := c.Names[j].At(addr)
				if m := fromConfig(c, &at); !seen[m.id.Key] {
					seen[m.id.Key], m.learned = true, true
					list = append(list, m)
				}
			}
		}
		for j := range s.declared {
			if d := &s.declared[j]; c.FromOVSDB && d.Pool == c.Name && !seen[d.Address.String()] {
				m := fromDeclared(c, d)
				seen[m.id.Key] = true
				list = append(list, m)
			}
		}
		slices.SortFunc(list, func(a, b member) int { return cmp.Compare(a.id.Key, b.id.Key) })
		s.pools[c.Name].members = list
	}
	s.findRivals()
	for _, c := range s.innerFirst {
		s.listLent(c)
	}
	s.listNextHops()
	s.outdate()
}

// nextHop finds where a member's frames must go: into its tunnel, or by what OVSDB
// says of the member, or else what ARP found.
func (s *State) nextHop(m *member) (NextHop, bool) {
	if m.tunnel != (config.Tunnel{}) {
		return s.tunnelHop(m.tunnel)
	}
	if hop, ok := s.hops[m.address.Addr()]; ok && !m.via.IsValid() {
		return hop, true
	}
	hop, ok := s.arp[m.nextHopAddr()]
	return hop, ok
}
