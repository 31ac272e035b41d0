package packet

import (
	"bytes"
	"net/netip"
	"testing"
)

// The octets were read back with tcpdump -e -vv, which agrees with the checksum.
func TestJoin(t *testing.T) {
	if frames := Join(ownMAC, nil); len(frames) != 0 {
		t.Errorf("%x for no address", frames)
	}
	// Two addresses share a group.
	got := Join(ownMAC, []netip.Addr{addr("2001:db8::100"), addr("fe80::5eff:fe00:102"), addr("2001:db8:1::100")})
	want := unhex(t, "333300000016 02005e000102 86dd 6000 0000 0038 00 01 fe800000000000000000 5efffe000102 ff020000000000000000000000000016"+
		"3a 00 0502 0000 0100  8f 00 0eeb 0000 0002"+
		"04 00 0000 ff0200000000000000000001ff000100  04 00 0000 ff0200000000000000000001ff000102")
	if len(got) != 1 || !bytes.Equal(got[0], want) {
		t.Errorf("\n got %x\nwant %x", got, want)
	}
	var many []netip.Addr
	for i := range 256 {
		many = append(many, netip.AddrFrom16([16]byte{0x20, 1, 15: byte(i)}))
	}
	frames := Join(ownMAC, many)
	if len(frames) != 6 {
		t.Errorf("%d frames", len(frames))
	}
	for _, frame := range frames {
		checkSums(t, frame)
		if len(frame) > 1500 {
			t.Errorf("a frame of %d octets", len(frame))
		}
	}
}
