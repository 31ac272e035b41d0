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

// wantedTimeouts gives both zones that hold connections the same timeouts. The one
// that remembers ports does so for as long as entries of ended connections stay,
// so that it is them that the next SYN has flushed.
func wantedTimeouts(cfg *config.Config) inventory.TimeoutWants {
	wants := inventory.TimeoutWants{Complete: true}
	timeouts := cfg.ConntrackTimeouts
	if timeouts == nil {
		return wants
	}
	wants.Zones = map[int64]vswitch.Timeouts{
		int64(cfg.Zone):                       timeouts,
		int64(pipeline.HairpinZone(cfg.Zone)): timeouts,
	}
	if ended, ok := timeouts["tcp_close"]; ok {
		wants.Zones[int64(pipeline.ReuseZone(cfg.Zone))] = vswitch.Timeouts{"tcp_syn_sent": ended, "tcp_syn_recv": ended}
	}
	return wants
}
