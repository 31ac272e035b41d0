package controller

import (
	"context"
	"net/netip"
	"slices"
	"time"

	"brlb/controller/state"
	"brlb/openflow"
)

// announceAfter is when an address is announced, counted from when the switch
// began to answer for it: a frame may be lost, and a switch on its way may not
// forward yet.
var announceAfter = [...]time.Duration{0, time.Second, 2 * time.Second, 4 * time.Second}

// announcer decides when which address is announced. It is a pure state machine:
// time comes in as an argument, and it sends nothing itself. The zero announcer
// has announced nothing.
type announcer struct {
	mac   openflow.MAC
	addrs map[netip.Addr]*announcement
}

type announcement struct {
	since time.Time
	sent  int // of announceAfter
}

// set says which addresses are answered for now, and by which MAC. New ones are
// due at once, and all of them when the MAC has changed.
func (a *announcer) set(mac openflow.MAC, addrs []netip.Addr, now time.Time) {
	old := a.addrs
	if mac != a.mac {
		old = nil
	}
	a.mac, a.addrs = mac, make(map[netip.Addr]*announcement, len(addrs))
	for _, addr := range addrs {
		if known := old[addr]; known != nil {
			a.addrs[addr] = known
		} else {
			a.addrs[addr] = &announcement{since: now}
		}
	}
}

// due returns the addresses to announce now, in order.
func (a *announcer) due(now time.Time) []netip.Addr {
	var list []netip.Addr
	for addr, known := range a.addrs {
		if known.sent < len(announceAfter) && !now.Before(known.since.Add(announceAfter[known.sent])) {
			known.sent++
			list = append(list, addr)
		}
	}
	slices.SortFunc(list, netip.Addr.Compare)
	return list
}

// announce tells the networks about VIPs and gateways that the switch answers
// for. What is to be answered for no longer is not announced either, although
// the switch may still answer.
func (l *loop) announce(ctx context.Context, now time.Time) {
	held := l.reconcile.holding
	if held == nil || !l.writer {
		return
	}
	if pictures := [...]*state.Snapshot{held, l.snapshot}; pictures != l.announcedFor {
		l.announcedFor = pictures
		stay := answered(l.snapshot)
		l.announcer.set(held.MAC, slices.DeleteFunc(answered(held), func(addr netip.Addr) bool { return !slices.Contains(stay, addr) }), now)
	}
	if due := l.announcer.due(now); len(due) > 0 {
		go func() {
			if err := l.bridge.Announce(ctx, held.MAC, due); err != nil {
				l.opts.Logger.Debug("not announced", "addresses", due, "err", err)
			}
		}()
	}
}

// forgetAnnouncements has everything announced anew: another switch, or another
// brlb, may have had the addresses meanwhile.
func (l *loop) forgetAnnouncements() {
	l.announcer, l.announcedFor = announcer{}, [2]*state.Snapshot{}
}

// answered are the addresses that the switch answers for: VIPs behind which
// connections find members, or are refused, and with them the gateways.
func answered(s *state.Snapshot) []netip.Addr {
	answers := make(map[string]bool, len(s.Pools))
	for i := range s.Pools {
		answers[s.Pools[i].Name] = s.Pools[i].Serves() || s.Pools[i].Rejects
	}
	var addrs []netip.Addr
	seen := map[netip.Addr]bool{}
	for i := range s.Services {
		if !answers[s.Services[i].Pool] {
			continue
		}
		for _, addr := range s.Services[i].Addresses {
			if !seen[addr] {
				seen[addr] = true
				addrs = append(addrs, addr)
			}
		}
	}
	if len(addrs) > 0 {
		for _, gateway := range s.Gateways {
			addrs = append(addrs, gateway.Addr())
		}
	}
	return addrs
}
