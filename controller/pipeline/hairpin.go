package pipeline

import (
	"net/netip"

	"brlb/controller/config"
	"brlb/controller/state"
	"brlb/openflow"
)

// A client on the members' own network, such as a member itself, is answered
// directly: by a member that is the client too, or by one behind the same port,
// whose answers never pass the bridge. Such clients come from the port that leads
// to the member, and from the network of a gateway. They appear to the member as
// that gateway, so that answers come to brlb. One ct() translates either source
// or destination, so the source is translated in a zone of its own. An entry that
// stays there when the connection's own one is flushed does no harm: it says no
// more than what the same two ends would be given again. If the connection is in a
// zone that is a pool's own, the entry's ct_mark says so.

// What reg8 says.
const (
	turned = 1 // enters and leaves by the same port
	hidden = 2 // has been through the zone of the clients' sources
)

// The label's bit that remembers turned.
var (
	labelTurned = openflow.CTLabel.Range(80, 80)
	regTurned   = openflow.Reg8.Range(0, 0)
)

// Gateway returns the gateway whose network an address is in, and as which members
// know a client from there that comes by their own port.
func Gateway(gateways []netip.Prefix, client netip.Addr) (gateway netip.Addr, found bool) {
	for _, g := range gateways {
		if g.Contains(client) {
			return g.Addr(), true
		}
	}
	return netip.Addr{}, false
}

// turnFlow notes that a new connection leaves by the port by which it came.
func turnFlow(m *state.Member, cookie uint64) *openflow.FlowMod {
	match := openflow.Match{openflow.Reg8.Exact(0), openflow.Reg2.Exact(uint64(m.Number)), openflow.InPort.Exact(uint64(m.Next.Port)), familyOfAddr(m.Address.Addr()).isIP}
	return flow(cookie, TableMember, prioHairpin, match, apply(
		openflow.RegLoad{Dst: openflow.Reg8.Whole(), Value: turned},
		openflow.Resubmit{Port: openflow.PortInPort, Table: TableMember},
	))
}

// hairpinFlows are the base rows: sources on their way to members, and answers
// to gateways. zones are those of pools.
func (fr frame) hairpinFlows(gateways []netip.Prefix, zones []uint16) []*openflow.FlowMod {
	cookie := Cookie(KindBase, 0, 0)
	var flows []*openflow.FlowMod
	row := func(table uint8, priority uint16, match openflow.Match, actions ...openflow.Action) {
		flows = append(flows, flow(cookie, table, priority, match, apply(actions...)))
	}
	networks := map[netip.Prefix]bool{}
	for _, gateway := range gateways {
		f := familyOfAddr(gateway.Addr())
		row(TableClassify, prioToGateway, openflow.Match{f.isIP, f.dst.Addr(gateway.Addr())},
			openflow.CT{Zone: config.HairpinZone(fr.zone), Table: TableHairpin, Exec: []openflow.Action{openflow.NAT{}}})
		if networks[gateway.Masked()] {
			continue
		}
		networks[gateway.Masked()] = true
		hide := func(priority uint16, match openflow.Match, exec ...openflow.Action) {
			row(TableToMember, priority, append(openflow.Match{openflow.Reg8.Exact(turned), f.isIP, f.src.Prefix(gateway)}, match...),
				openflow.RegLoad{Dst: openflow.Reg8.Whole(), Value: hidden},
				openflow.CT{
					Commit: true, Zone: config.HairpinZone(fr.zone), Table: TableToMember,
					Exec: append([]openflow.Action{openflow.NAT{Flags: openflow.NATSrc, MinAddr: gateway.Addr()}}, exec...),
				})
		}
		hide(prioHairpin, nil)
		for _, zone := range zones {
			hide(prioHairpin+prioOwnZone, openflow.Match{regZone.Exact(uint64(zone))}, set(openflow.CTMark.Exact(uint64(zone))))
		}
	}
	// Whose source could not be translated.
	flows = append(flows, flow(cookie, TableToMember, prioHairpin, openflow.Match{openflow.Reg8.Exact(hidden), ctState(ctTracked|ctInvalid, 0)}))
	back := func(above, zone uint16, known ...openflow.OXM) {
		known = append(known, ctState(ctTracked|ctReply, ctInvalid))
		for _, f := range families() {
			row(TableHairpin, prioRow+above, append(openflow.Match{f.isIP}, known...), answered(zone))
		}
		f := familyOf(true)
		for _, kind := range f.errors {
			row(TableHairpin, prioSpecial+above, append(f.isError(kind), known...), f.errorFromMembers(zone))
		}
	}
	back(0, fr.zone)
	for _, zone := range zones {
		back(prioOwnZone, zone, openflow.CTMark.Exact(uint64(zone)))
	}
	return append(flows, flow(cookie, TableHairpin, prioFloor, nil))
}
