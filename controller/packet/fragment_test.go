package packet

import (
	"bytes"
	"encoding/binary"
	"slices"
	"testing"
)

// fragmentOf makes a frame with a UDP datagram the fragment of one that begins at
// offset, in units of 8 octets.
func fragmentOf(s shape, offset uint16, more bool) []byte {
	frame := s.frame()
	ip := frame[14+len(s.tags):]
	field := offset
	if !s.dst.Addr().Is6() {
		if more {
			field |= 0x2000
		}
		binary.BigEndian.PutUint16(ip[6:], field)
		ip[10], ip[11] = 0, 0
		binary.BigEndian.PutUint16(ip[10:], ^onesSum(ip[:20]))
		return frame
	}
	field <<= 3
	if more {
		field |= 1
	}
	header := []byte{s.proto, 0, byte(field >> 8), byte(field), 0, 0, 0, 7}
	ip[6] = 44
	binary.BigEndian.PutUint16(ip[4:], binary.BigEndian.Uint16(ip[4:])+8)
	return slices.Insert(frame, 14+len(s.tags)+40, header...)
}

func TestOpening(t *testing.T) {
	for _, s := range []shape{
		{src: client4, dst: vip4, proto: 17, data: make([]byte, 64)},
		{src: client6, dst: vip6, proto: 17, data: make([]byte, 64)},
		{src: client4, dst: vip4, proto: 17, data: make([]byte, 64), tags: []byte{0x81, 0, 0, 20}},
	} {
		got, err := Opening(fragmentOf(s, 0, true))
		if err != nil {
			t.Fatal(err)
		}
		checkSums(t, got)
		if tuple, err := ReadTuple(got); err != nil || tuple != (Tuple{Proto: 17, Src: s.src, Dst: s.dst}) {
			t.Errorf("%+v, %v: %x", tuple, err, got)
		}
		empty := s
		empty.data = nil
		if want := pad(empty.frame()); len(got) != len(want) || !bytes.Equal(got[:14+len(s.tags)], want[:14+len(s.tags)]) {
			t.Errorf("\n got %x\nwant %x", got, want)
		}
		if got, err := Opening(fragmentOf(s, 8, true)); got != nil || err != nil {
			t.Errorf("a later fragment: %x, %v", got, err)
		}
		if _, err := Opening(s.frame()); err == nil {
			t.Error("a whole datagram was taken for a fragment")
		}
		tcp := s
		tcp.proto = 6
		if _, err := Opening(fragmentOf(tcp, 0, true)); err == nil {
			t.Error("a fragment of TCP opens a flow")
		}
	}
}
