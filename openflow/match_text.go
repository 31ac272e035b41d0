package openflow

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

// EtherTypes and IP protocols that matches speak of by name.
const (
	etherTypeIPv4  = 0x0800
	etherTypeARP   = 0x0806
	etherTypeRARP  = 0x8035
	etherTypeIPv6  = 0x86dd
	etherTypeMPLS  = 0x8847
	etherTypeMPLSM = 0x8848
	etherTypeNSH   = 0x894f

	protoICMP   = 1
	protoTCP    = 6
	protoUDP    = 17
	protoICMPv6 = 58
	protoSCTP   = 132
)

// protocols are the words that stand for an EtherType and an IP protocol. The
// first that agrees is printed.
var protocols = []struct {
	name      string
	etherType uint64
	ipProto   uint64 // 0: any
}{
	{"icmp", etherTypeIPv4, protoICMP}, {"tcp", etherTypeIPv4, protoTCP},
	{"udp", etherTypeIPv4, protoUDP}, {"sctp", etherTypeIPv4, protoSCTP}, {"ip", etherTypeIPv4, 0},
	{"icmp6", etherTypeIPv6, protoICMPv6}, {"tcp6", etherTypeIPv6, protoTCP}, {"udp6", etherTypeIPv6, protoUDP},
	{"sctp6", etherTypeIPv6, protoSCTP}, {"ipv6", etherTypeIPv6, 0},
	{"arp", etherTypeARP, 0}, {"rarp", etherTypeRARP, 0}, {"mpls", etherTypeMPLS, 0}, {"mplsm", etherTypeMPLSM, 0},
	{"nsh", etherTypeNSH, 0},
}

// textOrder is the order in which ovs-ofctl prints fields. It prints the
// protocol in the place of EthType.
var textOrder = newTextOrder(
	PktMark, RecircID, DPHash, ConjID, ActsetOutput,
	CTState, CTZone, CTMark, CTLabel, CTNwSrc, CTIPv6Src, CTNwDst, CTIPv6Dst, CTNwProto, CTTpSrc, CTTpDst,
	EthType, PacketType,
	NSHFlags, NSHTTL, NSHMDType, NSHNP, NSHSPI, NSHSI, NSHC1, NSHC2, NSHC3, NSHC4,
	Reg0, Reg1, Reg2, Reg3, Reg4, Reg5, Reg6, Reg7, Reg8, Reg9, Reg10, Reg11, Reg12, Reg13, Reg14, Reg15,
	XReg0, XReg1, XReg2, XReg3, XReg4, XReg5, XReg6, XReg7, XXReg0, XXReg1, XXReg2, XXReg3,
	TunnelID, TunnelIPv4Src, TunnelIPv4Dst, TunnelIPv6Src, TunnelIPv6Dst, TunnelGBPID, TunnelGBPFlags,
	TunnelERSPANVer, TunnelERSPANIdx, TunnelERSPANDir, TunnelERSPANHWID, TunnelGTPUFlags, TunnelGTPUMsgType,
	TunnelFlags, TunnelMetadata0,
	Metadata, InPort, InPortNXM, VLANVID, VLANPCP, VLANTCI, EthSrc, EthDst,
	IPv4Src, IPv4Dst, IPv6Src, IPv6Dst, IPv6FLabel, ARPSPA, ARPTPA, IPProto, ARPOp, ARPSHA, ARPTHA,
	IPDSCP, IPTOS, IPECN, IPTTL, MPLSLabel, MPLSTC, MPLSTTL, MPLSBOS, IPFrag,
	ICMPv4Type, ICMPv4Code, ICMPv6Type, ICMPv6Code, IPv6NDTarget, IPv6NDSLL, IPv6NDTLL, IPv6NDReserved, IPv6NDOptionsType,
	TCPSrc, TCPDst, UDPSrc, UDPDst, SCTPSrc, SCTPDst, TCPFlags,
)

func newTextOrder(order ...Field) (rank [fieldCount]uint8) {
	for i, f := range order {
		rank[f] = uint8(i + 1)
	}
	for n := range tunnelMetadataFields {
		rank[TunnelMetadata(n)] = rank[TunnelMetadata0]
	}
	rank[FieldUnknown] = 255
	return rank
}

// writeMatch writes m as ovs-ofctl prints it.
func writeMatch(s *strings.Builder, m Match) {
	sorted := slices.Clone(m)
	sortMatch(sorted, func(f Field) int { return int(textOrder[f%fieldCount]) })
	protocol, skipType, skipProto := matchProtocol(m)
	anyVLAN := VLANVID.Masked(vlanPresent, vlanPresent)
	_, hasPCP := m.Get(VLANPCP)
	start := s.Len()
	comma := func() {
		if s.Len() > start {
			s.WriteByte(',')
		}
	}
	for i := 0; i < len(sorted); i += sorted.parts(i) {
		o := sorted[i]
		switch {
		case o.Field == EthType && skipType:
			comma()
			s.WriteString(protocol)
		case o.Field == IPProto && skipProto:
		case o == anyVLAN && hasPCP:
			// dl_vlan_pcp says that there is a tag.
		default:
			comma()
			writeField(s, sorted[i:i+sorted.parts(i)])
		}
	}
}

