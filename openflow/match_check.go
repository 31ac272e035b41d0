package openflow

import "fmt"

// Check reports the first fault for which Open vSwitch would refuse the match.
// The error is one for errors.Is with the code that the switch would send:
// BadMatchBadMask (a mask where there can be none), BadMatchBadValue (bits that
// the field does not have), BadMatchBadWildcards (bits outside of the mask),
// BadMatchBadPrereq (a field that needs others before it, as IPv4Dst needs
// EthType), BadMatchDupField. Fields that this package does not know are passed
// over.
func (m Match) Check() error {
	var seen matchState
	for _, o := range m {
		if code := seen.add(o); code != 0 {
			return fmt.Errorf("match %v: %w", o, code)
		}
	}
	return nil
}

// matchState is what the fields of a match have said so far.
type matchState struct {
	given      [fieldCount]bool
	etherType  uint64 // 0: not said
	ipProto    uint64 // 0: not said
	icmpType   uint64
	icmpCode   uint64
	laterFrag  bool
	tagged     bool
	tracked    bool // the state of the connection is known
	noEthernet bool // the packet has no Ethernet header
}

// ctStateKnown are the bits of CTState of which one must be set for the
// original tuple to be known: all but inv and trk.
const ctStateKnown = 0xcf

// add adds a field; the code is 0 if it may be there.
func (s *matchState) add(o OXM) ErrorCode {
	info := o.Field.info()
	if info.size == 0 || info.format == formatBytes {
		return 0
	}
	limit := allOnes(int(info.size)).shiftRight(uint(8*uint16(info.size) - info.bits))
	badPort := false
	switch {
	case o.Field == VLANVID:
		limit.lo = vlanVIDBits
	case o.Field == ARPOp: // Open vSwitch keeps 8 bits of it
		limit.lo = 0xff
	case info.format == formatPort && info.size == 4:
		_, err := PortNo(o.value.lo).uint16()
		badPort = err != nil
	}
	switch {
	case o.masked && !info.maskable:
		return BadMatchBadMask
	case o.masked && (o.value.hi&^o.mask.hi != 0 || o.value.lo&^o.mask.lo != 0):
		return BadMatchBadWildcards
	case badPort, o.value.hi&^limit.hi != 0, o.value.lo&^limit.lo != 0:
		return BadMatchBadValue
	case !s.has(info.need):
		return BadMatchBadPrereq
	case s.given[o.Field]:
		return BadMatchDupField
	}
	s.given[o.Field] = true
	v := o.value.lo
	switch o.Field {
	case EthType:
		s.etherType = v
	case PacketType:
		s.noEthernet = v != PacketTypeEthernet
		if v>>16 == 1 {
			s.etherType = v & 0xffff
		}
	case IPProto:
		s.ipProto = v
	case IPFrag:
		s.laterFrag = v&2 != 0
	case VLANVID, VLANTCI:
		s.tagged = v&vlanPresent != 0
	case ICMPv6Type:
		s.icmpType = v
	case ICMPv6Code:
		s.icmpCode = v
	case CTState:
		s.tracked = v&ctStateKnown != 0
	}
	return 0
}

// has reports whether what n needs was said.
func (s *matchState) has(n need) bool {
	ip := s.etherType == etherTypeIPv4 || s.etherType == etherTypeIPv6
	transport := func(proto uint64) bool { return ip && s.ipProto == proto && !s.laterFrag }
	nd := func(types ...uint64) bool {
		for _, t := range types {
			if s.etherType == etherTypeIPv6 && transport(protoICMPv6) && s.icmpType == t && s.icmpCode == 0 {
				return true
			}
		}
		return false
	}
	switch n {
	case needEthernet:
		return !s.noEthernet
	case needVLAN:
		return s.tagged
	case needMPLS:
		return s.etherType == etherTypeMPLS || s.etherType == etherTypeMPLSM
	case needIPv4:
		return s.etherType == etherTypeIPv4
	case needIPv6:
		return s.etherType == etherTypeIPv6
	case needIP:
		return ip
	case needARP:
		return s.etherType == etherTypeARP || s.etherType == etherTypeRARP
	case needTCP:
		return transport(protoTCP)
	case needUDP:
		return transport(protoUDP)
	case needSCTP:
		return transport(protoSCTP)
	case needICMPv4:
		return s.etherType == etherTypeIPv4 && transport(protoICMP)
	case needICMPv6:
		return s.etherType == etherTypeIPv6 && transport(protoICMPv6)
	case needND:
		return nd(icmpv6Solicit, icmpv6Advert)
	case needNDSolicit:
		return nd(icmpv6Solicit)
	case needNDAdvert:
		return nd(icmpv6Advert)
	case needNSH:
		return s.etherType == etherTypeNSH
	case needCT:
		return s.tracked && ip
	}
	return true
}

// ICMPv6 types of neighbour discovery.
const (
	icmpv6Solicit = 135
	icmpv6Advert  = 136
)
