package pipeline

import (
	"maps"
	"net/netip"
	"slices"

	"brlb/controller/state"
	"brlb/openflow"
)

// nextHops lists the addresses that members are reached by, sorted.
func nextHops(s *state.Snapshot) []netip.Addr {
	found := map[netip.Addr]bool{}
	for i := range s.Pools {
		for j := range s.Pools[i].Members {
			hop := s.Pools[i].Members[j].Via
			if !hop.IsValid() {
				hop = s.Pools[i].Members[j].Address.Addr()
			}
			found[hop] = true
		}
	}
	return slices.SortedFunc(maps.Keys(found), netip.Addr.Compare)
}

// announcedFlow has the controller read what a next hop announces: a virtual
// machine that has moved, or a router that takes over from another, says so by
// gratuitous ARP or an unsolicited neighbour advertisement. Others get it too.
func announcedFlow(hop netip.Addr, drop bool) *openflow.FlowMod {
	match := openflow.Match{isARP, openflow.ARPSPA.Addr(hop), openflow.ARPTPA.Addr(hop)}
	if hop.Is6() {
		match = append(isND(ndAdvertise), openflow.IPv6NDTarget.Addr(hop))
	}
	actions := []openflow.Action{toController()}
	if !drop {
		actions = append(actions, output(openflow.PortNormal))
	}
	return flow(Cookie(KindOwn, 0, 0), TableClassify, prioAnnounced, match, openflow.Meter(meterServed), apply(actions...))
}