// matchProtocol returns the word for the protocol of m, and whether it says all
// of EthType and of IPProto.
func matchProtocol(m Match) (word string, skipType, skipProto bool) {
	etherType, ok := m.Get(EthType)
	if !ok || etherType.masked {
		return "", false, false
	}
	ipProto, hasProto := m.Get(IPProto)
	hasProto = hasProto && !ipProto.masked
	for _, p := range protocols {
		if p.etherType == etherType.value.lo && (p.ipProto == 0 || hasProto && p.ipProto == ipProto.value.lo) {
			return p.name, true, p.ipProto != 0
		}
	}
	return "", false, false
}

// textName is the name of a field in a printed match, where that is not the
// field's own.
var textName = map[Field]string{
	EthSrc: "dl_src", EthDst: "dl_dst", EthType: "dl_type", VLANPCP: "dl_vlan_pcp",
	IPv4Src: "nw_src", IPv4Dst: "nw_dst", IPDSCP: "nw_tos", IPTOS: "nw_tos", IPFrag: "nw_frag",
	TCPSrc: "tp_src", TCPDst: "tp_dst", UDPSrc: "tp_src", UDPDst: "tp_dst", SCTPSrc: "tp_src", SCTPDst: "tp_dst",
	ICMPv6Type: "icmp_type", ICMPv6Code: "icmp_code",
}

// vlanPresent is the bit of VLANVID that says "there is a tag" (OFPVID_PRESENT).
const vlanPresent = 0x1000

// String returns the field as ovs-ofctl prints it in a match: "reg1=0x5".
func (o OXM) String() string {
	var s strings.Builder
	writeField(&s, Match{o})
	return s.String()
}

// writeField writes one field, which has more than one part if it is raw and long.
func writeField(s *strings.Builder, parts Match) {
	o := parts[0]
	info := o.Field.info()
	name := info.name
	if n := textName[o.Field]; n != "" {
		name = n
	}
	switch o.Field {
	case FieldUnknown, FieldMore:
		fmt.Fprintf(s, "oxm(%08x:%x)", o.Header(), rawOctets(parts))
	case VLANVID:
		switch {
		case !o.masked && o.value.lo&vlanPresent != 0:
			fmt.Fprintf(s, "dl_vlan=%d", o.value.lo&^vlanPresent)
		case !o.masked:
			fmt.Fprintf(s, "vlan_tci=0x%04x/0x1fff", o.value.lo)
		default:
			fmt.Fprintf(s, "vlan_tci=0x%04x/0x%04x", o.value.lo, o.mask.lo)
		}
	case IPDSCP:
		fmt.Fprintf(s, "nw_tos=%d", o.value.lo<<2)
	case IPFrag:
		s.WriteString("nw_frag=" + fragText(o))
	case EthType:
		fmt.Fprintf(s, "dl_type=0x%04x", o.value.lo)
	case IPv6FLabel:
		fmt.Fprintf(s, "ipv6_label=0x%05x", o.value.lo)
		if o.masked && o.mask.lo != 1<<20-1 {
			fmt.Fprintf(s, "/0x%05x", o.mask.lo)
		}
	case CTZone:
		fmt.Fprintf(s, "ct_zone=%d", o.value.lo)
	case TunnelFlags:
		if !o.masked {
			o.masked, o.mask = true, uint128{lo: 1<<len(tunnelFlagNames) - 1}
		}
		s.WriteString("tun_flags=")
		writeValue(s, o)
	case RecircID:
		s.WriteString("recirc_id=" + hexText(o.value.lo))
	default:
		s.WriteString(name)
		if info.format == formatBytes {
			writeBytes(s, parts)
			return
		}
		s.WriteByte('=')
		writeValue(s, o)
	}
}

// fragText is the word for a value of IPFrag: bit 0 any fragment, bit 1 a later
// one.
func fragText(o OXM) string {
	mask := uint64(3)
	if o.masked {
		mask = o.mask.lo & 3
	}
	value := o.value.lo & mask
	switch {
	case mask == 3 && value == 1:
		return "first"
	case mask == 3 && value == 3, mask == 2 && value == 2:
		return "later"
	case mask == 1 && value == 1:
		return "yes"
	case mask == 2:
		return "not_later"
	case mask != 0 && value == 0:
		return "no"
	}
	return "<error>"
}

