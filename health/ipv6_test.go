package health

import (
	"io"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	grpchealth "google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
)

// TestIPv6OnLoopback makes one attempt of each kind on ::1.
func TestIPv6OnLoopback(t *testing.T) {
	const loopback = "[::1]:0"
	if probe, err := net.ListenPacket("udp6", loopback); err != nil {
		t.Skip("no IPv6 here: ", err)
	} else {
		probe.Close()
	}
	host := make(chan string, 1)
	web := serveOn(t, loopback, func(c net.Conn) {
		host <- readRequest(c)
		io.WriteString(c, "HTTP/1.1 200 OK\r\n\r\n")
	})
	echo := serveOn(t, loopback, func(c net.Conn) { io.WriteString(c, readRequest(c)) })
	agent := serveOn(t, loopback, func(c net.Conn) { io.WriteString(c, "up 75%\n") })
	calls := serveGRPCOn(t, loopback, func(s *grpc.Server) { healthpb.RegisterHealthServer(s, grpchealth.NewServer()) })
	datagrams := serveUDPOn(t, netip.MustParseAddrPort(loopback), func(question []byte) []byte { return question })
	for _, tc := range []struct {
		name    string
		check   Check
		address netip.AddrPort
		code    Code
		detail  string
	}{
		{"tcp", Check{Send: "x", Expect: "x"}, echo, L7OK, "expected answer"},
		{"http", Check{Type: HTTP}, web, L7OK, "200"},
		{"grpc", Check{Type: GRPC}, calls, L7OK, "SERVING"},
		{"udp", Check{Type: UDP, Send: "x", Expect: "x"}, datagrams, L7OK, "expected answer"},
		{"agent", Check{Type: AgentLine}, agent, L7OK, "up"},
		{"icmp", Check{Type: ICMP}, netip.MustParseAddrPort("[::1]:1"), L4OK, "echo reply"},
		{"exec", Check{Type: Exec, Command: script(t, `echo "$1 $2"`)}, netip.MustParseAddrPort("[::1]:7"), PROCOK, "::1 7"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			tc.check.Interval, tc.check.Timeout = 5*time.Second, 5*time.Second
			wantReport(t, attempt(t, tc.check, tc.address), tc.code, tc.detail)
		})
	}
	if request, want := <-host, "Host: "+web.String()+"\r\n"; !strings.Contains(request, want) {
		t.Errorf("request %q, want %q in it", request, want)
	}
	t.Run("from an address", func(t *testing.T) {
		w := wayOf(&Dialer{Source4: netip.MustParseAddr("127.0.0.9"), Source6: netip.MustParseAddr("::1"), Device: "lo"})
		wantReport(t, attemptBy(t, w, Check{Send: "x", Expect: "x"}, echo), L7OK, "expected answer")
		wantReport(t, attemptBy(t, w, Check{}, echo), L4OK, "connected")
	})
	t.Run("refused", func(t *testing.T) {
		closed := netip.AddrPortFrom(netip.IPv6Loopback(), closedPort(t).Port())
		wantReport(t, attempt(t, Check{}, closed), L4CON, "connection refused")
	})
}
