package controller

import (
	"maps"
	"time"

	"brlb/controller/config"
	"brlb/controller/inventory"
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

// portsRemembered is for how long the zone that remembers ports does so if it has no
// timeouts.
const portsRemembered = 30 * time.Second

// wantedTimeouts says how long each zone keeps what it holds. The one in which
// clients' sources are translated has the bridge's timeouts, or longer ones that
// pools have. The one that remembers ports does so for as long as entries of ended
// connections stay, so that it is them that the next SYN has flushed.
func wantedTimeouts(cfg *config.Config) inventory.TimeoutWants {
	wants := inventory.TimeoutWants{Complete: true, Zones: map[int64]vswitch.Timeouts{}}
	sources := maps.Clone(cfg.Conntrack.Timeouts)
	var ended time.Duration
	closes := false // somewhere after another time than the switch's own
	for _, z := range cfg.Zones() {
		if z.Timeouts != nil {
			wants.Zones[int64(z.Number)] = z.Timeouts
		}
		for state := range sources {
			sources[state] = max(sources[state], z.Timeouts[state])
		}
		closed, own := z.Timeouts["tcp_close"]
		if !own {
			closed = portsRemembered
		}
		ended, closes = max(ended, closed), closes || own
	}
	if sources != nil {
		wants.Zones[int64(config.HairpinZone(cfg.Zone))] = sources
	}
	if closes {
		wants.Zones[int64(config.ReuseZone(cfg.Zone))] = vswitch.Timeouts{"tcp_syn_sent": ended, "tcp_syn_recv": ended}
	}
	return wants
}
