package pipeline

import (
	"cmp"
	"encoding/binary"
	"net/netip"
	"slices"
	"strings"
	"time"

	"brlb/controller/config"
	"brlb/controller/state"
	"brlb/openflow"
)

// Stateless pools: the switch knows none of their connections. Every packet is
// hashed, and goes to its slot's owner. While a slot moves away from a member
// that still lives, the switch remembers the connections that are opened
// meanwhile, those alone, and gives the slot's other packets to the member before.
//
// It learns a connection once more whenever it accounts for a SYN, by the flows
// of that moment. So SYNs have rows of their own from the beginning, lest the
// cached flow of a SYN stand for all of its connection.

// LearnLimit is how many connections the switch remembers for a member to which
// slots move. Those beyond go to the member before, whole.
const LearnLimit = 1 << 16

// statelessFlows lead a service's packets to the pool.
func statelessFlows(service *state.Service) []*openflow.FlowMod {
	cookie := Cookie(KindService, service.PoolID, 0)
	start := []openflow.Action{set(openflow.Reg0.Exact(uint64(service.PoolID)))}
	look := append(slices.Clone(start), openflow.Resubmit{Port: openflow.PortInPort, Table: TableLearned})
	var flows []*openflow.FlowMod
	for _, addr := range service.Addresses {
		f := familyOfAddr(addr)
		for _, p := range service.Ports {
			to := openflow.Match{f.isIP, f.dst.Addr(addr)}
			t := transportOf(p.Proto)
			if t == nil {
				flows = append(flows,
					flow(cookie, TableClassify, prioVIPAny, to, apply(look...), openflow.GotoTable(TableHash)),
					flow(cookie, TableClassify, prioWatchAny, append(slices.Clone(to), isTCP, isSYN), apply(look...), openflow.GotoTable(TableHash)))
				flows = append(flows, unhashed(cookie, service, addr)...)
				continue
			}
			actions := start
			if p.Proto == config.ProtoTCP {
				actions = look
			}
			to = append(to, openflow.IPProto.Exact(t.number))
			for _, port := range ports(t.dst, p.First, p.Last) {
				match := append(slices.Clone(to), port)
				flows = append(flows, flow(cookie, TableClassify, prioVIP, match, apply(actions...), openflow.GotoTable(TableHash)))
				if p.Proto == config.ProtoTCP {
					flows = append(flows, flow(cookie, TableClassify, prioWatch, append(slices.Clone(match), isSYN), apply(actions...), openflow.GotoTable(TableHash)))
				}
			}
		}
	}
	return flows
}

// unhashed are the rows of packets to a service of all protocols whose slot is not
// that of their own addresses and ports.
func unhashed(cookie uint64, service *state.Service, addr netip.Addr) []*openflow.FlowMod {
	f := familyOfAddr(addr)
	flows := errorsToRest(cookie, addr)
	if service.Affinity != config.AffinitySource {
		flows = append(flows, flow(cookie, TableClassify, prioErrorAny, openflow.Match{f.isIP, isFragment, f.dst.Addr(addr)}, openflow.GotoTable(TableRest)))
	}
	return flows
}

// quotingFlows hand ICMP errors to the controller that are about none of
// conntrack's connections: it reads whose they are, and sends them on.
func quotingFlows(addr netip.Addr) []*openflow.FlowMod {
	f := familyOfAddr(addr)
	var flows []*openflow.FlowMod
	for _, kind := range f.errors {
		flows = append(flows, flow(Cookie(KindBase, 0, 0), TableVIP, prioQuoting, append(f.isError(kind), f.dst.Addr(addr)), refuse()...))
	}
	return flows
}

// fragmentsBySource have a VIP's fragments hashed like whole packets.
func fragmentsBySource(addr netip.Addr, pool uint16) *openflow.FlowMod {
	f := familyOfAddr(addr)
	return flow(Cookie(KindBase, 0, 0), TableRest, prioSpecial, openflow.Match{f.isIP, f.dst.Addr(addr), isFragment},
		apply(set(openflow.Reg0.Exact(uint64(pool)))), openflow.GotoTable(TableHash))
}

