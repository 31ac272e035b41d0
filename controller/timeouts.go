package controller

import (
	"brlb/controller/config"
	"brlb/controller/inventory"
	"brlb/controller/pipeline"
	"brlb/ovsdb/vswitch"
)

// wantTimeouts tells OVSDB's side how long conntrack is to keep connections, if
// that may have changed.
func (l *loop) wantTimeouts() {
	cfg := l.state.Config()
	if !l.writer || !l.loaded || l.timeoutsFrom == cfg {
		return
	}
	l.timeoutsFrom = cfg
	l.inv.WantTimeouts(wantedTimeouts(cfg))
}

// wantedTimeouts gives both zones that hold connections the same timeouts. The
// third, which remembers ports, keeps the switch's.
func wantedTimeouts(cfg *config.Config) inventory.TimeoutWants {
	wants := inventory.TimeoutWants{Complete: true}
	if timeouts := cfg.ConntrackTimeouts; timeouts != nil {
		wants.Zones = map[int64]vswitch.Timeouts{
			int64(cfg.Zone):                       timeouts,
			int64(pipeline.HairpinZone(cfg.Zone)): timeouts,
		}
	}
	return wants
}
