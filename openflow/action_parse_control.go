package openflow

import (
	"fmt"
	"net/netip"
	"strings"
)

// controlAction reads the actions that steer the way through the tables.
func (p *actionParser) controlAction(key, arg, _ string) (bool, error) {
	switch key {
	case "resubmit":
		return true, p.resubmit(arg)
	case "clone":
		list, err := p.nested(arg)
		p.add(Clone(list))
		return true, err
	case "note":
		b, err := parseDotted(arg)
		p.add(Note(b))
		return true, err
	case "conjunction":
		id, fraction, _ := strings.Cut(arg, ",")
		clause, clauses, _ := strings.Cut(strings.TrimSpace(fraction), "/")
		n, err := parse32(id)
		if err != nil {
			return true, err
		}
		k, errK := parseUint(clause, 8)
		of, errOf := parseUint(clauses, 8)
		if errK != nil || errOf != nil || k < 1 || k > of {
			return true, textError("conjunction", arg, "want id,k/n with k from 1 to n")
		}
		p.add(Conjunction{ID: n, Clause: uint8(k - 1), Clauses: uint8(of)})
		return true, nil
	case "fin_timeout":
		var a FinTimeout
		err := keyValues(arg, func(key, value string) (err error) {
			switch key {
			case "idle_timeout":
				a.Idle, err = parse16(value)
			case "hard_timeout":
				a.Hard, err = parse16(value)
			default:
				err = unknownKey(key)
			}
			return err
		})
		p.add(a)
		return true, err
	}
	return false, nil
}

// resubmit reads "port", "port,table", ",table,ct".
func (p *actionParser) resubmit(arg string) error {
	port, rest, hasTable := strings.Cut(arg, ",")
	a := Resubmit{Port: PortInPort, Table: TableAll}
	var err error
	if port != "" {
		if a.Port, err = ParsePort(port); err != nil {
			return err
		}
	}
	table, ct, hasCT := strings.Cut(rest, ",")
	if hasTable && table != "" {
		n, err := parseUint(table, 8)
		if err != nil {
			return err
		}
		a.Table = uint8(n)
	}
	if hasCT && ct != "ct" {
		return textError("resubmit", arg, "want port,table or port,table,ct")
	}
	a.CT = hasCT
	p.add(a)
	return nil
}

// stateAction reads the actions that keep state: connections, learned flows.
func (p *actionParser) stateAction(key, arg, _ string) (bool, error) {
	switch key {
	case "ct":
		return true, p.ct(arg)
	case "nat":
		return true, p.nat(arg)
	case "learn":
		return true, p.learn(arg)
	}
	return false, nil
}

// ct reads the argument of action ct. Its nat comes before what exec sets, as
// Open vSwitch writes them.
func (p *actionParser) ct(arg string) error {
	parts, err := splitList(arg)
	if err != nil {
		return err
	}
	a := CT{Table: CTNoTable}
	var nat, exec []Action
	for _, part := range parts {
		key, value, _ := splitKey(part)
		switch key {
		case "commit":
			a.Commit = true
		case "force":
			a.Force = true
		case "table":
			var n uint64
			n, err = parseUint(value, 8)
			a.Table = uint8(n)
		case "zone":
			if a.Zone, err = parse16(value); err != nil {
				a.ZoneSrc, err = parseSubfield(value)
			}
		case "alg":
			switch value {
			case "ftp":
				a.ALG = algFTP
			case "tftp":
				a.ALG = algTFTP
			default:
				err = textError("alg", value, "want ftp or tftp")
			}
		case "nat":
			nat, err = p.nested(part)
		case "exec":
			exec, err = p.nested(value)
		default:
			err = unknownKey(key)
		}
		if err != nil {
			return err
		}
	}
	a.Exec = append(nat, exec...)
	p.add(a)
	return nil
}

// nat reads "src", "dst=10.1.0.7:8080", "src=10.0.0.1-10.0.0.9:80-90,random".
func (p *actionParser) nat(arg string) error {
	var a NAT
	err := keyValues(strings.Replace(arg, "=", " ", 1), func(key, _ string) error {
		switch key {
		case "src":
			a.Flags |= NATSrc
		case "dst":
			a.Flags |= NATDst
		case "persistent":
			a.Flags |= NATPersistent
		case "hash":
			a.Flags |= NATHash
		case "random":
			a.Flags |= NATRandom
		default:
			return a.parseRange(key)
		}
		return nil
	})
	p.add(a)
	return err
}

