package controller

import (
	"slices"

	"brlb/controller/inventory"
)

// wantTunnels tells OVSDB's side for which tunnels the bridge needs ports, if that
// has changed: for those of the configuration, and until the switch holds its
// flows, for those of the flows before.
func (l *loop) wantTunnels() {
	if !l.writer || !l.loaded {
		return
	}
	types := l.state.Config().Tunnels()
	if held := l.reconcile.confirmed; held != nil && held != l.snapshot {
		for i := range held.Pools {
			if kind := held.Pools[i].Tunnel.Type; kind != "" && !slices.Contains(types, kind) {
				types = append(types, kind)
			}
		}
	}
	if l.tunnelsAsked && slices.Equal(types, l.tunnels) {
		return
	}
	l.tunnels, l.tunnelsAsked = types, true
	l.inv.WantTunnels(inventory.TunnelWants{Types: types, Complete: true})
}
