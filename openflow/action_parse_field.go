package openflow

import (
	"net/netip"
	"strings"
)

// headerAction reads the actions that change headers.
func (p *actionParser) headerAction(key, arg, _ string) (bool, error) {
	switch key {
	case "push_vlan":
		n, err := parse16(arg)
		p.add(PushVLAN(n))
		return true, err
	case "mod_vlan_vid", "set_vlan_vid":
		n, err := parseUint(arg, 12)
		p.tagged(VLANVID.Exact(n | vlanPresent))
		return true, err
	case "mod_vlan_pcp", "set_vlan_pcp":
		n, err := parseUint(arg, 3)
		p.tagged(VLANPCP.Exact(n))
		return true, err
	case "mod_dl_src", "mod_dl_dst":
		m, err := ParseMAC(arg)
		p.set(map[string]Field{"mod_dl_src": EthSrc, "mod_dl_dst": EthDst}[key].MAC(m))
		return true, err
	case "mod_nw_src", "mod_nw_dst":
		a, err := netip.ParseAddr(arg)
		p.set(map[string]Field{"mod_nw_src": IPv4Src, "mod_nw_dst": IPv4Dst}[key].Addr(a))
		return true, err
	case "mod_nw_tos":
		n, err := parseUint(arg, 8)
		p.set(IPDSCP.Exact(n >> 2))
		return true, err
	case "mod_nw_ecn":
		n, err := parseUint(arg, 2)
		p.set(IPECN.Exact(n))
		return true, err
	case "mod_nw_ttl", "set_nw_ttl":
		n, err := parseUint(arg, 8)
		p.add(SetNwTTL(n))
		return true, err
	case "mod_tp_src", "mod_tp_dst":
		n, err := parse16(arg)
		f := map[string]Field{"mod_tp_src": TCPSrc, "mod_tp_dst": TCPDst}[key]
		proto, _ := p.match.Get(IPProto)
		p.set(portField(f, proto.Uint64()).Exact(uint64(n)))
		return true, err
	case "dec_ttl":
		ids, err := splitList(arg)
		var a DecTTLCntIDs
		for _, word := range ids {
			id, err := parse16(word)
			if err != nil {
				return true, err
			}
			a = append(a, id)
		}
		p.add(a)
		return true, err
	case "set_tunnel", "set_tunnel64":
		n, err := parseUint(arg, 64)
		p.set(TunnelID.Exact(n))
		return true, err
	case "push_pbb":
		n, err := parse16(arg)
		p.add(PushPBB(n))
		return true, err
	}
	return false, nil
}

func (p *actionParser) set(o OXM) { p.add(SetField{OXM: o}) }

// tagged sets a field of a VLAN tag, adding a tag first where the match does
// not say that there is one.
func (p *actionParser) tagged(o OXM) {
	vid, ok := p.match.Get(VLANVID)
	hasTag := ok && vid.value.lo&vlanPresent != 0
	for _, a := range p.actions {
		switch a.(type) {
		case PushVLAN:
			hasTag = true
		case PopVLAN:
			hasTag = false
		}
	}
	if !hasTag {
		p.add(PushVLAN(0x8100))
	}
	p.set(o)
}

// mplsAction reads the actions for MPLS and encapsulations.
func (p *actionParser) mplsAction(key, arg, _ string) (bool, error) {
	switch key {
	case "push_mpls":
		n, err := parse16(arg)
		p.add(PushMPLS(n))
		return true, err
	case "pop_mpls":
		n, err := parse16(arg)
		p.add(PopMPLS(n))
		return true, err
	case "set_mpls_label":
		n, err := parseUint(arg, 20)
		p.set(MPLSLabel.Exact(n))
		return true, err
	case "set_mpls_tc":
		n, err := parseUint(arg, 3)
		p.set(MPLSTC.Exact(n))
		return true, err
	case "set_mpls_ttl":
		n, err := parseUint(arg, 8)
		p.add(SetMPLSTTL(n))
		return true, err
	case "encap":
		return true, p.encap(arg)
	case "decap":
		name, packetType, _ := splitKey(arg)
		var ns, typ uint16
		err := keyValues(packetType, func(key, value string) (err error) {
			switch key {
			case "ns":
				ns, err = parse16(value)
			case "type":
				typ, err = parse16(value)
			default:
				err = unknownKey(key)
			}
			return err
		})
		if err == nil && name != "packet_type" {
			err = unknownKey(name)
		}
		p.add(Decap{PacketType: uint32(ns)<<16 | uint32(typ)})
		return true, err
	}
	return false, nil
}

