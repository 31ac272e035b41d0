package pipeline

import (
	"slices"

	"brlb/openflow"
)

// Open vSwitch's userspace conntrack, from 3.0 to 3.2, gives up the entry of a
// connection that has ended as soon as a SYN meets it, but keeps the tuple of
// its answers for up to 20 s. The NAT of the new connection finds that tuple
// taken and gives the client another source port, which the member may still
// have in TIME_WAIT: it then refuses the connection. So no SYN may meet such an
// entry; only the controller can take entries away whole. SYNs therefore go
// through a zone of their own first, which remembers for 30 s, conntrack's
// timeout for half a handshake, which ports connections began from.

// What ct_mark says in that zone.
const (
	portUsed  = 1 // a connection began from this port
	portAsked = 2 // the controller was asked; if it has not answered, the next SYN goes on
)

// reuseZone is the conntrack zone that remembers the ports.
func (fr frame) reuseZone() uint16 {
	if zone := fr.zone ^ 0x8000; zone != 0 {
		return zone
	}
	return 1 // zone 0 is everybody's
}

// syn is the row that leads the SYNs of a service there. match are packets to
// the service.
func (fr frame) syn(cookie uint64, priority uint16, match openflow.Match) *openflow.FlowMod {
	match = append(slices.Clone(match), isSYN)
	return flow(cookie, TableClassify, priority, match, apply(openflow.CT{Zone: fr.reuseZone(), Table: TableReuse}))
}

// reuseFlows decide about SYNs by what that zone remembers.
func (fr frame) reuseFlows(f *family) []*openflow.FlowMod {
	cookie := Cookie(KindBase, 0, 0)
	remember := func(mark uint64) openflow.Action {
		return openflow.CT{
			Commit: true, Zone: fr.reuseZone(), Table: openflow.CTNoTable,
			Exec: []openflow.Action{set(openflow.CTMark.Exact(mark))},
		}
	}
	track := openflow.CT{Zone: fr.zone, Table: TableVIP, Exec: []openflow.Action{openflow.NAT{}}}
	return []*openflow.FlowMod{
		flow(cookie, TableReuse, prioSpecial, openflow.Match{openflow.CTMark.Exact(portUsed), openflow.Reg3.Exact(0), f.isIP, isTCP},
			apply(remember(portAsked), toController())),
		flow(cookie, TableReuse, prioRow, openflow.Match{f.isIP, isTCP}, apply(remember(portUsed), track)),
	}
}
