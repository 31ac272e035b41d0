package packet

import (
	"bytes"
	"net/netip"
	"testing"

	"pgregory.net/rapid"
)

func addrPort(v6 bool) *rapid.Generator[netip.AddrPort] {
	return rapid.Custom(func(t *rapid.T) netip.AddrPort {
		size := 4
		if v6 {
			size = 16
		}
		a, _ := netip.AddrFromSlice(rapid.SliceOfN(rapid.Byte(), size, size).Draw(t, "addr"))
		return netip.AddrPortFrom(a, rapid.Uint16().Draw(t, "port"))
	})
}

// What SetDestination and SetSource change is what a computation of the whole
// packet gives.
func TestSetDestination(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v6 := rapid.Bool().Draw(t, "v6")
		s := shape{
			src: addrPort(v6).Draw(t, "src"), dst: addrPort(v6).Draw(t, "was"),
			proto:   rapid.SampledFrom([]byte{6, 17, 132, 1, 58, 47}).Draw(t, "proto"),
			options: rapid.IntRange(0, 7).Draw(t, "options"), seq: rapid.Uint32().Draw(t, "seq"),
			tags: rapid.SampledFrom([][]byte{nil, {0x81, 0, 0, 100}, {0x88, 0xa8, 0, 7, 0x81, 0, 0, 100}}).Draw(t, "tags"),
			data: rapid.SliceOfN(rapid.Byte(), 0, 50).Draw(t, "data"), noChecksum: rapid.Bool().Draw(t, "none"),
		}
		if s.noChecksum && s.proto != 17 {
			s.noChecksum = false
		}
		padding := rapid.SliceOfN(rapid.Byte(), 0, 6).Draw(t, "padding")
		frame := append(s.frame(), padding...)
		want := Tuple{Proto: s.proto, Src: s.src, Dst: s.dst}
		if s.proto == 1 || s.proto == 58 || s.proto == 47 {
			want.Src, want.Dst = netip.AddrPortFrom(s.src.Addr(), 0), netip.AddrPortFrom(s.dst.Addr(), 0)
		}
		if got, err := ReadTuple(frame); err != nil || got != want {
			t.Fatalf("%+v, %v, want %+v", got, err, want)
		}
		was := bytes.Clone(frame)
		s.dst = addrPort(v6).Draw(t, "now")
		got, err := SetDestination(frame, s.dst)
		if err != nil || !bytes.Equal(frame, was) {
			t.Fatalf("%v; the frame was changed: %t", err, !bytes.Equal(frame, was))
		}
		if want := append(s.frame(), padding...); !bytes.Equal(got, want) {
			// Zero has two forms in the sums of TCP, ICMP and IPv4.
			if !sameButForZero(got, want) {
				t.Fatalf("\n got %x\nwant %x", got, want)
			}
		}
		s.src = addrPort(v6).Draw(t, "from")
		moved, err := SetSource(got, s.src)
		if want := append(s.frame(), padding...); err != nil || !sameButForZero(moved, want) {
			t.Fatalf("%v\n got %x\nwant %x", err, moved, want)
		}
	})
	if _, err := SetDestination(shape{src: client4, dst: vip4, proto: 6}.frame(), vip6); err == nil {
		t.Error("an IPv6 destination was taken for an IPv4 packet")
	}
	if _, err := SetDestination(shape{src: client6, dst: vip6, proto: 6}.frame(), vip4); err == nil {
		t.Error("an IPv4 destination was taken for an IPv6 packet")
	}
}

// sameButForZero says whether frames differ only where one has 0x0000 and the
// other 0xffff.
func sameButForZero(a, b []byte) bool {
	for i := range a {
		if a[i] != b[i] && (a[i]^b[i] != 0xff || a[i] != 0 && b[i] != 0) {
			return false
		}
	}
	return len(a) == len(b)
}