// parseRange reads "10.0.0.1-10.0.0.9:80-90", "[fd00::1]:80", "fd00::1", ":80".
func (a *NAT) parseRange(s string) error {
	addrs, ports := s, ""
	switch i := strings.LastIndexByte(s, ':'); {
	case i < 0:
	case strings.Contains(s, "]") || strings.Count(s, ":") == 1:
		if i == 0 || s[i-1] == ']' || !strings.Contains(s, "]") {
			addrs, ports = s[:i], s[i+1:]
		}
	}
	first, last, isRange := strings.Cut(addrs, "-")
	var err error
	if first != "" {
		if a.MinAddr, err = netip.ParseAddr(strings.Trim(first, "[]")); err != nil {
			return textError("nat", s, "no address")
		}
	}
	if isRange {
		if a.MaxAddr, err = netip.ParseAddr(strings.Trim(last, "[]")); err != nil {
			return textError("nat", s, "no address")
		}
	}
	if ports == "" {
		return nil
	}
	first, last, isRange = strings.Cut(ports, "-")
	if a.MinPort, err = parse16(first); err == nil && isRange {
		a.MaxPort, err = parse16(last)
	}
	return err
}

// learn reads the argument of action learn.
func (p *actionParser) learn(arg string) error {
	a := Learn{Table: 1, Priority: DefaultPriority}
	err := keyValues(arg, func(key, value string) (err error) {
		switch key {
		case "table":
			var n uint64
			n, err = parseUint(value, 8)
			a.Table = uint8(n)
		case "priority":
			a.Priority, err = parse16(value)
		case "idle_timeout":
			a.IdleTimeout, err = parse16(value)
		case "hard_timeout":
			a.HardTimeout, err = parse16(value)
		case "fin_idle_timeout":
			a.FinIdleTimeout, err = parse16(value)
		case "fin_hard_timeout":
			a.FinHardTimeout, err = parse16(value)
		case "cookie":
			a.Cookie, err = parseUint(value, 64)
		case "send_flow_rem":
			a.Flags |= LearnSendFlowRem
		case "delete_learned":
			a.Flags |= LearnDeleteLearned
		case "limit":
			a.Limit, err = parse32(value)
		case "result_dst":
			a.Result, err = parseSubfield(value)
			a.Flags |= LearnWriteResult
		default:
			var spec LearnSpec
			spec, err = parseLearnSpecText(key, value)
			a.Specs = append(a.Specs, spec)
		}
		return err
	})
	p.add(a)
	return err
}

// parseLearnSpecText reads "eth_type=0x800", "NXM_OF_ETH_DST[]=NXM_OF_ETH_SRC[]",
// "NXM_OF_VLAN_TCI[0..11]", "load:5->NXM_NX_REG0[]", "output:NXM_OF_IN_PORT[]".
func parseLearnSpecText(key, value string) (LearnSpec, error) {
	if arg, ok := strings.CutPrefix(key, "output:"); ok {
		src, err := parseSubfield(arg)
		return LearnSpec{Kind: LearnOutput, Bits: src.Bits, Src: src}, err
	}
	kind, from, to := LearnMatch, "", key
	if arg, ok := strings.CutPrefix(key, "load:"); ok {
		kind = LearnLoad
		from, to, _ = strings.Cut(arg, "->")
	} else if i := strings.Index(key, "]="); i >= 0 {
		to, from = key[:i+1], key[i+2:]
	} else {
		from = value
	}
	dst, err := parseSubfield(to)
	if err != nil {
		return LearnSpec{}, err
	}
	s := LearnSpec{Kind: kind, Bits: dst.Bits, Dst: dst}
	if from == "" {
		s.Src = dst
		return s, nil
	}
	if s.Src, err = parseSubfield(from); err == nil {
		if s.Src.Bits != dst.Bits {
			return s, textError("learn", key, "source and destination have different widths")
		}
		return s, nil
	}
	s.Src = Subfield{}
	v, err := parseValue(dst.Field, from)
	if dst != dst.Field.Whole() || kind == LearnLoad {
		v, err = parseUint128(from, dst.Field.Size())
	}
	if err != nil {
		return s, err
	}
	if dst.Bits < 128 && v.shiftRight(uint(dst.Bits)) != (uint128{}) {
		return s, textError("learn", from, fmt.Sprintf("more than the %d bits of %v", dst.Bits, dst))
	}
	n := learnValueLen(dst.Bits)
	if n > 16 {
		return s, textError("learn", to, "values of more than 128 bits are not read from text")
	}
	full := append(uintOctets(v.hi, 8), uintOctets(v.lo, 8)...)
	s.Value = full[16-n:]
	return s, nil
}
