package controller

import (
	"context"
	"fmt"
	"slices"
	"strings"

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

// routes checks that the userspace datapath, which does not use the kernel's
// routes, knows a way to the active members behind tunnels.
func (c *checker) routes(ctx context.Context) {
	for i := range c.view.snapshot.Pools {
		p := &c.view.snapshot.Pools[i]
		if p.Tunnel.Type == "" {
			continue
		}
		var wrong, devices []string
		for j := range p.Members {
			if !p.Members[j].Active {
				continue
			}
			addr := p.Members[j].Address.Addr()
			text, err := ask(ctx, c.view.config.RunDir, "ovs/route/lookup", addr.String())
			if err != nil {
				wrong = append(wrong, fmt.Sprintf("%s: %v", addr, err))
				continue
			}
			for line := range strings.Lines(text) {
				if device, found := strings.CutPrefix(strings.TrimSpace(line), "dev "); found && !slices.Contains(devices, device) {
					devices = append(devices, device)
				}
			}
		}
		c.say("pool "+p.Name+": routes", len(wrong) == 0, "%s", orAll(wrong, fmt.Sprintf("%d members by %s", p.Active, strings.Join(devices, ", "))))
	}
}
