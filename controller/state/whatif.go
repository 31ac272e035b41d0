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
	added := s.find(id)
	if added == nil {
		return
	}
	s.SetVerdict(added.probe(), Verdict{Health: Up, Since: s.now}, s.now)
	for _, port := range s.portList {
		if _, known := s.nextHop(added); port.Live && !known {
			s.SetNextHop(added.nextHopAddr(), NextHop{Port: port.Number}, s.now)
		}
	}
}
