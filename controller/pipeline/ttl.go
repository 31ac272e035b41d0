package pipeline

import "brlb/openflow"

// expiredFlows hand packets whose time to live ends at brlb to the controller,
// which tells their senders: traceroute shows brlb as the hop that it is.
func expiredFlows() []*openflow.FlowMod {
	var flows []*openflow.FlowMod
	for _, f := range families() {
		// A new connection is not committed first.
		for _, table := range []uint8{TableMember, TableToMember} {
			flows = append(flows, flow(Cookie(KindBase, 0, 0), table, prioExpired, openflow.Match{f.isIP, openflow.IPTTL.Exact(1)}, refuse()...))
		}
	}
	return flows
}

// prioExpired is above the rows that lead to members.
const prioExpired = 115

// StrippedTag returns the VLAN id of the tag that the tables have put aside of a
// packet that came up, 0 for none.
func StrippedTag(m openflow.Match) uint16 {
	tci, _ := m.Get(keptTag.Field)
	return uint16(tci.Uint64()) &^ (tagPresent | tagPriority)
}

// tagPriority are the bits of a TCI that hold the priority.
const tagPriority = 0xe000
