package pipeline

import (
	"net/netip"

	"brlb/controller/state"
	"brlb/openflow"
)

// Values of header fields.
const (
	etherIPv4 = 0x0800
	etherARP  = 0x0806
	protoICMP = 1
	protoTCP  = 6

	arpRequest = 1
	arpReply   = 2

	icmpEchoRequest = 8
	icmpEchoReply   = 0
	echoTTL         = 64

	tcpSYN = 0x02
	tcpACK = 0x10
)

// Bits of ct_state (ovs-fields(7)).
const (
	ctNew     = 0x01
	ctEst     = 0x02
	ctReply   = 0x08
	ctInvalid = 0x10
	ctTracked = 0x20
)

// controllerMaxLen is how much of a packet comes with a packet-in: all.
const controllerMaxLen = openflow.MaxLenAll

// portNone16 is OFPP_NONE in the 16-bit in_port: a packet may then leave
// through the port by which it came.
const portNone16 = 0xffff

// ct_mark and ct_label of a connection. Replies leave by what the label says.
var (
	markMember = openflow.CTMark.Range(0, 15)
	markPool   = openflow.CTMark.Range(16, 31)
	labelMAC   = openflow.CTLabel.Range(0, 47)
	labelPort  = openflow.CTLabel.Range(48, 63)
)

// Mark returns the ct_mark of a connection: pool id above, member number below.
func Mark(pool, member uint16) uint32 { return uint32(pool)<<16 | uint32(member) }

// MarkParts takes a ct_mark apart.
func MarkParts(mark uint32) (pool, member uint16) { return uint16(mark >> 16), uint16(mark) }

var (
	isARP  = openflow.EthType.Exact(etherARP)
	isIPv4 = openflow.EthType.Exact(etherIPv4)
	isTCP  = openflow.IPProto.Exact(protoTCP)
	isICMP = openflow.IPProto.Exact(protoICMP)
	isSYN  = openflow.TCPFlags.Masked(tcpSYN, tcpSYN|tcpACK)
)

func ctState(set, clear uint64) openflow.OXM { return openflow.CTState.Masked(set, set|clear) }

func flow(cookie uint64, table uint8, priority uint16, match openflow.Match, instructions ...openflow.Instruction) *openflow.FlowMod {
	f := openflow.NewFlowMod(openflow.FlowAdd)
	f.Cookie, f.Table, f.Priority, f.Match, f.Instructions = cookie, table, priority, match, instructions
	return f
}

func apply(actions ...openflow.Action) openflow.Instruction { return openflow.ApplyActions(actions) }

func output(port openflow.PortNo) openflow.Action { return openflow.Output{Port: port} }

func toController() openflow.Action {
	return openflow.Output{Port: openflow.PortController, MaxLen: controllerMaxLen}
}

func set(field openflow.OXM) openflow.Action { return openflow.SetField{OXM: field} }

func move(src, dst openflow.Subfield) openflow.Action {
	return openflow.RegMove{Src: src, Dst: dst}
}

// baseFlows are the rows that the pipeline needs whatever the services are.
func (fr frame) baseFlows(drop bool) []*openflow.FlowMod {
	cookie := Cookie(KindBase, 0, 0)
	row := func(table uint8, priority uint16, match openflow.Match, instructions ...openflow.Instruction) *openflow.FlowMod {
		return flow(cookie, table, priority, match, instructions...)
	}
	// What is none of brlb's business.
	var other []openflow.Instruction
	if !drop {
		other = append(other, apply(output(openflow.PortNormal)))
	}
	known := apply(move(markMember, openflow.Reg2.Range(0, 15)))
	leave := apply(
		set(openflow.EthSrc.MAC(fr.mac)),
		move(labelMAC, openflow.EthDst.Whole()),
		openflow.DecNwTTL{},
		openflow.RegLoad{Dst: openflow.InPortNXM.Whole(), Value: portNone16},
		openflow.OutputReg{Src: labelPort, MaxLen: openflow.MaxLenAll},
	)
	flows := []*openflow.FlowMod{
		row(TableClassify, prioMiss, nil, other...),
		// Answers to brlb's own ARP requests.
		row(TableClassify, prioARPForUs, openflow.Match{openflow.EthDst.MAC(fr.mac), isARP, openflow.ARPOp.Exact(arpReply)}, apply(toController())),
		// Nobody else has this MAC: NORMAL would flood what is sent to it, and
		// answers of connections that brlb has forgotten would leave un-NATed.
		row(TableClassify, prioForUs, openflow.Match{openflow.EthDst.MAC(fr.mac)}),

		row(TableOwn, prioRow, openflow.Match{isARP}, apply(arpAnswer(fr.mac)...)),
		row(TableOwn, prioRow, openflow.Match{isIPv4, isICMP, openflow.ICMPv4Type.Exact(icmpEchoRequest)}, apply(echoAnswer(fr.mac)...)),

		// A SYN on an entry whose member is not active, be it of a connection that
		// has ended or of one that was never answered: the entry must go before the
		// client can be given another member. If it has not gone, the packet ends
		// here.
		row(TableVIP, prioStale, openflow.Match{ctState(ctTracked, ctInvalid), openflow.Reg3.Exact(0), isIPv4, isTCP, isSYN}, apply(toController())),
		row(TableVIP, prioStuck, openflow.Match{ctState(ctTracked, ctInvalid), isIPv4, isTCP, isSYN}),
		row(TableVIP, prioKnown, openflow.Match{ctState(ctTracked, ctReply|ctInvalid), isIPv4}, known, openflow.GotoTable(TableToMember)),
		// A packet that was sent again and is still invalid ends here.
		row(TableVIP, prioInvalid, openflow.Match{ctState(ctTracked|ctInvalid, 0), openflow.Reg3.Exact(0), isIPv4, isTCP, isSYN}, apply(toController())),
		row(TableVIP, prioFloor, nil),

		row(TableReply, prioRow, openflow.Match{ctState(ctTracked|ctEst|ctReply, 0), isIPv4}, openflow.GotoTable(TableToClient)),
		// Addressed to brlb but of no known connection: it must not be flooded.
		row(TableReply, prioUnbroken, openflow.Match{openflow.EthDst.MAC(fr.mac)}),
		row(TableReply, prioFloor, nil, other...),

		row(TableHash, prioFloor, nil),
		row(TableSlots, prioFloor, nil),
		row(TableMember, prioFloor, nil),
		row(TableToMember, prioFloor, nil),

		row(TableToClient, prioRow, openflow.Match{isIPv4}, leave),
	}
	return flows
}

