package pipeline

import (
	"fmt"
	"net/netip"

	"brlb/controller/state"
	"brlb/openflow"
	"brlb/openflow/multipath"
)

// Slot returns the hash of a TCP connection over IPv4 and the slot that it
// falls into, bit for bit as the switch computes them.
func Slot(p *state.Pool, src, dst netip.AddrPort) (hash uint32, slot int) {
	hash = multipath.Hash(multipath.SymmetricL4, p.ID, &multipath.Packet{
		EthType: etherIPv4, Src: src.Addr(), Dst: dst.Addr(), Proto: protoTCP,
		SrcPort: src.Port(), DstPort: dst.Port(),
	})
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
		return "ARP and ping for an address of brlb's own"
	case KindService:
		if f.Table == TableClassify {
			return name + ": packets to the VIP, through conntrack"
		}
		return name + ": a new connection, to be hashed"
	case KindReply:
		return "what a member answers, through conntrack"
	case KindHash:
		return name + ": 5-tuple -> slot"
	case KindSlot:
		return fmt.Sprintf("%s: slot %d belongs to %s", name, index, ownerName(pool, f))
	case KindMember:
		return fmt.Sprintf("%s: %s %s", name, memberName(pool, uint16(index)), memberRow(f.Table))
	case KindBase:
		return baseRow(f)
	}
	return kind.String()
}

func memberRow(table uint8) string {
	switch table {
	case TableVIP:
		return "may get a SYN again: sent twice, or from a port used before"
	case TableMember:
		return "gets a new connection: NAT, remember the way back"
	}
	return "gets the packet: MACs, ttl, output"
}

func baseRow(f *openflow.FlowMod) string {
	switch {
	case f.Table == TableClassify && f.Priority == prioMiss:
		return "none of brlb's business"
	case f.Table == TableClassify && f.Priority == prioVIPRest:
		return "nothing is served there: dropped, never forwarded"
	case f.Table == TableClassify && f.Priority == prioForUs:
		return "for brlb's MAC, but of nothing that brlb knows: dropped"
	case f.Table == TableClassify:
		return "an answer to brlb's ARP request"
	case f.Table == TableOwn:
		return "answers in the switch"
	case f.Table == TableVIP && f.Priority == prioStale:
		return "a SYN on an entry of a member that is not active: flush it, try again"
	case f.Table == TableVIP && f.Priority == prioStuck:
		return "the same, but its entry could not be flushed: dropped"
	case f.Table == TableVIP && f.Priority == prioKnown:
		return "a known connection, to its member"
	case f.Table == TableVIP && f.Priority == prioInvalid:
		return "a new connection that conntrack calls invalid: flush its entry, try again"
	case f.Table == TableReply && f.Priority == prioRow:
		return "an answer of a known connection, to its client"
	case f.Table == TableReply && f.Priority == prioUnbroken:
		return "for brlb's MAC, but of no known connection: dropped"
	case f.Table == TableReply:
		return "none of brlb's business"
	case f.Table == TableToClient:
		return "out by the MAC and port remembered at the start"
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
