package oftest_test

import (
	"bytes"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"brlb/openflow"
	"brlb/openflow/oftest"
)

// talk runs a script against octets that the other side sends, and returns all
// that the script wrote.
func talk(t *testing.T, send []byte, script oftest.Script) ([]byte, error) {
	t.Helper()
	near, far := net.Pipe()
	result := make(chan error, 1)
	go func() { result <- script.Run(far) }()
	go func() { near.Write(send) }()
	got, err := io.ReadAll(near)
	if err != nil {
		t.Fatal(err)
	}
	return got, <-result
}

func encode(t *testing.T, xid uint32, m openflow.Message) []byte {
	t.Helper()
	b, err := openflow.Append(nil, xid, m)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestScript(t *testing.T) {
	request, other := encode(t, 7, &openflow.BarrierRequest{}), encode(t, 8, &openflow.FeaturesRequest{})
	reply, echo := encode(t, 7, &openflow.BarrierReply{}), encode(t, 0, &openflow.EchoRequest{Data: []byte("abcd")})
	garbled := bytes.Clone(reply)
	garbled[1] ^= 0xf0
	tests := []struct {
		name   string
		send   []byte
		script oftest.Script
		want   []byte
		err    string
	}{
		{"reply", request, oftest.Script{oftest.Expect(openflow.TypeBarrierRequest), oftest.Reply(&openflow.BarrierReply{})}, reply, ""},
		{"reordered", append(bytes.Clone(request), other...), oftest.Script{
			oftest.Expect(openflow.TypeBarrierRequest, openflow.TypeFeaturesRequest),
			oftest.Send(&openflow.EchoRequest{Data: []byte("abcd")}), oftest.ReplyTo(0, &openflow.BarrierReply{})},
			append(bytes.Clone(echo), reply...), ""},
		{"octets", request, oftest.Script{oftest.ExpectOctets(request), oftest.Octets([]byte("x"))}, []byte("x"), ""},
		{"pieces", nil, oftest.Script{oftest.InPieces(1, oftest.Send(&openflow.EchoRequest{Data: []byte("abcd")}))}, echo, ""},
		{"garbled", request, oftest.Script{oftest.Expect(openflow.TypeBarrierRequest), oftest.Garble(1, 0xf0, oftest.Reply(&openflow.BarrierReply{}))}, garbled, ""},
		{"cut", nil, oftest.Script{oftest.CutAfter(5, oftest.Send(&openflow.EchoRequest{Data: []byte("abcd")})), oftest.Octets([]byte("never"))}, echo[:5], ""},
		{"cut later", nil, oftest.Script{oftest.CutAfter(13, oftest.Steps(oftest.Send(&openflow.EchoRequest{Data: []byte("abcd")}), oftest.Octets([]byte("never"))))}, append(bytes.Clone(echo), 'n'), ""},
		{"cut and stall", nil, oftest.Script{oftest.Stall(time.Millisecond), oftest.Cut(), oftest.Octets([]byte("never"))}, nil, ""},
		{"unexpected message", request, oftest.Script{oftest.Expect(openflow.TypeFeaturesRequest)}, nil, "OFPT_FEATURES_REQUEST was expected, OFPT_BARRIER_REQUEST came"},
		{"unexpected octets", request, oftest.Script{oftest.ExpectOctets([]byte("x"))}, nil, "78 was expected, 05 came"},
		{"reply to nothing", nil, oftest.Script{oftest.Reply(&openflow.BarrierReply{})}, nil, "reply to message -1"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got, err := talk(t, test.send, test.script)
			if !bytes.Equal(got, test.want) {
				t.Errorf("wrote %x, want %x", got, test.want)
			}
			if (err == nil) != (test.err == "") || err != nil && !strings.Contains(err.Error(), test.err) {
				t.Errorf("error %v, want %q", err, test.err)
			}
		})
	}
}
