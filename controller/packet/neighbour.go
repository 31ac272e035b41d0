package packet

import (
	"errors"
	"fmt"
	"net/netip"

	"brlb/openflow"
)

// Ask returns the question who has an address: an ARP request or a neighbour
// solicitation. sender is brlb's own IPv4 address on that network, if it has
// one; an IPv6 neighbour is asked from LinkLocal(mac).
func Ask(mac openflow.MAC, sender, target netip.Addr) []byte {
	if target.Is4() {
		return askARP(mac, sender, target)
	}
	return askND(mac, target)
}

// Announce returns the frames that tell a network that mac has an address:
// gratuitous ARP, or an unsolicited neighbour advertisement. router says whether
// others use the address as a gateway.
func Announce(mac openflow.MAC, addr netip.Addr, router bool) [][]byte {
	if addr.Is4() {
		return announceARP(mac, addr)
	}
	return [][]byte{announceND(mac, addr, router)}
}

// Neighbour says where an address is.
type Neighbour struct {
	Addr netip.Addr
	MAC  openflow.MAC
	VLAN uint16 // outermost tag, 0 for none
}

// ReadNeighbour reads the answer to Ask: who speaks in an ARP packet, or what a
// neighbour advertisement says.
func ReadNeighbour(frame []byte) (Neighbour, error) {
	l, err := parseLink(frame)
	if err != nil {
		return Neighbour{}, err
	}
	n := Neighbour{VLAN: l.vlan()}
	switch l.etherType {
	case etherARP:
		n.Addr, n.MAC, err = arpSender(l.payload)
	case etherIPv6:
		var m ndPacket
		m, err = parseND(&l, icmp6Advertise)
		n.Addr, n.MAC = m.target, m.link
		if err == nil && !canSpeak(n.MAC) {
			err = fmt.Errorf("neighbour advertisement of %s names no MAC that a station can have", m.target)
		}
	default:
		err = errors.New("neither ARP nor neighbour discovery")
	}
	if err != nil {
		return Neighbour{}, err
	}
	return n, nil
}
