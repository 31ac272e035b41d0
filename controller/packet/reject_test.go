package packet

import (
	"bytes"
	"encoding/binary"
	"net/netip"
	"strings"
	"testing"
)

// The octets were read back with tcpdump -e -vv, which agrees with the checksums.
func TestReject(t *testing.T) {
	padding := strings.Repeat("00", 6)
	cases := []struct {
		name string
		in   shape
		want string
	}{
		{"a SYN", shape{src: client4, dst: vip4, proto: 6, flags: tcpSYN, seq: 0x01020304},
			"0200000000aa 02005e000102 0800 4500 0028 0000 4000 40 06 263b 0a140064 0a14000a" +
				"0050 9c40 00000000 01020305 50 14 0000 faa3 0000" + padding},
		{"a SYN with data, at the end of the numbers", shape{src: client4, dst: vip4, proto: 6, flags: tcpSYN, seq: 0xffffffff, data: []byte("hello")},
			"0200000000aa 02005e000102 0800 4500 0028 0000 4000 40 06 263b 0a140064 0a14000a" +
				"0050 9c40 00000000 00000005 50 14 0000 fea5 0000" + padding},
		{"an ACK", shape{src: client4, dst: vip4, proto: 6, flags: tcpACK, seq: 7, ack: 0x0a0b0c0d, data: []byte("hello")},
			"0200000000aa 02005e000102 0800 4500 0028 0000 4000 40 06 263b 0a140064 0a14000a" +
				"0050 9c40 0a0b0c0d 00000000 50 04 0000 e8a2 0000" + padding},
		{"a FIN without an ACK", shape{src: client4, dst: vip4, proto: 6, flags: tcpFIN, seq: 8},
			"0200000000aa 02005e000102 0800 4500 0028 0000 4000 40 06 263b 0a140064 0a14000a" +
				"0050 9c40 00000000 00000009 50 14 0000 fea1 0000" + padding},
		{"a SYN over IPv6, in a VLAN", shape{src: client6, dst: vip6, proto: 6, flags: tcpSYN, seq: 0x01020304, options: 1, tags: []byte{0x81, 0, 0, 100}},
			"0200000000aa 02005e000102 8100 0064 86dd 6000 0000 0014 06 40 20010db8000000000000000000000100 20010db8000000000000000000000010" +
				"0050 9c40 00000000 01020305 50 14 0000 b2b7 0000"},
		{"a datagram", shape{src: client4, dst: vip4, proto: 17, data: []byte("hi")},
			"0200000000aa 02005e000102 0800 45c0 003a 0000 4000 40 01 256e 0a140064 0a14000a 03 03 11ae 00000000" +
				"4500 001e 0000 0000 40 11 663a 0a14000a 0a140064 9c40 0050 000a e64a 6869"},
		{"a datagram over IPv6", shape{src: client6, dst: vip6, proto: 17, data: []byte("hi")},
			"0200000000aa 02005e000102 86dd 6000 0000 003a 3a 40 20010db8000000000000000000000100 20010db8000000000000000000000010 01 04 30d6 00000000" +
				"6000 0000 000a 11 40 20010db8000000000000000000000010 20010db8000000000000000000000100 9c40 0050 000a 9e5e 6869"},
	}
	for _, c := range cases {
		got, err := Reject(c.in.frame(), ownMAC)
		if want := unhex(t, c.want); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s: %v\n got %x\nwant %x", c.name, err, got, want)
			continue
		}
		checkSums(t, got)
	}
}

func TestErrorsQuoteWhatThereIsRoomFor(t *testing.T) {
	data := bytes.Repeat([]byte("x"), 3000)
	four, err := Reject(shape{src: client4, dst: vip4, proto: 17, data: data}.frame(), ownMAC)
	if err != nil || len(four) != 14+576 {
		t.Errorf("%d octets, %v", len(four), err)
	}
	six, err := Reject(shape{src: client6, dst: vip6, proto: 47, data: data}.frame(), ownMAC)
	if err != nil || len(six) != 14+1280 {
		t.Errorf("%d octets, %v", len(six), err)
	}
	checkSums(t, four)
	checkSums(t, six)
	padded, err := Reject(append(shape{src: client4, dst: vip4, proto: 17}.frame(), 1, 2, 3, 4), ownMAC)
	if err != nil || len(padded) != 14+20+8+28 {
		t.Errorf("what pads a frame is quoted: %x, %v", padded, err)
	}
}

