package packet

import (
	"encoding/binary"
	"testing"

	"brlb/openflow"
)

func TestTooBig(t *testing.T) {
	for _, c := range []struct {
		name       string
		frame      []byte
		router     string
		kind, code byte
		at         int
	}{
		{"IPv4", shape{src: client4, dst: vip4, proto: 6, flags: tcpACK, data: make([]byte, 100)}.frame(), "10.20.0.1", 3, 4, 34},
		{"IPv4 that may be fragmented", with(shape{src: client4, dst: vip4, proto: 17, data: make([]byte, 100)}.frame(), 20, 0, 0), "10.20.0.1", 3, 4, 34},
		{"the first fragment", with(shape{src: client4, dst: vip4, proto: 17, data: make([]byte, 100)}.frame(), 20, 0x20, 0), "10.20.0.1", 3, 4, 34},
		{"IPv6", shape{src: client6, dst: vip6, proto: 6, flags: tcpACK, data: make([]byte, 100)}.frame(), "2001:db8::1", 2, 0, 54},
	} {
		got, err := TooBig(c.frame, ownMAC, addr(c.router), 1450)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		checkSums(t, got)
		if got[c.at] != c.kind || got[c.at+1] != c.code || binary.BigEndian.Uint32(got[c.at+4:]) != 1450 {
			t.Errorf("%s: %x", c.name, got[c.at:c.at+8])
		}
		l, _ := parseLink(got)
		if d, err := parseIP(&l); err != nil || d.src != addr(c.router) || l.dst != (openflow.MAC{2, 0, 0, 0, 0, 0xaa}) {
			t.Errorf("%s: from %s to %s, %v", c.name, d.src, l.dst, err)
		}
	}
	datagram := shape{src: client4, dst: vip4, proto: 17, data: make([]byte, 100)}
	for name, frame := range map[string][]byte{
		"a later fragment": with(datagram.frame(), 20, 0, 1),
		"an ICMP error":    shape{src: client4, dst: vip4, proto: 1, flags: 3, data: make([]byte, 28)}.frame(),
		"IPv6":             shape{src: client6, dst: vip6, proto: 6}.frame(),
	} {
		if got, err := TooBig(frame, ownMAC, addr("10.20.0.1"), 1450); err == nil {
			t.Errorf("%s is answered with %x", name, got)
		}
	}
}

func TestQuoted(t *testing.T) {
	about := func(inner shape, size int) []byte {
		packet := inner.frame()[14:]
		packet = packet[:min(size, len(packet))]
		kind, proto := byte(3), byte(1)
		if inner.dst.Addr().Is6() {
			kind, proto = 2, 58
		}
		return shape{src: inner.dst, dst: inner.src, proto: proto, flags: kind, data: packet}.frame()
	}
	tcp4, tcp6 := shape{src: vip4, dst: client4, proto: 6, data: make([]byte, 1000)}, shape{src: vip6, dst: client6, proto: 6, data: make([]byte, 1000)}
	udp4 := shape{src: vip4, dst: client4, proto: 17, data: make([]byte, 1000)}
	for _, c := range []struct {
		name  string
		frame []byte
		want  shape
	}{
		{"TCP", about(tcp4, 548), tcp4},
		{"TCP, eight octets of it", about(tcp4, 28), tcp4},
		{"UDP, eight octets of it", about(udp4, 28), udp4},
		{"TCP over IPv6, eight octets of it", about(tcp6, 48), tcp6},
		{"in a VLAN", tagged(about(tcp4, 28), 7), tcp4},
	} {
		got, err := Quoted(c.frame)
		if want := (Tuple{Proto: c.want.proto, Src: c.want.src, Dst: c.want.dst}); err != nil || got != want {
			t.Errorf("%s: %+v, %v, want %+v", c.name, got, err, want)
		}
	}
	elsewhere := shape{src: client4, dst: vip4, proto: 6}
	for name, frame := range map[string][]byte{
		"nothing":                     nil,
		"a segment":                   tcp4.frame(),
		"an echo request":             shape{src: client4, dst: vip4, proto: 1, flags: 8, data: make([]byte, 28)}.frame(),
		"neither ports nor all of IP": about(tcp4, 19),
		"no ports":                    about(tcp4, 22),
		"a later fragment":            with(about(tcp4, 28), 14+20+8+6, 0, 1),
		"somebody else's packet":      shape{src: client4, dst: vip4, proto: 1, flags: 3, data: elsewhere.frame()[14:]}.frame(),
		"an error in fragments":       with(about(tcp4, 28), 20, 0x20, 0),
	} {
		if got, err := Quoted(frame); err == nil {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

func FuzzQuoted(f *testing.F) {
	inner := shape{src: vip4, dst: client4, proto: 6}.frame()[14:]
	f.Add(shape{src: client4, dst: vip4, proto: 1, flags: 3, data: inner}.frame())
	inner = shape{src: vip6, dst: client6, proto: 17}.frame()[14:]
	f.Add(shape{src: client6, dst: vip6, proto: 58, flags: 2, data: inner}.frame())
	f.Fuzz(func(t *testing.T, frame []byte) {
		was := string(frame)
		if tuple, err := Quoted(frame); err == nil && tuple.Src.Addr().Is6() != tuple.Dst.Addr().Is6() {
			t.Errorf("%+v", tuple)
		}
		if string(frame) != was {
			t.Error("the frame was changed")
		}
	})
}
