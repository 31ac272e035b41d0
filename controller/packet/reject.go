package packet

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"

	"brlb/openflow"
)

const (
	offTCPSeq   = 4
	offTCPAck   = 8
	offTCPStart = 12 // where the data begins, in the upper four bits
	offTCPFlags = 13

	tcpFIN = 0x01
	tcpSYN = 0x02
	tcpRST = 0x04
	tcpACK = 0x10

	icmpUnreachable  = 3
	icmpPort         = 3 // code
	icmpTooBig       = 4 // code
	icmpExpired      = 11
	icmp6Unreachable = 1
	icmp6Port        = 4 // code
	icmp6TooBig      = 2
	icmp6Expired     = 3
	icmp6FirstInfo   = 128 // types below are errors (RFC 4443 section 2.1)
	icmp6FirstND     = 133
	icmp6LastND      = 137

	// How long an error may be: RFC 1812 section 4.3.2.3, RFC 4443 section 2.4(c).
	maxICMP  = 576
	maxICMP6 = 1280

	// errorTOS is the precedence that RFC 1812 section 4.3.2.5 recommends.
	errorTOS = 0xc0
)

// Reject returns what a host answers when nobody listens: a reset to a TCP
// segment (RFC 9293 section 3.10.7.1), an ABORT to an SCTP packet (RFC 9260
// section 8.4), port unreachable to anything else (RFC 1812, RFC 4443). The answer
// comes from the address that the packet was for, and from mac. It fails for what
// must not be answered: resets, aborts, ICMP errors, fragments without the
// beginning, and what came from or went to a group.
func Reject(frame []byte, mac openflow.MAC) ([]byte, error) {
	l, d, err := parseAnswerable(frame)
	if err != nil {
		return nil, err
	}
	switch d.proto {
	case protoTCP:
		return reset(&l, &d, mac)
	case protoSCTP:
		return abort(&l, &d, mac)
	}
	kind, code := byte(icmpUnreachable), byte(icmpPort)
	if d.v6() {
		kind, code = icmp6Unreachable, icmp6Port
	}
	return icmpError(&l, &d, mac, d.dst, kind, code, 0), nil
}

// Expired returns what a router answers when the time to live of a packet has
// run out: an ICMP error from the router's address, which must be of the
// packet's family. It fails where Reject fails.
func Expired(frame []byte, mac openflow.MAC, router netip.Addr) ([]byte, error) {
	l, d, err := parseAnswerable(frame)
	if err != nil {
		return nil, err
	}
	if d.v6() != router.Is6() {
		return nil, fmt.Errorf("%s cannot speak about a packet to %s: the other IP family", router, d.dst)
	}
	kind := byte(icmpExpired)
	if d.v6() {
		kind = icmp6Expired
	}
	return icmpError(&l, &d, mac, router, kind, 0, 0), nil
}

// TooBig returns what a router answers when a packet does not fit into where it
// would go: destination unreachable, fragmentation needed (RFC 792, RFC 1191), or
// packet too big (RFC 4443 section 3.2), with how long it may be. Of IPv4 that may
// be fragmented it says the same: its sender then does. It fails where Expired
// fails.
func TooBig(frame []byte, mac openflow.MAC, router netip.Addr, mtu uint16) ([]byte, error) {
	l, d, err := parseAnswerable(frame)
	if err != nil {
		return nil, err
	}
	if d.v6() != router.Is6() {
		return nil, fmt.Errorf("%s cannot speak about a packet to %s: the other IP family", router, d.dst)
	}
	kind, code := byte(icmpUnreachable), byte(icmpTooBig)
	if d.v6() {
		kind, code = icmp6TooBig, 0
	}
	return icmpError(&l, &d, mac, router, kind, code, uint32(mtu)), nil
}

// parseAnswerable takes a frame apart that an error may be about (RFC 1122
// section 3.2.2, RFC 4443 section 2.4(e)).
func parseAnswerable(frame []byte) (link, datagram, error) {
	l, d, err := parseBetweenHosts(frame)
	switch {
	case err != nil:
	case d.later:
		err = errors.New("packet is a fragment without the beginning")
	case d.control():
		err = errors.New("packet is an ICMP error, or neighbour discovery")
	}
	return l, d, err
}