// encap reads "ethernet", "nsh", "nsh(md_type=2,tlv(0x1000,10,0x12345678))".
func (p *actionParser) encap(arg string) error {
	name, properties, _ := splitKey(arg)
	var a Encap
	switch name {
	case "ethernet":
		a.PacketType = PacketTypeEthernet
	case "nsh":
		a.PacketType = PacketTypeNSH
	default:
		n, err := parse32(name)
		if err != nil {
			return textError("encap", name, "want ethernet or nsh")
		}
		a.PacketType = n
	}
	parts, err := splitList(properties)
	for _, part := range parts {
		key, value, _ := splitKey(part)
		switch key {
		case "md_type":
			n, err := parseUint(value, 8)
			if err != nil {
				return err
			}
			a.Properties = append(a.Properties, EncapProperty{EncapClassNSH, EncapNSHMDType, []byte{byte(n)}})
		case "tlv":
			data, err := parseNSHTLV(value)
			if err != nil {
				return err
			}
			a.Properties = append(a.Properties, EncapProperty{EncapClassNSH, EncapNSHTLV, data})
		default:
			return unknownKey(key)
		}
	}
	p.add(a)
	return err
}

// parseNSHTLV reads "class,type,value".
func parseNSHTLV(s string) ([]byte, error) {
	words, err := splitList(s)
	if err != nil || len(words) != 3 {
		return nil, textError("tlv", s, "want class,type,value")
	}
	class, errClass := parse16(words[0])
	typ, errType := parseUint(words[1], 8)
	value, errValue := parseHex(words[2])
	if errClass != nil || errType != nil || errValue != nil {
		return nil, textError("tlv", s, "want class,type,value")
	}
	b := append(append16(nil, class), byte(typ), byte(len(value)))
	b = append(b, value...)
	return appendZeros(b, -(len(b)+4)&7), nil
}

// fieldAction reads the actions that move values between fields.
func (p *actionParser) fieldAction(key, arg, rest string) (bool, error) {
	switch key {
	case "set_field":
		value, name, found := strings.Cut(arg, "->")
		if !found {
			return true, textError("set_field", arg, "-> is missing")
		}
		return true, p.setField(value, name)
	case "load":
		value, dst, _ := strings.Cut(arg, "->")
		return true, p.load(value, dst)
	case "move":
		from, to, _ := strings.Cut(arg, "->")
		src, err := parseSubfield(from)
		if err != nil {
			return true, err
		}
		dst, err := parseSubfield(to)
		if err == nil && src.Bits != dst.Bits {
			err = textError("move", arg, "source and destination have different widths")
		}
		p.add(RegMove{Src: src, Dst: dst})
		return true, err
	case "push":
		s, err := parseSubfield(arg)
		p.add(StackPush{Src: s})
		return true, err
	case "pop":
		s, err := parseSubfield(arg)
		p.add(StackPop{Dst: s})
		return true, err
	case "multipath":
		return true, p.multipath(arg)
	case "check_pkt_larger":
		n, err := parse16(arg)
		if err != nil {
			return true, err
		}
		dst, err := parseSubfield(strings.TrimPrefix(rest, "->"))
		p.add(CheckPktLarger{Len: n, Dst: dst})
		return true, err
	case "delete_field":
		f, err := fieldByName(arg)
		p.add(DeleteField{Field: f})
		return true, err
	}
	return false, nil
}