// HashesFragments says whether fragments to a stateless service find their slot.
func HashesFragments(s *state.Snapshot, service *state.Service, addr netip.Addr) bool {
	now := settingOf(s)
	all := slices.ContainsFunc(service.Ports, func(p config.Port) bool { return p.Proto == config.ProtoAny })
	return service.Affinity == config.AffinitySource && (all || now.soleBySource(addr) != nil)
}

// Holders returns the numbers of the members that may have a connection to a
// stateless service: the one of its slot, and while that moves, the one before.
func Holders(s *state.Snapshot, t Tuple) []uint16 {
	for i := range s.Services {
		service := &s.Services[i]
		if !service.Stateless || !slices.Contains(service.Addresses, t.Dst.Addr()) || !slices.ContainsFunc(service.Ports, func(p config.Port) bool { return takes(p, t) }) {
			continue
		}
		p := s.Pool(service.Pool)
		_, slot := Slot(p, t)
		var numbers []uint16
		if owner := p.Owner(slot); owner != nil {
			numbers = append(numbers, owner.Number)
		}
		if p.Moving != nil {
			if before := p.Member(p.Moving.From[slot].Key); before != nil {
				numbers = append(numbers, before.Number)
			}
		}
		return numbers
	}
	return nil
}

// takes says whether packets of a connection to a VIP go by this port of a service.
func takes(p config.Port, t Tuple) bool {
	transport := transportOf(p.Proto)
	return transport == nil || transport.number == uint64(t.Proto) && p.Contains(p.Proto, t.Dst.Port())
}

// ToMember are the actions that send a packet to a member of a stateless pool.
func ToMember(number uint16) []openflow.Action {
	return []openflow.Action{set(openflow.Reg2.Exact(uint64(number))), openflow.Resubmit{Port: openflow.PortInPort, Table: TableMember}}
}

// placeFlows are the base rows of connections that were learned.
func placeFlows() []*openflow.FlowMod {
	cookie := Cookie(KindBase, 0, 0)
	return []*openflow.FlowMod{
		flow(cookie, TablePlace, prioRow, openflow.Match{openflow.Reg6.Exact(1)}, apply(move(openflow.Reg7.Whole(), openflow.Reg2.Whole()))),
		flow(cookie, TablePlace, prioFloor, nil),
		flow(cookie, TableLearned, prioFloor, nil),
		flow(cookie, TableHash, prioOpened, openflow.Match{openflow.Reg4.Exact(Placed)}, apply(untag()...), openflow.GotoTable(TableMember)),
	}
}

// movingFlow has new connections of a slot learned, and go to its new owner.
func movingFlow(p *state.Pool, slot int, from, to uint16) *openflow.FlowMod {
	f := familyOf(p.IPv6)
	return flow(Cookie(KindMoving, p.ID, uint32(slot)), TableSlots, prioSpecial,
		openflow.Match{openflow.Reg0.Exact(uint64(p.ID)), openflow.Reg1.Exact(uint64(slot)), f.isIP, isTCP, isSYN},
		apply(
			openflow.RegLoad{Dst: openflow.Reg2.Whole(), Value: uint64(from)},
			openflow.RegLoad{Dst: openflow.Reg7.Whole(), Value: uint64(to)},
			openflow.Learn{
				Table: TableLearned, Priority: prioRow, Cookie: Cookie(KindLearned, p.ID, uint32(to)),
				IdleTimeout: uint16(p.Moving.Hold / time.Second),
				Limit:       LearnLimit, Result: openflow.Reg6.Range(0, 0),
				Specs: []openflow.LearnSpec{
					learnValue(openflow.LearnMatch, openflow.EthType.Whole(), f.isIP.Uint64()),
					learnValue(openflow.LearnMatch, openflow.IPProto.Whole(), protoTCP),
					learnField(f.src), learnField(f.dst), learnField(openflow.TCPSrc), learnField(openflow.TCPDst),
					learnValue(openflow.LearnLoad, openflow.Reg2.Whole(), uint64(to)),
					learnValue(openflow.LearnLoad, openflow.Reg4.Whole(), Placed),
				},
			},
			openflow.Resubmit{Port: openflow.PortInPort, Table: TablePlace},
		),
		openflow.GotoTable(TableMember))
}