// parseBetweenHosts takes a frame apart that one host has sent another.
func parseBetweenHosts(frame []byte) (link, datagram, error) {
	l, err := parseLink(frame)
	if err != nil {
		return link{}, datagram{}, err
	}
	d, err := parseIP(&l)
	switch {
	case err != nil:
	case isGroup(l.dst) || !canSpeak(l.src):
		err = errors.New("frame is from or for a group")
	case !isHost(d.src) || !isHost(d.dst) || d.src == d.dst:
		err = fmt.Errorf("packet from %s to %s is not between two hosts", d.src, d.dst)
	}
	return l, d, err
}

// isHost says whether an address is that of one host.
func isHost(addr netip.Addr) bool {
	if addr.Is4() && addr.As4()[0] >= 240 { // reserved, and broadcast
		return false
	}
	return !addr.IsMulticast() && !addr.IsUnspecified() && !addr.IsLoopback()
}

// control says whether a packet is, or cannot be told from, an ICMP error or a
// message that keeps a link going.
func (d *datagram) control() bool {
	payload := d.payload()
	switch d.proto {
	case protoICMP:
		if len(payload) == 0 {
			return true
		}
		switch payload[0] {
		case icmpUnreachable, 4, 5, icmpExpired, 12: // source quench, redirect, parameter problem
			return true
		}
	case protoICMPv6:
		return len(payload) == 0 || payload[0] < icmp6FirstInfo || payload[0] >= icmp6FirstND && payload[0] <= icmp6LastND
	}
	return false
}

func reset(l *link, d *datagram, mac openflow.MAC) ([]byte, error) {
	segment := d.payload()
	if d.more || len(segment) < tcpSize {
		return nil, errors.New("TCP segment is a fragment, or cut")
	}
	start := int(segment[offTCPStart]>>4) * 4
	if start < tcpSize || start > len(segment) {
		return nil, errors.New("TCP segment says that its data begins where there is none")
	}
	flags := segment[offTCPFlags]
	if flags&tcpRST != 0 {
		return nil, errors.New("TCP segment is a reset")
	}
	answer := make([]byte, tcpSize)
	copy(answer, segment[2:4])
	copy(answer[2:], segment[0:2])
	answer[offTCPStart] = tcpSize / 4 << 4
	if flags&tcpACK != 0 {
		copy(answer[offTCPSeq:], segment[offTCPAck:offTCPAck+4])
		answer[offTCPFlags] = tcpRST
	} else {
		length := uint32(len(segment)-start) + bit(flags, tcpSYN) + bit(flags, tcpFIN)
		binary.BigEndian.PutUint32(answer[offTCPAck:], binary.BigEndian.Uint32(segment[offTCPSeq:])+length)
		answer[offTCPFlags] = tcpRST | tcpACK
	}
	binary.BigEndian.PutUint16(answer[offTCPSum:], ^fold(pseudoSum(d.dst, d.src, protoTCP, len(answer))+sum(answer)))
	frame := newFrame(l.src, mac, l.tags, l.etherType)
	frame = appendIP(frame, d.dst, d.src, protoTCP, len(answer))
	return pad(append(frame, answer...)), nil
}

func bit(flags, flag byte) uint32 {
	if flags&flag != 0 {
		return 1
	}
	return 0
}

// icmpError is an error about a packet, which it quotes as far as there is room.
// What stands before the quotation is mtu, 0 for most errors.
func icmpError(l *link, d *datagram, mac openflow.MAC, from netip.Addr, kind, code byte, mtu uint32) []byte {
	proto, room := uint8(protoICMP), maxICMP-ipv4Size-icmpSize
	if d.v6() {
		proto, room = protoICMPv6, maxICMP6-ipv6Size-icmpSize
	}
	message := binary.BigEndian.AppendUint32([]byte{kind, code, 0, 0}, mtu)
	message = append(message, d.ip[:min(len(d.ip), room)]...)
	s := sum(message)
	if d.v6() {
		s += pseudoSum(from, d.src, protoICMPv6, len(message))
	}
	binary.BigEndian.PutUint16(message[offICMPSum:], ^fold(s))
	frame := newFrame(l.src, mac, l.tags, l.etherType)
	at := len(frame)
	frame = appendIP(frame, from, d.src, proto, len(message))
	if !d.v6() {
		adjust(frame[at+offIPv4Sum:], frame[at:at+2], []byte{frame[at], errorTOS})
		frame[at+1] = errorTOS
	}
	return pad(append(frame, message...))
}