func TestNotAnswered(t *testing.T) {
	syn := shape{src: client4, dst: vip4, proto: 6, flags: tcpSYN}
	datagram := shape{src: client4, dst: vip4, proto: 17, data: []byte("hello")}
	syn6 := shape{src: client6, dst: vip6, proto: 6, flags: tcpSYN}
	from := func(s shape, addr string) []byte {
		s.src = netip.AddrPortFrom(netip.MustParseAddr(addr), 4000)
		return s.frame()
	}
	to := func(s shape, addr string) []byte {
		s.dst = netip.AddrPortFrom(netip.MustParseAddr(addr), 80)
		return s.frame()
	}
	icmp := func(kind byte) []byte {
		return shape{src: client4, dst: vip4, proto: 1, flags: kind, data: make([]byte, 28)}.frame()
	}
	icmp6 := func(kind byte) []byte {
		return shape{src: client6, dst: vip6, proto: 58, flags: kind, data: make([]byte, 48)}.frame()
	}
	fragment6 := with(with(shape{src: client6, dst: vip6, proto: 17, options: 1}.frame(), 14+6, 44), 54, 17, 0, 0, 8)
	for name, frame := range map[string][]byte{
		"a reset":                        shape{src: client4, dst: vip4, proto: 6, flags: tcpRST}.frame(),
		"a reset with ACK":               shape{src: client6, dst: vip6, proto: 6, flags: tcpRST | tcpACK}.frame(),
		"a segment that is cut":          with(syn.frame(), 16, 0, 39),
		"a segment that is a fragment":   with(syn.frame(), 20, 0x20, 0),
		"data that begins in the header": with(syn.frame(), 14+20+12, 0x40),
		"data that begins after the end": with(syn.frame(), 14+20+12, 0x60),
		"a later fragment":               with(datagram.frame(), 20, 0, 1),
		"a later IPv6 fragment":          fragment6,
		"to a broadcast MAC":             with(datagram.frame(), 0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff),
		"to a group's MAC":               with(syn.frame(), 0, 1),
		"from a group's MAC":             with(syn.frame(), 6, 1),
		"from the zero MAC":              with(syn.frame(), 6, 0, 0, 0, 0, 0, 0),
		"from 0.0.0.0":                   from(syn, "0.0.0.0"),
		"from a group":                   from(datagram, "224.0.0.1"),
		"from everybody":                 from(datagram, "255.255.255.255"),
		"from localhost":                 from(syn, "127.0.0.1"),
		"from itself":                    from(syn, "10.20.0.100"),
		"to a group":                     to(datagram, "239.1.2.3"),
		"from ::":                        from(syn6, "::"),
		"from an IPv6 group":             from(syn6, "ff02::1"),
		"to an IPv6 group":               to(syn6, "ff02::1"),
		"ICMP port unreachable":          icmp(3),
		"source quench":                  icmp(4),
		"redirect":                       icmp(5),
		"time exceeded":                  icmp(11),
		"parameter problem":              icmp(12),
		"ICMPv6 port unreachable":        icmp6(1),
		"packet too big":                 icmp6(2),
		"neighbour solicitation":         icmp6(135),
		"ICMPv6 redirect":                icmp6(137),
		"ARP":                            unhex(t, arpReplyFrame),
	} {
		if answer, err := Reject(frame, ownMAC); err == nil {
			t.Errorf("%s is rejected with %x", name, answer)
		}
		if answer, err := Expired(frame, ownMAC, addr("10.20.0.1")); err == nil && !strings.Contains(name, "reset") && !strings.Contains(name, "segment") && !strings.Contains(name, "begins") {
			t.Errorf("%s is answered with %x", name, answer)
		}
	}
	for name, frame := range map[string][]byte{
		"a first fragment of a datagram": with(datagram.frame(), 20, 0x20, 0),
		"an echo request":                icmp(8),
		"an IPv6 echo request":           icmp6(128),
		"a tunnel":                       shape{src: client4, dst: vip4, proto: 47}.frame(),
	} {
		if _, err := Reject(frame, ownMAC); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestExpired(t *testing.T) {
	for _, c := range []struct {
		in     shape
		router string
		kind   byte
		at     int
	}{
		{shape{src: client4, dst: vip4, proto: 17, data: []byte("hi")}, "10.20.0.1", 11, 34},
		{shape{src: client4, dst: vip4, proto: 6, flags: tcpSYN}, "10.20.0.1", 11, 34},
		{shape{src: client6, dst: vip6, proto: 6, flags: tcpSYN}, "2001:db8::1", 3, 54},
	} {
		frame := c.in.frame()
		got, err := Expired(frame, ownMAC, addr(c.router))
		if err != nil {
			t.Error(err)
			continue
		}
		checkSums(t, got)
		l, _ := parseLink(got)
		d, err := parseIP(&l)
		if err != nil || d.src != addr(c.router) || d.dst != c.in.src.Addr() || got[c.at] != c.kind || got[c.at+1] != 0 ||
			binary.BigEndian.Uint32(got[c.at+4:]) != 0 || !bytes.Equal(got[c.at+8:], frame[14:]) {
			t.Errorf("%x", got)
		}
	}
	if _, err := Expired(shape{src: client4, dst: vip4, proto: 6}.frame(), ownMAC, addr("2001:db8::1")); err == nil {
		t.Error("an IPv6 router speaks about an IPv4 packet")
	}
}
