package packet

import (
	"bytes"
	"encoding/binary"
	"slices"
	"testing"
)

// pieces cuts what shape s says into fragments of size octets of the message.
func pieces(s shape, size int) [][]byte {
	whole := s.frame()
	header := 14 + len(s.tags) + 20
	if s.dst.Addr().Is6() {
		header += 20
	}
	message := whole[header:]
	var list [][]byte
	for at := 0; at < len(message); at += size {
		part := message[at:min(at+size, len(message))]
		more := at+size < len(message)
		frame := bytes.Clone(whole[:header])
		ip := frame[14+len(s.tags):]
		if s.dst.Addr().Is6() {
			binary.BigEndian.PutUint16(ip[4:], uint16(8+len(part)))
			ip[6] = 44
			word := uint16(at)
			if more {
				word |= 1
			}
			frame = append(binary.BigEndian.AppendUint16(append(frame, s.proto, 0), word), 0, 0, 0, 7)
		} else {
			binary.BigEndian.PutUint16(ip[2:], uint16(20+len(part)))
			word := uint16(at / 8)
			if more {
				word |= 0x2000
			}
			copy(ip[4:], []byte{0, 7})
			binary.BigEndian.PutUint16(ip[6:], word)
			ip[10], ip[11] = 0, 0
			binary.BigEndian.PutUint16(ip[10:], ^onesSum(ip))
		}
		list = append(list, append(frame, part...))
	}
	return list
}

// The answers to the fragments of a request are the fragments of its reply.
func TestEcho(t *testing.T) {
	data := bytes.Repeat([]byte("ping"), 500)
	for _, c := range []struct{ request, reply shape }{
		{shape{src: client4, dst: vip4, proto: 1, flags: 8, data: data}, shape{src: vip4, dst: client4, proto: 1, flags: 0, data: data}},
		{shape{src: client6, dst: vip6, proto: 58, flags: 128, data: data, tags: []byte{0x81, 0, 0, 7}}, shape{src: vip6, dst: client6, proto: 58, flags: 129, data: data, tags: []byte{0x81, 0, 0, 7}}},
	} {
		want := pieces(c.reply, 800)
		for i, frame := range pieces(c.request, 800) {
			copy(want[i], append(bytes.Clone(peerMAC[:]), ownMAC[:]...))
			was := bytes.Clone(frame)
			got, err := Echo(frame, ownMAC)
			if err != nil || len(got) != 1 || !bytes.Equal(got[0], want[i]) {
				t.Errorf("fragment %d: %v\n got %x\nwant %x", i, err, got, want[i])
			}
			if !bytes.Equal(frame, was) {
				t.Error("the frame was changed")
			}
		}
		// Of a whole request, too, which then has the numbers of the message.
		want = pieces(c.reply, 1232)
		for _, frame := range want {
			copy(frame, append(bytes.Clone(peerMAC[:]), ownMAC[:]...))
			if c.reply.proto == 58 {
				copy(frame[14+4+40+4:], make([]byte, 4))
			}
		}
		whole := c.request.frame()
		if c.request.proto == 1 {
			copy(whole[14+4:], []byte{0, 7})
		}
		got, err := Echo(whole, ownMAC)
		if err != nil || !slices.EqualFunc(got, want, bytes.Equal) {
			t.Errorf("whole: %v\n got %x\nwant %x", err, got, want)
		}
	}
}

func TestNotAnEcho(t *testing.T) {
	echo := shape{src: client4, dst: vip4, proto: 1, flags: 8, data: make([]byte, 100)}
	echo6 := shape{src: client6, dst: vip6, proto: 58, flags: 128, data: make([]byte, 100)}
	cut := func(s shape, size int) []byte { return pieces(s, size)[0] }
	as := func(s shape, kind byte) shape { s.flags = kind; return s }
	udp, optional := echo, echo
	udp.proto, optional.options = 17, 1
	for name, frame := range map[string][]byte{
		"a whole reply":            as(echo, 0).frame(),
		"a reply":                  cut(as(echo, 0), 64),
		"a reply, IPv6":            cut(as(echo6, 129), 64),
		"port unreachable":         cut(as(echo, 3), 64),
		"neighbour solicitation":   cut(as(echo6, 135), 64),
		"a datagram":               cut(udp, 64),
		"half a header":            with(cut(echo, 64), 16, 0, 24),
		"with options":             with(optional.frame(), 20, 0x20, 0),
		"to a broadcast MAC":       with(cut(echo, 64), 0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff),
		"from everybody":           with(cut(echo, 64), 26, 255, 255, 255, 255),
		"to a group":               with(cut(echo, 64), 30, 224, 0, 0, 1),
		"ICMP of the other family": with(cut(echo, 64), 23, 58),
	} {
		if answer, err := Echo(frame, ownMAC); err == nil {
			t.Errorf("%s is answered by %x", name, answer)
		}
	}
}
