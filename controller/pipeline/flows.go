package pipeline

import (
	"cmp"
	"math/bits"
	"net/netip"
	"slices"

	"brlb/controller/config"
	"brlb/controller/state"
	"brlb/openflow"
)

// Values of header fields.
const (
	etherIPv4   = 0x0800
	etherARP    = 0x0806
	etherIPv6   = 0x86dd
	protoICMP   = 1
	protoTCP    = 6
	protoUDP    = 17
	protoICMPv6 = 58
	protoSCTP   = 132

	arpRequest = 1
	arpReply   = 2

	echoTTL = 64

	fragAny = 1 // nw_frag: a fragment, the first one too

	tcpFIN = 0x01
	tcpSYN = 0x02
	tcpRST = 0x04
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
	labelVLAN  = openflow.CTLabel.Range(64, 79) // TCI
)

// Mark returns the ct_mark of a connection: pool id above, member number below.
func Mark(pool, member uint16) uint32 { return uint32(pool)<<16 | uint32(member) }

// MarkParts takes a ct_mark apart.
func MarkParts(mark uint32) (pool, member uint16) { return uint16(mark >> 16), uint16(mark) }

var (
	isARP = openflow.EthType.Exact(etherARP)
	isTCP = openflow.IPProto.Exact(protoTCP)
	isSYN = openflow.TCPFlags.Masked(tcpSYN, tcpSYN|tcpACK)
	// Open vSwitch shows no ports of fragments, not even of the first one.
	isFragment = openflow.IPFrag.Masked(fragAny, fragAny)
	vlan       = openflow.VLANTCI.Whole()
	keptTag    = openflow.Reg5.Range(0, 15)
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
	return openflow.Controller{MaxLen: controllerMaxLen, ControllerID: ControllerID, Reason: openflow.PacketInAction}
}

func set(field openflow.OXM) openflow.Action { return openflow.SetField{OXM: field} }

func move(src, dst openflow.Subfield) openflow.Action {
	return openflow.RegMove{Src: src, Dst: dst}
}

// baseFlows are the rows that the pipeline needs whatever the services are. host
// is the MAC of the bridge's own device, tunnels are ports, and zones those of
// pools.
func (fr frame) baseFlows(drop bool, host openflow.MAC, tunnels []uint32, zones []uint16) []*openflow.FlowMod {
	cookie := Cookie(KindBase, 0, 0)
	var flows []*openflow.FlowMod
	row := func(table uint8, priority uint16, match openflow.Match, instructions ...openflow.Instruction) {
		flows = append(flows, flow(cookie, table, priority, match, instructions...))
	}
	// What is none of brlb's business.
	var other []openflow.Instruction
	if !drop {
		other = append(other, apply(output(openflow.PortNormal)))
	}
	row(TableClassify, prioMiss, nil, other...)
	if drop && host != (openflow.MAC{}) {
		// But for the host that the bridge is on: probes come from there.
		toHost := openflow.Match{openflow.EthDst.MAC(host)}
		row(TableClassify, prioHost, openflow.Match{openflow.InPort.Exact(uint64(openflow.PortLocal))}, apply(output(openflow.PortNormal)))
		row(TableClassify, prioHost, toHost, apply(output(openflow.PortLocal)))
		row(TableReply, prioToHost, toHost, apply(output(openflow.PortLocal)))
	}
	// Members send nothing through tunnels, and whoever else does is no neighbour.
	for _, port := range tunnels {
		row(TableClassify, prioFence, openflow.Match{openflow.InPort.Exact(uint64(port))})
	}
	// Answers to brlb's own questions.
	row(TableClassify, prioAnswer, openflow.Match{openflow.EthDst.MAC(fr.mac), isARP, openflow.ARPOp.Exact(arpReply)}, apply(toController()))
	// Nobody else has this MAC: NORMAL would flood what is sent to it, and
	// answers of connections that brlb has forgotten would leave un-NATed.
	row(TableClassify, prioForUs, openflow.Match{openflow.EthDst.MAC(fr.mac)}, openflow.GotoTable(TableForUs))

	row(TableOwn, prioRow, openflow.Match{isARP}, apply(arpAnswer(fr.mac)...))

	row(TableVIP, prioFloor, nil)
	// Addressed to brlb but of no known connection: it must not be flooded.
	row(TableReply, prioUnbroken, openflow.Match{openflow.EthDst.MAC(fr.mac)})
	row(TableReply, prioFloor, nil, other...)
	for _, table := range []uint8{TableRest, TableForUs, TableReuse, TableHash, TableSlots, TableMember, TableToMember} {
		row(table, prioFloor, nil)
	}
	// It has opened its flow.
	row(TableToMember, prioOpened, openflow.Match{openflow.Reg3.Exact(opening)})
	for _, f := range families() {
		flows = append(flows, fr.familyFlows(f, zones)...)
		if fr.flushReused {
			flows = append(flows, fr.reuseFlows(f, zones)...)
		}
	}
	flows = append(flows, placeFlows()...)
	flows = append(flows, expiredFlows()...)
	flows = append(flows, fr.errorFlows(zones)...)
	if len(tunnels) > 0 {
		flows = append(flows, tooBigFlows()...)
	}
	if fr.kernel {
		flows = append(flows, abortRest()...)
	}
	return append(flows, fr.ndFlows()...)
}

