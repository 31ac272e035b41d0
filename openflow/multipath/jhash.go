package multipath

import (
	"encoding/binary"
	"math/bits"
	"net/netip"
)

// symmetricL4 is flow_hash_symmetric_l4: Jenkins over 32 bytes in network
// order. Its definition has not changed since Open vSwitch 2.8.
func symmetricL4(p *Packet, basis uint32) uint32 {
	var b [32]byte
	addr := p.addrXOR()
	copy(b[0:16], addr[:])
	binary.BigEndian.PutUint16(b[16:], p.EthType)
	binary.BigEndian.PutUint16(b[18:], p.vlanXOR())
	if p.isIP() {
		if p.Proto == protoTCP || p.Proto == protoSCTP {
			binary.BigEndian.PutUint16(b[20:], p.portXOR())
		}
		b[28] = p.Proto
	}
	for i := range p.EthSrc {
		b[22+i] = p.EthSrc[i] ^ p.EthDst[i]
	}
	return jhash(b[:], basis)
}

// symmetricL3 is flow_hash_symmetric_l3.
func symmetricL3(p *Packet, basis uint32) uint32 {
	var b [20]byte
	addr := p.addrXOR()
	copy(b[0:16], addr[:])
	binary.BigEndian.PutUint16(b[16:], p.EthType)
	return jhash(b[:], basis)
}

// hashAddr hashes one address. A packet that is not IP gives the basis itself.
func hashAddr(ethType uint16, a netip.Addr, basis uint32) uint32 {
	switch ethType {
	case ethIPv4:
		b := addr4(a)
		return jhash(b[:], basis)
	case ethIPv6:
		b := addr6(a)
		return jhash(b[:], basis)
	}
	return basis
}

// jhash is jhash_bytes: Bob Jenkins's lookup3 with Open vSwitch's way of ending
// it. A length that is a multiple of 12 is not finalised.
func jhash(p []byte, basis uint32) uint32 {
	a := 0xdeadbeef + uint32(len(p)) + basis
	b, c := a, a
	for len(p) >= 12 {
		a += binary.LittleEndian.Uint32(p[0:])
		b += binary.LittleEndian.Uint32(p[4:])
		c += binary.LittleEndian.Uint32(p[8:])
		a, b, c = jmix(a, b, c)
		p = p[12:]
	}
	if len(p) > 0 {
		var tail [12]byte
		copy(tail[:], p)
		a += binary.LittleEndian.Uint32(tail[0:])
		b += binary.LittleEndian.Uint32(tail[4:])
		c += binary.LittleEndian.Uint32(tail[8:])
		c = jfinal(a, b, c)
	}
	return c
}

func jmix(a, b, c uint32) (uint32, uint32, uint32) {
	a -= c
	a ^= bits.RotateLeft32(c, 4)
	c += b
	b -= a
	b ^= bits.RotateLeft32(a, 6)
	a += c
	c -= b
	c ^= bits.RotateLeft32(b, 8)
	b += a
	a -= c
	a ^= bits.RotateLeft32(c, 16)
	c += b
	b -= a
	b ^= bits.RotateLeft32(a, 19)
	a += c
	c -= b
	c ^= bits.RotateLeft32(b, 4)
	b += a
	return a, b, c
}

func jfinal(a, b, c uint32) uint32 {
	c ^= b
	c -= bits.RotateLeft32(b, 14)
	a ^= c
	a -= bits.RotateLeft32(c, 11)
	b ^= a
	b -= bits.RotateLeft32(a, 25)
	c ^= b
	c -= bits.RotateLeft32(b, 16)
	a ^= c
	a -= bits.RotateLeft32(c, 4)
	b ^= a
	b -= bits.RotateLeft32(a, 14)
	c ^= b
	c -= bits.RotateLeft32(b, 24)
	return c
}
