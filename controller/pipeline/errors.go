package pipeline

import (
	"net/netip"
	"slices"

	"brlb/openflow"
)

// ICMP errors about connections of brlb's.
//
// Open vSwitch's userspace conntrack translates the addresses of an ICMPv6 error
// as if a segment or datagram of the connection followed: what it takes for that
// one's checksum, and adjusts, is the quoted source address, or the MTU. An error
// that has its new source already is left as it is otherwise. So errors from the
// members' side get the VIP as their source before they are translated.

// errorToVIP leads an ICMP error to the member. A kernel's conntrack translates
// errors that go the way of a connection's first packet only if they are
// committed, which adds no entry.
func (fr frame) errorToVIP(zone uint16) []openflow.Action {
	return fr.into(zone, openflow.CT{Commit: true, Zone: zone, Table: TableVIP, Exec: []openflow.Action{openflow.NAT{}}})
}

// errorsToRest keep ICMP errors from the row of a service for all protocols.
func errorsToRest(cookie uint64, addr netip.Addr) []*openflow.FlowMod {
	f := familyOfAddr(addr)
	var flows []*openflow.FlowMod
	for _, kind := range f.errors {
		flows = append(flows, flow(cookie, TableClassify, prioErrorAny, append(f.isError(kind), f.dst.Addr(addr)), openflow.GotoTable(TableRest)))
	}
	return flows
}

// errorFromMembers leads an ICMP error from the members' side to the client.
func (f *family) errorFromMembers(zone uint16) openflow.Action {
	if f.isIP != familyOf(true).isIP {
		return answered(zone)
	}
	return openflow.CT{Zone: zone, Table: TableError}
}

// errorFlows are the rows of TableError.
func (fr frame) errorFlows(zones []uint16) []*openflow.FlowMod {
	f, cookie := familyOf(true), Cookie(KindBase, 0, 0)
	known := openflow.Match{ctState(ctTracked|ctReply, ctInvalid), f.isIP}
	row := func(priority uint16, match openflow.Match, zone uint16) *openflow.FlowMod {
		return flow(cookie, TableError, priority, match, apply(move(openflow.CTIPv6Dst.Whole(), f.src.Whole()), answered(zone)))
	}
	flows := []*openflow.FlowMod{row(prioRow, known, fr.zone), flow(cookie, TableError, prioFloor, nil)}
	for _, zone := range zones {
		flows = append(flows, row(prioRow+prioOwnZone, append(slices.Clone(known), openflow.CTZone.Exact(uint64(zone))), zone))
	}
	return flows
}
