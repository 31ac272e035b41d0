package bridge

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"net/netip"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"brlb/openflow"
)

var ownMAC = openflow.MAC{2, 0, 0x5e, 0, 1, 2}

func unhex(t testing.TB, text string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.Join(strings.Fields(text), ""))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestARPFrames(t *testing.T) {
	padding := strings.Repeat("00", 18)
	cases := []struct {
		name  string
		frame []byte
		want  string
	}{
		{"a request", arpAsk(ownMAC, netip.MustParseAddr("10.30.0.1"), netip.MustParseAddr("10.30.0.11")),
			"ffffffffffff 02005e000102 0806  0001 0800 06 04 0001  02005e000102 0a1e0001  000000000000 0a1e000b" + padding},
		{"a probe", arpAsk(ownMAC, netip.Addr{}, netip.MustParseAddr("10.30.0.11")),
			"ffffffffffff 02005e000102 0806  0001 0800 06 04 0001  02005e000102 00000000  000000000000 0a1e000b" + padding},
		{"an announcement", arpAnnounce(ownMAC, netip.MustParseAddr("10.20.0.100")),
			"ffffffffffff 02005e000102 0806  0001 0800 06 04 0001  02005e000102 0a140064  000000000000 0a140064" + padding},
	}
	for _, c := range cases {
		if want := unhex(t, c.want); !bytes.Equal(c.frame, want) {
			t.Errorf("%s: %x, want %x", c.name, c.frame, want)
		}
	}
}

const arpReplyFrame = "02005e000102 0200000000 0b 0806  0001 0800 06 04 0002  02000000000b 0a1e000b  02005e000102 0a1e0001"

func TestARPSender(t *testing.T) {
	good := unhex(t, arpReplyFrame)
	tagged := append(append(bytes.Clone(good[:12]), 0x81, 0, 0, 100), good[12:]...)
	change := func(at int, to ...byte) []byte {
		b := bytes.Clone(good)
		copy(b[at:], to)
		return b
	}
	cases := []struct {
		name  string
		frame []byte
		ok    bool
	}{
		{"a reply", good, true},
		{"with padding", append(bytes.Clone(good), make([]byte, 18)...), true},
		{"with a VLAN tag", tagged, true},
		{"with two VLAN tags", append(append(bytes.Clone(tagged[:12]), 0x81, 0, 0, 7), tagged[12:]...), false},
		{"IPv4", change(12, 8, 0), false},
		{"another hardware", change(14, 0, 6), false},
		{"another protocol", change(16, 0x86, 0xdd), false},
		{"MACs of 8 octets", change(18, 8), false},
		{"addresses of 16 octets", change(19, 16), false},
		{"from a group address", change(22, 1), false},
		{"from the zero address", change(22, 0, 0, 0, 0, 0, 0), false},
	}
	for _, c := range cases {
		addr, mac, err := arpSender(c.frame)
		if (err == nil) != c.ok {
			t.Errorf("%s: %v", c.name, err)
		}
		if c.ok && (addr != netip.MustParseAddr("10.30.0.11") || mac != openflow.MAC{2, 0, 0, 0, 0, 0x0b}) {
			t.Errorf("%s: %v %v", c.name, addr, mac)
		}
	}
	for n := range good {
		if _, _, err := arpSender(good[:n]); err == nil {
			t.Errorf("the first %d octets pass for a frame", n)
		}
	}
}

var (
	client = netip.MustParseAddrPort("10.20.0.10:40000")
	vip    = netip.MustParseAddrPort("10.20.0.100:80")
	member = netip.MustParseAddrPort("10.30.0.11:8080")
)

// segment is a TCP segment in a frame, with right checksums.
func segment(src, dst netip.AddrPort, options int, tag bool, payload []byte) []byte {
	frame := unhexMust("02005e000102 0200000000aa")
	if tag {
		frame = append(frame, 0x81, 0, 0, 100)
	}
	frame = append(frame, 8, 0)
	size := 20 + 4*options
	ip := make([]byte, size+20)
	ip[0] = 0x40 | byte(size/4)
	binary.BigEndian.PutUint16(ip[2:], uint16(len(ip)+len(payload)))
	ip[8], ip[9] = 64, 6
	for i := 20; i < size; i++ {
		ip[i] = 1 // no operation
	}
	copy(ip[12:], src.Addr().AsSlice())
	copy(ip[16:], dst.Addr().AsSlice())
	tcp := ip[size:]
	binary.BigEndian.PutUint16(tcp, src.Port())
	binary.BigEndian.PutUint16(tcp[2:], dst.Port())
	tcp[12], tcp[13] = 5<<4, 2
	ip = append(ip, payload...)
	recompute(ip, size)
	return append(frame, ip...)
}

