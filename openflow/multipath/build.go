package multipath

import (
	"encoding/binary"
	"hash/crc32"
	"math/bits"
)

// Build says with which internal hash a switch was compiled. The C compiler's
// target decides it, so two switches of one version may differ. To tell them
// apart, ask a running switch (ofproto/trace) for a SymmetricL3L4 hash and
// compare it with both.
type Build uint8

// The builds of Open vSwitch.
const (
	// Murmur is the build for a generic x86-64 or arm64, as distributions
	// ship it.
	Murmur Build = iota
	// CRC32C is the build for a target with SSE4.2 or the ARM CRC extension
	// (for example -march=native, or a distribution whose baseline is
	// x86-64-v2).
	CRC32C
)

// String returns "murmur" or "crc32c".
func (b Build) String() string {
	if b == CRC32C {
		return "crc32c"
	}
	return "murmur"
}

// symmetricL3L4 is flow_hash_symmetric_l3l4.
func (b Build) symmetricL3L4(p *Packet, basis uint32, udp bool) uint32 {
	h := basis
	addr := p.addrXOR()
	switch p.EthType {
	case ethIPv4:
		h = b.add(h, binary.LittleEndian.Uint32(addr[0:]))
	case ethIPv6:
		h = b.add64(h, binary.LittleEndian.Uint64(addr[0:]))
		h = b.add64(h, binary.LittleEndian.Uint64(addr[8:]))
	default:
		return b.symmetricL2(p, basis)
	}
	h = b.add(h, uint32(p.Proto))
	ports := p.Proto == protoTCP || p.Proto == protoSCTP || udp && p.Proto == protoUDP
	if ports && p.Frag == Whole {
		// The switch loads a network-order value into a host word.
		h = b.add(h, uint32(bits.ReverseBytes16(p.portXOR())))
	}
	return b.finish(h, basis)
}

// symmetricL2 is flow_hash_symmetric_l2, to which symmetricL3L4 falls back for
// packets that are not IP since Open vSwitch 2.10.
func (b Build) symmetricL2(p *Packet, basis uint32) uint32 {
	var buf [12]byte
	binary.BigEndian.PutUint16(buf[0:], p.EthType)
	binary.BigEndian.PutUint16(buf[2:], p.vlanXOR())
	for i := range p.EthSrc {
		buf[4+i] = p.EthSrc[i] ^ p.EthDst[i]
	}
	h := b.add(basis, binary.LittleEndian.Uint32(buf[0:]))
	h = b.add(h, binary.LittleEndian.Uint32(buf[4:]))
	h = b.add(h, binary.LittleEndian.Uint32(buf[8:]))
	return b.finish(h, basis)
}

// add is hash_add.
func (b Build) add(h, data uint32) uint32 {
	if b == CRC32C {
		return crc32c(h, uint64(data), 4)
	}
	if data != 0 {
		data *= 0xcc9e2d51
		data = bits.RotateLeft32(data, 15)
		data *= 0x1b873593
		h ^= data
	}
	return bits.RotateLeft32(h, 13)*5 + 0xe6546b64
}

// add64 is hash_add64.
func (b Build) add64(h uint32, data uint64) uint32 {
	if b == CRC32C {
		return crc32c(h, data, 8)
	}
	return b.add(b.add(h, uint32(data)), uint32(data>>32))
}

// finish is hash_finish.
func (b Build) finish(h, final uint32) uint32 {
	if b == CRC32C {
		h = crc32c(h, uint64(final), 8) * 0x805204f3
		return h ^ h>>16
	}
	h ^= final
	h ^= h >> 16
	h *= 0x85ebca6b
	h ^= h >> 13
	h *= 0xc2b2ae35
	return h ^ h>>16
}

// twoWords is hash_2words.
func (b Build) twoWords(x, y uint32) uint32 {
	if b == CRC32C {
		return b.finish(crc32c(0, uint64(y)<<32|uint64(x), 8), 23)
	}
	return b.finish(b.add(b.add(x, 0), y), 8)
}

// crc32c is what the processor's CRC32 instruction does with the low n bytes of
// data: no inversion before or after. crc32.Update inverts, and makes its
// argument escape to the heap.
func crc32c(crc uint32, data uint64, n int) uint32 {
	table := crc32.MakeTable(crc32.Castagnoli)
	for range n {
		crc = table[byte(crc)^byte(data)] ^ crc>>8
		data >>= 8
	}
	return crc
}