// learnField has the learned flow match what the packet has.
func learnField(field openflow.Field) openflow.LearnSpec {
	whole := field.Whole()
	return openflow.LearnSpec{Kind: openflow.LearnMatch, Bits: whole.Bits, Src: whole, Dst: whole}
}

func learnValue(kind openflow.LearnKind, dst openflow.Subfield, value uint64) openflow.LearnSpec {
	octets := binary.BigEndian.AppendUint64(nil, value)
	return openflow.LearnSpec{Kind: kind, Bits: dst.Bits, Value: octets[len(octets)-int(dst.Bits+15)/16*2:], Dst: dst}
}

// dsrFlows are the rows of a member that has the VIP itself. The note tells a
// brlb that starts whose rows they are. They come before those that look at the
// time to live: this is no hop.
func (fr frame) dsrFlows(m *state.Member, pool uint16) []*openflow.FlowMod {
	cookie := Cookie(KindMember, pool, uint32(m.Number))
	match := openflow.Match{openflow.Reg2.Exact(uint64(m.Number)), familyOfAddr(m.Address.Addr()).isIP}
	return []*openflow.FlowMod{
		flow(cookie, TableMember, prioOpened, match, apply(openflow.Note(m.Address.String())), openflow.GotoTable(TableToMember)),
		flow(cookie, TableToMember, prioOpened, match, apply(
			set(openflow.EthSrc.MAC(fr.mac)),
			set(openflow.EthDst.MAC(m.Next.MAC)),
			openflow.RegLoad{Dst: vlan, Value: tag(m.Next.VLAN)},
			openflow.RegLoad{Dst: openflow.InPortNXM.Whole(), Value: portNone16},
			output(openflow.PortNo(m.Next.Port)),
		)),
	}
}

// noted reads the address out of a note.
func noted(note openflow.Note) (netip.AddrPort, bool) {
	text, _, _ := strings.Cut(string(note), "\x00") // padded
	addr, err := netip.ParseAddrPort(text)
	return addr, err == nil
}

// Forget returns what makes the switch forget the learned connections of members
// that do not live, or are gone: a client that opens another one from the same port
// must not get them. installed is what the switch holds.
func Forget(s *state.Snapshot, installed Set) []openflow.Message {
	var deletions []openflow.Message
	forget := func(pool uint16, number uint32) {
		d := openflow.NewFlowMod(openflow.FlowDelete)
		d.Table, d.Cookie, d.CookieMask = TableLearned, Cookie(KindLearned, pool, number), ^uint64(0)
		deletions = append(deletions, d)
	}
	numbers := map[uint64]bool{} // by cookie
	for i := range s.Pools {
		p := &s.Pools[i]
		if !p.Stateless() {
			continue
		}
		for j := range p.Members {
			m := &p.Members[j]
			numbers[Cookie(KindMember, p.ID, uint32(m.Number))] = true
			if m.Number != 0 && !p.KeepsConnections(m.ID.Key) {
				forget(p.ID, uint32(m.Number))
			}
		}
	}
	for id, g := range installed {
		if id.Kind != KindMember {
			continue
		}
		for i := range g.Rows {
			f := g.Rows[i].Mod
			if f.Table == TableMember && f.Priority == prioOpened && !numbers[f.Cookie] { // dsrFlows, tunnelFlows
				_, pool, number := CookieParts(f.Cookie)
				forget(pool, number)
			}
		}
	}
	slices.SortFunc(deletions, func(a, b openflow.Message) int {
		return cmp.Compare(a.(*openflow.FlowMod).Cookie, b.(*openflow.FlowMod).Cookie)
	})
	return deletions
}