// familyFlows are the base rows of one address family.
func (fr frame) familyFlows(f *family, zones []uint16) []*openflow.FlowMod {
	cookie := Cookie(KindBase, 0, 0)
	var flows []*openflow.FlowMod
	row := func(table uint8, priority uint16, match openflow.Match, instructions ...openflow.Instruction) {
		flows = append(flows, flow(cookie, table, priority, match, instructions...))
	}
	row(TableOwn, prioRow, f.isEcho(), apply(f.echoAnswer(fr.mac)...))
	for _, table := range []uint8{TableVIP, TableHairpin} {
		flows = append(flows, fr.longPing(f, table))
	}

	// A SYN on an entry whose member is not active, be it of a connection that
	// has ended or of one that was never answered: the entry must go before the
	// client can be given another member. If it has not gone, the packet ends
	// here.
	row(TableVIP, prioStale, openflow.Match{ctState(ctTracked, ctInvalid), openflow.Reg3.Exact(0), f.isIP, isTCP, isSYN}, apply(toController()))
	row(TableVIP, prioStuck, openflow.Match{ctState(ctTracked, ctInvalid), f.isIP, isTCP, isSYN})
	// What has an entry, and ICMP errors about that.
	row(TableVIP, prioKnown, openflow.Match{ctState(ctTracked, ctReply|ctInvalid), f.isIP},
		apply(known()...), openflow.GotoTable(TableToMember))
	// A packet that was sent again and is still invalid ends here.
	row(TableVIP, prioInvalid, openflow.Match{ctState(ctTracked|ctInvalid, 0), openflow.Reg3.Exact(0), f.isIP, isTCP, isSYN}, apply(toController()))

	row(TableReply, prioRow, openflow.Match{ctState(ctTracked|ctReply, ctInvalid), f.isIP}, openflow.GotoTable(TableToClient))

	// Conntrack knows which connection an error or a fragment belongs to.
	for _, kind := range f.errors {
		row(TableRest, prioRow, f.isError(kind), apply(fr.errorToVIP(fr.zone)...))
		row(TableForUs, prioRow, f.isError(kind), fr.inEveryZone(zones, f.errorFromMembers))
	}
	row(TableRest, prioRow, openflow.Match{f.isIP, isFragment}, apply(fr.toVIP(fr.zone)...))
	row(TableForUs, prioRow, openflow.Match{f.isIP, isFragment}, fr.inEveryZone(zones, answered))
	// No other ICMP is answered for.
	row(TableRest, prioSilence, openflow.Match{f.isIP, f.isICMP})

	row(TableToClient, prioRow, openflow.Match{f.isIP}, apply(
		set(openflow.EthSrc.MAC(fr.mac)),
		move(labelMAC, openflow.EthDst.Whole()),
		move(labelVLAN, vlan),
		openflow.DecNwTTL{},
		openflow.RegLoad{Dst: openflow.InPortNXM.Whole(), Value: portNone16},
		openflow.OutputReg{Src: labelPort, MaxLen: openflow.MaxLenAll},
	))
	return flows
}

// tracked sends a packet through conntrack, which applies the NAT of its
// connection, and on to a table.
func tracked(zone uint16, table uint8) openflow.Action {
	return openflow.CT{Zone: zone, Table: table, Exec: []openflow.Action{openflow.NAT{}}}
}

// answered sends what comes from a member through conntrack.
func answered(zone uint16) openflow.Action { return tracked(zone, TableReply) }

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

// echoAnswer turns an echo request into its reply and sends it back (RFC 792,
// RFC 4443).
func (f *family) echoAnswer(mac openflow.MAC) []openflow.Action {
	return []openflow.Action{
		move(openflow.EthSrc.Whole(), openflow.EthDst.Whole()),
		set(openflow.EthSrc.MAC(mac)),
		openflow.StackPush{Src: f.dst.Whole()},
		move(f.src.Whole(), f.dst.Whole()),
		openflow.StackPop{Dst: f.src.Whole()},
		set(f.icmpType.Exact(f.echoReply)),
		openflow.SetNwTTL(echoTTL),
		output(openflow.PortInPort),
	}
}

