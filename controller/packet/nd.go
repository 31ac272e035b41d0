package packet

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"

	"brlb/openflow"
)

// Neighbour discovery (RFC 4861).
const (
	icmp6Solicit   = 135
	icmp6Advertise = 136

	ndTarget  = 8  // where the target stands in the message
	ndOptions = 24 // and where its options begin

	ndSourceLink = 1 // options
	ndTargetLink = 2

	ndRouter    = 0x80 // flags of an advertisement
	ndSolicited = 0x40
	ndOverride  = 0x20

	// ndHopLimit shows that no router has forwarded the message.
	ndHopLimit = 255
)

var (
	allNodes    = netip.MustParseAddr("ff02::1")
	allNodesMAC = openflow.MAC{0x33, 0x33, 0, 0, 0, 1}
)

// LinkLocal is the link-local address that a MAC address gives (RFC 4291,
// appendix A): the one from which brlb asks for IPv6 neighbours.
func LinkLocal(mac openflow.MAC) netip.Addr {
	return netip.AddrFrom16([16]byte{
		0xfe, 0x80, 8: mac[0] ^ 0x02, 9: mac[1], 10: mac[2], 11: 0xff, 12: 0xfe, 13: mac[3], 14: mac[4], 15: mac[5],
	})
}

// solicitedNode is the group that hosts with an address listen to, and its MAC
// (RFC 4291 section 2.7.1, RFC 2464 section 7).
func solicitedNode(addr netip.Addr) (netip.Addr, openflow.MAC) {
	a := addr.As16()
	group := [16]byte{0xff, 0x02, 11: 1, 12: 0xff, 13: a[13], 14: a[14], 15: a[15]}
	return netip.AddrFrom16(group), openflow.MAC{0x33, 0x33, 0xff, a[13], a[14], a[15]}
}

func askND(mac openflow.MAC, target netip.Addr) []byte {
	group, groupMAC := solicitedNode(target)
	frame := newFrame(groupMAC, mac, nil, etherIPv6)
	return ndMessage(frame, LinkLocal(mac), group, icmp6Solicit, 0, target, ndSourceLink, mac)
}

// announceND is an unsolicited advertisement (RFC 4861 section 7.2.6).
func announceND(mac openflow.MAC, addr netip.Addr, router bool) []byte {
	frame := newFrame(allNodesMAC, mac, nil, etherIPv6)
	return ndMessage(frame, addr, allNodes, icmp6Advertise, ndOverride|routerFlag(router), addr, ndTargetLink, mac)
}

// Advertise answers a neighbour solicitation: mac has the target. router says
// whether others use an address as a gateway. Whoever asks from :: wants to know
// whether the address is free, and all are told that it is not (RFC 4862 section
// 5.4.3).
func Advertise(frame []byte, mac openflow.MAC, router func(netip.Addr) bool) ([]byte, error) {
	l, err := parseLink(frame)
	if err != nil {
		return nil, err
	}
	m, err := parseND(&l, icmp6Solicit)
	if err != nil {
		return nil, err
	}
	flags := ndOverride | routerFlag(router(m.target))
	asker, askerMAC := m.src, l.src
	if m.link != (openflow.MAC{}) {
		askerMAC = m.link
	}
	if asker.IsUnspecified() {
		if group, _ := solicitedNode(m.target); m.dst != group || m.link != (openflow.MAC{}) {
			return nil, errors.New("neighbour solicitation from :: has another form than duplicate address detection")
		}
		asker, askerMAC = allNodes, allNodesMAC
	} else {
		if asker.IsMulticast() || !canSpeak(askerMAC) {
			return nil, fmt.Errorf("%s at %v cannot ask", asker, askerMAC)
		}
		flags |= ndSolicited
	}
	answer := newFrame(askerMAC, mac, l.tags, etherIPv6)
	return ndMessage(answer, m.target, asker, icmp6Advertise, flags, m.target, ndTargetLink, mac), nil
}

func routerFlag(router bool) byte {
	if router {
		return ndRouter
	}
	return 0
}

// ndMessage appends a solicitation or an advertisement to a frame.
func ndMessage(frame []byte, src, dst netip.Addr, kind, flags byte, target netip.Addr, option byte, mac openflow.MAC) []byte {
	message := make([]byte, ndOptions, ndOptions+8)
	message[0], message[4] = kind, flags
	copy(message[ndTarget:], target.AsSlice())
	message = append(append(message, option, 1), mac[:]...)
	binary.BigEndian.PutUint16(message[offICMPSum:], ^fold(pseudoSum(src, dst, protoICMPv6, len(message))+sum(message)))
	frame = appendIPv6(frame, src, dst, protoICMPv6, ndHopLimit, len(message))
	return pad(append(frame, message...))
}

// ndPacket is what a solicitation or an advertisement says.
type ndPacket struct {
	src, dst netip.Addr
	flags    byte
	target   netip.Addr
	link     openflow.MAC // of the option that belongs to the type; zero without one
}

// parseND checks a message as RFC 4861 sections 7.1.1 and 7.1.2 demand.
func parseND(l *link, kind byte) (ndPacket, error) {
	d, err := parseIP(l)
	if err != nil {
		return ndPacket{}, err
	}
	message := d.payload()
	switch {
	case d.proto != protoICMPv6 || !d.v6() || len(message) < ndOptions || message[0] != kind || message[1] != 0:
		return ndPacket{}, fmt.Errorf("not an ICMPv6 message of type %d and code 0", kind)
	case d.size != ipv6Size:
		return ndPacket{}, errors.New("neighbour discovery behind an extension header")
	case d.ip[offIPv6Hops] != ndHopLimit:
		return ndPacket{}, fmt.Errorf("neighbour discovery with a hop limit of %d has come from another network", d.ip[offIPv6Hops])
	case fold(pseudoSum(d.src, d.dst, protoICMPv6, len(message))+sum(message)) != 0xffff:
		return ndPacket{}, errors.New("neighbour discovery with a wrong checksum")
	}
	m := ndPacket{src: d.src, dst: d.dst, flags: message[4], target: netip.AddrFrom16([16]byte(message[ndTarget:]))}
	if m.target.IsMulticast() || m.target.IsUnspecified() {
		return ndPacket{}, fmt.Errorf("neighbour discovery about %s, which no neighbour can have", m.target)
	}
	wanted := byte(ndSourceLink)
	if kind == icmp6Advertise {
		wanted = ndTargetLink
		if m.flags&ndSolicited != 0 && m.dst.IsMulticast() {
			return ndPacket{}, errors.New("neighbour advertisement to a group says that it was solicited")
		}
	}
	for options := message[ndOptions:]; len(options) > 0; {
		if len(options) < 8 || options[1] == 0 || int(options[1])*8 > len(options) {
			return ndPacket{}, errors.New("neighbour discovery with an option that is cut")
		}
		if options[0] == wanted && options[1] == 1 {
			m.link = openflow.MAC(options[2:8])
		}
		options = options[int(options[1])*8:]
	}
	return m, nil
}