// arpAnswer turns a request into its answer and sends it back (RFC 826).
func arpAnswer(mac openflow.MAC) []openflow.Action {
	return []openflow.Action{
		move(openflow.EthSrc.Whole(), openflow.EthDst.Whole()),
		set(openflow.EthSrc.MAC(mac)),
		set(openflow.ARPOp.Exact(arpReply)),
		move(openflow.ARPSHA.Whole(), openflow.ARPTHA.Whole()),
		set(openflow.ARPSHA.MAC(mac)),
		openflow.StackPush{Src: openflow.ARPTPA.Whole()},
		move(openflow.ARPSPA.Whole(), openflow.ARPTPA.Whole()),
		openflow.StackPop{Dst: openflow.ARPSPA.Whole()},
		output(openflow.PortInPort),
	}
}

// echoAnswer turns an echo request into its reply and sends it back (RFC 792).
func echoAnswer(mac openflow.MAC) []openflow.Action {
	return []openflow.Action{
		move(openflow.EthSrc.Whole(), openflow.EthDst.Whole()),
		set(openflow.EthSrc.MAC(mac)),
		openflow.StackPush{Src: openflow.IPv4Dst.Whole()},
		move(openflow.IPv4Src.Whole(), openflow.IPv4Dst.Whole()),
		openflow.StackPop{Dst: openflow.IPv4Src.Whole()},
		set(openflow.ICMPv4Type.Exact(icmpEchoReply)),
		openflow.SetNwTTL(echoTTL),
		output(openflow.PortInPort),
	}
}

// ownFlows lead ARP and ping for one of brlb's addresses to TableOwn.
func ownFlows(addr netip.Addr) []*openflow.FlowMod {
	cookie := Cookie(KindOwn, 0, 0)
	return []*openflow.FlowMod{
		flow(cookie, TableClassify, prioOwn, openflow.Match{isARP, openflow.ARPOp.Exact(arpRequest), openflow.ARPTPA.Addr(addr)}, openflow.GotoTable(TableOwn)),
		flow(cookie, TableClassify, prioOwn, openflow.Match{isIPv4, openflow.IPv4Dst.Addr(addr), isICMP, openflow.ICMPv4Type.Exact(icmpEchoRequest)}, openflow.GotoTable(TableOwn)),
	}
}

// serviceFlows lead a service's packets through conntrack to the pool.
func (fr frame) serviceFlows(service *state.Service) []*openflow.FlowMod {
	cookie := Cookie(KindService, service.PoolID, 0)
	var flows []*openflow.FlowMod
	for _, addr := range service.Addresses {
		vip := openflow.IPv4Dst.Addr(addr)
		for _, p := range service.Ports {
			port := openflow.TCPDst.Exact(uint64(p.Number))
			flows = append(flows,
				flow(cookie, TableClassify, prioVIP, openflow.Match{isIPv4, vip, isTCP, port},
					apply(openflow.CT{Zone: fr.zone, Table: TableVIP, Exec: []openflow.Action{openflow.NAT{}}})),
				flow(cookie, TableVIP, prioNew, openflow.Match{ctState(ctTracked|ctNew, ctInvalid), isIPv4, vip, isTCP, port},
					apply(set(openflow.Reg0.Exact(uint64(service.PoolID)))), openflow.GotoTable(TableHash)))
		}
	}
	return flows
}

