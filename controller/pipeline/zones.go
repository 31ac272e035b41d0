package pipeline

import (
	"cmp"
	"net/netip"
	"slices"

	"brlb/controller/state"
	"brlb/openflow"
)

// Pools with conntrack zones of their own. The VIP tells the zone of what comes
// from a client, and the address and port of what a member answers. Errors and
// fragments from the members' side show neither, so they are put to every zone:
// those that do not know them drop them.

// regZone holds the zone of a packet to a VIP, if it is a pool's own.
const regZone = openflow.Reg10

// prioOwnZone is by how much a row of such a zone is above that for all others.
const prioOwnZone = 1

// ownZones lists the zones that are pools' own, sorted.
func ownZones(s *state.Snapshot) []uint16 {
	var zones []uint16
	for i := range s.Pools {
		if zone := s.Pools[i].Zone; zone != 0 {
			zones = append(zones, zone)
		}
	}
	slices.Sort(zones)
	return slices.Compact(zones)
}

// into sends a packet to a VIP into its zone.
func (fr frame) into(zone uint16, ct openflow.Action) []openflow.Action {
	if zone == fr.zone {
		return []openflow.Action{ct}
	}
	return []openflow.Action{set(regZone.Exact(uint64(zone))), ct}
}

// ZoneIn returns the zone of a packet to a VIP that came up. bridge is that of pools
// without one of their own.
func ZoneIn(m openflow.Match, bridge uint16) uint16 {
	own, _ := m.Get(regZone)
	return cmp.Or(uint16(own.Uint64()), bridge)
}

// toVIP sends a packet to a VIP through conntrack.
func (fr frame) toVIP(zone uint16) []openflow.Action { return fr.into(zone, tracked(zone, TableVIP)) }

// inEveryZone puts a packet to every zone.
func (fr frame) inEveryZone(zones []uint16, ct func(zone uint16) openflow.Action) openflow.Instruction {
	actions := []openflow.Action{ct(fr.zone)}
	for _, zone := range zones {
		actions = append(actions, ct(zone))
	}
	return apply(actions...)
}

// mayLackRoom says whether the switch may send packets of a pool's new connections
// on as they are, for which there is no entry any more: a kernel's datapath drops
// them.
func (fr frame) mayLackRoom(p *state.Pool) bool { return p.Limited && !fr.kernel }

// noRoomFlows drop such packets, which members that forward packets would send back.
// What has been through the zone of the clients' sources has an entry.
func noRoomFlows() []*openflow.FlowMod {
	var flows []*openflow.FlowMod
	for _, way := range []uint64{0, turned} {
		flows = append(flows, flow(Cookie(KindBase, 0, 0), TableToMember, prioNoRoom,
			openflow.Match{ctState(ctTracked|ctNew, 0), openflow.CTMark.Exact(0), openflow.Reg8.Exact(way)}))
	}
	return flows
}

// vipZoneFlows are the rows of a VIP with another zone than the bridge's.
func (fr frame) vipZoneFlows(addr netip.Addr, zone uint16) []*openflow.FlowMod {
	f := familyOfAddr(addr)
	row := func(match openflow.Match, actions []openflow.Action) *openflow.FlowMod {
		return flow(Cookie(KindBase, 0, 0), TableRest, prioRow+prioOwnZone, append(match, f.dst.Addr(addr)), apply(actions...))
	}
	flows := []*openflow.FlowMod{row(openflow.Match{f.isIP, isFragment}, fr.toVIP(zone))}
	for _, kind := range f.errors {
		flows = append(flows, row(f.isError(kind), fr.errorToVIP(zone)))
	}
	return flows
}

// TraceStates are the options by which ofproto/trace is told what conntrack says of
// a pool's new connection each time: that it is new, and that there was room for it.
func TraceStates(s *state.Snapshot, p *state.Pool, proto uint8) []string {
	states := []string{"--ct-next", "trk,new"}
	if !frameOf(s).mayLackRoom(p) {
		return states
	}
	if s.FlushReused && proto == protoTCP {
		states = append(states, "--ct-next", "trk,new")
	}
	return append(states, "--ct-next", "trk,est")
}
