package openflow

import (
	"slices"
	"strings"
)

// ParseMatch reads a match in ovs-ofctl's syntax, such as
// "tcp,nw_dst=10.0.0.0/24,tp_dst=80". The fields come in the order and with the
// codes in which Open vSwitch would write them: tp_dst becomes UDPDst in a match
// of UDP, xreg0 becomes Reg0 and Reg1.
func ParseMatch(s string) (Match, error) {
	parts, err := splitList(s)
	if err != nil {
		return nil, err
	}
	var p matchParser
	for _, part := range parts {
		key, value, hasValue := strings.Cut(part, "=")
		ok, err := p.add(key, value, hasValue)
		if err != nil {
			return nil, err
		}
		if !ok {
			return nil, textError("match", part, "not a field or a protocol")
		}
	}
	return p.finish()
}

// matchParser collects the fields of a match. Names that mean several fields
// are settled when the protocol is known.
type matchParser struct {
	match Match
}

// add adds a field or protocol; false if key is neither.
func (p *matchParser) add(key, value string, hasValue bool) (bool, error) {
	if !hasValue {
		for _, proto := range protocols {
			if key == proto.name {
				p.match = append(p.match, EthType.Exact(proto.etherType))
				if proto.ipProto != 0 {
					p.match = append(p.match, IPProto.Exact(proto.ipProto))
				}
				return true, nil
			}
		}
	}
	switch key {
	case "eth":
		p.match = append(p.match, PacketType.Exact(PacketTypeEthernet))
		return true, nil
	case "dl_vlan":
		v, err := parseUint(value, 16)
		if err == nil && v > 0xfff && v != 0xffff {
			err = textError("dl_vlan", value, "want 0 to 4095, or 0xffff for no tag")
		}
		if v == 0xffff {
			v = 0
		} else {
			v |= vlanPresent
		}
		p.match = append(p.match, VLANVID.Exact(v))
		return true, err
	case "dl_vlan_pcp":
		key = "vlan_pcp"
	case "nw_tos", "ip_tos":
		v, err := parseUint(value, 8)
		if err == nil && v&3 != 0 {
			err = textError("nw_tos", value, "its low two bits are those of nw_ecn")
		}
		p.match = append(p.match, IPDSCP.Exact(v>>2))
		return true, err
	}
	f, ok := names.match[key]
	if !ok {
		return false, nil
	}
	if !hasValue && f.info().format != formatBytes {
		return false, textError("match", key, "a value is missing")
	}
	if f.info().format == formatBytes {
		parts, err := parseBytesMatch(f, value)
		p.match = append(p.match, parts...)
		return true, err
	}
	o, err := parseOXMText(f, value)
	if err != nil {
		return false, err
	}
	if o.masked && !f.Maskable() {
		return false, textError("match", key, "cannot have a mask")
	}
	p.match = append(p.match, o)
	return true, nil
}

// finish settles what depends on the protocol and sorts.
func (p *matchParser) finish() (Match, error) {
	etherType, ipProto := p.protocol()
	var m Match
	for _, o := range p.match {
		switch f := o.Field; {
		case f == IPProto && (etherType == etherTypeARP || etherType == etherTypeRARP):
			o.Field = ARPOp
		case f == IPv4Src && (etherType == etherTypeARP || etherType == etherTypeRARP):
			o.Field = ARPSPA
		case f == IPv4Dst && (etherType == etherTypeARP || etherType == etherTypeRARP):
			o.Field = ARPTPA
		case f == TCPSrc || f == TCPDst:
			o.Field = portField(f, ipProto)
		case f == ICMPv4Type && etherType == etherTypeIPv6:
			o.Field = ICMPv6Type
		case f == ICMPv4Code && etherType == etherTypeIPv6:
			o.Field = ICMPv6Code
		case f == VLANVID && o.masked:
			o = f.Masked(o.value.lo, o.mask.lo&vlanVIDBits)
			if o.mask.lo == vlanVIDBits {
				o = f.Exact(o.value.lo)
			}
		case f == CTState && !o.masked:
			o = OXM{Field: f, masked: true, value: o.value, mask: uint128{lo: 1<<len(ctStateNames) - 1}}
		case f == TunnelFlags && !o.masked:
			o = f.Masked(o.value.lo, 1<<len(tunnelFlagNames)-1)
		case f == VLANTCI:
			m = append(m, vlanFields(o)...)
			continue
		case f >= XReg0 && f < XReg0+8:
			m = append(m, registers(o, Reg0+2*(f-XReg0), 2)...)
			continue
		case f >= XXReg0 && f < XXReg0+4:
			m = append(m, registers(o, Reg0+4*(f-XXReg0), 4)...)
			continue
		}
		if o.masked && o.mask == (uint128{}) && o.Field.info().size > 0 && o.Field.info().format != formatBytes {
			continue // it matches everything
		}
		m = append(m, o)
	}
	if _, hasVID := m.Get(VLANVID); !hasVID {
		if _, hasPCP := m.Get(VLANPCP); hasPCP {
			m = append(m, VLANVID.Masked(vlanPresent, vlanPresent))
		}
	}
	sortMatch(m, fieldOrder)
	for i := 1; i < len(m); i++ {
		if m[i].Field == m[i-1].Field && m[i].Field != FieldMore {
			return nil, textError("match", m[i].Field.String(), "given twice")
		}
	}
	return m, nil
}

