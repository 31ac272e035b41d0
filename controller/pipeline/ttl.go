package pipeline

import (
	"net/netip"
	"slices"

	"brlb/controller/state"
	"brlb/openflow"
)

// expiredFlows hand packets whose time to live ends at brlb to the controller,
// which tells their senders: traceroute shows brlb as the hop that it is.
func expiredFlows() []*openflow.FlowMod {
	var flows []*openflow.FlowMod
	for _, f := range families() {
		// A new connection is not committed first.
		for _, table := range []uint8{TableMember, TableToMember, TableToClient} {
			flows = append(flows, flow(Cookie(KindBase, 0, 0), table, prioExpired, openflow.Match{f.isIP, openflow.IPTTL.Exact(1)}, refuse()...))
		}
	}
	return flows
}

// prioExpired is above the rows that lead to members.
const prioExpired = 115

// Answerer returns from where a member has sent what comes from a VIP, by what
// conntrack remembers of the connection. t is the answer, translated.
func Answerer(s *state.Snapshot, m openflow.Match, t Tuple) (netip.AddrPort, bool) {
	mark, _ := m.Get(openflow.CTMark)
	_, number := MarkParts(uint32(mark.Uint64()))
	for i := range s.Pools {
		for j := range s.Pools[i].Members {
			if at := &s.Pools[i].Members[j]; at.Number == number && number != 0 {
				if keepsPort(s, Tuple{Proto: t.Proto, Src: t.Dst, Dst: t.Src}) {
					return netip.AddrPortFrom(at.Address.Addr(), t.Src.Port()), true
				}
				return at.Address, true
			}
		}
	}
	return netip.AddrPort{}, false
}

// keepsPort says whether members get a connection on the port that the client uses.
func keepsPort(s *state.Snapshot, t Tuple) bool {
	keeps := false
	for i := range s.Services {
		if !slices.Contains(s.Services[i].Addresses, t.Dst.Addr()) {
			continue
		}
		for _, p := range s.Services[i].Ports {
			switch {
			case !takes(p, t):
			case !p.Kept():
				return false // before all that have more ports
			default:
				keeps = true
			}
		}
	}
	return keeps
}

// StrippedTag returns the VLAN id of the tag that the tables have put aside of a
// packet that came up, 0 for none.
func StrippedTag(m openflow.Match) uint16 {
	tci, _ := m.Get(keptTag.Field)
	return uint16(tci.Uint64()) &^ (tagPresent | tagPriority)
}

// tagPriority are the bits of a TCI that hold the priority.
const tagPriority = 0xe000
