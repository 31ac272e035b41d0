package pipeline

import (
	"net/netip"

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
// more than what the same two ends would be given again.

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

// HairpinZone is the conntrack zone in which clients' sources are translated,
// beside the zone of the connections.
func HairpinZone(zone uint16) uint16 {
	if zone ^= 0x4000; zone != 0 {
		return zone
	}
	return 1 // zone 0 is everybody's
}

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

func (fr frame) hairpinZone() uint16 { return HairpinZone(fr.zone) }

// turnFlow notes that a new connection leaves by the port by which it came.
func turnFlow(m *state.Member, cookie uint64) *openflow.FlowMod {
	match := openflow.Match{openflow.Reg8.Exact(0), openflow.Reg2.Exact(uint64(m.Number)), openflow.InPort.Exact(uint64(m.Next.Port)), familyOfAddr(m.Address.Addr()).isIP}
	return flow(cookie, TableMember, prioHairpin, match, apply(
		openflow.RegLoad{Dst: openflow.Reg8.Whole(), Value: turned},
		openflow.Resubmit{Port: openflow.PortInPort, Table: TableMember},
	))
}

// hairpinFlows are the base rows: sources on their way to members, and answers
// to gateways.
func (fr frame) hairpinFlows(gateways []netip.Prefix) []*openflow.FlowMod {
	cookie := Cookie(KindBase, 0, 0)
	var flows []*openflow.FlowMod
	row := func(table uint8, priority uint16, match openflow.Match, actions ...openflow.Action) {
		flows = append(flows, flow(cookie, table, priority, match, apply(actions...)))
	}
	networks := map[netip.Prefix]bool{}
	for _, gateway := range gateways {
		f := familyOfAddr(gateway.Addr())
		row(TableClassify, prioToGateway, openflow.Match{f.isIP, f.dst.Addr(gateway.Addr())},
			openflow.CT{Zone: fr.hairpinZone(), Table: TableHairpin, Exec: []openflow.Action{openflow.NAT{}}})
		if networks[gateway.Masked()] {
			continue
		}
		networks[gateway.Masked()] = true
		row(TableToMember, prioHairpin, openflow.Match{openflow.Reg8.Exact(turned), f.isIP, f.src.Prefix(gateway)},
			openflow.RegLoad{Dst: openflow.Reg8.Whole(), Value: hidden},
			openflow.CT{Commit: true, Zone: fr.hairpinZone(), Table: TableToMember, Exec: []openflow.Action{
				openflow.NAT{Flags: openflow.NATSrc, MinAddr: gateway.Addr()},
			}})
	}
	// Whose source could not be translated.
	flows = append(flows, flow(cookie, TableToMember, prioHairpin, openflow.Match{openflow.Reg8.Exact(hidden), ctState(ctTracked|ctInvalid, 0)}))
	for _, f := range families() {
		row(TableHairpin, prioRow, openflow.Match{ctState(ctTracked|ctReply, ctInvalid), f.isIP}, fr.tracked(TableReply))
	}
	f := familyOf(true)
	for _, kind := range f.errors {
		flows = append(flows, flow(cookie, TableHairpin, prioSpecial, append(f.isError(kind), ctState(ctTracked|ctReply, ctInvalid)), fr.errorFromMembers(f)))
	}
	return append(flows, flow(cookie, TableHairpin, prioFloor, nil))
}