// longPing has the controller answer a ping that came in fragments: conntrack has put
// it together, or, in userspace, gives the fragments on when it has them all. The
// switch shows no types of these; and what it makes of a whole one it sends through
// a kernel's datapath without fragmenting it again.
func (fr frame) longPing(f *family, table uint8) *openflow.FlowMod {
	match := append(openflow.Match{ctState(ctTracked, ctInvalid)}, f.isEcho()...)
	if !fr.kernel {
		// The IP protocol of later fragments is that of their extension header.
		match = openflow.Match{ctState(ctTracked, ctInvalid), f.isIP, isFragment, openflow.CTNwProto.Exact(f.isICMP.Uint64())}
	}
	return flow(Cookie(KindBase, 0, 0), table, prioPing, match, refuse()...)
}

// ownFlows lead ARP, neighbour solicitations and ping for one of brlb's
// addresses to TableOwn.
func ownFlows(addr netip.Addr) []*openflow.FlowMod {
	cookie := Cookie(KindOwn, 0, 0)
	f := familyOfAddr(addr)
	flows := []*openflow.FlowMod{
		flow(cookie, TableClassify, prioOwn, append(f.isEcho(), f.dst.Addr(addr)), openflow.GotoTable(TableOwn)),
	}
	if addr.Is6() {
		return append(flows, solicitFlow(addr))
	}
	return append(flows,
		flow(cookie, TableClassify, prioOwn, openflow.Match{isARP, openflow.ARPOp.Exact(arpRequest), openflow.ARPTPA.Addr(addr)}, openflow.GotoTable(TableOwn)))
}

// serviceFlows lead a service's packets to the pool, through conntrack unless it is
// stateless.
func (fr frame) serviceFlows(service *state.Service) []*openflow.FlowMod {
	if service.Stateless {
		return statelessFlows(service)
	}
	cookie, zone := Cookie(KindService, service.PoolID, 0), cmp.Or(service.Zone, fr.zone)
	var flows []*openflow.FlowMod
	for _, addr := range service.Addresses {
		f := familyOfAddr(addr)
		for _, p := range service.Ports {
			to := openflow.Match{f.isIP, f.dst.Addr(addr)}
			start := []openflow.Action{set(openflow.Reg0.Exact(uint64(service.PoolID)))}
			if p.Kept() {
				start = append(start, set(openflow.Reg4.Exact(portKept)))
			}
			begins := func(priority uint16, match openflow.Match) *openflow.FlowMod {
				return flow(cookie, TableVIP, priority, append(match, ctState(ctTracked|ctNew, ctInvalid)), apply(start...), openflow.GotoTable(TableHash))
			}
			t := transportOf(p.Proto)
			if t == nil {
				flows = append(flows,
					flow(cookie, TableClassify, prioVIPAny, to, apply(fr.toVIP(zone)...)),
					begins(prioNewAny, slices.Clone(to)))
				flows = append(flows, errorsToRest(cookie, addr)...)
				if fr.flushReused {
					flows = append(flows, fr.watchPorts(cookie, prioWatchAny, zone, append(slices.Clone(to), isTCP))...)
				}
				continue
			}
			to = append(to, openflow.IPProto.Exact(t.number))
			for _, port := range ports(t.dst, p.First, p.Last) {
				flows = append(flows,
					flow(cookie, TableClassify, prioVIP, append(slices.Clone(to), port), apply(fr.toVIP(zone)...)),
					begins(prioNew, append(slices.Clone(to), port)))
				if fr.flushReused && p.Proto == config.ProtoTCP {
					flows = append(flows, fr.watchPorts(cookie, prioWatch, zone, append(slices.Clone(to), port))...)
				}
			}
		}
	}
	return flows
}

// newFragments hand the fragments of a flow's first datagram to the controller:
// where conntrack leaves them as they are, the switch sees no ports, and cannot
// choose a slot. The controller opens the flow and sends them again.
func newFragments(addr netip.Addr) []*openflow.FlowMod {
	f := familyOfAddr(addr)
	match := openflow.Match{ctState(ctTracked|ctNew, ctInvalid), f.isIP, f.dst.Addr(addr), openflow.IPProto.Exact(protoUDP), isFragment}
	cookie := Cookie(KindBase, 0, 0)
	return []*openflow.FlowMod{
		flow(cookie, TableVIP, prioNewFragment, append(slices.Clone(match), openflow.Reg3.Exact(0)), handUp()...),
		flow(cookie, TableVIP, prioNewFragment-1, match),
	}
}

