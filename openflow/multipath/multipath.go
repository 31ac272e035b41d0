// Package multipath computes what Open vSwitch's multipath action
// (NXAST_MULTIPATH) computes, bit for bit, without a switch: the hash of a
// packet and the link that the hash selects.
//
// A controller that fills a table of slots needs it to say, offline, which slot
// a packet will take; a test needs it to compare a table with the switch's own
// trace. The package is pure: no I/O, no state, no allocation.
//
// Every Open vSwitch on a little-endian machine gives these results for the
// Jenkins hashes (EthSrc, SymmetricL4, SymmetricL3, NwSrc, NwDst) with ModuloN
// or HashThreshold. SymmetricL3L4, SymmetricL3L4UDP, HRW and IterHash depend on
// how the switch was compiled; see [Build]. On a big-endian machine the switch
// loads words in its own order and no result here applies.
package multipath

import (
	"net/netip"
	"strconv"
)

// Fields says which parts of a packet are hashed. Its values are those of the
// action on the wire (enum nx_hash_fields).
type Fields uint16

// The field sets that Open vSwitch has.
const (
	// EthSrc hashes the source MAC.
	EthSrc Fields = 0
	// SymmetricL4 hashes both MACs, the VLAN ids, the EtherType, both
	// addresses, the IP protocol and, for TCP and SCTP alone, both ports.
	// Both directions of a connection give the same hash. UDP ports are not
	// hashed.
	SymmetricL4 Fields = 1
	// SymmetricL3L4 hashes both addresses, the IP protocol and the ports of
	// TCP and SCTP packets that are no fragments. Packets that are not IP
	// hash as layer 2. It depends on the [Build].
	SymmetricL3L4 Fields = 2
	// SymmetricL3L4UDP is SymmetricL3L4 with UDP ports.
	SymmetricL3L4UDP Fields = 3
	// NwSrc hashes the source address.
	NwSrc Fields = 4
	// NwDst hashes the destination address.
	NwDst Fields = 5
	// SymmetricL3 hashes both addresses and the EtherType. Since Open vSwitch
	// 2.11.
	SymmetricL3 Fields = 6
)

// String returns the name that ovs-ofctl uses.
func (f Fields) String() string {
	switch f {
	case EthSrc:
		return "eth_src"
	case SymmetricL4:
		return "symmetric_l4"
	case SymmetricL3L4:
		return "symmetric_l3l4"
	case SymmetricL3L4UDP:
		return "symmetric_l3l4+udp"
	case NwSrc:
		return "nw_src"
	case NwDst:
		return "nw_dst"
	case SymmetricL3:
		return "symmetric_l3"
	}
	return "fields(" + strconv.Itoa(int(f)) + ")"
}

// Algorithm says how a hash becomes a link. Its values are those of the action
// on the wire (enum nx_mp_algorithm).
type Algorithm uint16

// The link algorithms that Open vSwitch has.
const (
	// ModuloN is hash mod n.
	ModuloN Algorithm = 0
	// HashThreshold cuts the range of the hash into n equal parts (RFC 2992).
	HashThreshold Algorithm = 1
	// HRW takes the link with the highest random weight (rendezvous hashing)
	// while n is at most 64, and beyond that works as IterHash with arg 0. It
	// depends on the [Build].
	HRW Algorithm = 2
	// IterHash hashes again until the result modulo arg (or, if arg does not
	// suit n, modulo the next power of two) is a link. It depends on the
	// [Build].
	IterHash Algorithm = 3
)

// String returns the name that ovs-ofctl uses.
func (a Algorithm) String() string {
	switch a {
	case ModuloN:
		return "modulo_n"
	case HashThreshold:
		return "hash_threshold"
	case HRW:
		return "hrw"
	case IterHash:
		return "iter_hash"
	}
	return "algorithm(" + strconv.Itoa(int(a)) + ")"
}

// Frag says whether a packet is an IP fragment.
type Frag uint8

// The fragment states.
const (
	// Whole is a packet that is no fragment.
	Whole Frag = iota
	// FirstFrag is the fragment with offset 0, which carries the ports.
	FirstFrag
	// LaterFrag is any other fragment; its ports count as 0.
	LaterFrag
)