func unhexMust(text string) []byte {
	b, err := hex.DecodeString(strings.ReplaceAll(text, " ", ""))
	if err != nil {
		panic(err)
	}
	return b
}

// recompute sets both checksums the long way (RFC 791, RFC 9293 section 3.1).
func recompute(ip []byte, size int) {
	binary.BigEndian.PutUint16(ip[10:], 0)
	binary.BigEndian.PutUint16(ip[10:], ^onesSum(ip[:size]))
	tcp := ip[size:]
	binary.BigEndian.PutUint16(tcp[16:], 0)
	pseudo := append(bytes.Clone(ip[12:20]), 0, 6)
	pseudo = binary.BigEndian.AppendUint16(pseudo, uint16(len(tcp)))
	binary.BigEndian.PutUint16(tcp[16:], ^onesSum(append(pseudo, tcp...)))
}

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

func addrPort4() *rapid.Generator[netip.AddrPort] {
	return rapid.Custom(func(t *rapid.T) netip.AddrPort {
		a := rapid.SliceOfN(rapid.Byte(), 4, 4).Draw(t, "addr")
		return netip.AddrPortFrom(netip.AddrFrom4([4]byte(a)), rapid.Uint16().Draw(t, "port"))
	})
}

// The checksums that setDestination adjusts are those of a full computation.
// The two representations of zero count as one.
func TestSetDestination(t *testing.T) {
	same := func(a, b []byte) bool {
		x, y := binary.BigEndian.Uint16(a), binary.BigEndian.Uint16(b)
		return x == y || x^y == 0xffff && (x == 0 || y == 0)
	}
	rapid.Check(t, func(t *rapid.T) {
		src, was, now := addrPort4().Draw(t, "src"), addrPort4().Draw(t, "was"), addrPort4().Draw(t, "now")
		options, tag := rapid.IntRange(0, 10).Draw(t, "options"), rapid.Bool().Draw(t, "tag")
		payload := rapid.SliceOfN(rapid.Byte(), 0, 50).Draw(t, "payload")
		frame := segment(src, was, options, tag, payload)
		if got, err := tcpTuple(frame); err != nil || got != (tuple{src, was}) {
			t.Fatalf("%+v, %v", got, err)
		}
		if err := setDestination(frame, now); err != nil {
			t.Fatal(err)
		}
		want := segment(src, now, options, tag, payload)
		ip := len(frame) - len(payload) - 40 - 4*options
		tcp := ip + 20 + 4*options
		if !same(frame[ip+10:], want[ip+10:]) || !same(frame[tcp+16:], want[tcp+16:]) {
			t.Fatalf("checksums %x %x, want %x %x", frame[ip+10:ip+12], frame[tcp+16:tcp+18], want[ip+10:ip+12], want[tcp+16:tcp+18])
		}
		copy(frame[ip+10:ip+12], want[ip+10:])
		copy(frame[tcp+16:tcp+18], want[tcp+16:])
		if !bytes.Equal(frame, want) {
			t.Fatalf("%x, want %x", frame, want)
		}
	})
	frame := segment(client, vip, 0, false, nil)
	if err := setDestination(frame, netip.MustParseAddrPort("[2001:db8::1]:80")); err == nil {
		t.Error("an IPv6 destination was taken")
	}
}

func TestFramesThatAreNoSegments(t *testing.T) {
	good := segment(client, vip, 0, false, []byte("hello"))
	change := func(at int, to ...byte) []byte {
		b := bytes.Clone(good)
		copy(b[at:], to)
		return b
	}
	for name, frame := range map[string][]byte{
		"ARP":                                change(12, 8, 6),
		"IPv6":                               change(14, 0x65),
		"a header of 16 octets":              change(14, 0x44),
		"a header of 60 octets":              change(14, 0x4f),
		"a total length of 0":                change(16, 0, 0),
		"a total length within the headers":  change(16, 0, 39),
		"a total length beyond the frame":    change(16, 0, 46),
		"UDP":                                change(23, 17),
		"a first fragment":                   change(20, 0x20, 0),
		"a later fragment":                   change(20, 0, 1),
		"a TCP header that is only padding":  change(16, 0, 20),
		"a header that reaches into padding": append(change(16, 0, 30), make([]byte, 40)...),
	} {
		if got, err := tcpTuple(frame); err == nil {
			t.Errorf("%s: %+v", name, got)
		}
		before := bytes.Clone(frame)
		if err := setDestination(frame, member); err == nil || !bytes.Equal(before, frame) {
			t.Errorf("%s: rewritten", name)
		}
	}
	for n := range good {
		if _, err := tcpTuple(good[:n]); err == nil && n < len(good) {
			t.Errorf("the first %d octets pass for a segment", n)
		}
	}
	if _, err := tcpTuple(append(bytes.Clone(good), 0, 0, 0)); err != nil {
		t.Errorf("padding: %v", err)
	}
	dontFragment := change(20, 0x40, 0)
	if _, err := tcpTuple(dontFragment); err != nil {
		t.Errorf("don't fragment: %v", err)
	}
}

