package pipeline

import (
	"encoding/binary"
	"fmt"
	"net/netip"

	"brlb/controller/config"
	"brlb/controller/state"
	"brlb/openflow"
	"brlb/openflow/multipath"
)

// Tuple is the first packet of a connection: its protocol's number and its ends.
// Ports count for TCP, UDP and SCTP.
type Tuple struct {
	Proto    uint8
	Src, Dst netip.AddrPort
}

// Slot returns the hash of a connection and the slot that it falls into, bit for
// bit as the switch computes them.
func Slot(p *state.Pool, t Tuple) (hash uint32, slot int) {
	if p.Affinity == config.AffinityPort && (t.Proto == protoTCP || t.Proto == protoUDP || t.Proto == protoSCTP) {
		hash = uint32(t.Src.Port()) >> portSkipped
		return hash, int(hash) % p.Slots
	}
	packet := multipath.Packet{
		EthType: etherIPv4, Src: t.Src.Addr(), Dst: t.Dst.Addr(), Proto: t.Proto,
		SrcPort: t.Src.Port(), DstPort: t.Dst.Port(),
	}
	if packet.Dst.Is6() {
		packet.EthType = etherIPv6
	}
	if t.Proto == protoUDP { // see hashFlows
		binary.BigEndian.PutUint16(packet.EthSrc[4:], t.Src.Port())
		binary.BigEndian.PutUint16(packet.EthSrc[2:], t.Dst.Port())
	}
	fields := multipath.SymmetricL4
	if p.Affinity == config.AffinitySource {
		fields = multipath.NwSrc
	}
	hash = multipath.Hash(fields, p.ID, &packet)
	return hash, int(multipath.Link(multipath.ModuloN, hash, p.Slots, 0))
}

// Explain says in a sentence what a flow of brlb is for.
func Explain(s *state.Snapshot, f *openflow.FlowMod) string {
	if !IsOwn(f.Cookie) {
		return "not brlb's"
	}
	kind, poolID, index := CookieParts(f.Cookie)
	var pool *state.Pool
	for i := range s.Pools {
		if s.Pools[i].ID == poolID {
			pool = &s.Pools[i]
		}
	}
	name := fmt.Sprintf("pool %d", poolID)
	if pool != nil {
		name = "pool " + pool.Name
	}
	switch kind {
	case KindOwn:
		switch f.Table {
		case TableRest:
			return "no service has that port: the client is told"
		case TableAdvertise:
			return "a gateway's neighbour advertisement says that it is a router"
		case TableClassify:
			if f.Priority == prioAnnounced {
				return "a next hop says where it is: the controller reads it, too"
			}
		}
		return "ARP, ND and ping for an address of brlb's own"
	case KindService:
		if f.Table == TableClassify {
			if f.Priority == prioWatch || f.Priority == prioWatchAny {
				return name + ": SYNs and FINs to the VIP: their ports are remembered"
			}
			return name + ": packets to the VIP, through conntrack"
		}
		return name + ": a new connection, to be hashed"
	case KindReply:
		return "what a member answers, through conntrack"
	case KindHash:
		return name + ": " + hashRow(pool, f)
	case KindSlot:
		return fmt.Sprintf("%s: slot %d belongs to %s", name, index, ownerName(pool, f))
	case KindMember:
		return fmt.Sprintf("%s: %s %s", name, memberName(pool, uint16(index)), memberRow(f))
	case KindMoving:
		return fmt.Sprintf("%s: slot %d moves: new connections are learned, and go to its owner", name, index)
	case KindLearned:
		return fmt.Sprintf("%s: a connection opened while its slot moved, to %s", name, memberName(pool, uint16(index)))
	case KindBase:
		return baseRow(f)
	}
	return kind.String()
}

func memberRow(f *openflow.FlowMod) string {
	switch f.Table {
	case TableVIP:
		return "may get a SYN again: sent twice, or from a port used before"
	case TableMember:
		if f.Priority == prioHairpin {
			return "gets a new connection from its own side of the bridge"
		}
		return "gets a new connection: NAT, remember the way back"
	case TableToMember:
		if f.Priority == prioAbort {
			return "must lose its SCTP associations: the controller ends them"
		}
	}
	return "gets the packet: MACs, ttl, output"
}

func hashRow(pool *state.Pool, f *openflow.FlowMod) string {
	switch {
	case f.Table == TableSlots:
		return "no slot takes it: the client is told"
	case pool != nil && pool.Affinity == config.AffinitySource:
		return "client's address -> slot"
	case pool != nil && pool.Affinity == config.AffinityPort && f.Priority == prioSpecial:
		return "client's port -> slot"
	case f.Priority == prioSpecial:
		return "5-tuple of UDP -> slot"
	}
	return "5-tuple -> slot"
}

const pingRow = "a ping that came in fragments: answered"

