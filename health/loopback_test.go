package health

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	switch os.Getenv(roleVar) {
	case serverRole:
		runServerRole()
		return
	case proberRole:
		runProberRole()
		return
	}
	goleak.VerifyTestMain(m)
}

// serve accepts connections on loopback and gives each to handle, until the
// test ends. handle need not close the connection.
func serve(t *testing.T, handle func(net.Conn)) netip.AddrPort {
	t.Helper()
	return serveOn(t, "127.0.0.1:0", handle)
}

// serveOn is serve on an address of the caller's.
func serveOn(t *testing.T, address string, handle func(net.Conn)) netip.AddrPort {
	t.Helper()
	l, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			handle(c)
			c.Close()
		}
	}()
	t.Cleanup(func() { l.Close(); <-done })
	return l.Addr().(*net.TCPAddr).AddrPort()
}

// answer reads a request and writes text.
func answer(text string) func(net.Conn) {
	return func(c net.Conn) {
		readRequest(c)
		io.WriteString(c, text)
	}
}

func readRequest(c net.Conn) string {
	buf := make([]byte, 4096)
	n, _ := c.Read(buf)
	return string(buf[:n])
}

// untilClosed blocks until the peer is gone.
func untilClosed(c net.Conn) { io.Copy(io.Discard, c) }

// attempt compiles and makes one attempt on address.
func attempt(t *testing.T, c Check, address netip.AddrPort) report {
	t.Helper()
	return attemptBy(t, wayOf(new(Dialer)), c, address)
}

// wayOf is the way of a dialer.
func wayOf(d *Dialer) way { return way{d.DialContext, d.Connect, d.Netns} }

// attemptBy is attempt on a way of its own.
func attemptBy(t *testing.T, w way, c Check, address netip.AddrPort) report {
	t.Helper()
	c = c.WithDefaults()
	if err := c.Validate(); err != nil {
		t.Fatal(err)
	}
	p, err := kinds[c.Type].compile(c, w)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), c.Timeout)
	defer cancel()
	return p.probe(ctx, address)
}

func wantReport(t *testing.T, got report, code Code, detail string) {
	t.Helper()
	if got.code != code || !strings.Contains(got.detail, detail) {
		t.Errorf("got %v %q, want %v with %q", got.code, got.detail, code, detail)
	}
	if len(got.detail) > 300 || strings.ContainsAny(got.detail, "\r\n\x00") {
		t.Errorf("detail is not fit to print: %q", got.detail)
	}
}

// closedPort returns an address on which nothing listens.
func closedPort(t *testing.T) netip.AddrPort {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).AddrPort()
}

// fullBacklog returns an address whose accept queue is full, so that further
// connections get no answer until makeRoom is called.
func fullBacklog(t *testing.T) (address netip.AddrPort, makeRoom func()) {
	t.Helper()
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { syscall.Close(fd) })
	if err := syscall.Bind(fd, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Listen(fd, 0); err != nil {
		t.Fatal(err)
	}
	sa, err := syscall.Getsockname(fd)
	if err != nil {
		t.Fatal(err)
	}
	address = netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), uint16(sa.(*syscall.SockaddrInet4).Port))
	c, err := net.Dial("tcp", address.String()) // a backlog of 0 holds one connection
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return address, func() {
		if accepted, _, err := syscall.Accept(fd); err == nil {
			t.Cleanup(func() { syscall.Close(accepted) })
		}
	}
}

func TestTCPOnLoopback(t *testing.T) {
	t.Run("open", func(t *testing.T) {
		closed := make(chan error, 1)
		address := serve(t, func(c net.Conn) {
			_, err := c.Read(make([]byte, 1))
			closed <- err
		})
		wantReport(t, attempt(t, Check{}, address), L4OK, "connected")
		if err := <-closed; !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("the server saw %v, want a reset, which leaves no TIME_WAIT", err)
		}
	})
	t.Run("refused", func(t *testing.T) {
		wantReport(t, attempt(t, Check{}, closedPort(t)), L4CON, "connection refused")
	})
	t.Run("no answer", func(t *testing.T) {
		address, _ := fullBacklog(t)
		wantReport(t, attempt(t, Check{Timeout: 100 * time.Millisecond}, address), L4TOUT, "no connection")
	})
	t.Run("a late answer", func(t *testing.T) {
		address, makeRoom := fullBacklog(t)
		defer time.AfterFunc(50*time.Millisecond, makeRoom).Stop()
		wantReport(t, attempt(t, Check{Interval: 10 * time.Second, Timeout: 10 * time.Second}, address), L4OK, "connected")
	})
}

