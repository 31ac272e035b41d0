package packet

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
)

const (
	protoICMP     = 1
	protoTCP      = 6
	protoUDP      = 17
	protoICMPv6   = 58
	protoSCTP     = 132
	ipv6Hop       = 0 // extension headers of IPv6
	ipv6Routing   = 43
	ipv6Fragment  = 44
	ipv6Auth      = 51
	ipv6Dest      = 60
	maxExtensions = 8

	ipv4Size     = 20 // without options
	offIPv4ID    = 4
	offIPv4Frag  = 6
	offIPv4Proto = 9
	offIPv4Sum   = 10
	offIPv4Src   = 12
	offIPv4Dst   = 16
	ipv4Don      = 0x4000 // don't fragment
	ipv4More     = 0x2000
	ipv4Offset   = 0x1fff

	ipv6Size    = 40
	offIPv6Next = 6
	offIPv6Hops = 7
	offIPv6Src  = 8
	offIPv6Dst  = 24
	ipv6More    = 0x0001
	ipv6Offset  = 0xfff8

	offICMPSum = 2
	ttl        = 64 // of what brlb sends itself
)

// datagram is an IP packet taken apart.
type datagram struct {
	ip       []byte // the packet, without what pads the frame
	size     int    // of its header, with options and extension headers
	proto    uint8  // of what follows the header
	src, dst netip.Addr
	later    bool // a fragment that is not the first
	more     bool // a fragment that is not the last
}

func (d *datagram) v6() bool { return d.dst.Is6() }

func (d *datagram) payload() []byte { return d.ip[d.size:] }

func (d *datagram) fragment() bool { return d.later || d.more }

func parseIP(l *link) (datagram, error) {
	switch l.etherType {
	case etherIPv4:
		return parseIPv4(l.payload)
	case etherIPv6:
		return parseIPv6(l.payload)
	}
	return datagram{}, errors.New("not an IP packet")
}

// Destination returns where the packet in a frame goes; fragments too.
func Destination(frame []byte) (netip.Addr, error) {
	l, err := parseLink(frame)
	if err != nil {
		return netip.Addr{}, err
	}
	d, err := parseIP(&l)
	return d.dst, err
}

func parseIPv4(ip []byte) (datagram, error) {
	if len(ip) < ipv4Size || ip[0]>>4 != 4 {
		return datagram{}, errors.New("not an IPv4 packet")
	}
	size, total := int(ip[0]&0x0f)*4, int(binary.BigEndian.Uint16(ip[2:]))
	if size < ipv4Size || total < size || len(ip) < total {
		return datagram{}, errors.New("IPv4 packet is cut")
	}
	frag := binary.BigEndian.Uint16(ip[offIPv4Frag:])
	return datagram{
		ip: ip[:total], size: size, proto: ip[offIPv4Proto],
		src:   netip.AddrFrom4([4]byte(ip[offIPv4Src:])),
		dst:   netip.AddrFrom4([4]byte(ip[offIPv4Dst:])),
		later: frag&ipv4Offset != 0, more: frag&ipv4More != 0,
	}, nil
}

func parseIPv6(ip []byte) (datagram, error) {
	if len(ip) < ipv6Size || ip[0]>>4 != 6 {
		return datagram{}, errors.New("not an IPv6 packet")
	}
	total := ipv6Size + int(binary.BigEndian.Uint16(ip[4:]))
	if len(ip) < total {
		return datagram{}, errors.New("IPv6 packet is cut")
	}
	d := datagram{
		ip: ip[:total], size: ipv6Size, proto: ip[offIPv6Next],
		src: netip.AddrFrom16([16]byte(ip[offIPv6Src:])),
		dst: netip.AddrFrom16([16]byte(ip[offIPv6Dst:])),
	}
	for range maxExtensions {
		header := d.ip[d.size:]
		var size int
		switch d.proto {
		default:
			return d, nil
		case ipv6Hop, ipv6Dest, ipv6Routing:
			if len(header) < 8 {
				return datagram{}, errors.New("IPv6 packet ends within its extension headers")
			}
			if d.proto == ipv6Routing && header[3] != 0 {
				return datagram{}, errors.New("IPv6 packet is not yet at its last destination")
			}
			size = 8 + int(header[1])*8
		case ipv6Auth:
			if len(header) < 8 {
				return datagram{}, errors.New("IPv6 packet ends within its extension headers")
			}
			size = 8 + int(header[1])*4
		case ipv6Fragment:
			if len(header) < 8 {
				return datagram{}, errors.New("IPv6 packet ends within its extension headers")
			}
			size = 8
			frag := binary.BigEndian.Uint16(header[2:])
			d.later, d.more = frag&ipv6Offset != 0, frag&ipv6More != 0
		}
		if len(header) < size {
			return datagram{}, errors.New("IPv6 packet ends within its extension headers")
		}
		d.proto, d.size = header[0], d.size+size
		if d.later {
			return d, nil // what follows is the middle of something
		}
	}
	return datagram{}, fmt.Errorf("IPv6 packet has more than %d extension headers", maxExtensions)
}

// appendIP appends the header of a packet that brlb sends itself.
func appendIP(frame []byte, src, dst netip.Addr, proto uint8, length int) []byte {
	if dst.Is6() {
		return appendIPv6(frame, src, dst, proto, ttl, length)
	}
	at := len(frame)
	frame = append(frame, 0x40|ipv4Size/4, 0)
	frame = binary.BigEndian.AppendUint16(frame, uint16(ipv4Size+length))
	frame = append(frame, 0, 0, ipv4Don>>8, 0, ttl, proto, 0, 0)
	frame = append(append(frame, src.AsSlice()...), dst.AsSlice()...)
	binary.BigEndian.PutUint16(frame[at+offIPv4Sum:], ^fold(sum(frame[at:])))
	return frame
}

func appendIPv6(frame []byte, src, dst netip.Addr, proto, hopLimit uint8, length int) []byte {
	frame = append(frame, 0x60, 0, 0, 0)
	frame = binary.BigEndian.AppendUint16(frame, uint16(length))
	frame = append(frame, proto, hopLimit)
	return append(append(frame, src.AsSlice()...), dst.AsSlice()...)
}