func TestPacketsWithoutTuple(t *testing.T) {
	four := shape{src: client4, dst: vip4, proto: 6, data: []byte("hello")}.frame()
	six := shape{src: client6, dst: vip6, proto: 6, data: []byte("hello")}.frame()
	behind := shape{src: client6, dst: vip6, proto: 6, options: 1}.frame()
	ten := shape{src: client6, dst: vip6, proto: 6, options: 9}.frame()
	for name, frame := range map[string][]byte{
		"ARP":                                 with(four, 12, 8, 6),
		"IPv6 that says it is IPv4":           with(four, 14, 0x65),
		"IPv4 that says it is IPv6":           with(six, 14, 0x45),
		"an IPv4 header of 16 octets":         with(four, 14, 0x44),
		"an IPv4 header of 60 octets":         with(four, 14, 0x4f),
		"a total length of 0":                 with(four, 16, 0, 0),
		"a total length within the TCP one":   with(four, 16, 0, 39),
		"a total length beyond the frame":     with(four, 16, 0, 46),
		"a first fragment":                    with(four, 20, 0x20, 0),
		"a later fragment":                    with(four, 20, 0, 1),
		"a TCP header that is only padding":   with(four, 16, 0, 20),
		"a TCP header that is partly padding": append(with(four, 16, 0, 30), make([]byte, 40)...),
		"an IPv6 length beyond the frame":     with(six, 18, 0, 26),
		"an IPv6 jumbogram":                   with(six, 18, 0, 0),
		"an IPv6 length within the TCP one":   with(six, 18, 0, 19),
		"a first IPv6 fragment":               with(behind, 14+6, 44, 64, 1, 2, 3, 4, 5, 6), // the header's length is nonsense, too
		"an IPv6 fragment":                    with(with(behind, 14+6, 44), 54, 6, 0, 0, 1),
		"a later IPv6 fragment":               with(with(behind, 14+6, 44), 54, 6, 0, 0, 8),
		"a routing header with a way to go":   with(with(behind, 14+6, 43), 54, 6, 0, 0, 1),
		"an extension header that is too big": with(behind, 55, 9),
		"many extension headers":              ten,
	} {
		if got, err := ReadTuple(frame); err == nil {
			t.Errorf("%s: %+v", name, got)
		}
		if _, err := SetDestination(frame, vip4); err == nil {
			t.Errorf("%s: rewritten", name)
		}
	}
	for _, good := range [][]byte{four, six, behind} {
		for n := range good {
			if _, err := ReadTuple(good[:n]); err == nil {
				t.Errorf("the first %d octets of %x pass for a packet", n, good)
			}
		}
	}
	for name, frame := range map[string][]byte{
		"don't fragment":                      with(four, 20, 0x40, 0),
		"a whole packet in a fragment header": with(with(behind, 14+6, 44), 54, 6, 0, 0, 0),
		"a routing header at its end":         with(with(behind, 14+6, 43), 54, 6, 0, 0, 0),
		"an authentication header":            with(with(behind, 14+6, 51), 54, 6, 0),
	} {
		if got, err := ReadTuple(frame); err != nil || got.Proto != 6 || got.Dst.Port() != 80 {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
}

// RFC 3720 appendix B.4 has the CRC32c of 32 zero octets.
func TestSCTPChecksum(t *testing.T) {
	sctp := make([]byte, 32)
	setSCTPSum(sctp)
	if !bytes.Equal(sctp[8:12], []byte{0xaa, 0x36, 0x91, 0x8a}) {
		t.Errorf("%x", sctp[8:12])
	}
}

// Whatever a switch hands up, nothing panics, nothing that came is changed, and
// what is answered is right.
func FuzzFrame(f *testing.F) {
	for _, s := range []shape{
		{src: client4, dst: vip4, proto: 6, flags: 2}, {src: client6, dst: vip6, proto: 6, flags: 2, options: 2},
		{src: client4, dst: vip4, proto: 17, data: []byte("x")}, {src: client6, dst: vip6, proto: 132},
		{src: client4, dst: vip4, proto: 132, data: sctpInit}, {src: client6, dst: vip6, proto: 132, seq: 7, data: []byte{3, 0, 0, 5, 9, 0, 0, 0, 11, 0, 0, 4}},
		{src: client4, dst: vip4, proto: 1, flags: 8}, {src: client6, dst: vip6, proto: 58, flags: 128, tags: []byte{0x81, 0, 0, 1}},
	} {
		f.Add(s.frame())
	}
	for _, s := range []shape{{src: client4, dst: vip4, proto: 1, flags: 8, data: sctpInit}, {src: client6, dst: vip6, proto: 58, flags: 128, data: sctpInit}} {
		for _, frame := range pieces(s, 16) {
			f.Add(frame)
		}
	}
	f.Add(unhex(f, arpReplyFrame))
	f.Add(advertisement(ndSolicited, LinkLocal(ownMAC)))
	f.Add(askND(peerMAC, vip6.Addr()))
	f.Fuzz(func(t *testing.T, frame []byte) {
		was := bytes.Clone(frame)
		_, _ = ReadNeighbour(frame)
		tuple, err := ReadTuple(frame)
		if err == nil {
			changed, err := SetDestination(frame, tuple.Dst)
			if err != nil || len(changed) != len(frame) {
				t.Errorf("%x, %v", changed, err)
			}
		}
		if opening, err := Opening(frame); err == nil && opening != nil {
			checkSums(t, opening)
		}
		if replies, err := Echo(frame, ownMAC); err == nil && len(replies) > len(frame)/pieceSize+1 {
			t.Errorf("%d packets answer one of %d octets", len(replies), len(frame))
		}
		for _, answer := range answers(frame) {
			checkSums(t, answer)
			if again, err := Reject(answer, peerMAC); err == nil {
				t.Errorf("the answer %x is answered by %x", answer, again)
			}
			if len(answer) > 14+8+1280 || len(answer) < 60 {
				t.Errorf("answer of %d octets", len(answer))
			}
		}
		if !bytes.Equal(was, frame) {
			t.Fatal("the frame was changed")
		}
	})
}

// answers are all answers that brlb could give to a frame.
func answers(frame []byte) [][]byte {
	var list [][]byte
	for _, answer := range []func() ([]byte, error){
		func() ([]byte, error) { return Reject(frame, ownMAC) },
		func() ([]byte, error) { return Advertise(frame, ownMAC, func(netip.Addr) bool { return true }) },
		func() ([]byte, error) { return Expired(frame, ownMAC, addr("10.20.0.1")) },
		func() ([]byte, error) { return Expired(frame, ownMAC, addr("2001:db8::1")) },
	} {
		if b, err := answer(); err == nil {
			list = append(list, b)
		}
	}
	return list
}
