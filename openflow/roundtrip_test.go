package openflow

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"
)

// sameMessage compares values; the unexported parts of an OXM by ==.
var sameMessage = cmp.Options{
	cmp.Comparer(func(a, b OXM) bool { return a == b }),
	cmpopts.EquateComparable(NAT{}, CTTuple{}),
}

func TestRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := genMessage.Draw(t, "message")
		xid := u32(t)
		b, err := Append(nil, xid, want)
		if err != nil {
			t.Fatalf("Append: %v", err)
		}
		h, got, err := Parse(b)
		if err != nil {
			t.Fatalf("Parse(%x): %v", b, err)
		}
		if h.Version != Version || h.Type != want.Type() || int(h.Length) != len(b) || h.Xid != xid {
			t.Errorf("header %+v for type %v, %d octets, xid %#x", h, want.Type(), len(b), xid)
		}
		if diff := cmp.Diff(want, got, sameMessage); diff != "" {
			t.Errorf("Parse(%x) (-want +got):\n%s", b, diff)
		}
		again, err := Append([]byte("before"), xid, got)
		if err != nil || string(again) != "before"+string(b) {
			t.Errorf("\n got %x\nwant %x\nerr %v", again, b, err)
		}
	})
}