func TestHTTPOnLoopback(t *testing.T) {
	short := Check{Type: HTTP, Timeout: 200 * time.Millisecond}
	with := func(o HTTPOptions) Check {
		return Check{Type: HTTP, Timeout: 2 * time.Second, Interval: 2 * time.Second, HTTP: o}
	}
	for _, tc := range []struct {
		name   string
		check  Check
		handle func(net.Conn)
		code   Code
		detail string
	}{
		{"200", with(HTTPOptions{}), answer("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"), L7OK, "200"},
		{"HTTP/1.0 without length", with(HTTPOptions{}), answer("HTTP/1.0 200 OK\r\n\r\nok"), L7OK, "200"},
		{"interim responses are skipped", with(HTTPOptions{}), answer("HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n"), L7OK, "204"},
		{"HEAD", with(HTTPOptions{Method: "HEAD"}), answer("HTTP/1.1 200 OK\r\nContent-Length: 20\r\n\r\n"), L7OK, "200"},
		{"503", with(HTTPOptions{}), answer("HTTP/1.1 503 Service Unavailable\r\n\r\n"), L7STS, "503, want 200-399"},
		{"404 expected", with(HTTPOptions{Status: "404"}), answer("HTTP/1.1 404 Not Found\r\n\r\n"), L7OK, "404"},
		{"a redirect is not followed", with(HTTPOptions{Status: "200-299"}), answer("HTTP/1.1 302 Found\r\nLocation: /\r\n\r\n"), L7STS, "302"},
		{"body contains", with(HTTPOptions{Contains: "ready"}), answer("HTTP/1.1 200 OK\r\n\r\nI am ready."), L7OK, "200 with the expected body"},
		{"body contains not", with(HTTPOptions{Contains: "ready"}), answer("HTTP/1.1 200 OK\r\n\r\nnot yet"), L7RSP, "expected text not in the body"},
		{"chunked body matches", with(HTTPOptions{Match: "^re+ady$"}), answer("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nree\r\n3\r\nady\r\n0\r\n\r\n"), L7OK, "200"},
		{"body cut short", with(HTTPOptions{Contains: "ready"}), answer("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf"), L7RSP, "bad body"},
		{"endless body nobody looks into", with(HTTPOptions{}), flood("HTTP/1.1 200 OK\r\n\r\n", "x"), L7OK, "200"},
		{"endless body", with(HTTPOptions{Contains: "ready"}), flood("HTTP/1.1 200 OK\r\n\r\n", "x"), L7RSP, "not in the first 65536 bytes"},
		{"endless chunks of one byte", with(HTTPOptions{Contains: "ready"}), flood("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", "1;ext=aaaaaaaa\r\nx\r\n"), L7RSP, ""},
		{"endless header", with(HTTPOptions{}), flood("HTTP/1.1 200 OK\r\n", "X-Junk: yes\r\n"), L7RSP, "longer than this probe reads"},
		{"endless header line", with(HTTPOptions{}), flood("HTTP/1.1 200 OK\r\nX-Junk: ", "x"), L7RSP, "longer than this probe reads"},
		{"endless interim responses", with(HTTPOptions{}), flood("", "HTTP/1.1 100 Continue\r\n\r\n"), L7RSP, "longer than"},
		{"garbage", with(HTTPOptions{}), answer("\x00\x01\x02 SSH-2.0\r\n\r\n"), L7RSP, "bad header"},
		{"another protocol", with(HTTPOptions{}), answer("220 mail ESMTP\r\n"), L7RSP, "bad header"},
		{"closed without answer", with(HTTPOptions{}), answer(""), L7RSP, "bad header"},
		{"reset", with(HTTPOptions{}), func(c net.Conn) { readRequest(c); c.(*net.TCPConn).SetLinger(0) }, L7RSP, "connection reset by peer"},
		{"hung", short, untilClosed, L7TOUT, "no complete header"},
		{"slow status line", short, drip("HTTP/1.1 200 OK\r\n\r\n", 50*time.Millisecond), L7TOUT, "no complete header"},
		{"slow body", Check{Type: HTTP, Timeout: 200 * time.Millisecond, HTTP: HTTPOptions{Contains: "ready"}},
			func(c net.Conn) { readRequest(c); io.WriteString(c, "HTTP/1.1 200 OK\r\n\r\nre"); untilClosed(c) }, L7TOUT, "no complete body"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			wantReport(t, attempt(t, tc.check, serve(t, tc.handle)), tc.code, tc.detail)
		})
	}
	t.Run("refused", func(t *testing.T) {
		wantReport(t, attempt(t, short, closedPort(t)), L4CON, "connection refused")
	})
	t.Run("no connection", func(t *testing.T) {
		address, _ := fullBacklog(t)
		wantReport(t, attempt(t, short, address), L4TOUT, "no connection")
	})
}