// Whatever a switch hands up, nothing panics, and what is put back is as long
// as what came.
func FuzzFrame(f *testing.F) {
	f.Add(segment(client, vip, 0, false, nil))
	f.Add(segment(client, vip, 10, true, []byte("x")))
	f.Add(unhex(f, arpReplyFrame))
	f.Add(make([]byte, 60))
	f.Fuzz(func(t *testing.T, frame []byte) {
		_, _, _ = arpSender(frame)
		was := bytes.Clone(frame)
		m := handedUp(frame, client, vip)
		messages, err := putBack(m, 5)
		if !bytes.Equal(was, frame) {
			t.Fatal("the packet-in was changed")
		}
		if err != nil {
			return
		}
		if out := messages[1].(*openflow.PacketOut); len(out.Data) != len(frame) {
			t.Fatalf("%d octets came, %d are put back", len(frame), len(out.Data))
		}
		for _, m := range messages {
			if _, err := openflow.Append(nil, 1, m); err != nil && len(frame) < 60000 {
				t.Fatal(err)
			}
		}
	})
}

// handedUp is a packet-in about a packet whose connection began as orig.
func handedUp(frame []byte, src, dst netip.AddrPort) *openflow.PacketIn {
	return &openflow.PacketIn{
		BufferID: openflow.NoBuffer, TotalLen: uint16(len(frame)), Table: 2, Data: frame,
		Match: openflow.Match{
			openflow.InPort.Exact(3), openflow.CTNwSrc.Addr(src.Addr()), openflow.CTNwDst.Addr(dst.Addr()),
			openflow.CTTpSrc.Exact(uint64(src.Port())), openflow.CTTpDst.Exact(uint64(dst.Port())),
		},
	}
}

func TestPutBack(t *testing.T) {
	bare := func(frame []byte) *openflow.PacketIn {
		m := handedUp(frame, client, vip)
		m.Match = m.Match[:1]
		return m
	}
	zero := netip.AddrPortFrom(netip.IPv4Unspecified(), 0)
	cases := []struct {
		name string
		in   *openflow.PacketIn
		want []byte
	}{
		{"invalid: no entry was found", bare(segment(client, vip, 0, false, nil)), segment(client, vip, 0, false, nil)},
		{"invalid: the tuple is told as zero", handedUp(segment(client, vip, 0, false, nil), zero, zero), segment(client, vip, 0, false, nil)},
		{"stale and translated", handedUp(segment(client, member, 0, false, nil), client, vip), segment(client, vip, 0, false, nil)},
		{"stale, not translated", handedUp(segment(client, vip, 2, true, nil), client, vip), segment(client, vip, 2, true, nil)},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			messages, err := putBack(c.in, 5)
			if err != nil {
				t.Fatal(err)
			}
			flush, ok := messages[0].(*openflow.CTFlush)
			want := openflow.CTTuple{Src: client.Addr(), Dst: vip.Addr(), SrcPort: client.Port(), DstPort: vip.Port()}
			if !ok || flush.Orig != want || flush.Reply != (openflow.CTTuple{}) || !flush.HasZone || flush.Zone != 5 || flush.Proto != 6 {
				t.Errorf("flush %+v", messages[0])
			}
			out, ok := messages[1].(*openflow.PacketOut)
			if !ok || len(messages) != 2 || !bytes.Equal(out.Data, c.want) || out.InPort != 3 || out.BufferID != openflow.NoBuffer {
				t.Errorf("out %+v\nwant %x", messages[1], c.want)
			}
			if len(out.Actions) != 2 || out.Actions[1] != openflow.Action(openflow.Output{Port: openflow.PortTable}) {
				t.Errorf("actions %v", out.Actions)
			}
		})
	}
	for name, in := range map[string]*openflow.PacketIn{
		"nothing": bare(nil),
		"no TCP":  bare(unhex(t, arpReplyFrame)),
	} {
		if messages, err := putBack(in, 5); err == nil {
			t.Errorf("%s: %v", name, messages)
		}
	}
}
