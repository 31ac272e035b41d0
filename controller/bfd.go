package controller

import (
	"brlb/controller/config"
	"brlb/controller/inventory"
	"brlb/controller/state"
)

// wantBFD tells OVSDB's side where BFD is wanted, if that may have changed.
func (l *loop) wantBFD() {
	cfg := l.state.Config()
	if !l.writer || !l.loaded || l.bfdFrom == l.snapshot && l.bfdConfig == cfg {
		return
	}
	l.bfdFrom, l.bfdConfig = l.snapshot, cfg
	l.inv.WantBFD(wantedBFD(cfg, l.snapshot))
}

// wantedBFD collects the ports that lead to members whose pool asks for BFD. Of
// two pools that share a port, the one with the lower id decides. While it is
// not known where some members are, it is not known either where BFD is not
// wanted.
func wantedBFD(cfg *config.Config, s *state.Snapshot) inventory.BFDWants {
	wants := inventory.BFDWants{Ports: map[uint32]config.BFD{}, Complete: true}
	for i := range s.Pools {
		p := &s.Pools[i]
		c, _ := cfg.Pool(p.Name)
		if c.BFD == (config.BFD{}) {
			continue
		}
		for j := range p.Members {
			m := &p.Members[j]
			if !m.HasNext {
				wants.Complete = false
				continue
			}
			if _, taken := wants.Ports[m.Next.Port]; !taken {
				wants.Ports[m.Next.Port] = c.BFD
			}
		}
	}
	return wants
}
