package openflow

import (
	"fmt"
	"math/bits"
	"net/netip"
	"strconv"
	"strings"
)

// Reading of the words and values that ovs-ofctl's syntax is made of.

// textError says what is wrong with text. The text is cut, as it may be anything.
func textError(what, text, wrong string) error {
	return fmt.Errorf("openflow: %s %.80q: %s", what, text, wrong)
}

// splitList splits s at commas and white space outside of parentheses and
// brackets. Empty parts are left out.
func splitList(s string) ([]string, error) {
	var parts []string
	depth, start := 0, 0
	for i := 0; i <= len(s); i++ {
		c := byte(',')
		if i < len(s) {
			c = s[i]
		}
		switch {
		case c == '(' || c == '[':
			depth++
		case c == ')' || c == ']':
			depth--
			if depth < 0 {
				return nil, textError("list", s, "a closing parenthesis too many")
			}
		case i == len(s) && depth > 0:
			return nil, textError("list", s, "a parenthesis is not closed")
		case depth == 0 && strings.IndexByte(", \t\r\n", c) >= 0:
			if i > start {
				parts = append(parts, s[start:i])
			}
			start = i + 1
		}
	}
	return parts, nil
}

// splitKey splits "key:value", "key=value" and "key(value)rest". A key alone
// has an empty value.
func splitKey(s string) (key, value, rest string) {
	i := strings.IndexAny(s, ":=(")
	if i < 0 {
		return s, "", ""
	}
	key = s[:i]
	if s[i] != '(' {
		return key, s[i+1:], ""
	}
	depth := 0
	for j := i; j < len(s); j++ {
		switch s[j] {
		case '(':
			depth++
		case ')':
			depth--
			if depth == 0 {
				return key, s[i+1 : j], s[j+1:]
			}
		}
	}
	return key, s[i+1:], ""
}

// parseUint reads a number of at most n bits: decimal, or hexadecimal with 0x.
func parseUint(s string, n int) (uint64, error) {
	v, err := strconv.ParseUint(s, 0, 64)
	if err != nil || n < 64 && v>>n != 0 {
		return 0, textError("number", s, fmt.Sprintf("want 0 to %#x", ^uint64(0)>>(64-n)))
	}
	return v, nil
}

// parseUint128 reads a number of at most size octets.
func parseUint128(s string, size int) (uint128, error) {
	digits, isHex := strings.CutPrefix(strings.ToLower(s), "0x")
	digits = strings.TrimLeft(digits, "0")
	if isHex && len(digits) > 16 && len(digits) <= 32 && size == 16 {
		hi, errHi := strconv.ParseUint(digits[:len(digits)-16], 16, 64)
		lo, errLo := strconv.ParseUint(digits[len(digits)-16:], 16, 64)
		if errHi == nil && errLo == nil {
			return uint128{hi, lo}, nil
		}
	}
	v, err := parseUint(s, min(8*size, 64))
	return uint128{lo: v}, err
}

// ParseMAC reads an Ethernet address as MAC.String writes it.
func ParseMAC(s string) (MAC, error) {
	var m MAC
	parts := strings.Split(s, ":")
	if len(parts) != len(m) {
		return m, textError("Ethernet address", s, "want six numbers like 02:00:00:00:00:01")
	}
	for i, p := range parts {
		v, err := strconv.ParseUint(p, 16, 8)
		if err != nil || len(p) > 2 {
			return m, textError("Ethernet address", s, "want six numbers like 02:00:00:00:00:01")
		}
		m[i] = byte(v)
	}
	return m, nil
}

// ParsePort reads a port number or the name of a reserved port, in upper or
// lower case. Numbers of 16 bits stand for those of 32 as in OpenFlow 1.0.
func ParsePort(s string) (PortNo, error) {
	for p, name := range portNames {
		if strings.EqualFold(s, name) {
			return p, nil
		}
	}
	v, err := parseUint(s, 32)
	switch {
	case err != nil:
		return 0, textError("port", s, "want a number or a name like LOCAL")
	case v >= port16Max && v <= 0xffff:
		return portFrom16(uint16(v)), nil
	case v >= port16Max && v < uint64(PortMax):
		return 0, textError("port", s, "no number of a port")
	}
	return PortNo(v), nil
}

