package packet

import (
	"encoding/binary"
	"net/netip"
	"slices"

	"brlb/openflow"
)

// Multicast listener discovery, version 2 (RFC 3810).
const (
	icmp6Report   = 143
	mldRecord     = 20 // size of a record without sources
	mldHopLimit   = 1
	mldJoin       = 4  // record type: from now on, everything that is sent to the group
	mldMostGroups = 50 // in one frame
)

var (
	allReporters    = netip.MustParseAddr("ff02::16")
	allReportersMAC = openflow.MAC{0x33, 0x33, 0, 0, 0, 0x16}
	// routerAlert is the extension header that every MLD message has.
	routerAlert = []byte{protoICMPv6, 0, 5, 2, 0, 0, 1, 0}
)

// Join returns frames that tell snooping switches to forward neighbour
// solicitations for these IPv6 addresses to where mac is: each is sent to a
// group of its own (RFC 4861 section 7.2.1). Such switches forget it after some
// minutes.
func Join(mac openflow.MAC, addrs []netip.Addr) [][]byte {
	var groups []netip.Addr
	for _, addr := range addrs {
		group, _ := solicitedNode(addr)
		groups = append(groups, group)
	}
	slices.SortFunc(groups, netip.Addr.Compare)
	var frames [][]byte
	for part := range slices.Chunk(slices.Compact(groups), mldMostGroups) {
		frames = append(frames, report(mac, part))
	}
	return frames
}

func report(mac openflow.MAC, groups []netip.Addr) []byte {
	message := make([]byte, 8, 8+len(groups)*mldRecord)
	message[0] = icmp6Report
	binary.BigEndian.PutUint16(message[6:], uint16(len(groups)))
	for _, group := range groups {
		message = append(message, mldJoin, 0, 0, 0)
		message = append(message, group.AsSlice()...)
	}
	src := LinkLocal(mac)
	binary.BigEndian.PutUint16(message[offICMPSum:], ^fold(pseudoSum(src, allReporters, protoICMPv6, len(message))+sum(message)))
	frame := newFrame(allReportersMAC, mac, nil, etherIPv6)
	frame = appendIPv6(frame, src, allReporters, ipv6Hop, mldHopLimit, len(routerAlert)+len(message))
	return append(append(frame, routerAlert...), message...)
}
