package state

import (
	"net/netip"
	"slices"

	"brlb/controller/config"
)

// VIPZones lists the VIPs whose connections are in another conntrack zone than
// Zone.
func (s *Snapshot) VIPZones() map[netip.Addr]uint16 {
	zones := map[netip.Addr]uint16{}
	for i := range s.Services {
		if zone := s.Services[i].Zone; zone != 0 {
			for _, vip := range s.Services[i].Addresses {
				zones[vip] = zone
			}
		}
	}
	return zones
}

// findRivals finds members of pools with different conntrack zones whose answers
// could not be told apart, and keeps all but one of them out. Those of the file
// have none, but OVSDB or DNS may name others: those of the file go before them,
// and those of pools with lower ids before the rest.
func (s *State) findRivals() {
	if !slices.ContainsFunc(s.cfg.Pools, func(p config.Pool) bool { return p.Zone != 0 }) {
		return
	}
	type place struct {
		pool  *config.Pool
		ports []config.Port
	}
	places := map[netip.Addr][]place{}
	kept := s.cfg.KeptPorts()
	for _, learned := range []bool{false, true} {
		for _, c := range s.byID {
			if c.Stateless() {
				continue
			}
			members := s.pools[c.Name].members
			for i := range members {
				m := &members[i]
				if m.learned != learned {
					continue
				}
				addr, here := m.address.Addr(), place{c, config.AnswersFrom(m.address.Port(), kept[c.Name])}
				rival := slices.IndexFunc(places[addr], func(p place) bool { return p.pool.Zone != c.Zone && config.PortsMeet(p.ports, here.ports) })
				if rival >= 0 {
					m.rival = places[addr][rival].pool.Name
					continue
				}
				places[addr] = append(places[addr], here)
			}
		}
	}
}
