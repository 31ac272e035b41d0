package pipeline

import (
	"net/netip"

	"brlb/openflow"
)

// Neighbour discovery (RFC 4861).
const (
	ndSolicit   = 135
	ndAdvertise = 136

	ndHopLimit   = 255 // shows that no router has forwarded the message
	ndTargetLink = 2   // option: MAC of the target

	ndRouter    = 1 << 31 // flags of an advertisement
	ndSolicited = 1 << 30
	ndOverride  = 1 << 29
)

// isND matches solicitations or advertisements.
func isND(kind uint64) openflow.Match {
	return append(familyOf(true).isError(kind), openflow.ICMPv6Code.Exact(0))
}

// solicitFlow leads neighbour solicitations for one of brlb's addresses to
// TableOwn.
func solicitFlow(addr netip.Addr) *openflow.FlowMod {
	match := append(isND(ndSolicit), openflow.IPTTL.Exact(ndHopLimit), openflow.IPv6NDTarget.Addr(addr))
	return flow(Cookie(KindOwn, 0, 0), TableClassify, prioOwn, match, openflow.GotoTable(TableOwn))
}

// routerFlows have the advertisements of a gateway say that it is a router.
func (fr frame) routerFlows(addr netip.Addr) []*openflow.FlowMod {
	if fr.kernel {
		return nil
	}
	return []*openflow.FlowMod{flow(Cookie(KindOwn, 0, 0), TableAdvertise, prioSpecial,
		append(isND(ndAdvertise), openflow.IPv6NDTarget.Addr(addr)), advertise(fr.mac, ndRouter|ndSolicited|ndOverride))}
}

// ndFlows are the base rows of neighbour discovery. The kernel's datapath cannot
// make an advertisement: the controller does so there.
func (fr frame) ndFlows() []*openflow.FlowMod {
	row := func(table uint8, priority uint16, match openflow.Match, instructions ...openflow.Instruction) *openflow.FlowMod {
		return flow(Cookie(KindBase, 0, 0), table, priority, match, instructions...)
	}
	flows := []*openflow.FlowMod{
		// Answers to brlb's own questions.
		row(TableClassify, prioAnswer, append(isND(ndAdvertise), openflow.EthDst.MAC(fr.mac)), apply(toController())),
		row(TableAdvertise, prioFloor, nil),
	}
	if fr.kernel {
		return append(flows, row(TableOwn, prioSpecial, isND(ndSolicit), handUp()...))
	}
	// A flow may only set what its match says is there, so that a solicitation
	// becomes an advertisement in one table and gets what only advertisements have
	// in the next.
	f := familyOf(true)
	return append(flows,
		// Without the asker's MAC there is no room for brlb's: whoever asks whether
		// an address is free sends none.
		row(TableOwn, prioSpecial, append(isND(ndSolicit), openflow.IPv6NDSLL.MAC(openflow.MAC{})), handUp()...),
		row(TableOwn, prioRow, isND(ndSolicit),
			apply(
				move(openflow.EthSrc.Whole(), openflow.EthDst.Whole()),
				set(openflow.EthSrc.MAC(fr.mac)),
				move(f.src.Whole(), f.dst.Whole()),
				move(openflow.IPv6NDTarget.Whole(), f.src.Whole()),
				set(f.icmpType.Exact(ndAdvertise)),
			),
			openflow.GotoTable(TableAdvertise)),
		row(TableAdvertise, prioRow, isND(ndAdvertise), advertise(fr.mac, ndSolicited|ndOverride)),
	)
}

// advertise completes an advertisement and sends it back.
func advertise(mac openflow.MAC, flags uint64) openflow.Instruction {
	return apply(
		set(openflow.IPv6NDReserved.Exact(flags)),
		set(openflow.IPv6NDOptionsType.Exact(ndTargetLink)),
		set(openflow.IPv6NDTLL.MAC(mac)),
		output(openflow.PortInPort),
	)
}
