package pipeline

import (
	"brlb/controller/state"
	"brlb/openflow"
)

// SCTP associations that must end.
//
// Open vSwitch cannot have a kernel forget an SCTP association: it asks for TCP,
// UDP and ICMP only. So the controller answers the client's next packet by an ABORT
// in the member's place, which on its way through conntrack closes the entry.

var (
	isSCTP  = openflow.IPProto.Exact(protoSCTP)
	aborted = openflow.Reg9.Range(1, 1)
)

// abortFlow has the associations of a member ended.
func abortFlow(m *state.Member, pool uint16) *openflow.FlowMod {
	match := openflow.Match{openflow.Reg2.Exact(uint64(m.Number)), familyOfAddr(m.Address.Addr()).isIP, isSCTP}
	return flow(Cookie(KindMember, pool, uint32(m.Number)), TableToMember, prioAbort, match, abort()...)
}

// abortRest has those of members ended that are gone.
func abortRest() []*openflow.FlowMod {
	var flows []*openflow.FlowMod
	for _, f := range families() {
		flows = append(flows, flow(Cookie(KindBase, 0, 0), TableToMember, prioAbortRest, openflow.Match{f.isIP, isSCTP}, abort()...))
	}
	return flows
}

func abort() []openflow.Instruction { return refuse(openflow.RegLoad{Dst: aborted, Value: 1}) }

// Aborts says of a packet that came up whether its association must end.
func Aborts(m openflow.Match) bool {
	value, _ := m.Get(openflow.Reg9)
	return value.Uint64()&2 != 0
}

// AsAnswer are the actions that send a packet to a client as a member's answer.
func AsAnswer(zone uint16) []openflow.Action {
	return []openflow.Action{answered(zone)}
}
