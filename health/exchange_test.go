package health

import (
	"io"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"
)

func TestTCPExchangeOnLoopback(t *testing.T) {
	check := func(send, expect string) Check {
		return Check{Interval: 2 * time.Second, Timeout: 2 * time.Second, Send: send, Expect: expect}
	}
	echo := func(c net.Conn) { io.WriteString(c, readRequest(c)) }
	for _, tc := range []struct {
		name   string
		check  Check
		handle func(net.Conn)
		code   Code
		detail string
	}{
		{"send and expect", check("PING\r\n", "PING"), echo, L7OK, "expected answer"},
		{"a banner", check("", "SSH-2.0"), func(c net.Conn) { io.WriteString(c, "SSH-2.0-test\r\n"); untilClosed(c) }, L7OK, "expected answer"},
		{"an answer in pieces", check("", "ready"), func(c net.Conn) {
			for _, piece := range []string{"re", "ad", "y"} {
				io.WriteString(c, piece)
				time.Sleep(10 * time.Millisecond)
			}
		}, L7OK, "expected answer"},
		{"send alone", check("QUIT\r\n", ""), untilClosed, L4OK, "connected and sent"},
		{"another answer", check("PING\r\n", "PONG"), echo, L7RSP, `closed after "PING\r\n"`},
		{"an endless answer", check("PING\r\n", "PONG"), flood("", "x"), L7RSP, "not in the first 16384 bytes"},
		{"reset", check("PING\r\n", "PONG"), func(c net.Conn) { readRequest(c); c.(*net.TCPConn).SetLinger(0) }, L7RSP, "connection reset by peer"},
		{"hung", Check{Timeout: 100 * time.Millisecond, Expect: "x"}, untilClosed, L7TOUT, "no complete answer"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			wantReport(t, attempt(t, tc.check, serve(t, tc.handle)), tc.code, tc.detail)
		})
	}
}

// serveUDP answers each datagram with what handle makes of it, until the test
// ends; nil is no answer.
func serveUDP(t *testing.T, handle func([]byte) []byte) netip.AddrPort {
	t.Helper()
	return serveUDPOn(t, netip.MustParseAddrPort("127.0.0.1:0"), handle)
}

func serveUDPOn(t *testing.T, address netip.AddrPort, handle func([]byte) []byte) netip.AddrPort {
	t.Helper()
	c, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(address))
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		buf := make([]byte, 2048)
		for {
			n, from, err := c.ReadFromUDPAddrPort(buf)
			if err != nil {
				return
			}
			if out := handle(buf[:n]); out != nil {
				c.WriteToUDPAddrPort(out, from)
			}
		}
	}()
	t.Cleanup(func() { c.Close(); <-done })
	return c.LocalAddr().(*net.UDPAddr).AddrPort()
}

func TestUDPOnLoopback(t *testing.T) {
	check := func(timeout time.Duration, expect string) Check {
		return Check{Type: UDP, Interval: 2 * time.Second, Timeout: timeout, Send: "ping", Expect: expect}
	}
	echo := func(b []byte) []byte { return b }
	silent := func([]byte) []byte { return nil }
	unused := serveUDP(t, silent) // only to find a port; nothing listens on it over 127.0.0.2
	closed := netip.AddrPortFrom(netip.MustParseAddr("127.0.0.2"), unused.Port())
	for _, tc := range []struct {
		name    string
		check   Check
		address netip.AddrPort
		code    Code
		detail  string
	}{
		{"expected answer", check(2*time.Second, "ping"), serveUDP(t, echo), L7OK, "expected answer"},
		{"any answer", check(2*time.Second, ""), serveUDP(t, echo), L7OK, "expected answer"},
		{"another answer", check(100*time.Millisecond, "pong"), serveUDP(t, echo), L7RSP, "without the expected text"},
		{"silence, none expected", check(100*time.Millisecond, ""), serveUDP(t, silent), L4OK, "no answer and no error"},
		{"silence, an answer expected", check(100*time.Millisecond, "pong"), serveUDP(t, silent), L7TOUT, "no answer"},
		{"port unreachable", check(2*time.Second, ""), closed, L4CON, "connection refused"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			wantReport(t, attempt(t, tc.check, tc.address), tc.code, tc.detail)
		})
	}
}

func TestICMPOnLoopback(t *testing.T) {
	for _, address := range []string{"127.0.0.1:1", "[::1]:1", "127.9.9.9:1"} {
		got := attempt(t, Check{Type: ICMP}, netip.MustParseAddrPort(address))
		if got.code == SOCKERR && strings.Contains(got.detail, "not permitted") {
			t.Skip("raw sockets need privilege: ", got.detail)
		}
		wantReport(t, got, L4OK, "echo reply")
	}
}

// TestICMPReply separates the reply to this attempt from everything else that
// a raw socket may hear.
func TestICMPReply(t *testing.T) {
	sent := echoMessage(echoRequest4, 0x12345678, 42)
	if internetChecksum(sent) != 0 {
		t.Errorf("checksum of % x is wrong", sent)
	}
	reply := append([]byte(nil), sent...)
	reply[0] = echoReply4
	header := make([]byte, 24) // with one word of options
	header[0] = 0x46
	changed := func(at int, value byte) []byte {
		b := append([]byte(nil), reply...)
		b[at] = value
		return b
	}
	for _, tc := range []struct {
		name   string
		packet []byte
		want   bool
	}{
		{"reply", reply, true},
		{"reply behind an IP header", append(header, reply...), true},
		{"our own request", sent, false},
		{"another identifier", changed(4, 0xff), false},
		{"another payload", changed(15, 0xff), false},
		{"destination unreachable", changed(0, 3), false},
		{"cut short", reply[:15], false},
		{"empty", nil, false},
		{"only an IP header", header, false},
		{"an IP header cut short", header[:3], false},
	} {
		if got := isEchoReply(tc.packet, echoReply4, sent); got != tc.want {
			t.Errorf("%s: %v, want %v", tc.name, got, tc.want)
		}
	}
}
