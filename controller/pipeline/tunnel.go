package pipeline

import (
	"brlb/controller/config"
	"brlb/controller/state"
	"brlb/openflow"
)

// ethernetSize is how much longer than its packet an untagged frame is.
const ethernetSize = 14

var tooBig = openflow.Reg9.Range(0, 0)

// tunnelFlows are the rows of a member that has the VIP itself, and that packets
// reach in a tunnel. Open vSwitch neither fragments what it puts into one nor
// tells anybody that it does not fit: the controller does, by what reg7 says.
func (fr frame) tunnelFlows(m *state.Member, pool uint16, tunnel config.Tunnel) []*openflow.FlowMod {
	cookie := Cookie(KindMember, pool, uint32(m.Number))
	addr := m.Address.Addr()
	match := openflow.Match{openflow.Reg2.Exact(uint64(m.Number)), familyOfAddr(addr).isIP}
	remote := openflow.TunnelIPv4Dst
	if addr.Is6() {
		remote = openflow.TunnelIPv6Dst
	}
	room := tunnel.Inner(addr.Is6())
	return []*openflow.FlowMod{
		flow(cookie, TableMember, prioOpened, match, apply(
			openflow.Note(m.Address.String()),
			openflow.RegLoad{Dst: openflow.Reg7.Whole(), Value: uint64(room)},
			openflow.CheckPktLarger{Len: uint16(room + ethernetSize), Dst: tooBig},
		), openflow.GotoTable(TableToMember)),
		flow(cookie, TableToMember, prioOpened, match, apply(
			set(openflow.EthSrc.MAC(fr.mac)),
			set(openflow.EthDst.MAC(m.Next.MAC)),
			openflow.RegLoad{Dst: vlan},
			set(remote.Addr(addr)),
			set(openflow.TunnelID.Exact(uint64(tunnel.Key))),
			openflow.RegLoad{Dst: openflow.InPortNXM.Whole(), Value: portNone16},
			output(openflow.PortNo(m.Next.Port)),
		)),
	}
}

// tooBigFlows have the senders told of packets that do not fit into their tunnel.
func tooBigFlows() []*openflow.FlowMod {
	var flows []*openflow.FlowMod
	for _, f := range families() {
		match := openflow.Match{f.isIP, openflow.Reg9.Exact(1)}
		flows = append(flows, flow(Cookie(KindBase, 0, 0), TableToMember, prioTooBig, match, refuse()...))
	}
	return flows
}

// TooBig says of a packet that came up whether it does not fit into its tunnel,
// and how long it may be.
func TooBig(m openflow.Match) (room uint16, yes bool) {
	longer, _ := m.Get(openflow.Reg9)
	size, _ := m.Get(openflow.Reg7)
	return uint16(size.Uint64()), longer.Uint64() == 1
}

// tunnelPorts lists the bridge's ports that lead into the pools' tunnels.
func tunnelPorts(s *state.Snapshot) []uint32 {
	types := map[config.TunnelType]bool{}
	for i := range s.Pools {
		types[s.Pools[i].Tunnel.Type] = true
	}
	var numbers []uint32
	for _, port := range s.Ports {
		for kind := range types {
			if kind != "" && port.Name == kind.Port() {
				numbers = append(numbers, port.Number)
			}
		}
	}
	return numbers
}