func baseRow(f *openflow.FlowMod) string {
	switch f.Table {
	case TableClassify:
		switch f.Priority {
		case prioFence:
			return "from a tunnel, through which nobody has anything to send: dropped"
		case prioMiss:
			return "none of brlb's business"
		case prioHost:
			return "to or from the bridge's own host"
		case prioVIPRest:
			return "nothing is served there: never forwarded"
		case prioToGateway:
			return "to a gateway: an answer to a client on the members' own network"
		case prioForUs:
			return "for brlb's MAC, but of no service"
		}
		return "an answer to brlb's own question, ARP or ND"
	case TableOwn:
		if f.Priority == prioSpecial {
			return "a neighbour solicitation that the switch cannot answer: the controller does"
		}
		return "answers in the switch"
	case TableAdvertise:
		if f.Priority == prioRow {
			return "answers a neighbour solicitation in the switch"
		}
	case TableVIP:
		switch f.Priority {
		case prioPing:
			return pingRow
		case prioQuoting:
			return "an ICMP error about no tracked connection: the controller sends it on"
		case prioNewFragment:
			return "a fragment of a new flow: the controller opens that, and sends it again"
		case prioNewFragment - 1:
			return "the same, but its flow could not be opened: dropped"
		case prioStale:
			return "a SYN on an entry of a member that is not active: flush it, try again"
		case prioStuck:
			return "the same, but its entry could not be flushed: dropped"
		case prioKnown:
			return "a known connection, or an ICMP error about one, to its member"
		case prioInvalid:
			return "a new connection that conntrack calls invalid: flush its entry, try again"
		}
	case TableReply:
		switch f.Priority {
		case prioRow:
			return "an answer of a known connection, or an ICMP error about one, to its client"
		case prioUnbroken:
			return "for brlb's MAC, but of no known connection: dropped"
		case prioToHost:
			return "to the bridge's own host, an answer to a probe perhaps"
		}
		return "none of brlb's business"
	case TableRest, TableForUs:
		switch f.Priority {
		case prioSpecial:
			return "a fragment, to be hashed by the client's address"
		case prioRow, prioRow + prioOwnZone:
			return "an ICMP error or a fragment: conntrack knows whose"
		case prioSilence:
			return "other ICMP: dropped"
		}
	case TableReuse:
		switch f.Priority {
		case prioSpecial:
			return "a SYN from a port used a moment ago: flush its old entry, try again"
		case prioRow, prioRow + prioOwnZone:
			return "any other SYN, through conntrack"
		}
	case TablePlace:
		if f.Priority == prioRow {
			return "a connection that was learned: to the slot's new owner"
		}
		return "what could not be learned stays with the member before"
	case TableLearned:
		return "a connection that was opened while its slot did not move"
	case TableHash:
		if f.Priority == prioOpened {
			return "a learned connection has its member"
		}
	case TableMember, TableToMember:
		switch f.Priority {
		case prioTooBig:
			return "too long for its tunnel: the sender is told"
		case prioOpened:
			return "a packet that only opens a flow: dropped"
		case prioNoRoom:
			return "a new connection that conntrack has no room for: dropped"
		case prioHairpin, prioHairpin + prioOwnZone:
			if len(f.Instructions) == 0 {
				return "a client on the members' own network that could not be given a gateway's address: dropped"
			}
			return "a client on the members' own network: the member knows it as the gateway"
		case prioExpired:
			return "the packet's time to live ends here: its sender is told"
		case prioAbortRest:
			return "an SCTP association whose member is gone: the controller ends it"
		}
	case TableError:
		if f.Priority != prioFloor {
			return "an ICMPv6 error from the members' side: as from the VIP, then translated"
		}
	case TableHairpin:
		switch f.Priority {
		case prioPing:
			return pingRow
		case prioFloor:
		default:
			return "an answer to a client that the member knows as a gateway: its address, then as any answer"
		}
	case TableToClient:
		if f.Priority == prioExpired {
			return "the packet's time to live ends here: its sender is told"
		}
		return "out by the MAC, VLAN and port remembered at the start"
	}
	return "floor: dropped and counted"
}

func ownerName(pool *state.Pool, f *openflow.FlowMod) string {
	number, ok := SlotOwner(f)
	if !ok {
		return "nobody"
	}
	return memberName(pool, number)
}

func memberName(pool *state.Pool, number uint16) string {
	if pool != nil {
		for i := range pool.Members {
			if pool.Members[i].Number == number {
				return pool.Members[i].Name
			}
		}
	}
	return fmt.Sprintf("member %d", number)
}

// IsHairpin says whether a flow is there for clients on the members' own network.
func IsHairpin(f *openflow.FlowMod) bool {
	switch f.Table {
	case TableClassify:
		return f.Priority == prioToGateway
	case TableMember, TableToMember:
		return f.Priority == prioHairpin || f.Priority == prioHairpin+prioOwnZone
	}
	return f.Table == TableHairpin
}

// IsTransition says whether a flow is there for slots that move between members of
// stateless pools.
func IsTransition(f *openflow.FlowMod) bool {
	kind, _, _ := CookieParts(f.Cookie)
	return kind == KindMoving || f.Table == TablePlace || f.Table == TableLearned || f.Table == TableHash && f.Priority == prioOpened
}