// flood writes start and then more without end, until the peer closes.
func flood(start, more string) func(net.Conn) {
	return func(c net.Conn) {
		readRequest(c)
		io.WriteString(c, start)
		block := strings.Repeat(more, 64<<10/len(more))
		for {
			if _, err := io.WriteString(c, block); err != nil {
				return
			}
		}
	}
}

// drip writes text one byte at a time, until the peer closes.
func drip(text string, pause time.Duration) func(net.Conn) {
	return func(c net.Conn) {
		readRequest(c)
		for i := range len(text) {
			if _, err := io.WriteString(c, text[i:i+1]); err != nil {
				return
			}
			time.Sleep(pause)
		}
	}
}

func TestHTTPRequestOnTheWire(t *testing.T) {
	got := make(chan string, 1)
	address := serve(t, func(c net.Conn) {
		got <- readRequest(c)
		io.WriteString(c, "HTTP/1.1 200 OK\r\n\r\n")
	})
	attempt(t, Check{Type: HTTP}, address)
	want := fmt.Sprintf("GET / HTTP/1.1\r\nHost: %s\r\nConnection: close\r\nUser-Agent: brlb-health\r\nAccept: */*\r\n\r\n", address)
	if request := <-got; request != want {
		t.Errorf("request is\n%q, want\n%q", request, want)
	}
	attempt(t, Check{Type: HTTP, HTTP: HTTPOptions{
		Method: "OPTIONS", Path: "/healthz?full=1", Host: "example.org", Headers: "user-agent: me\nX-Probe:  yes ",
	}}, address)
	want = "OPTIONS /healthz?full=1 HTTP/1.1\r\nHost: example.org\r\nConnection: close\r\nuser-agent: me\r\nX-Probe: yes\r\nAccept: */*\r\n\r\n"
	if request := <-got; request != want {
		t.Errorf("request is\n%q, want\n%q", request, want)
	}
}

// TestLocalErrorsAreInconclusive puts each local error where a dial may meet it.
func TestLocalErrorsAreInconclusive(t *testing.T) {
	for _, errno := range []syscall.Errno{
		syscall.EMFILE, syscall.ENFILE, syscall.EADDRNOTAVAIL, syscall.ENETUNREACH, syscall.ENETDOWN,
		syscall.ENOBUFS, syscall.ENOMEM, syscall.EPERM, syscall.EACCES, syscall.EINVAL, syscall.ENODEV, syscall.EADDRINUSE,
	} {
		err := &net.OpError{Op: "dial", Err: os.NewSyscallError("connect", errno)}
		if got := dialFailed(err); got.code.Outcome() != Inconclusive {
			t.Errorf("%v while dialing is %v %q, want an inconclusive code", errno, got.code, got.detail)
		}
		if got := exchangeFailed(err, "answer"); got.code.Outcome() != Inconclusive {
			t.Errorf("%v while waiting is %v %q, want an inconclusive code", errno, got.code, got.detail)
		}
	}
	for errno, code := range map[syscall.Errno]Code{
		syscall.ECONNREFUSED: L4CON, syscall.ECONNRESET: L4CON, syscall.EHOSTUNREACH: L4CON, syscall.ETIMEDOUT: L4TOUT,
	} {
		if got := dialFailed(os.NewSyscallError("connect", errno)); got.code != code {
			t.Errorf("%v while dialing is %v, want %v", errno, got.code, code)
		}
	}
	if got := dialFailed(errors.New("no such namespace")); got.code != SOCKERR {
		t.Errorf("an error without number is %v, want SOCKERR", got.code)
	}
}

func TestDialerSource(t *testing.T) {
	seen := make(chan net.Addr, 1)
	address := serve(t, func(c net.Conn) { seen <- c.RemoteAddr() })
	d := Dialer{Source4: netip.MustParseAddr("127.0.0.9"), Device: "lo"}
	c, err := d.DialContext(t.Context(), "tcp", address.String())
	if errors.Is(err, syscall.EPERM) {
		t.Skip("binding to a device needs privilege: ", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if got := (<-seen).(*net.TCPAddr).AddrPort().Addr(); got != d.Source4 {
		t.Errorf("connection came from %v, want %v", got, d.Source4)
	}
	d.Device = "no-such-dev"
	if _, err := d.DialContext(t.Context(), "tcp", address.String()); err == nil || dialFailed(err).code != SOCKERR {
		t.Errorf("dial on a missing device: %v, want a local error", err)
	}
}
