package packet

import (
	"encoding/binary"
	"errors"
	"slices"
)

// Opening returns, for the first fragment of a UDP datagram, an empty datagram
// of the same flow: what conntrack knows of the flow then, it also knows of the
// fragments. For a later fragment, which has no ports, it returns nil.
func Opening(frame []byte) ([]byte, error) {
	l, err := parseLink(frame)
	if err != nil {
		return nil, err
	}
	d, err := parseIP(&l)
	switch {
	case err != nil:
		return nil, err
	case !d.fragment() || d.proto != protoUDP:
		return nil, errors.New("not a fragment of a UDP datagram")
	case d.later:
		return nil, nil
	case len(d.payload()) < udpSize:
		return nil, errors.New("first fragment is too short for a UDP header")
	}
	empty := slices.Clone(frame[:len(frame)-len(l.payload)])
	empty = appendIP(empty, d.src, d.dst, protoUDP, udpSize)
	at := len(empty)
	empty = append(empty, d.payload()[:4]...)
	empty = append(empty, 0, udpSize, 0, 0)
	udp := empty[at:]
	binary.BigEndian.PutUint16(udp[offUDPSum:], ^fold(pseudoSum(d.src, d.dst, protoUDP, udpSize)+sum(udp)))
	return pad(empty), nil
}