// setField reads a value and the name of a field. With a mask it becomes what
// Open vSwitch makes of it in OpenFlow 1.4: loads of the masked bits.
func (p *actionParser) setField(value, name string) error {
	f, err := fieldByName(name)
	if err != nil {
		return err
	}
	if f == InPort && name == "in_port" {
		f = InPortNXM
	}
	if f.info().format == formatBytes {
		if parts, err := parseBytesMatch(f, value); err == nil && len(parts) > 1 {
			p.add(SetTunnelOption(parts))
			return nil
		}
	}
	o, err := parseOXMText(f, value)
	if err != nil || !o.masked {
		p.set(o)
		return err
	}
	if f.info().format == formatBytes || isExperimenter(f.actionHeader()) {
		p.add(RegLoad2{OXM: o})
		return nil
	}
	// From the lowest bits on, one load for each run of ones in the mask.
	for bit := uint16(0); bit < uint16(8*f.Size()); {
		mask := o.mask.shiftRight(uint(bit))
		if mask == (uint128{}) {
			break
		}
		if mask.lo&1 == 0 {
			bit++
			continue
		}
		n := uint16(1)
		for n < 64 && mask.shiftRight(uint(n)).lo&1 != 0 {
			n++
		}
		v := o.value.shiftRight(uint(bit)).lo
		if n < 64 {
			v &= 1<<n - 1
		}
		p.add(RegLoad{Dst: Subfield{Field: f, Offset: bit, Bits: n}, Value: v})
		bit += n
	}
	return nil
}

func (p *actionParser) load(value, dst string) error {
	n, err := parseUint(value, 64)
	if err != nil {
		return err
	}
	s, err := parseSubfield(dst)
	if err != nil {
		return err
	}
	if s.Bits < 64 && n>>s.Bits != 0 {
		return textError("load", value, "more bits than "+dst)
	}
	info := s.Field.info()
	switch {
	case info.format == formatBytes:
		octets := (int(s.Offset) + int(s.Bits) + 7) / 8
		if s.Bits > 64 || octets > 8 {
			return textError("load", dst, "want at most the lowest 64 bits")
		}
		mask := ^uint64(0) >> (64 - s.Bits) << s.Offset
		parts := s.Field.MaskedBytes(uintOctets(n<<s.Offset, octets), uintOctets(mask, octets))
		p.add(RegLoad2{OXM: parts[0]})
	case isExperimenter(s.Field.actionHeader()):
		v := uint128{lo: n}.shiftLeft(uint(s.Offset))
		m := uint128{lo: ^uint64(0) >> (64 - min(s.Bits, 64))}.shiftLeft(uint(s.Offset))
		p.add(RegLoad2{OXM: s.Field.Masked128(v.hi, v.lo, m.hi, m.lo)})
	default:
		p.add(RegLoad{Dst: s, Value: n})
	}
	return nil
}

// multipath reads "fields,basis,algorithm,links,arg,dst".
func (p *actionParser) multipath(arg string) error {
	words, err := splitList(arg)
	if err != nil || len(words) != 6 {
		return textError("multipath", arg, "want fields,basis,algorithm,links,arg,field")
	}
	var a Multipath
	if a.Fields, err = parseHashFields(words[0]); err != nil {
		return err
	}
	if a.Basis, err = parse16(words[1]); err != nil {
		return err
	}
	known := false
	for l := LinkModuloN; l <= LinkIterHash; l++ {
		if words[2] == l.String() {
			a.Algorithm, known = l, true
		}
	}
	links, err := parseUint(words[3], 17)
	if err != nil || links < 1 || links > 65536 || !known {
		return textError("multipath", arg, "algorithm not known or not 1 to 65536 links")
	}
	a.MaxLink = uint16(links - 1)
	if a.Arg, err = parse32(words[4]); err != nil {
		return err
	}
	a.Dst, err = parseSubfield(words[5])
	p.add(a)
	return err
}
