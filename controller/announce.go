package controller

import (
	"cmp"
	"context"
	"net/netip"
	"slices"
	"time"

	"brlb/controller/bridge"
	"brlb/controller/state"
	"brlb/openflow"
)

// announceAgain is when an address is announced again, counted from the time
// before: a frame may be lost, and a switch on its way may not forward yet.
var announceAgain = [...]time.Duration{time.Second, time.Second, 2 * time.Second}

// How many frames announce addresses a second, and at once: every host of a network
// gets each of them, and has to look at it.
const (
	announceRate  = 100
	announceBurst = 50
)

// announcer decides when which address is announced in which network. It is a pure
// state machine: time comes in as an argument, and it sends nothing itself. The
// zero announcer has announced nothing.
type announcer struct {
	audience
	addrs map[netip.Addr]*announcement
	room  float64 // frames that may be sent
	at    time.Time
}

// audience is who hears of addresses, and from which MAC.
type audience struct {
	mac   openflow.MAC
	vlans []uint16     // beside the bridge's own network
	ports []state.Port // sorted by number; those that are live hear
}

type announcement struct {
	addr   netip.Addr
	since  time.Time
	next   time.Time // when the next round begins
	rounds int       // that are complete
	told   int       // networks, in this round
}

// set says which addresses are answered for now, and who is to hear. New ones are
// due at once, and all of them when somebody may not have heard yet.
func (a *announcer) set(to audience, addrs []netip.Addr, now time.Time) {
	old := a.addrs
	if to.gains(&a.audience) {
		old = nil
	}
	a.audience, a.addrs = to, make(map[netip.Addr]*announcement, len(addrs))
	for _, addr := range addrs {
		if known := old[addr]; known != nil {
			a.addrs[addr] = known
		} else {
			a.addrs[addr] = &announcement{addr: addr, since: now, next: now}
		}
	}
}

// gains says whether somebody hears now who did not before: of another MAC, in
// another VLAN, or by a port that has come or has a carrier again.
func (to *audience) gains(before *audience) bool {
	return to.mac != before.mac ||
		slices.ContainsFunc(to.vlans, func(id uint16) bool { return !slices.Contains(before.vlans, id) }) ||
		slices.ContainsFunc(to.ports, func(p state.Port) bool { return p.Live && !before.reaches(p) })
}

func (to *audience) reaches(p state.Port) bool {
	i, found := slices.BinarySearchFunc(to.ports, p, func(q, p state.Port) int { return cmp.Compare(q.Number, p.Number) })
	return found && to.ports[i].Live && to.ports[i].Name == p.Name
}

// due returns what to announce now. Addresses that have been announced less often
// go first, and of those the newest.
func (a *announcer) due(now time.Time) []bridge.Announcement {
	a.room, a.at = min(announceBurst, a.room+now.Sub(a.at).Seconds()*announceRate), now
	var waiting []*announcement
	for _, one := range a.addrs {
		if one.rounds <= len(announceAgain) && !now.Before(one.next) {
			waiting = append(waiting, one)
		}
	}
	slices.SortFunc(waiting, func(x, y *announcement) int {
		return cmp.Or(cmp.Compare(x.rounds, y.rounds), y.since.Compare(x.since), x.addr.Compare(y.addr))
	})
	var list []bridge.Announcement
	for _, one := range waiting {
		for ; one.told <= len(a.vlans); one.told++ {
			if a.room < 1 {
				return list
			}
			next := bridge.Announcement{Addr: one.addr}
			if one.told > 0 {
				next.VLAN = a.vlans[one.told-1]
			}
			list = append(list, next)
			a.room -= float64(next.Frames())
		}
		if one.rounds < len(announceAgain) {
			one.next = now.Add(announceAgain[one.rounds])
		}
		one.rounds, one.told = one.rounds+1, 0
	}
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
	to := audience{mac: held.MAC, vlans: l.inventory.VLANs, ports: l.snapshot.Ports}
	if pictures := [...]*state.Snapshot{held, l.snapshot}; pictures != l.announcedFor || !slices.Equal(to.vlans, l.announcer.vlans) {
		l.announcedFor = pictures
		stay := answered(l.snapshot)
		l.announcer.set(to, slices.DeleteFunc(answered(held), func(addr netip.Addr) bool { return !slices.Contains(stay, addr) }), now)
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
