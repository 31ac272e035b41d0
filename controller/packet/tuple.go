package packet

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"slices"
)

const (
	tcpSize    = 20 // without options
	udpSize    = 8
	sctpSize   = 12
	icmpSize   = 8
	offPortDst = 2
	offTCPSum  = 16
	offUDPSum  = 6
	offSCTPSum = 8
)

// Tuple names a connection, seen from the sender of a packet. Protocols without
// ports have port 0 at both ends.
type Tuple struct {
	Proto    uint8
	Src, Dst netip.AddrPort
}

// ReadTuple returns the tuple of a frame. The frame must hold an IP packet that
// is not a fragment.
func ReadTuple(frame []byte) (Tuple, error) {
	d, err := parseWhole(frame)
	if err != nil {
		return Tuple{}, err
	}
	return tupleOf(&d), nil
}

// tupleOf needs no more of the transport's header than the ports.
func tupleOf(d *datagram) Tuple {
	t := Tuple{Proto: d.proto}
	var src, dst uint16
	if d.hasPorts() {
		src, dst = binary.BigEndian.Uint16(d.payload()), binary.BigEndian.Uint16(d.payload()[offPortDst:])
	}
	t.Src, t.Dst = netip.AddrPortFrom(d.src, src), netip.AddrPortFrom(d.dst, dst)
	return t
}

// SetDestination returns the frame with another destination, and with checksums
// that are right if they were right before. Of a protocol without ports, the
// port is not used. It fails where ReadTuple fails, and for an address of the
// other family.
func SetDestination(frame []byte, dst netip.AddrPort) ([]byte, error) {
	return setEnd(frame, dst, offIPv4Dst, offIPv6Dst, offPortDst)
}

// SetSource is SetDestination for the source.
func SetSource(frame []byte, src netip.AddrPort) ([]byte, error) {
	return setEnd(frame, src, offIPv4Src, offIPv6Src, 0)
}

// setEnd writes an address where it stands in IPv4 or IPv6, and a port where it
// stands in the transport's header.
func setEnd(frame []byte, end netip.AddrPort, at4, at6, atPort int) ([]byte, error) {
	changed := slices.Clone(frame)
	d, err := parseWhole(changed)
	if err != nil {
		return nil, err
	}
	if d.v6() != end.Addr().Is6() {
		return nil, fmt.Errorf("%s cannot be an end of a packet to %s: the other IP family", end.Addr(), d.dst)
	}
	at := at4
	if d.v6() {
		at = at6
	}
	now := end.Addr().AsSlice()
	was := bytes.Clone(d.ip[at : at+len(now)])
	copy(d.ip[at:], now)
	if !d.v6() {
		adjust(d.ip[offIPv4Sum:], was, now)
	}
	if d.hasPorts() {
		port := d.payload()[atPort : atPort+2]
		was = append(was, port...)
		now = binary.BigEndian.AppendUint16(now, end.Port())
		binary.BigEndian.PutUint16(port, end.Port())
	}
	d.adjustSum(was, now)
	return changed, nil
}

// adjustSum corrects the transport's checksum of a datagram in which now stands
// where was stood.
func (d *datagram) adjustSum(was, now []byte) {
	payload := d.payload()
	switch d.proto {
	case protoTCP:
		adjust(payload[offTCPSum:], was, now)
	case protoUDP:
		if checksum := payload[offUDPSum : offUDPSum+2]; checksum[0]|checksum[1] != 0 { // zero: none (RFC 768)
			adjust(checksum, was, now)
			if checksum[0]|checksum[1] == 0 {
				checksum[0], checksum[1] = 0xff, 0xff
			}
		}
	case protoSCTP:
		setSCTPSum(payload)
	case protoICMPv6:
		adjust(payload[offICMPSum:], was, now)
	}
}

// parseWhole takes a frame apart whose packet is not a fragment and holds the
// whole header of its transport protocol.
func parseWhole(frame []byte) (datagram, error) {
	l, err := parseLink(frame)
	if err != nil {
		return datagram{}, err
	}
	d, err := parseIP(&l)
	if err != nil {
		return datagram{}, err
	}
	if d.fragment() {
		return datagram{}, errors.New("packet is a fragment")
	}
	if len(d.payload()) < transportSize(d.proto) {
		return datagram{}, fmt.Errorf("packet is too short for the header of IP protocol %d", d.proto)
	}
	return d, nil
}

func transportSize(proto uint8) int {
	switch proto {
	case protoTCP:
		return tcpSize
	case protoUDP:
		return udpSize
	case protoSCTP:
		return sctpSize
	case protoICMP, protoICMPv6:
		return icmpSize
	}
	return 0
}

func (d *datagram) hasPorts() bool {
	return d.proto == protoTCP || d.proto == protoUDP || d.proto == protoSCTP
}
