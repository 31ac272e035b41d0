package packet

import (
	"encoding/binary"
	"hash/crc32"
	"net/netip"
)

// sum adds up 16-bit words (RFC 1071) of at most 64 kB; fold brings the sum
// back to 16 bits.
func sum(b []byte) uint32 {
	var s uint32
	for ; len(b) >= 2; b = b[2:] {
		s += uint32(binary.BigEndian.Uint16(b))
	}
	if len(b) == 1 {
		s += uint32(b[0]) << 8
	}
	return s>>16 + s&0xffff
}

func fold(s uint32) uint16 {
	s = s>>16 + s&0xffff
	return uint16(s>>16 + s&0xffff)
}

// pseudoSum is the sum over the pseudo header of TCP, UDP and ICMPv6 (RFC 9293
// section 3.1, RFC 8200 section 8.1).
func pseudoSum(src, dst netip.Addr, proto uint8, length int) uint32 {
	return sum(src.AsSlice()) + sum(dst.AsSlice()) + uint32(proto) + uint32(length)
}

// adjust corrects a checksum for octets that change from was to now (RFC 1624,
// equation 3). Both have the same even length.
func adjust(checksum, was, now []byte) {
	s := uint32(^binary.BigEndian.Uint16(checksum))
	for i := 0; i < len(was); i += 2 {
		s += uint32(^binary.BigEndian.Uint16(was[i:])) + uint32(binary.BigEndian.Uint16(now[i:]))
	}
	binary.BigEndian.PutUint16(checksum, ^fold(s))
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// setSCTPSum computes the checksum of an SCTP packet (RFC 9260 section 6.8 and
// appendix A: least significant octet first).
func setSCTPSum(sctp []byte) {
	binary.BigEndian.PutUint32(sctp[offSCTPSum:], 0)
	binary.LittleEndian.PutUint32(sctp[offSCTPSum:], crc32.Checksum(sctp, castagnoli))
}
