package state

import (
	"slices"

	"brlb/controller/config"
)

// What follows changes what others say, the configuration and OVSDB. It is for
// copies (see Clone) that are asked what a change would do.

// EditPool changes the configuration of a pool.
func (s *State) EditPool(name string, edit func(*config.Pool)) {
	cfg := *s.cfg
	cfg.Pools = slices.Clone(cfg.Pools)
	for i := range cfg.Pools {
		if p := &cfg.Pools[i]; p.Name == name {
			p.Members = slices.Clone(p.Members)
			edit(p)
		}
	}
	s.SetConfig(&cfg, s.now)
}

// RemoveMember removes a member, whoever declares it.
func (s *State) RemoveMember(id MemberID) {
	s.EditPool(id.Pool, func(p *config.Pool) {
		p.Members = slices.DeleteFunc(p.Members, func(m config.Member) bool { return m.Key() == id.Key })
	})
	s.removeResolved(id)
	s.SetDeclared(slices.DeleteFunc(slices.Clone(s.declared), func(d Declared) bool {
		return d.Pool == id.Pool && d.Address.String() == id.Key
	}), s.now)
}

// AddMember adds a member to a pool of the configuration, one that works: its
// probes pass, and it is found behind a port that lives.
func (s *State) AddMember(pool string, m config.Member) {
	s.EditPool(pool, func(p *config.Pool) { p.Members = append(p.Members, m) })
	id := MemberID{Pool: pool, Key: m.Key()}
	delete(s.admin, id)
	if added := s.find(id); added != nil {
		s.SetVerdict(added.probe(), Verdict{Health: Up, Since: s.now}, s.now)
		s.reach(added)
	}
}

// TryConfig is SetConfig to the end: the members that it adds work, as far as
// nothing is known of them.
func (s *State) TryConfig(cfg *config.Config) {
	before := map[MemberID]bool{}
	for _, p := range s.pools {
		for i := range p.members {
			before[p.members[i].id] = true
		}
	}
	s.SetConfig(cfg, s.now)
	for _, p := range s.pools {
		for i := range p.members {
			m := &p.members[i]
			if before[m.id] {
				continue
			}
			if _, known := s.verdicts[m.probe()]; !known {
				s.SetVerdict(m.probe(), Verdict{Health: Up, Since: s.now}, s.now)
			}
			s.reach(m)
		}
	}
}

// reach finds a member behind a port that lives, unless it is found already.
func (s *State) reach(m *member) {
	for _, port := range s.portList {
		if _, known := s.nextHop(m); port.Live && !known {
			s.SetNextHop(m.nextHopAddr(), NextHop{Port: port.Number}, s.now)
		}
	}
}