// vipRest leads whatever else goes to a VIP to where it ends.
func vipRest(addr netip.Addr) *openflow.FlowMod {
	f := familyOfAddr(addr)
	return flow(Cookie(KindBase, 0, 0), TableClassify, prioVIPRest, openflow.Match{f.isIP, f.dst.Addr(addr)}, openflow.GotoTable(TableRest))
}

// refuseRest has clients told that a VIP has no such port.
func refuseRest(addr netip.Addr) *openflow.FlowMod {
	f := familyOfAddr(addr)
	return flow(Cookie(KindOwn, 0, 0), TableRest, prioRefuse, openflow.Match{f.isIP, f.dst.Addr(addr)}, refuse()...)
}

// refuse hands a packet, by way of the meter, to the controller, which tells the
// client so.
func refuse(before ...openflow.Action) []openflow.Instruction {
	return []openflow.Instruction{openflow.Meter(meterRefused), apply(append(before, toController())...)}
}

// handUp hands a packet, by way of a meter, to the controller, without which it
// gets no further.
func handUp() []openflow.Instruction {
	return []openflow.Instruction{openflow.Meter(meterServed), apply(toController())}
}

// replyFlows lead what a member sends from a service port through conntrack.
func replyFlows(from source) []*openflow.FlowMod {
	cookie := Cookie(KindReply, 0, 0)
	f := familyOfAddr(from.addr)
	match := openflow.Match{f.isIP, f.src.Addr(from.addr)}
	t := transportOf(from.port.Proto)
	if t == nil {
		return []*openflow.FlowMod{flow(cookie, TableClassify, prioReply, match, apply(answered(from.zone)))}
	}
	var flows []*openflow.FlowMod
	match = append(match, openflow.IPProto.Exact(t.number))
	for _, port := range ports(t.src, from.port.First, from.port.Last) {
		flows = append(flows, flow(cookie, TableClassify, prioReply, append(slices.Clone(match), port), apply(answered(from.zone))))
	}
	return flows
}

// hashFlows compute the slot. symmetric_l4 covers the MACs and VLAN too, which
// differ from router to router: they are put aside meanwhile, so that the slot
// depends on the 5-tuple alone. It leaves out the ports of UDP, which therefore
// stand in the MAC's place.
func hashFlows(p *state.Pool) []*openflow.FlowMod {
	row := func(priority uint16, more openflow.Match, actions ...openflow.Action) *openflow.FlowMod {
		return flow(Cookie(KindHash, p.ID, 0), TableHash, priority, append(openflow.Match{openflow.Reg0.Exact(uint64(p.ID))}, more...),
			apply(append(untag(), actions...)...), openflow.GotoTable(TableSlots))
	}
	slot := func(fields openflow.HashFields) openflow.Action {
		return openflow.Multipath{
			Fields: fields, Basis: p.ID, Algorithm: openflow.LinkModuloN,
			MaxLink: uint16(p.Slots - 1), Dst: openflow.Reg1.Whole(),
		}
	}
	if p.Affinity == config.AffinitySource {
		return []*openflow.FlowMod{row(prioRow, nil, slot(openflow.HashNwSrc))}
	}
	src, dst := openflow.EthSrc.Whole(), openflow.EthDst.Whole()
	tupleSlot := func(ports ...openflow.Action) []openflow.Action {
		actions := []openflow.Action{
			openflow.StackPush{Src: src},
			openflow.StackPush{Src: dst},
			set(openflow.EthSrc.MAC(openflow.MAC{})),
			set(openflow.EthDst.MAC(openflow.MAC{})),
		}
		actions = append(actions, ports...)
		return append(actions, slot(openflow.HashSymmetricL4), openflow.StackPop{Dst: dst}, openflow.StackPop{Dst: src})
	}
	f := familyOf(p.IPv6)
	rows := []*openflow.FlowMod{row(prioRow, nil, tupleSlot()...)}
	if p.Affinity == config.AffinityPort {
		low, high := portBits(p)
		for _, proto := range []config.Proto{config.ProtoTCP, config.ProtoUDP, config.ProtoSCTP} {
			t := transportOf(proto)
			rows = append(rows, row(prioSpecial, openflow.Match{f.isIP, openflow.IPProto.Exact(t.number)},
				move(t.src.Range(low, high), openflow.Reg1.Range(0, high-low))))
		}
		return rows
	}
	return append(rows, row(prioSpecial, openflow.Match{f.isIP, openflow.IPProto.Exact(protoUDP)}, tupleSlot(
		move(openflow.UDPSrc.Whole(), openflow.EthSrc.Range(0, 15)),
		move(openflow.UDPDst.Whole(), openflow.EthSrc.Range(16, 31)))...))
}

