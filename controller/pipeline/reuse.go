package pipeline

import (
	"slices"

	"brlb/controller/config"
	"brlb/openflow"
)

// Open vSwitch's userspace conntrack, from 3.0 to 3.2, gives up the entry of a
// connection that has ended as soon as a SYN meets it, but keeps the tuple of
// its answers for up to 20 s. The NAT of the new connection finds that tuple
// taken and gives the client another source port, which the member may still
// have in TIME_WAIT: it then refuses the connection. So no SYN may meet such an
// entry, and only the controller can take an entry away whole. SYNs therefore go
// through a zone of their own first. It remembers the ports from which
// connections began or were closed, for 30 s, or for tcp_close of the
// configuration's timeouts: its entries stay half open.

// What ct_mark says in that zone.
const (
	portUsed  = 1
	portAsked = 2 // the controller was asked; should it not answer, the next SYN goes on
)

var isFIN = openflow.TCPFlags.Masked(tcpFIN, tcpFIN|tcpSYN|tcpRST)

// rememberPort writes down what is known of a packet's port.
func (fr frame) rememberPort(mark uint64) openflow.Action {
	return openflow.CT{
		Commit: true, Zone: config.ReuseZone(fr.zone), Table: openflow.CTNoTable,
		Exec: []openflow.Action{set(openflow.CTMark.Exact(mark))},
	}
}

// watchPorts are the rows that note how connections to a service begin and end.
// to matches the packets of the service.
func (fr frame) watchPorts(cookie uint64, priority, zone uint16, to openflow.Match) []*openflow.FlowMod {
	return []*openflow.FlowMod{
		flow(cookie, TableClassify, priority, append(slices.Clone(to), isSYN),
			apply(fr.into(zone, openflow.CT{Zone: config.ReuseZone(fr.zone), Table: TableReuse})...)),
		flow(cookie, TableClassify, priority, append(slices.Clone(to), isFIN),
			apply(append([]openflow.Action{fr.rememberPort(portUsed)}, fr.toVIP(zone)...)...)),
	}
}

// reuseFlows decide about SYNs by what is remembered of their ports.
func (fr frame) reuseFlows(f *family, zones []uint16) []*openflow.FlowMod {
	cookie := Cookie(KindBase, 0, 0)
	remember := func(priority, zone uint16, match ...openflow.OXM) *openflow.FlowMod {
		return flow(cookie, TableReuse, priority, append(match, f.isIP, isTCP), apply(fr.rememberPort(portUsed), tracked(zone, TableVIP)))
	}
	flows := []*openflow.FlowMod{
		flow(cookie, TableReuse, prioSpecial, openflow.Match{openflow.CTMark.Exact(portUsed), openflow.Reg3.Exact(0), f.isIP, isTCP},
			apply(fr.rememberPort(portAsked), toController())),
		remember(prioRow, fr.zone),
	}
	for _, zone := range zones {
		flows = append(flows, remember(prioRow+prioOwnZone, zone, regZone.Exact(uint64(zone))))
	}
	return flows
}
