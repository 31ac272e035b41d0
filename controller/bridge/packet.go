package bridge

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"

	"brlb/openflow"
)

const (
	etherHeader = 14
	etherVLAN   = 0x8100
	etherARP    = 0x0806
	etherIPv4   = 0x0800

	arpLength   = 28
	arpEthernet = 1
	arpRequest  = 1

	protoTCP     = 6
	ipv4MinSize  = 20
	tcpMinSize   = 20
	minEthernet  = 60
	offIPv4Proto = 9
	offIPv4Csum  = 10
	offIPv4Src   = 12
	offIPv4Dst   = 16
	offTCPCsum   = 16
)

var broadcast = openflow.MAC{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}

// arpAsk builds the Ethernet frame of an ARP request (RFC 826). A sender that
// is not valid asks as an RFC 5227 probe does, from 0.0.0.0: for members on a
// network in which brlb has no address of its own.
func arpAsk(mac openflow.MAC, sender, target netip.Addr) []byte {
	frame := make([]byte, minEthernet)
	copy(frame, broadcast[:])
	copy(frame[6:], mac[:])
	binary.BigEndian.PutUint16(frame[12:], etherARP)
	arp := frame[etherHeader:]
	binary.BigEndian.PutUint16(arp[0:], arpEthernet)
	binary.BigEndian.PutUint16(arp[2:], etherIPv4)
	arp[4], arp[5] = 6, 4
	binary.BigEndian.PutUint16(arp[6:], arpRequest)
	copy(arp[8:], mac[:])
	if sender.IsValid() {
		copy(arp[14:], sender.AsSlice())
	}
	copy(arp[24:], target.AsSlice())
	return frame
}

// arpAnnounce builds a gratuitous ARP: a request for the sender's own address
// (RFC 5227 section 3).
func arpAnnounce(mac openflow.MAC, addr netip.Addr) []byte {
	return arpAsk(mac, addr, addr)
}

// arpSender reads who speaks in an ARP frame, request or reply.
func arpSender(frame []byte) (netip.Addr, openflow.MAC, error) {
	etherType, payload, err := etherPayload(frame)
	if err != nil {
		return netip.Addr{}, openflow.MAC{}, err
	}
	if etherType != etherARP || len(payload) < arpLength {
		return netip.Addr{}, openflow.MAC{}, errors.New("not an ARP packet")
	}
	if binary.BigEndian.Uint16(payload) != arpEthernet || binary.BigEndian.Uint16(payload[2:]) != etherIPv4 || payload[4] != 6 || payload[5] != 4 {
		return netip.Addr{}, openflow.MAC{}, errors.New("not ARP for IPv4 over Ethernet")
	}
	mac := openflow.MAC(payload[8:14])
	if mac[0]&1 != 0 || mac == (openflow.MAC{}) {
		return netip.Addr{}, openflow.MAC{}, fmt.Errorf("%v cannot be the address of a sender", mac)
	}
	return netip.AddrFrom4([4]byte(payload[14:18])), mac, nil
}

// etherPayload skips the Ethernet header and at most one VLAN tag.
func etherPayload(frame []byte) (etherType uint16, payload []byte, err error) {
	if len(frame) < etherHeader {
		return 0, nil, fmt.Errorf("frame of %d octets is shorter than an Ethernet header", len(frame))
	}
	etherType, payload = binary.BigEndian.Uint16(frame[12:]), frame[etherHeader:]
	if etherType == etherVLAN {
		if len(payload) < 4 {
			return 0, nil, errors.New("frame ends within its VLAN tag")
		}
		etherType, payload = binary.BigEndian.Uint16(payload[2:]), payload[4:]
	}
	return etherType, payload, nil
}

// tuple is the two ends of a TCP connection over IPv4.
type tuple struct {
	src, dst netip.AddrPort
}

// tcpTuple returns the ends that an Ethernet frame names. The frame must hold
// an unfragmented TCP segment over IPv4.
func tcpTuple(frame []byte) (tuple, error) {
	ip, tcp, err := tcpHeaders(frame)
	if err != nil {
		return tuple{}, err
	}
	return tuple{
		src: netip.AddrPortFrom(netip.AddrFrom4([4]byte(ip[offIPv4Src:])), binary.BigEndian.Uint16(tcp[0:])),
		dst: netip.AddrPortFrom(netip.AddrFrom4([4]byte(ip[offIPv4Dst:])), binary.BigEndian.Uint16(tcp[2:])),
	}, nil
}

// setDestination rewrites the destination of a TCP segment in place and
// corrects both checksums by the difference (RFC 1624).
func setDestination(frame []byte, dst netip.AddrPort) error {
	ip, tcp, err := tcpHeaders(frame)
	if err != nil {
		return err
	}
	if !dst.Addr().Is4() {
		return fmt.Errorf("%s is not an IPv4 destination", dst)
	}
	addr := dst.Addr().As4()
	for i := 0; i < 4; i += 2 {
		was := binary.BigEndian.Uint16(ip[offIPv4Dst+i:])
		now := binary.BigEndian.Uint16(addr[i:])
		adjust(ip[offIPv4Csum:], was, now)
		adjust(tcp[offTCPCsum:], was, now)
	}
	adjust(tcp[offTCPCsum:], binary.BigEndian.Uint16(tcp[2:]), dst.Port())
	copy(ip[offIPv4Dst:], addr[:])
	binary.BigEndian.PutUint16(tcp[2:], dst.Port())
	return nil
}

func adjust(checksum []byte, was, now uint16) {
	sum := uint32(^binary.BigEndian.Uint16(checksum)) + uint32(^was) + uint32(now)
	sum = sum&0xffff + sum>>16
	sum = sum&0xffff + sum>>16
	binary.BigEndian.PutUint16(checksum, ^uint16(sum))
}

func tcpHeaders(frame []byte) (ip, tcp []byte, err error) {
	etherType, ip, err := etherPayload(frame)
	if err != nil {
		return nil, nil, err
	}
	if etherType != etherIPv4 || len(ip) < ipv4MinSize || ip[0]>>4 != 4 {
		return nil, nil, errors.New("not an IPv4 packet")
	}
	// What follows the packet within the frame is padding.
	size, total := int(ip[0]&0x0f)*4, int(binary.BigEndian.Uint16(ip[2:]))
	if size < ipv4MinSize || total < size+tcpMinSize || len(ip) < total {
		return nil, nil, errors.New("IPv4 packet is cut, or too short for a TCP header")
	}
	if ip[offIPv4Proto] != protoTCP {
		return nil, nil, fmt.Errorf("IP protocol %d is not TCP", ip[offIPv4Proto])
	}
	if binary.BigEndian.Uint16(ip[6:])&0x3fff != 0 {
		return nil, nil, errors.New("TCP segment is fragmented")
	}
	return ip[:total], ip[size:total], nil
}
