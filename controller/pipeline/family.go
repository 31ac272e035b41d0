package pipeline

import (
	"net/netip"

	"brlb/controller/config"
	"brlb/openflow"
)

// family is what differs between IPv4 and IPv6 rows.
type family struct {
	isIP        openflow.OXM
	src, dst    openflow.Field
	isICMP      openflow.OXM
	icmpType    openflow.Field
	echoRequest uint64
	echoReply   uint64
	errors      []uint64 // ICMP types that tell of another packet's fate
}

func families() []*family { return []*family{familyOf(false), familyOf(true)} }

func familyOf(ipv6 bool) *family {
	if ipv6 {
		return &family{
			isIP: openflow.EthType.Exact(etherIPv6), src: openflow.IPv6Src, dst: openflow.IPv6Dst,
			isICMP: openflow.IPProto.Exact(protoICMPv6), icmpType: openflow.ICMPv6Type,
			echoRequest: 128, echoReply: 129,
			errors: []uint64{1, 2, 3, 4}, // RFC 4443: unreachable, too big, time exceeded, parameter problem
		}
	}
	return &family{
		isIP: openflow.EthType.Exact(etherIPv4), src: openflow.IPv4Src, dst: openflow.IPv4Dst,
		isICMP: openflow.IPProto.Exact(protoICMP), icmpType: openflow.ICMPv4Type,
		echoRequest: 8, echoReply: 0,
		errors: []uint64{3, 11, 12}, // RFC 792: unreachable, time exceeded, parameter problem
	}
}

func familyOfAddr(addr netip.Addr) *family { return familyOf(addr.Is6()) }

// isError matches ICMP errors of one type.
func (f *family) isError(kind uint64) openflow.Match {
	return openflow.Match{f.isIP, f.isICMP, f.icmpType.Exact(kind)}
}

// isEcho matches echo requests.
func (f *family) isEcho() openflow.Match { return f.isError(f.echoRequest) }

// transport is a protocol with ports.
type transport struct {
	number   uint64 // of the protocol
	src, dst openflow.Field
}

// transportOf returns the transport of a protocol, nil for ProtoAny.
func transportOf(proto config.Proto) *transport {
	switch proto {
	case config.ProtoTCP:
		return &transport{protoTCP, openflow.TCPSrc, openflow.TCPDst}
	case config.ProtoUDP:
		return &transport{protoUDP, openflow.UDPSrc, openflow.UDPDst}
	case config.ProtoSCTP:
		return &transport{protoSCTP, openflow.SCTPSrc, openflow.SCTPDst}
	}
	return nil
}

// ports matches a range of ports by the fewest rows of field.
func ports(field openflow.Field, first, last uint16) []openflow.OXM {
	var found []openflow.OXM
	for at := uint32(first); at <= uint32(last); {
		size := uint32(1)
		for at&(size*2-1) == 0 && at+size*2-1 <= uint32(last) {
			size *= 2
		}
		if size == 1 {
			found = append(found, field.Exact(uint64(at)))
		} else {
			found = append(found, field.Masked(uint64(at), uint64(0xffff&^(size-1))))
		}
		at += size
	}
	return found
}
