package openflow

import (
	"encoding/hex"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// ofctlActions returns how ovs-ofctl prints each list of actions; "bad: CODE"
// for those that it does not take.
func ofctlActions(t testing.TB, lists [][]byte) []string {
	t.Helper()
	var in strings.Builder
	for _, b := range lists {
		in.WriteString(hex.EncodeToString(b) + "\n")
	}
	out, stderr := ofctl(t, in.String(), "--no-names", "parse-actions", "OpenFlow14")
	var texts []string
	for line := range strings.Lines(out) {
		line = strings.TrimSpace(line)
		if code, bad := strings.CutPrefix(line, "bad OpenFlow14 actions: "); bad {
			texts = append(texts, "bad: "+code)
		} else if text, ok := strings.CutPrefix(line, "actions="); ok {
			texts = append(texts, text)
		} else if line != "" && len(texts) > 0 {
			texts[len(texts)-1] += " (written otherwise: " + line + ")"
		}
	}
	if len(texts) != len(lists) {
		t.Fatalf("ovs-ofctl printed %d texts for %d lists: %s", len(texts), len(lists), stderr)
	}
	return texts
}

// framing are the codes by which ovs-ofctl would say that lengths or types are
// wrong, not values.
var framing = []string{"BAD_LEN", "BAD_TYPE", "BAD_EXP", "BAD_VENDOR", "MUST_BE_ZERO", "BAD_TAG"}

func TestOfctlPrintsActions(t *testing.T) {
	needOfctl(t)
	var lists [][]byte
	var want []string
	rapid.Check(t, func(t *rapid.T) {
		actions := rapid.SliceOfN(genValidAction(2), 1, 4).Draw(t, "actions")
		b, err := appendActions(nil, actions)
		if err != nil {
			t.Fatal(err)
		}
		lists, want = append(lists, b), append(want, actionsText(actions))
	})
	taken := 0
	for i, got := range ofctlActions(t, lists) {
		if code, bad := strings.CutPrefix(got, "bad: "); bad {
			for _, f := range framing {
				if strings.Contains(code, f) {
					t.Errorf("%s: %s\n%x", want[i], code, lists[i])
				}
			}
			continue
		}
		taken++
		if got != want[i] {
			t.Errorf("\n got %s\nwant %s\nwire %x", want[i], got, lists[i])
		}
		parsed, err := ParseActions(got)
		if err != nil {
			t.Errorf("ParseActions(%q): %v", got, err)
			continue
		}
		if again := actionsText(parsed); again != got {
			t.Errorf("ParseActions(%q) is %s", got, again)
		}
	}
	t.Logf("ovs-ofctl took %d of %d lists", taken, len(lists))
	if taken < len(lists)/2 {
		t.Errorf("ovs-ofctl took only %d of %d lists", taken, len(lists))
	}
}

func TestOfctlPrintsMatches(t *testing.T) {
	needOfctl(t)
	var messages [][]byte
	var want []string
	rapid.Check(t, func(t *rapid.T) {
		m := NewFlowMod(FlowAdd)
		m.Priority = DefaultPriority
		m.Match = genValidMatch(t)
		b, err := Append(nil, 1, m)
		if err != nil {
			t.Fatal(err)
		}
		messages, want = append(messages, b), append(want, m.String())
		parsed, err := ParseMatch(m.Match.String())
		if err != nil {
			t.Fatalf("ParseMatch(%q): %v", m.Match.String(), err)
		}
		if parsed.String() != m.Match.String() {
			t.Errorf("ParseMatch(%q) is %v", m.Match.String(), parsed)
		}
	})
	for i, text := range ofpParse(t, messages) {
		if _, got, _ := strings.Cut(strings.TrimSpace(text), "): "); got != want[i] {
			t.Errorf("\n got %s\nwant %s\nwire %x", want[i], got, messages[i])
		}
	}
}

// genValidMatch draws matches that a switch takes.
func genValidMatch(t *rapid.T) Match {
	proto := rapid.SampledFrom([]string{
		"", "ip", "tcp", "udp", "sctp", "icmp", "ipv6", "tcp6", "udp6", "sctp6", "icmp6",
		"arp", "rarp", "mpls", "icmp6,icmp_type=135", "icmp6,icmp_type=136",
	}).Draw(t, "protocol")
	m, err := ParseMatch(proto)
	if err != nil {
		t.Fatal(err)
	}
	fields := genField(func(f Field) bool { return fieldAllowed(f, proto) })
	for range rapid.IntRange(0, 5).Draw(t, "fields") {
		f := fields.Draw(t, "field")
		if _, twice := m.Get(f); twice {
			continue
		}
		limit := uint128{^uint64(0), ^uint64(0)}.shiftRight(uint(128 - f.Bits()))
		v := uint128{u64(t) & limit.hi, u64(t) & limit.lo}
		switch {
		case f == VLANVID:
			m = append(m, f.Exact(vlanPresent|v.lo))
		case f == VLANPCP:
			if _, tagged := m.Get(VLANVID); !tagged {
				m = append(m, VLANVID.Masked(vlanPresent, vlanPresent))
			}
			m = append(m, OXM{Field: f, value: v})
		case f == CTState:
			m = append(m, f.Masked(v.lo, rapid.Uint64Range(1, 255).Draw(t, "mask")))
		case f == TunnelFlags:
			m = append(m, f.Masked(v.lo, 1))
		case f == InPort || f == ActsetOutput:
			m = append(m, f.Exact(uint64(genPort(t))))
		case f.Maskable() && f != TCPFlags && f != IPFrag && f != TunnelGBPFlags && rapid.Bool().Draw(t, "masked"):
			mask := uint128{u64(t) & limit.hi, u64(t)&limit.lo | 1}
			m = append(m, f.Masked128(v.hi, v.lo, mask.hi, mask.lo))
		case f == IPFrag:
			m = append(m, f.Exact(rapid.SampledFrom([]uint64{0, 1}).Draw(t, "frag")))
		case f == ARPOp:
			m = append(m, f.Exact(1+v.lo%4))
		default:
			m = append(m, OXM{Field: f, value: v})
		}
	}
	canonical := m
	sortMatch(canonical, fieldOrder)
	return canonical
}

// fieldAllowed says whether a field can be in a match of the protocol, and
// whether ovs-ofctl prints it faithfully.
func fieldAllowed(f Field, proto string) bool {
	if strings.HasPrefix(f.String(), "tun_metadata") || strings.HasPrefix(f.String(), "tun_erspan") || strings.HasPrefix(f.String(), "tun_gtpu") ||
		strings.Contains(f.String(), "xreg") {
		return false
	}
	switch f {
	case DPHash, RecircID, PacketType, InPortNXM, VLANTCI, IPTOS, EthType, IPProto, ICMPv6Type, ICMPv6Code, IPv6NDReserved, IPv6NDOptionsType:
		return false
	}
	word, icmp6, _ := strings.Cut(proto, ",")
	is := func(words ...string) bool {
		for _, w := range words {
			if w == word {
				return true
			}
		}
		return false
	}
	switch f.info().need {
	case needNothing, needEthernet:
		return true
	case needVLAN:
		return true
	case needMPLS:
		return is("mpls")
	case needIPv4:
		return is("ip", "tcp", "udp", "sctp", "icmp")
	case needIPv6:
		return is("ipv6", "tcp6", "udp6", "sctp6", "icmp6")
	case needIP:
		return is("ip", "tcp", "udp", "sctp", "icmp", "ipv6", "tcp6", "udp6", "sctp6", "icmp6")
	case needARP:
		return is("arp", "rarp")
	case needTCP:
		return is("tcp", "tcp6")
	case needUDP:
		return is("udp", "udp6")
	case needSCTP:
		return is("sctp", "sctp6")
	case needICMPv4:
		return is("icmp")
	case needND:
		return icmp6 != "" && f == IPv6NDTarget
	case needNDSolicit:
		return icmp6 == "icmp_type=135"
	case needNDAdvert:
		return icmp6 == "icmp_type=136"
	}
	return false
}

// genValidAction draws actions that a switch takes whatever the match, with
// actions in them down to depth.
func genValidAction(depth int) *rapid.Generator[Action] {
	leaf := genLeafAction.Filter(func(a Action) bool {
		switch a := a.(type) {
		case RawAction, CopyTTLIn, CopyTTLOut, PushPBB, PopPBB, DeleteField, Encap, Controller2, SetField, RegLoad2, SetTunnelOption,
			WriteMetadataAction, Conjunction, Group, SetTunnel, SetTunnel64:
			return false
		case LinkBundle:
			return a.Dst.Bits >= 16
		case RegLoad:
			return (a.Dst.Field < CTState || a.Dst.Field > CTLabel) && a.Dst.Field.info().format != formatBytes
		case RegMove:
			return a.Dst.Field.Writable()
		case StackPop:
			return a.Dst.Field.Writable()
		case CheckPktLarger:
			return a.Dst.Field.Writable()
		case Learn:
			return len(a.Specs) == 0
		case Resubmit:
			return !a.CT
		}
		return true
	})
	return rapid.Custom(func(t *rapid.T) Action {
		kind := rapid.IntRange(0, 9).Draw(t, "kind")
		switch {
		case kind == 0:
			f := genField(func(f Field) bool {
				return f.Writable() && f.info().format != formatBytes && f != TunnelFlags && f.info().need <= needEthernet && f != VLANTCI && (f < CTState || f > CTLabel)
			}).Draw(t, "field")
			if f == InPort || f == InPortNXM {
				return SetField{InPortNXM.Exact(uint64(rapid.Uint16Range(1, 0xfeff).Draw(t, "port")))}
			}
			limit := uint128{^uint64(0), ^uint64(0)}.shiftRight(uint(128 - f.Bits()))
			o := OXM{Field: f, value: uint128{u64(t) & limit.hi, u64(t) & limit.lo}}
			if f == VLANVID {
				o.value.lo |= vlanPresent
			}
			return SetField{o}
		case kind == 1 && depth > 0:
			return Clone(genList(genValidAction(depth-1), 3).Draw(t, "nested"))
		case kind == 2:
			a := CT{Commit: true, Force: rapid.Bool().Draw(t, "force"), Zone: u16(t), Table: u8(t), ALG: rapid.SampledFrom([]uint16{0, algFTP, algTFTP}).Draw(t, "alg")}
			if rapid.Bool().Draw(t, "nat") {
				nat := genNAT(t)
				nat.Flags = rapid.SampledFrom([]NATFlags{NATSrc, NATDst}).Draw(t, "flags")
				if nat.MinAddr.IsValid() {
					nat.Flags |= rapid.SampledFrom([]NATFlags{0, NATHash, NATRandom, NATPersistent | NATHash}).Draw(t, "flags")
				} else {
					nat.MinPort, nat.MaxPort = 0, 0
				}
				if nat.MaxAddr.IsValid() && nat.MaxAddr.Less(nat.MinAddr) {
					nat.MinAddr, nat.MaxAddr = nat.MaxAddr, nat.MinAddr
				}
				a.Exec = append(a.Exec, nat)
			}
			if rapid.Bool().Draw(t, "mark") {
				a.Exec = append(a.Exec, SetField{CTMark.Exact(uint64(u32(t)))})
			}
			return a
		}
		return leaf.Draw(t, "leaf")
	})
}

// TestOfctlPrintsErrorCodes compares the names and numbers of all error codes.
func TestOfctlPrintsErrorCodes(t *testing.T) {
	needOfctl(t)
	// What the specification calls otherwise than Open vSwitch.
	otherName := map[string]string{
		"OFPBRC_BAD_EXPERIMENTER": "OFPBRC_BAD_VENDOR", "OFPBRC_BAD_EXP_TYPE": "OFPBRC_BAD_SUBTYPE", "OFPBRC_BAD_MULTIPART": "OFPBRC_BAD_STAT",
		"OFPBAC_BAD_EXPERIMENTER": "OFPBAC_BAD_VENDOR", "OFPBAC_BAD_EXP_TYPE": "OFPBAC_BAD_VENDOR_TYPE", "OFPBRC_IS_SLAVE": "OFPBRC_IS_SECONDARY",
	}
	var messages [][]byte
	var want []string
	for code, name := range errorNames {
		b, err := Append(nil, 1, &Error{Code: code})
		if err != nil {
			t.Fatal(err)
		}
		if other := otherName[name]; other != "" {
			name = other
		}
		messages, want = append(messages, b), append(want, fmt.Sprintf("OFPT_ERROR (OF1.4) (xid=0x1): %s\n", name))
	}
	for i, got := range ofpParse(t, messages) {
		if !strings.HasPrefix(got, want[i]) {
			t.Errorf("got %s, want %s", got, want[i])
		}
	}
}
