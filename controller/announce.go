package controller

import (
	"context"
	"net/netip"
	"slices"

	"brlb/controller/state"
)

// announce tells the networks about VIPs that are served from now on, and about
// gateways; about all of them when their MAC has changed.
func (l *loop) announce(ctx context.Context, s *state.Snapshot) {
	served := servedVIPs(s)
	if len(served) > 0 {
		for _, gateway := range s.Gateways {
			served = append(served, gateway.Addr())
		}
	}
	if s.MAC != l.announced {
		l.announced, l.served = s.MAC, nil
	}
	if slices.Equal(served, l.served) {
		return
	}
	fresh := slices.DeleteFunc(slices.Clone(served), func(addr netip.Addr) bool { return slices.Contains(l.served, addr) })
	l.served = served
	if len(fresh) > 0 {
		go func() {
			if err := l.bridge.Announce(ctx, s.MAC, fresh); err != nil {
				l.opts.Logger.Debug("not announced", "addresses", fresh, "err", err)
			}
		}()
	}
}

// servedVIPs are the addresses that the switch answers for: those behind which
// connections find members.
func servedVIPs(s *state.Snapshot) []netip.Addr {
	serves := make(map[string]bool, len(s.Pools))
	for i := range s.Pools {
		serves[s.Pools[i].Name] = s.Pools[i].Serves()
	}
	var served []netip.Addr
	seen := map[netip.Addr]bool{}
	for i := range s.Services {
		if !serves[s.Services[i].Pool] {
			continue
		}
		for _, addr := range s.Services[i].Addresses {
			if !seen[addr] {
				seen[addr] = true
				served = append(served, addr)
			}
		}
	}
	return served
}