// Packet holds the parts of a packet that can be hashed, as the switch sees
// them when the action runs: after all that earlier actions changed.
type Packet struct {
	EthSrc, EthDst [6]byte
	// EthType is the EtherType after the VLAN tags in VLANs. A switch that
	// parses fewer tags than the packet has (other_config:vlan-limit, 1 by
	// default) sees the EtherType of the next tag here.
	EthType uint16
	// VLANs holds the TCI of each VLAN tag that the switch parsed, in any
	// order; only the 12 bits of the VLAN id are hashed.
	VLANs []uint16
	// Src and Dst are hashed if EthType says IPv4 (0x0800) or IPv6 (0x86dd).
	// An address of the other family, or none, counts as zero.
	Src, Dst netip.Addr
	// Proto is the IP protocol. It counts only if EthType says IP.
	Proto uint8
	// SrcPort and DstPort are in host order. They count only for protocols
	// whose ports the fields include.
	SrcPort, DstPort uint16
	Frag             Frag
}

const (
	ethIPv4 = 0x0800
	ethIPv6 = 0x86dd

	protoTCP  = 6
	protoUDP  = 17
	protoSCTP = 132
)

// Hash returns the 32-bit hash of p as the stock builds of Open vSwitch compute
// it. It is Murmur.Hash.
func Hash(fields Fields, basis uint16, p *Packet) uint32 {
	return Murmur.Hash(fields, basis, p)
}

// Link returns the link, 0 to n-1, that hash selects, as the stock builds of
// Open vSwitch compute it. It is Murmur.Link.
func Link(alg Algorithm, hash uint32, n int, arg uint32) uint16 {
	return Murmur.Link(alg, hash, n, arg)
}

// Hash returns the 32-bit hash of p. The basis is the action's; different bases
// give independent permutations. Fields that Open vSwitch does not know give 0:
// no switch accepts them.
func (b Build) Hash(fields Fields, basis uint16, p *Packet) uint32 {
	seed := uint32(basis)
	switch fields {
	case EthSrc:
		return jhash(p.EthSrc[:], seed)
	case SymmetricL4:
		return symmetricL4(p, seed)
	case SymmetricL3L4:
		return b.symmetricL3L4(p, seed, false)
	case SymmetricL3L4UDP:
		return b.symmetricL3L4(p, seed, true)
	case NwSrc:
		return hashAddr(p.EthType, p.Src, seed)
	case NwDst:
		return hashAddr(p.EthType, p.Dst, seed)
	case SymmetricL3:
		return symmetricL3(p, seed)
	}
	return 0
}

// vlanXOR returns the XOR of the VLAN ids: the order of the tags is lost, and a
// priority tag (VLAN id 0) hashes as no tag.
func (p *Packet) vlanXOR() uint16 {
	var x uint16
	for _, tci := range p.VLANs {
		x ^= tci & 0x0fff
	}
	return x
}

// addrXOR returns src XOR dst in network order: in the first 4 bytes for IPv4,
// in all 16 for IPv6, zero for anything else.
func (p *Packet) addrXOR() (x [16]byte) {
	switch p.EthType {
	case ethIPv4:
		s, d := addr4(p.Src), addr4(p.Dst)
		for i := range s {
			x[i] = s[i] ^ d[i]
		}
	case ethIPv6:
		s, d := addr6(p.Src), addr6(p.Dst)
		for i := range s {
			x[i] = s[i] ^ d[i]
		}
	}
	return x
}

func (p *Packet) isIP() bool { return p.EthType == ethIPv4 || p.EthType == ethIPv6 }

// portXOR returns the XOR of the ports, 0 for a fragment that carries none.
func (p *Packet) portXOR() uint16 {
	if p.Frag == LaterFrag {
		return 0
	}
	return p.SrcPort ^ p.DstPort
}

func addr4(a netip.Addr) (b [4]byte) {
	if a = a.Unmap(); a.Is4() {
		b = a.As4()
	}
	return b
}

func addr6(a netip.Addr) (b [16]byte) {
	if a.Is6() {
		b = a.As16()
	}
	return b
}