// portBits are the first and the last bit of the client's port that are the slot
// with AffinityPort. The lowest one is left out: Linux gives connections even
// ports as long as there are any. No other bit is looked at, so that the switch's
// cache needs one flow for each slot, where a hash takes one for each connection.
func portBits(p *state.Pool) (low, high uint16) {
	return portSkipped, uint16(bits.Len(uint(p.Slots-1)) - 1 + portSkipped)
}

const portSkipped = 1

// untag puts a frame's tag aside.
func untag() []openflow.Action {
	return []openflow.Action{move(vlan, keptTag), openflow.RegLoad{Dst: vlan}}
}

// refuseNew has the clients of a pool told that nobody is there.
func refuseNew(pool uint16) *openflow.FlowMod {
	return flow(Cookie(KindHash, pool, 0), TableSlots, prioRefuse, openflow.Match{openflow.Reg0.Exact(uint64(pool))}, refuse(move(keptTag, vlan))...)
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

// known reads what is remembered of a connection on its way to its member.
func known() []openflow.Action {
	return []openflow.Action{move(markMember, openflow.Reg2.Range(0, 15)), move(labelTurned, regTurned)}
}

// memberFlows are the rows of one member whose next hop is known.
func (b behind) memberFlows(m *state.Member) []*openflow.FlowMod {
	cookie := Cookie(KindMember, b.pool, uint32(m.Number))
	number := openflow.Reg2.Exact(uint64(m.Number))
	f := familyOfAddr(m.Address.Addr())
	commit := func(port uint16) []openflow.Instruction {
		ct := openflow.CT{Commit: true, Zone: b.own, Table: openflow.CTNoTable, Exec: []openflow.Action{
			openflow.NAT{Flags: openflow.NATDst, MinAddr: m.Address.Addr(), MinPort: port},
			move(openflow.Reg2.Range(0, 15), markMember),
			move(openflow.Reg0.Range(0, 15), markPool),
			move(openflow.EthSrc.Whole(), labelMAC),
			move(openflow.InPortNXM.Whole(), labelPort),
			move(keptTag, labelVLAN),
			move(regTurned, labelTurned),
		}}
		if b.checked {
			ct.Table = TableToMember
			return []openflow.Instruction{apply(ct)}
		}
		return []openflow.Instruction{apply(ct), openflow.GotoTable(TableToMember)}
	}
	var flows []*openflow.FlowMod
	if m.Active {
		flows = append(flows, flow(cookie, TableVIP, prioReused,
			openflow.Match{ctState(ctTracked, ctInvalid), openflow.CTMark.Exact(uint64(Mark(b.pool, m.Number))), f.isIP, isTCP, isSYN},
			apply(known()...), openflow.GotoTable(TableToMember)))
	}
	if m.Cut && b.kernel {
		flows = append(flows, abortFlow(m, b.pool))
	}
	return append(flows,
		turnFlow(m, cookie),
		flow(cookie, TableMember, prioRow, openflow.Match{number, f.isIP}, commit(m.Address.Port())...),
		flow(cookie, TableMember, prioSpecial, openflow.Match{number, openflow.Reg4.Exact(portKept), f.isIP}, commit(0)...),
		flow(cookie, TableToMember, prioRow, openflow.Match{number, f.isIP},
			apply(
				set(openflow.EthSrc.MAC(b.mac)),
				set(openflow.EthDst.MAC(m.Next.MAC)),
				openflow.RegLoad{Dst: vlan, Value: tag(m.Next.VLAN)},
				openflow.DecNwTTL{},
				openflow.RegLoad{Dst: openflow.InPortNXM.Whole(), Value: portNone16},
				output(openflow.PortNo(m.Next.Port)),
			)),
	)
}

// tag returns the TCI of a frame in a VLAN; 0, no tag, without one.
func tag(id uint16) uint64 {
	if id == 0 {
		return 0
	}
	return tagPresent | uint64(id)
}

// tagPresent is the bit of a TCI by which Open vSwitch says that there is a tag.
const tagPresent = 0x1000

// Resend are the actions that send a packet through the tables once more,
// marked so that it doesn't come back to the controller.
func Resend() []openflow.Action { return again(resent) }

// Open are the actions that send a packet through the tables for the entry that
// it makes in conntrack; no member gets it.
func Open() []openflow.Action { return again(opening) }

func again(mark uint64) []openflow.Action {
	return []openflow.Action{set(openflow.Reg3.Exact(mark)), output(openflow.PortTable)}
}