// fieldNames finds fields by the names that ovs-ofctl reads.
type fieldNames struct {
	match  map[string]Field // names in matches
	action map[string]Field // names of codes in actions, NXM_... and OXM_...
}

var names = newFieldNames()

func newFieldNames() *fieldNames {
	n := &fieldNames{match: map[string]Field{}, action: map[string]Field{}}
	for f := FieldUnknown + 1; f < fieldCount; f++ {
		info := f.info()
		n.action[info.wire] = f
		if info.nxm != "" {
			n.action[info.nxm] = f
		}
		if f == InPortNXM {
			continue
		}
		n.match[info.name] = f
		if info.alias != "" {
			n.match[info.alias] = f
		}
	}
	n.match["in_port_oxm"] = InPort
	return n
}

// fieldByName finds a field by any of its names.
func fieldByName(name string) (Field, error) {
	if f, ok := names.match[name]; ok {
		return f, nil
	}
	if f, ok := names.action[name]; ok {
		return f, nil
	}
	return FieldUnknown, textError("field", name, "not known")
}

// parseSubfield reads NXM_NX_REG0[0..15], NXM_NX_REG0[5], NXM_NX_REG0[]; with
// the names of matches too.
func parseSubfield(s string) (Subfield, error) {
	name, indices, _ := strings.Cut(s, "[")
	f, err := fieldByName(name)
	if err != nil {
		return Subfield{}, err
	}
	indices, closed := strings.CutSuffix(indices, "]")
	if !closed && name != s {
		return Subfield{}, textError("subfield", s, "a bracket is not closed")
	}
	if indices == "" {
		return f.Whole(), nil
	}
	first, last, isRange := strings.Cut(indices, "..")
	if !isRange {
		last = first
	}
	a, errA := parseUint(first, 16)
	b, errB := parseUint(last, 16)
	if errA != nil || errB != nil || a > b || b >= uint64(f.Bits()) {
		return Subfield{}, textError("subfield", s, fmt.Sprintf("%v has bits 0 to %d", f, f.Bits()-1))
	}
	return f.Range(uint16(a), uint16(b)), nil
}

// parseOXMText reads a value, with a mask after "/" if there is one.
func parseOXMText(f Field, s string) (OXM, error) {
	info := f.info()
	value, mask, masked := strings.Cut(s, "/")
	switch info.format {
	case formatTCPFlags:
		return parseFlags(f, s, tcpFlagNames, 0xfff)
	case formatCTState:
		return parseFlags(f, s, ctStateNames, allOnes(4).lo)
	case formatTunnelFlags:
		return parseFlags(f, s, tunnelFlagNames, 1)
	case formatFrag:
		return parseFrag(s)
	case formatBytes:
		parts, err := parseBytesMatch(f, s)
		if err == nil && len(parts) > 1 {
			err = textError(f.String(), s, "more octets than an action here can have")
		}
		if err != nil {
			return OXM{}, err
		}
		return parts[0], nil
	}
	v, err := parseValue(f, value)
	if err != nil || !masked {
		return OXM{Field: f, value: v}, err
	}
	m, err := parseMask(f, mask)
	if err != nil {
		return OXM{}, err
	}
	return f.Masked128(v.hi, v.lo, m.hi, m.lo), nil
}

// parseValue reads a value of f.
func parseValue(f Field, s string) (uint128, error) {
	info := f.info()
	switch info.format {
	case formatMAC:
		m, err := ParseMAC(s)
		return uint128{lo: m.uint64()}, err
	case formatIPv4, formatIPv6:
		a, err := netip.ParseAddr(s)
		if err != nil || a.Zone() != "" || a.Is4() != (info.format == formatIPv4) {
			return uint128{}, textError(f.String(), s, "no address of this family")
		}
		return addrValue(a), nil
	case formatPort:
		p, err := ParsePort(s)
		if info.size == 2 {
			short, errShort := p.uint16()
			if err == nil {
				err = errShort
			}
			return uint128{lo: uint64(short)}, err
		}
		return uint128{lo: uint64(p)}, err
	case formatPacketType:
		namespace, typ, ok := strings.Cut(strings.Trim(s, "()"), ",")
		ns, errNS := parseUint(namespace, 16)
		t, errType := parseUint(typ, 16)
		if !ok || errNS != nil || errType != nil {
			return uint128{}, textError("packet_type", s, "want (namespace,type)")
		}
		return uint128{lo: ns<<16 | t}, nil
	}
	return parseUint128(s, int(info.size))
}