// vipRest drops whatever else goes to a VIP.
func vipRest(addr netip.Addr) *openflow.FlowMod {
	return flow(Cookie(KindBase, 0, 0), TableClassify, prioVIPRest, openflow.Match{isIPv4, openflow.IPv4Dst.Addr(addr)})
}

// replyFlow leads what a member sends from its service port through conntrack.
func (fr frame) replyFlow(member netip.AddrPort) *openflow.FlowMod {
	return flow(Cookie(KindReply, 0, 0), TableClassify, prioReply,
		openflow.Match{isIPv4, openflow.IPv4Src.Addr(member.Addr()), isTCP, openflow.TCPSrc.Exact(uint64(member.Port()))},
		apply(openflow.CT{Zone: fr.zone, Table: TableReply, Exec: []openflow.Action{openflow.NAT{}}}))
}

// hashFlow computes the slot. symmetric_l4 covers the MACs too, which differ
// from router to router: they are put aside meanwhile, so that the slot depends
// on the 5-tuple alone.
func hashFlow(p *state.Pool) *openflow.FlowMod {
	src, dst := openflow.EthSrc.Whole(), openflow.EthDst.Whole()
	return flow(Cookie(KindHash, p.ID, 0), TableHash, prioRow, openflow.Match{openflow.Reg0.Exact(uint64(p.ID))},
		apply(
			openflow.StackPush{Src: src},
			openflow.StackPush{Src: dst},
			set(openflow.EthSrc.MAC(openflow.MAC{})),
			set(openflow.EthDst.MAC(openflow.MAC{})),
			openflow.Multipath{
				Fields: openflow.HashSymmetricL4, Basis: p.ID, Algorithm: openflow.LinkModuloN,
				MaxLink: uint16(p.Slots - 1), Dst: openflow.Reg1.Whole(),
			},
			openflow.StackPop{Dst: dst},
			openflow.StackPop{Dst: src},
		),
		openflow.GotoTable(TableSlots))
}

// slotFlow is one row of the slot table.
func slotFlow(pool uint16, slot int, load openflow.Instructions) *openflow.FlowMod {
	return flow(Cookie(KindSlot, pool, uint32(slot)), TableSlots, prioRow,
		openflow.Match{openflow.Reg0.Exact(uint64(pool)), openflow.Reg1.Exact(uint64(slot))}, load...)
}

// loadMember is what a slot row does.
func loadMember(number uint16) openflow.Instructions {
	return openflow.Instructions{
		apply(openflow.RegLoad{Dst: openflow.Reg2.Whole(), Value: uint64(number)}),
		openflow.GotoTable(TableMember),
	}
}

// memberFlows are the rows of one member whose next hop is known.
func (fr frame) memberFlows(m *state.Member, pool uint16) []*openflow.FlowMod {
	cookie := Cookie(KindMember, pool, uint32(m.Number))
	number := openflow.Reg2.Exact(uint64(m.Number))
	var flows []*openflow.FlowMod
	if m.Active {
		flows = append(flows, flow(cookie, TableVIP, prioReused,
			openflow.Match{ctState(ctTracked, ctInvalid), openflow.CTMark.Exact(uint64(Mark(pool, m.Number))), isIPv4, isTCP, isSYN},
			apply(move(markMember, openflow.Reg2.Range(0, 15))), openflow.GotoTable(TableToMember)))
	}
	flows = append(flows,
		flow(cookie, TableMember, prioRow, openflow.Match{number, isIPv4, isTCP},
			apply(openflow.CT{Commit: true, Zone: fr.zone, Table: openflow.CTNoTable, Exec: []openflow.Action{
				openflow.NAT{Flags: openflow.NATDst, MinAddr: m.Address.Addr(), MinPort: m.Address.Port()},
				move(openflow.Reg2.Range(0, 15), markMember),
				move(openflow.Reg0.Range(0, 15), markPool),
				move(openflow.EthSrc.Whole(), labelMAC),
				move(openflow.InPortNXM.Whole(), labelPort),
			}}),
			openflow.GotoTable(TableToMember)),
		flow(cookie, TableToMember, prioRow, openflow.Match{number, isIPv4},
			apply(
				set(openflow.EthSrc.MAC(fr.mac)),
				set(openflow.EthDst.MAC(m.Next.MAC)),
				openflow.DecNwTTL{},
				openflow.RegLoad{Dst: openflow.InPortNXM.Whole(), Value: portNone16},
				output(openflow.PortNo(m.Next.Port)),
			)),
	)
	return flows
}

// Resend are the actions that send a packet through the tables once more,
// marked so that it doesn't come back to the controller.
func Resend() []openflow.Action {
	return []openflow.Action{set(openflow.Reg3.Exact(resent)), output(openflow.PortTable)}
}
