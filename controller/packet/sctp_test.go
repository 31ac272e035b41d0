package packet

import (
	"bytes"
	"slices"
	"testing"
)

// sctpInit is an INIT with initiate tag 01020304.
var sctpInit = []byte{1, 0, 0, 20, 1, 2, 3, 4, 0, 1, 0, 0, 0, 10, 0, 10, 0, 0, 0, 9}

// An INIT is aborted by its own tag, what comes of an association that nobody has
// by the tag that it came with.
func TestAbort(t *testing.T) {
	padding := "0000000000000000 0000"
	data := []byte{0, 3, 0, 17, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 'x', 0, 0, 0}
	four := "0200000000aa 02005e000102 0800 4500 0024 0000 4000 40 84 25c1 0a140064 0a14000a 0050 9c40"
	six := "0200000000aa 02005e000102 86dd 6000 0000 0010 84 40 20010db8000000000000000000000100 20010db8000000000000000000000010 0050 9c40"
	for _, c := range []struct {
		name string
		in   shape
		want string
	}{
		{"an INIT", shape{src: client4, dst: vip4, proto: 132, data: sctpInit}, four + "01020304 dead8114 06 00 0004" + padding},
		{"data", shape{src: client4, dst: vip4, proto: 132, seq: 0x0a0b0c0d, data: data}, four + "0a0b0c0d c4469326 06 01 0004" + padding},
		{"a COOKIE ECHO and data that is not padded", shape{src: client6, dst: vip6, proto: 132, seq: 0x0a0b0c0d, data: slices.Concat([]byte{10, 0, 0, 5, 'c', 0, 0, 0}, data[:17])},
			six + "0a0b0c0d c4469326 06 01 0004"},
		{"a SHUTDOWN ACK", shape{src: client6, dst: vip6, proto: 132, seq: 0x0a0b0c0d, data: []byte{8, 0, 0, 4}}, six + "0a0b0c0d 2225d7d0 0e 01 0004"},
	} {
		got, err := Reject(c.in.frame(), ownMAC)
		if want := unhex(t, c.want); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s: %v\n got %x\nwant %x", c.name, err, got, want)
			continue
		}
		checkSums(t, got)
	}
}

func TestNotAborted(t *testing.T) {
	whole := shape{src: client4, dst: vip4, proto: 132, data: sctpInit}
	chunks := func(data ...byte) []byte {
		return shape{src: client4, dst: vip4, proto: 132, seq: 7, data: data}.frame()
	}
	tagged := whole
	tagged.seq = 7
	for name, frame := range map[string][]byte{
		"no chunk":                            chunks(),
		"half a chunk's header":               chunks(0, 0),
		"a chunk of no length":                chunks(0, 0, 0, 0),
		"a chunk that is cut":                 chunks(0, 3, 0, 17, 1, 2, 3, 4),
		"an ABORT":                            chunks(6, 0, 0, 4),
		"an ABORT behind data":                chunks(0, 3, 0, 5, 1, 0, 0, 0, 6, 1, 0, 4),
		"SHUTDOWN COMPLETE":                   chunks(14, 1, 0, 4),
		"an ERROR":                            chunks(9, 0, 0, 8, 0, 3, 0, 4),
		"a COOKIE ACK":                        chunks(11, 0, 0, 4),
		"an INIT with a verification tag":     tagged.frame(),
		"an INIT without an initiate tag":     with(whole.frame(), 14+20+12+4, 0, 0, 0, 0),
		"an INIT that is cut":                 chunks(1, 0, 0, 4),
		"an INIT before another chunk":        shape{src: client4, dst: vip4, proto: 132, data: slices.Concat(sctpInit, []byte{8, 0, 0, 4})}.frame(),
		"an INIT behind another chunk":        shape{src: client4, dst: vip4, proto: 132, data: slices.Concat([]byte{8, 0, 0, 4}, sctpInit)}.frame(),
		"a first fragment":                    with(whole.frame(), 20, 0x20, 0),
		"a header that is cut by the padding": with(whole.frame(), 16, 0, 30),
	} {
		if answer, err := Reject(frame, ownMAC); err == nil {
			t.Errorf("%s is answered by %x", name, answer)
		}
	}
}
