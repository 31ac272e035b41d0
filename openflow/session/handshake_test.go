package session_test

import (
	"context"
	"errors"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"brlb/openflow"
	"brlb/openflow/oftest"
	"brlb/openflow/session"
)

func TestHandshakeFailures(t *testing.T) {
	hello := func(version uint8, bitmap uint32) oftest.Step {
		return oftest.Send(&openflow.Hello{Version: version, Versions: bitmap})
	}
	tests := []struct {
		name   string
		want   session.Reason
		text   string // in the error
		script oftest.Script
	}{
		{"web server", session.ErrNotOpenFlow, `"HTTP/1.1 400 Bad Request`, oftest.Script{
			oftest.Expect(openflow.TypeHello), oftest.Octets([]byte("HTTP/1.1 400 Bad Request\r\nServer: x\r\nContent-Length: 0\r\n\r\n"))}},
		{"database", session.ErrNotOpenFlow, `method`, oftest.Script{
			oftest.Expect(openflow.TypeHello), oftest.Octets([]byte(`{"method":"echo","params":[],"id":"echo"}`))}},
		{"TLS alert", session.ErrNotOpenFlow, `"\x15\x03\x01`, oftest.Script{
			oftest.Expect(openflow.TypeHello), oftest.Octets([]byte{0x15, 3, 1, 0, 2, 2, 40})}},
		{"not a HELLO", session.ErrNotOpenFlow, "where HELLO belongs", oftest.Script{oftest.Send(&openflow.EchoRequest{}), untilClosed()}},
		{"broken HELLO", session.ErrNotOpenFlow, "impossible length", oftest.Script{
			oftest.Octets([]byte{5, 0, 0, 16, 0, 0, 0, 1, 0, 1, 0xff, 0xff, 0, 0, 0, 0}), untilClosed()}},
		{"header too short", session.ErrMalformed, "length 3", oftest.Script{oftest.Octets([]byte{5, 0, 0, 3, 0, 0, 0, 1}), untilClosed()}},
		{"hangs up", session.ErrHangup, "the peer closed it", oftest.Script{oftest.Expect(openflow.TypeHello)}},
		{"hangs up in HELLO", session.ErrHangup, "in the middle", oftest.Script{
			oftest.Expect(openflow.TypeHello), oftest.CutAfter(9, hello(0, 1<<5))}},
		{"1.0 without bitmap", session.ErrVersion, "version 1", oftest.Script{hello(1, 0),
			oftest.Expect(openflow.TypeHello, openflow.TypeError), untilClosed()}},
		{"1.3 and 1.5", session.ErrVersion, "OpenFlow14", oftest.Script{hello(6, 1<<4|1<<6),
			oftest.Expect(openflow.TypeHello, openflow.TypeError), untilClosed()}},
		{"refuses us", session.ErrVersion, "no thanks", oftest.Script{
			oftest.Send(&openflow.Error{Code: openflow.HelloFailedIncompatible, Data: []byte("no thanks")}), untilClosed()}},
		{"refuses features", session.ErrHandshake, "OFPBRC_EPERM", oftest.Script{hello(0, 1<<5),
			oftest.Expect(openflow.TypeHello, openflow.TypeFeaturesRequest),
			oftest.Reply(&openflow.Error{Code: openflow.BadRequestEPERM}), untilClosed()}},
		{"silent", session.ErrHandshake, "not within 5s", oftest.Script{untilClosed()}},
		{"one octet", session.ErrHandshake, "not within 5s", oftest.Script{oftest.Octets([]byte{5}), untilClosed()}},
		{"silent after HELLO", session.ErrSilent, "", oftest.Script{hello(0, 1<<5), untilClosed()}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, err := openScript(t, session.Options{}, test.script)
				var closed *session.ClosedError
				if s != nil || !errors.As(err, &closed) || closed.Reason != test.want || !strings.Contains(err.Error(), test.text) {
					t.Errorf("error %v, want %q with %q", err, string(test.want), test.text)
				}
				if !errors.Is(err, test.want) {
					t.Errorf("%v does not wrap its reason", err)
				}
			})
		})
	}
}

func TestHandshakeVersions(t *testing.T) {
	hellos := map[string]*openflow.Hello{
		"1.4 alone":            {Versions: 1 << 5},
		"as Open vSwitch":      {Version: 6, Versions: 1<<1 | 1<<4 | 1<<5 | 1<<6},
		"1.4 without bitmap":   {},
		"newer without bitmap": {Version: 6},
		"unknown elements":     {Versions: 1 << 5, Elements: []openflow.RawProperty{{Type: 99, Data: []byte("x")}}},
	}
	for name, hello := range hellos {
		t.Run(name, func(t *testing.T) {
			s, err := openScript(t, session.Options{}, oftest.Script{
				oftest.Send(hello),
				oftest.Expect(openflow.TypeHello, openflow.TypeFeaturesRequest),
				oftest.Send(&openflow.EchoRequest{Data: []byte("are you there?")}),
				oftest.Do(func(p *oftest.Peer) error {
					r, err := p.Read()
					if echo, ok := r.Message.(*openflow.EchoReply); !ok || string(echo.Data) != "are you there?" {
						t.Errorf("the echo came back as %+v", r.Message)
					}
					return err
				}),
				oftest.ReplyTo(1, &openflow.FeaturesReply{DatapathID: 7}),
				oftest.Expect(openflow.TypeMultipartRequest),
				oftest.Reply(&openflow.MultipartReply{Body: openflow.Desc{Hardware: "Open vSwitch", Software: "2.17.9"}}),
				untilClosed(),
			})
			if err != nil {
				t.Fatal(err)
			}
			if major, minor, ok := s.SoftwareVersion(); s.Features().DatapathID != 7 || major != 2 || minor != 17 || !ok {
				t.Errorf("%+v, %d.%d", s.Features(), major, minor)
			}
			if s.CanMonitor() {
				t.Error("a switch before 3.0 must not be asked for monitors")
			}
		})
	}
}

// The context bounds the handshake and not the session.
func TestHandshakeContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		near, far := net.Pipe()
		defer far.Close()
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		if _, err := session.Open(ctx, near, session.Options{}); !errors.Is(err, session.ErrHandshake) || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%v", err)
		}
	})
	sw := oftest.NewSwitch(oftest.SwitchOptions{})
	defer sw.Close()
	ctx, cancel := context.WithCancel(context.Background())
	conn, _ := sw.Dial(ctx)
	s, err := session.Open(ctx, conn, session.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	cancel()
	if err := s.Barrier(context.Background()); err != nil {
		t.Errorf("after the handshake's context has ended: %v", err)
	}
}