// parseMask reads a mask of f; that of an address can be a prefix length.
func parseMask(f Field, s string) (uint128, error) {
	info := f.info()
	if info.format == formatIPv4 || info.format == formatIPv6 {
		if n, err := strconv.ParseUint(s, 10, 8); err == nil && int(n) <= 8*int(info.size) {
			return prefixMask(int(n), 8*int(info.size)), nil
		}
	}
	return parseValue(f, s)
}

// parseFlags reads +a-b, a|b or a number with or without mask.
func parseFlags(f Field, s string, names []string, all uint64) (OXM, error) {
	if value, mask, masked := strings.Cut(s, "/"); s != "" && s[0] >= '0' && s[0] <= '9' {
		v, err := parseUint(value, 8*f.Size())
		m := all
		if err == nil && masked {
			m, err = parseUint(mask, 8*f.Size())
		}
		if m&all == all {
			return f.Exact(v), err
		}
		return f.Masked(v, m), err
	}
	value, mask, exact := uint64(0), uint64(0), !strings.ContainsAny(s, "+-")
	for rest := s; rest != ""; {
		set := rest[0] != '-'
		word := strings.TrimLeft(rest, "+-|")
		end := strings.IndexAny(word, "+-|")
		if end < 0 {
			end = len(word)
		}
		bit, ok := flagBit(word[:end], names)
		if !ok || mask&bit != 0 {
			return OXM{}, textError(f.String(), s, "want flags like +"+names[0])
		}
		mask |= bit
		if set {
			value |= bit
		}
		rest = word[end:]
	}
	if exact || mask == all {
		return f.Exact(value), nil
	}
	return f.Masked(value, mask), nil
}

func flagBit(word string, names []string) (uint64, bool) {
	for i, name := range names {
		if word == name {
			return 1 << i, true
		}
	}
	return 0, false
}

// parseFrag reads the words for fragments.
func parseFrag(s string) (OXM, error) {
	switch s {
	case "no":
		return IPFrag.Exact(0), nil
	case "yes":
		return IPFrag.Masked(1, 1), nil
	case "first":
		return IPFrag.Exact(1), nil
	case "later":
		return IPFrag.Exact(3), nil
	case "not_later":
		return IPFrag.Masked(0, 2), nil
	}
	return OXM{}, textError("ip_frag", s, "want no, yes, first, later or not_later")
}

// parseBytesMatch reads a value of variable length. Nothing at all matches
// packets that have the option.
func parseBytesMatch(f Field, s string) (Match, error) {
	if s == "" {
		return f.MaskedBytes(nil, nil), nil
	}
	value, mask, masked := strings.Cut(s, "/")
	v, err := parseHex(value)
	if err != nil || !masked {
		return f.Bytes(v), err
	}
	m, err := parseHex(mask)
	if err != nil {
		return nil, err
	}
	n := max(len(v), len(m))
	v, m = leftPad(v, n), leftPad(m, n)
	for i := range v {
		v[i] &= m[i]
	}
	return f.MaskedBytes(v, m), nil
}

// parseHex reads octets of a number: 0x1234, without zeros in front.
func parseHex(s string) ([]byte, error) {
	if v, err := strconv.ParseUint(s, 0, 64); err == nil {
		return uintOctets(v, (bits.Len64(v)+7)/8), nil
	}
	digits, ok := strings.CutPrefix(s, "0x")
	if len(digits)%2 != 0 {
		digits = "0" + digits
	}
	if !ok || len(digits) > 2*124 {
		return nil, textError("octets", s, "want up to 124 octets like 0x1234")
	}
	v := make([]byte, len(digits)/2)
	for i := range v {
		c, err := strconv.ParseUint(digits[2*i:2*i+2], 16, 8)
		if err != nil {
			return nil, textError("octets", s, "want up to 124 octets like 0x1234")
		}
		v[i] = byte(c)
	}
	return v, nil
}

// uintOctets is v in n octets.
func uintOctets(v uint64, n int) []byte {
	b := make([]byte, n)
	for i := n - 1; i >= 0; i-- {
		b[i] = byte(v)
		v >>= 8
	}
	return b
}

// leftPad puts zeros before b to make it n octets.
func leftPad(b []byte, n int) []byte {
	return append(make([]byte, n-len(b), n), b...)
}