// fieldOrder is the order in which Open vSwitch writes fields.
func fieldOrder(f Field) int { return int(f) }

// sortMatch puts the fields in the order of their ranks.
func sortMatch(m Match, rank func(Field) int) {
	if !slices.ContainsFunc(m, func(o OXM) bool { return o.Field == FieldMore }) {
		slices.SortStableFunc(m, func(a, b OXM) int { return rank(a.Field) - rank(b.Field) })
		return
	}
	var fields []Match
	for rest := slices.Clone(m); len(rest) > 0; {
		n := rest.parts(0)
		fields, rest = append(fields, rest[:n]), rest[n:]
	}
	slices.SortStableFunc(fields, func(a, b Match) int { return rank(a[0].Field) - rank(b[0].Field) })
	copy(m, slices.Concat(fields...))
}

// protocol returns the EtherType and IP protocol of the match, 0 if not given.
func (p *matchParser) protocol() (etherType, ipProto uint64) {
	if o, ok := p.match.Get(EthType); ok {
		etherType = o.Uint64()
	}
	if o, ok := p.match.Get(IPProto); ok {
		ipProto = o.Uint64()
	}
	return etherType, ipProto
}

// portField is the source or destination port of an IP protocol: TCPSrc for
// protocols without ports.
func portField(f Field, ipProto uint64) Field {
	switch ipProto {
	case protoUDP:
		return f - TCPSrc + UDPSrc
	case protoSCTP:
		return f - TCPSrc + SCTPSrc
	}
	return f
}

// vlanVIDBits are the bits of VLANVID: vlanPresent and the VLAN.
const vlanVIDBits = 0x1fff

// vlanFields splits a VLANTCI into VLANVID, which has its tag bit, and VLANPCP.
func vlanFields(o OXM) Match {
	mask := o.Mask()
	var m Match
	switch mask & vlanVIDBits {
	case 0:
	case vlanVIDBits:
		m = Match{VLANVID.Exact(o.value.lo & vlanVIDBits)}
	default:
		m = Match{VLANVID.Masked(o.value.lo, mask&vlanVIDBits)}
	}
	if mask>>13 != 0 && o.value.lo&vlanVIDBits != 0 {
		m = append(m, VLANPCP.Exact(o.value.lo>>13))
	}
	return m
}

// registers splits a wide register into n registers from first on.
func registers(o OXM, first Field, n int) Match {
	var m Match
	hi, lo := o.Mask128()
	for i := range n {
		shift := uint(32 * (n - 1 - i))
		value := o.value.shiftRight(shift).lo & 0xffffffff
		mask := uint128{hi, lo}.shiftRight(shift).lo & 0xffffffff
		if mask != 0 {
			m = append(m, (first+Field(i)).Masked(value, mask))
		}
	}
	return m
}

// shiftRight is v >> n.
func (v uint128) shiftRight(n uint) uint128 {
	if n >= 64 {
		return uint128{lo: v.hi >> (n - 64)}
	}
	return uint128{v.hi >> n, v.lo>>n | v.hi<<(64-n)}
}

// shiftLeft is v << n.
func (v uint128) shiftLeft(n uint) uint128 {
	if n >= 64 {
		return uint128{hi: v.lo << (n - 64)}
	}
	return uint128{v.hi<<n | v.lo>>(64-n), v.lo << n}
}
