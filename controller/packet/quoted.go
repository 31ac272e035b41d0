package packet

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
)

// Quoted returns the tuple of the packet that an ICMP error is about, as that
// packet's sender sees it. Eight octets behind its IP header are enough. The
// error must have been sent to the sender of what it quotes.
func Quoted(frame []byte) (Tuple, error) {
	l, err := parseLink(frame)
	if err != nil {
		return Tuple{}, err
	}
	d, err := parseIP(&l)
	if err != nil {
		return Tuple{}, err
	}
	if d.fragment() || !d.control() || len(d.payload()) < icmpSize {
		return Tuple{}, errors.New("not a whole ICMP error")
	}
	inner := link{etherType: l.etherType, payload: uncut(d.payload()[icmpSize:], d.v6())}
	q, err := parseIP(&inner)
	switch {
	case err != nil:
		return Tuple{}, fmt.Errorf("what the ICMP error quotes: %w", err)
	case q.src != d.dst:
		return Tuple{}, fmt.Errorf("ICMP error to %s is about a packet of %s", d.dst, q.src)
	case q.later:
		return Tuple{}, errors.New("ICMP error is about a fragment without the beginning")
	case q.hasPorts() && len(q.payload()) < 4:
		return Tuple{}, errors.New("what the ICMP error quotes is too short for ports")
	}
	return tupleOf(&q), nil
}

// uncut has a packet's header say that all of it is there.
func uncut(ip []byte, v6 bool) []byte {
	ip = slices.Clone(ip)
	switch {
	case v6 && len(ip) >= ipv6Size:
		binary.BigEndian.PutUint16(ip[4:], uint16(len(ip)-ipv6Size))
	case !v6 && len(ip) >= ipv4Size:
		binary.BigEndian.PutUint16(ip[2:], uint16(len(ip)))
	}
	return ip
}
