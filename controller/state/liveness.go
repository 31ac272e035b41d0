package state

import (
	"fmt"

	"brlb/controller/config"
)

// Codes of the verdicts of checks of type port.
const (
	PortOK   = "PORTOK"
	PortDown = "PORTDOWN"
)

// portChecks names the checks of type port.
func portChecks(cfg *config.Config) map[string]bool {
	names := map[string]bool{}
	for i := range cfg.Checks {
		if c := &cfg.Checks[i]; c.ByPort() {
			names[c.Name] = true
		}
	}
	return names
}

// mayJudge tells whether anything can find out how a member is.
func (s *State) mayJudge(m *Member) bool {
	return s.byPort[m.Check] || s.cfg.MayProbe(m.Address.Addr())
}

// judgePorts gives their verdicts to the members whose check is of type port:
// those of the ports that lead to them. While it is not known which port does,
// the verdict stays as it is.
func (s *State) judgePorts() {
	found := map[ProbeID]Verdict{}
	for i := range s.cfg.Pools {
		if !s.byPort[s.cfg.Pools[i].Check] {
			continue
		}
		members := s.pools[s.cfg.Pools[i].Name].members
		for j := range members {
			m := &members[j]
			v, ok := s.portVerdict(m)
			// Pools may reach one address by two routers.
			if ok && s.adminOf(m.id).State != Disabled && found[m.probe()].Health != Up {
				found[m.probe()] = v
			}
		}
	}
	for id, v := range found {
		if was := s.verdicts[id]; was.Code != v.Code || was.Detail != v.Detail {
			s.SetVerdict(id, v, s.now)
		}
	}
}

// portVerdict judges a member by its port; false if that is not known. The
// switch always has ports: if there are none, it has not told them yet.
func (s *State) portVerdict(m *member) (Verdict, bool) {
	hop, found := s.nextHop(m)
	if !found || len(s.ports) == 0 {
		return Verdict{}, false
	}
	port, there := s.ports[hop.Port]
	switch {
	case !there:
		return Verdict{Health: Down, Since: s.now, Code: PortDown, Detail: fmt.Sprintf("port %d is not on the bridge", hop.Port)}, true
	case !port.Live:
		return Verdict{Health: Down, Since: s.now, Code: PortDown, Detail: fmt.Sprintf("port %s (%d) is down", port.Name, port.Number)}, true
	}
	return Verdict{Health: Up, Since: s.now, Code: PortOK, Detail: fmt.Sprintf("port %s (%d) lives", port.Name, port.Number)}, true
}
