package packet

import (
	"encoding/binary"
	"errors"
	"slices"

	"brlb/openflow"
)

const (
	icmpEcho       = 8
	icmpEchoReply  = 0
	icmp6Echo      = 128
	icmp6EchoReply = 129

	ipv6FragmentSize = 8 // of the header of a fragment

	// pieceSize is how much of a message is in one packet that every IPv6 link
	// carries (RFC 8200 section 5), in octets, a multiple of 8.
	pieceSize = 1280 - ipv6Size - ipv6FragmentSize
)

// Echo returns the answer to an echo request (RFC 792, RFC 4443), from mac: a reply,
// in fragments if it is long. Of a request in fragments each is answered by itself,
// by the same fragment of the reply; a later one does not tell what it belongs to,
// and is taken for part of a request. It fails for anything else than ICMP, for
// messages that are no echo requests, and for packets that are not between two hosts
// or have options.
func Echo(frame []byte, mac openflow.MAC) ([][]byte, error) {
	l, d, err := parseBetweenHosts(frame)
	if err != nil {
		return nil, err
	}
	proto, request, reply := uint8(protoICMP), byte(icmpEcho), byte(icmpEchoReply)
	if d.v6() {
		proto, request, reply = protoICMPv6, icmp6Echo, icmp6EchoReply
	}
	if d.proto != proto || d.hasOptions() {
		return nil, errors.New("packet is not ICMP without options")
	}
	message := slices.Clone(d.payload())
	if !d.later {
		if len(message) < icmpSize || message[0] != request {
			return nil, errors.New("packet is not an echo request, nor its beginning")
		}
		was := slices.Clone(message[:2])
		message[0] = reply
		adjust(message[offICMPSum:], was, message[:2])
	}
	answer := func(at int, more bool, piece []byte) []byte {
		return pad(d.appendAnswer(newFrame(l.src, mac, l.tags, l.etherType), at, more, piece))
	}
	if d.fragment() {
		return [][]byte{answer(d.offset(), d.more, message)}, nil
	}
	var answers [][]byte
	for at := 0; at < len(message); at += pieceSize {
		end := min(at+pieceSize, len(message))
		answers = append(answers, answer(at, end < len(message), message[at:end]))
	}
	return answers, nil
}

// hasOptions says whether there is more than the header of IP and, of IPv6, that of a
// fragment.
func (d *datagram) hasOptions() bool {
	switch {
	case !d.v6():
		return d.size != ipv4Size
	case d.fragment():
		return d.size != ipv6Size+ipv6FragmentSize
	}
	return d.size != ipv6Size
}

// offset is where a fragment begins in its message.
func (d *datagram) offset() int {
	if d.v6() {
		return int(binary.BigEndian.Uint16(d.ip[ipv6Size+2:]) & ipv6Offset)
	}
	return int(binary.BigEndian.Uint16(d.ip[offIPv4Frag:])&ipv4Offset) * 8
}

// appendAnswer appends a packet back that carries the octets of a message from at on,
// with the identification of d. Without one, the ICMP message's own numbers do.
func (d *datagram) appendAnswer(frame []byte, at int, more bool, piece []byte) []byte {
	if !d.v6() {
		start := len(frame)
		frame = appendIP(frame, d.dst, d.src, d.proto, len(piece))
		ip := frame[start:]
		copy(ip[offIPv4ID:], d.ip[offIPv4ID:offIPv4Frag])
		word := uint16(at / 8)
		if more {
			word |= ipv4More
		}
		binary.BigEndian.PutUint16(ip[offIPv4Frag:], word)
		ip[offIPv4Sum], ip[offIPv4Sum+1] = 0, 0
		binary.BigEndian.PutUint16(ip[offIPv4Sum:], ^fold(sum(ip)))
		return append(frame, piece...)
	}
	id := d.ip[ipv6Size+4 : ipv6Size+8] // of a fragment, or the numbers of an echo request
	word := uint16(at)
	if more {
		word |= ipv6More
	}
	frame = appendIPv6(frame, d.dst, d.src, ipv6Fragment, ttl, ipv6FragmentSize+len(piece))
	frame = binary.BigEndian.AppendUint16(append(frame, d.proto, 0), word)
	return append(append(frame, id...), piece...)
}
