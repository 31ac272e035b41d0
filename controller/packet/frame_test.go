package packet

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"hash/crc32"
	"net/netip"
	"strings"
	"testing"

	"brlb/openflow"
)

var (
	ownMAC  = openflow.MAC{2, 0, 0x5e, 0, 1, 2}
	peerMAC = openflow.MAC{2, 0, 0, 0, 0, 0xaa}

	client4 = netip.MustParseAddrPort("10.20.0.10:40000")
	vip4    = netip.MustParseAddrPort("10.20.0.100:80")
	client6 = netip.MustParseAddrPort("[2001:db8::10]:40000")
	vip6    = netip.MustParseAddrPort("[2001:db8::100]:80")
)

// unhex reads hexadecimal digits with spaces between them.
func unhex(t testing.TB, text string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.Join(strings.Fields(text), ""))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// shape is what a test's packet looks like.
type shape struct {
	src, dst   netip.AddrPort
	proto      byte
	tags       []byte
	options    int // words of IPv4 options, or destination options of 8 octets each
	flags      byte
	seq, ack   uint32
	data       []byte
	noChecksum bool
}

// frame builds the packet with all checksums computed the long way.
func (s shape) frame() []byte {
	v6 := s.dst.Addr().Is6()
	var transport []byte
	sumAt := -1
	switch s.proto {
	case 6:
		transport, sumAt = make([]byte, 20), 16
		binary.BigEndian.PutUint32(transport[4:], s.seq)
		binary.BigEndian.PutUint32(transport[8:], s.ack)
		transport[12], transport[13] = 5<<4, s.flags
	case 17:
		transport, sumAt = make([]byte, 8), 6
		binary.BigEndian.PutUint16(transport[4:], uint16(8+len(s.data)))
	case 132:
		transport = make([]byte, 12)
		binary.BigEndian.PutUint32(transport[4:], s.seq) // the verification tag
	case 1, 58:
		transport, sumAt = []byte{s.flags, 0, 0, 0, 0, 0, 0, 0}, 2
	}
	if s.proto == 6 || s.proto == 17 || s.proto == 132 {
		binary.BigEndian.PutUint16(transport, s.src.Port())
		binary.BigEndian.PutUint16(transport[2:], s.dst.Port())
	}
	transport = append(transport, s.data...)
	if sumAt >= 0 && !s.noChecksum {
		var pseudo []byte
		if s.proto != 1 {
			pseudo = append(s.src.Addr().AsSlice(), s.dst.Addr().AsSlice()...)
			pseudo = binary.BigEndian.AppendUint32(pseudo, uint32(len(transport)))
			pseudo = append(pseudo, 0, 0, 0, s.proto)
		}
		c := ^onesSum(append(pseudo, transport...))
		if c == 0 && s.proto == 17 {
			c = 0xffff
		}
		binary.BigEndian.PutUint16(transport[sumAt:], c)
	}
	if s.proto == 132 {
		binary.LittleEndian.PutUint32(transport[8:], crc32.Checksum(transport, crc32.MakeTable(crc32.Castagnoli)))
	}
	frame := append(append(bytes.Clone(ownMAC[:]), peerMAC[:]...), s.tags...)
	if v6 {
		ip := []byte{0x60, 0, 0, 0, 0, 0, s.proto, 64}
		binary.BigEndian.PutUint16(ip[4:], uint16(8*s.options+len(transport)))
		ip = append(append(ip, s.src.Addr().AsSlice()...), s.dst.Addr().AsSlice()...)
		for i := range s.options {
			next := byte(60)
			if i == s.options-1 {
				next = s.proto
			}
			ip[6] = 60
			ip = append(ip, next, 0, 1, 4, 0, 0, 0, 0) // PadN
		}
		return append(append(append(frame, 0x86, 0xdd), ip...), transport...)
	}
	ip := make([]byte, 20+4*s.options)
	ip[0], ip[8], ip[9] = 0x40|byte(5+s.options), 64, s.proto
	binary.BigEndian.PutUint16(ip[2:], uint16(len(ip)+len(transport)))
	copy(ip[12:], s.src.Addr().AsSlice())
	copy(ip[16:], s.dst.Addr().AsSlice())
	for i := 20; i < len(ip); i++ {
		ip[i] = 1 // no operation
	}
	binary.BigEndian.PutUint16(ip[10:], ^onesSum(ip))
	return append(append(append(frame, 0x08, 0x00), ip...), transport...)
}

// onesSum is the sum of RFC 1071, without hurry.
func onesSum(b []byte) uint16 {
	var sum uint32
	for i := 0; i < len(b); i += 2 {
		word := uint32(b[i]) << 8
		if i+1 < len(b) {
			word |= uint32(b[i+1])
		}
		sum += word
		sum = sum&0xffff + sum>>16
	}
	return uint16(sum)
}

// with returns a copy in which octets from at on are others.
func with(frame []byte, at int, to ...byte) []byte {
	b := bytes.Clone(frame)
	copy(b[at:], to)
	return b
}

// tagged returns a copy with VLAN tags.
func tagged(frame []byte, ids ...byte) []byte {
	b := bytes.Clone(frame[:12])
	for _, id := range ids {
		b = append(b, 0x81, 0, 0, id)
	}
	return append(b, frame[12:]...)
}

// checkSums says what is wrong with the checksums and lengths of a frame that
// brlb made.
func checkSums(t *testing.T, frame []byte) {
	t.Helper()
	l, err := parseLink(frame)
	if err != nil {
		t.Fatal(err)
	}
	d, err := parseIP(&l)
	if err != nil {
		t.Fatalf("%v in %x", err, frame)
	}
	var pseudo []byte
	if !d.v6() && onesSum(d.ip[:d.size]) != 0xffff {
		t.Errorf("wrong IPv4 checksum in %x", frame)
	}
	switch d.proto {
	case 132:
		zeroed := with(d.payload(), 8, 0, 0, 0, 0)
		if crc32.Checksum(zeroed, crc32.MakeTable(crc32.Castagnoli)) != binary.LittleEndian.Uint32(d.payload()[8:]) {
			t.Errorf("wrong SCTP checksum in %x", frame)
		}
		return
	case 1:
	default:
		pseudo = append(d.src.AsSlice(), d.dst.AsSlice()...)
		pseudo = binary.BigEndian.AppendUint32(pseudo, uint32(len(d.payload())))
		pseudo = append(pseudo, 0, 0, 0, d.proto)
	}
	if onesSum(append(pseudo, d.payload()...)) != 0xffff {
		t.Errorf("wrong checksum of protocol %d in %x", d.proto, frame)
	}
}
