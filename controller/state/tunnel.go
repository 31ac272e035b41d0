package state

import (
	"brlb/controller/config"
	"brlb/openflow"
)

// viaTunnel is the source of the next hop of members behind a tunnel.
const viaTunnel = "tunnel"

// tunnelHop is where frames for all members behind a tunnel go: its port, which
// brlb has Open vSwitch make. The way from there is the host's business.
func (s *State) tunnelHop(t config.Tunnel) (NextHop, bool) {
	port, there := s.portNamed(t.Type.Port())
	return NextHop{MAC: openflow.MAC(t.MAC), Port: port.Number, Source: viaTunnel}, there
}

// tunnelPort is the name of the port that leads to a pool's members.
func (s *State) tunnelPort(pool string) string {
	c, _ := s.cfg.Pool(pool)
	return c.Tunnel.Type.Port()
}

func (s *State) portNamed(name string) (Port, bool) {
	for _, p := range s.portList {
		if p.Name == name {
			return p, true
		}
	}
	return Port{}, false
}
