package pipeline

import "brlb/openflow"

// Open vSwitch's userspace conntrack translates the addresses of an ICMPv6 error
// as if a segment or datagram of the connection followed: what it takes for that
// one's checksum, and adjusts, is the quoted source address, or the MTU. An error
// that has its new source already is left as it is otherwise. So errors from the
// members' side get the VIP as their source before they are translated.

// errorFromMembers leads an ICMP error from the members' side to the client.
func (fr frame) errorFromMembers(f *family) openflow.Instruction {
	if f.isIP != familyOf(true).isIP {
		return fr.track(TableReply)
	}
	return apply(openflow.CT{Zone: fr.zone, Table: TableError})
}

// errorFlows are the rows of TableError.
func (fr frame) errorFlows() []*openflow.FlowMod {
	f, cookie := familyOf(true), Cookie(KindBase, 0, 0)
	return []*openflow.FlowMod{
		flow(cookie, TableError, prioRow, openflow.Match{ctState(ctTracked|ctReply, ctInvalid), f.isIP},
			apply(move(openflow.CTIPv6Dst.Whole(), f.src.Whole()), fr.tracked(TableReply))),
		flow(cookie, TableError, prioFloor, nil),
	}
}
