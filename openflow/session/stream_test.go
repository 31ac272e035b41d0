package session_test

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"

	"brlb/openflow"
	"brlb/openflow/oftest"
	"brlb/openflow/session"
)

// stream is what a switch sends after the handshake: events of every size, an
// echo request, a reply to nobody and at last the reply to a barrier with the
// session's first transaction id after the handshake.
func stream(t testing.TB) []byte {
	t.Helper()
	const barrier = 4
	var b []byte
	for _, m := range []struct {
		xid uint32
		openflow.Message
	}{
		{0, &openflow.PortStatus{Port: openflow.Port{No: 3, Name: "p3", State: openflow.PortLive}}},
		{0, &openflow.PacketIn{BufferID: openflow.NoBuffer, Match: openflow.Match{openflow.InPort.Exact(3)}, Data: bytes.Repeat([]byte("packet "), 20)}},
		{0, &openflow.EchoRequest{Data: []byte("12345678")}},
		{0, &openflow.FlowRemoved{Cookie: 7, Match: openflow.Match{openflow.Reg0.Exact(1)}}},
		{77, &openflow.BarrierReply{}},
		{0, &openflow.MultipartReply{Body: openflow.FlowMonitorReply{{Event: openflow.EventAbbrev, Xid: 3}}}},
		{0, &openflow.RoleStatus{RoleBody: openflow.RoleBody{Role: openflow.RoleSlave}}},
		{3, &openflow.Error{Code: openflow.FlowModFailedOverlap, Data: []byte("request")}},
		{barrier, &openflow.BarrierReply{}},
	} {
		var err error
		if b, err = openflow.Append(b, m.xid, m.Message); err != nil {
			t.Fatal(err)
		}
	}
	return b
}

// receive runs a session whose peer writes pieces, and says what it saw.
func receive(t *testing.T, pieces ...[]byte) string {
	t.Helper()
	s := play(t, session.Options{},
		oftest.Expect(openflow.TypeBarrierRequest),
		oftest.Do(func(p *oftest.Peer) error {
			for _, piece := range pieces {
				if _, err := p.Conn().Write(piece); err != nil {
					return err
				}
			}
			return oftest.Expect(openflow.TypeEchoReply)(p)
		}),
	)
	if err := s.Barrier(context.Background()); err != nil {
		t.Fatal(err)
	}
	<-s.Done()
	var saw strings.Builder
	for e := range s.Events() {
		fmt.Fprintf(&saw, "%d %+v\n", e.Xid, e.Message)
	}
	c := s.Counters()
	fmt.Fprintf(&saw, "%v %d\n", c.Received, c.UnknownReplies)
	return saw.String()
}

// However the stream is cut, the session sees the same.
func TestStreamCutAnyhow(t *testing.T) {
	b := stream(t)
	want := receive(t, b)
	if n := strings.Count(want, "\n"); n != 7 {
		t.Fatalf("%d lines:\n%s", n, want)
	}
	for size := 1; size < 20; size++ {
		var pieces [][]byte
		for rest := b; len(rest) > 0; {
			n := min(size, len(rest))
			pieces = append(pieces, rest[:n])
			rest = rest[n:]
		}
		if got := receive(t, pieces...); got != want {
			t.Errorf("in pieces of %d:\n%s\nwant:\n%s", size, got, want)
		}
	}
	for at := 1; at < len(b); at++ {
		if got := receive(t, b[:at], b[at:]); got != want {
			t.Fatalf("cut at %d:\n%s\nwant:\n%s", at, got, want)
		}
	}
}

// A packet-in that is longer than its length can say is left out, whatever is left
// of the length, and what follows it is read.
func TestOverlongPacketIn(t *testing.T) {
	b := stream(t)
	want := receive(t, b)
	for _, left := range []int{0, 3, 40, 500} {
		packetIn := bytes.Repeat([]byte{0xff}, 1<<16+left)
		copy(packetIn, []byte{5, 10, byte(left >> 8), byte(left), 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0xff, 0x60})
		if got := receive(t, packetIn, packetIn, b); got != want {
			t.Errorf("%d octets left:\n%s\nwant\n%s", left, got, want)
		}
	}
}
