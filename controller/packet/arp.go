package packet

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"

	"brlb/openflow"
)

const (
	arpSize     = 28
	arpHardware = 1 // Ethernet
	arpRequest  = 1
	arpReply    = 2
)

// askARP is an ARP request (RFC 826). A sender that is not valid asks as an RFC
// 5227 probe does, from 0.0.0.0: for networks in which brlb has no address of
// its own.
func askARP(mac openflow.MAC, sender, target netip.Addr) []byte {
	if !sender.IsValid() {
		sender = netip.IPv4Unspecified()
	}
	return arp(arpRequest, mac, sender, openflow.MAC{}, target)
}

// announceARP are gratuitous ARPs in both forms (RFC 5227 section 3, RFC 5944
// section 4.6): some hosts update their cache on a request only, some on a
// reply only.
func announceARP(mac openflow.MAC, addr netip.Addr) [][]byte {
	return [][]byte{
		arp(arpRequest, mac, addr, openflow.MAC{}, addr),
		arp(arpReply, mac, addr, broadcast, addr),
	}
}

// arp is a broadcast ARP frame.
func arp(op uint16, senderMAC openflow.MAC, sender netip.Addr, targetMAC openflow.MAC, target netip.Addr) []byte {
	frame := newFrame(broadcast, senderMAC, nil, etherARP)
	frame = binary.BigEndian.AppendUint16(frame, arpHardware)
	frame = binary.BigEndian.AppendUint16(frame, etherIPv4)
	frame = append(frame, macSize, 4)
	frame = binary.BigEndian.AppendUint16(frame, op)
	frame = append(append(frame, senderMAC[:]...), sender.AsSlice()...)
	frame = append(append(frame, targetMAC[:]...), target.AsSlice()...)
	return pad(frame)
}

// arpSender reads who speaks in an ARP packet, request or reply.
func arpSender(payload []byte) (netip.Addr, openflow.MAC, error) {
	if len(payload) < arpSize {
		return netip.Addr{}, openflow.MAC{}, errors.New("ARP packet is cut")
	}
	if binary.BigEndian.Uint16(payload) != arpHardware || binary.BigEndian.Uint16(payload[2:]) != etherIPv4 || payload[4] != macSize || payload[5] != 4 {
		return netip.Addr{}, openflow.MAC{}, errors.New("not ARP for IPv4 over Ethernet")
	}
	mac := openflow.MAC(payload[8:14])
	if !canSpeak(mac) {
		return netip.Addr{}, openflow.MAC{}, fmt.Errorf("%v cannot be the address of a sender", mac)
	}
	return netip.AddrFrom4([4]byte(payload[14:18])), mac, nil
}