// writeValue writes the value of o and, if it has one, "/" and the mask.
func writeValue(s *strings.Builder, o OXM) {
	info := o.Field.info()
	switch info.format {
	case formatIPv4, formatIPv6:
		writeAddr(s, o)
		return
	case formatTCPFlags:
		writeFlags(s, o, tcpFlagNames, 0xfff)
		return
	case formatCTState:
		writeFlags(s, o, ctStateNames, 0xff)
		return
	case formatTunnelFlags:
		writeFlags(s, o, tunnelFlagNames, ^uint64(0))
		return
	case formatPort:
		p := PortNo(o.value.lo)
		if info.size == 2 {
			p = portFrom16(uint16(o.value.lo))
		}
		s.WriteString(p.String())
		return
	case formatPacketType:
		fmt.Fprintf(s, "(%d,%s)", o.value.lo>>16, hexText(o.value.lo&0xffff))
		return
	}
	s.WriteString(valueText(o.Field, o.value, o.masked))
	if o.masked {
		s.WriteByte('/')
		s.WriteString(valueText(o.Field, o.mask, true))
	}
}

// valueText is a number or an Ethernet address. Where there is a mask, numbers
// are hexadecimal.
func valueText(f Field, v uint128, masked bool) string {
	info := f.info()
	switch {
	case info.format == formatMAC:
		return macFromUint64(v.lo).String()
	case v.hi != 0:
		return fmt.Sprintf("%#x%016x", v.hi, v.lo)
	case masked && info.format == formatDecimal && info.size == 2:
		return fmt.Sprintf("%#x", v.lo)
	case v.lo == 0 && !masked, info.format == formatDecimal && !masked:
		return strconv.FormatUint(v.lo, 10)
	}
	return hexText(v.lo)
}

// hexText is v as C's %#x writes it: without prefix if it is 0.
func hexText(v uint64) string {
	if v == 0 {
		return "0"
	}
	return "0x" + strconv.FormatUint(v, 16)
}

// writeAddr writes an address with its mask, as prefix length if it is one.
func writeAddr(s *strings.Builder, o OXM) {
	size := o.Field.Size()
	s.WriteString(addrText(addrFromValue(o.value, size), false))
	if !o.masked {
		return
	}
	for n := 0; n <= 8*size; n++ {
		if prefixMask(n, 8*size) == o.mask {
			fmt.Fprintf(s, "/%d", n)
			return
		}
	}
	s.WriteString("/" + addrText(addrFromValue(o.mask, size), false))
}

// writeBytes writes "=" and a value of variable length in hexadecimal; nothing
// if it only matches that there is the option.
func writeBytes(s *strings.Builder, parts Match) {
	value, mask := parts.Octets(0)
	if parts[0].masked && len(value) == 0 {
		return
	}
	s.WriteString("=" + bytesText(string(value)))
	if parts[0].masked {
		s.WriteString("/" + bytesText(string(mask)))
	}
}

func bytesText(v string) string {
	v = strings.TrimLeft(v, "\x00")
	if v == "" {
		return "0"
	}
	return "0x" + strings.TrimLeft(fmt.Sprintf("%x", v), "0")
}

var (
	tcpFlagNames    = []string{"fin", "syn", "rst", "psh", "ack", "urg", "ece", "cwr", "ns", "[200]", "[400]", "[800]"}
	ctStateNames    = []string{"new", "est", "rel", "rpl", "inv", "trk", "snat", "dnat"}
	tunnelFlagNames = []string{"oam"}
)

// writeFlags writes flags as +set-clear of those in the mask, or as a|b if all
// of them count.
func writeFlags(s *strings.Builder, o OXM, names []string, all uint64) {
	if !o.masked || o.mask.lo&all == all {
		set := []string{}
		for i, name := range names {
			if o.value.lo>>i&1 != 0 {
				set = append(set, name)
			}
		}
		if len(set) == 0 {
			set = []string{"0"}
		}
		s.WriteString(strings.Join(set, "|"))
		return
	}
	for i, name := range names {
		if o.mask.lo>>i&1 != 0 {
			s.WriteByte("-+"[o.value.lo>>i&1])
			s.WriteString(name)
		}
	}
}

// addrText writes an address as it stands in actions.
func addrText(a netip.Addr, brackets bool) string {
	text := a.String()
	// As inet_ntop does: ::10.0.0.1, not ::a00:1.
	if v := addrValue4or16(a); a.Is6() && v.hi == 0 && v.lo>>32 == 0 && v.lo>>16 != 0 {
		text = "::" + addrFromValue(v, 4).String()
	}
	if a.Is6() && brackets {
		return "[" + text + "]"
	}
	return text
}
