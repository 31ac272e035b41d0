package health

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// TestOneByteAtATime: a server that goes on and on, a byte at a time, and never
// comes to an end, holds up no kind of probe beyond its timeout.
func TestOneByteAtATime(t *testing.T) {
	const timeout = 300 * time.Millisecond
	slowly := func(text string) func(net.Conn) { return drip(text+strings.Repeat("x", 1<<20), 20*time.Millisecond) }
	for _, tc := range []struct {
		name   string
		check  Check
		handle func(net.Conn)
		code   Code
		detail string
	}{
		{"tcp", Check{Type: TCP, Send: "PING", Expect: "PONG"}, slowly(""), L7TOUT, "no complete answer"},
		{"agent", Check{Type: AgentLine, Send: "status\n"}, slowly(""), L7TOUT, "no complete"},
		{"http, in the status line", Check{Type: HTTP}, slowly("HTTP/1.1 200 "), L7TOUT, "no complete header"},
		{"http, in the header", Check{Type: HTTP}, atOnce("HTTP/1.1 200 OK\r\n", slowly("X-Junk: ")), L7TOUT, "no complete header"},
		{"http, in the body", Check{Type: HTTP, HTTP: HTTPOptions{Contains: "ready"}}, atOnce("HTTP/1.1 200 OK\r\n\r\n", slowly("")), L7TOUT, "no complete body"},
		{"https, in the handshake", Check{Type: HTTPS}, atOnce("\x16\x03\x03\x40\x00", slowly("\x02")), L6TOUT, "no complete TLS handshake"},
		{"grpc", Check{Type: GRPC}, atOnce("\x00\x00\x00\x04\x00\x00\x00\x00\x00", slowly("\x00\x3f\xff\x00\x00\x00\x00\x00\x01")), L7TOUT, "no complete answer"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			tc.check.Timeout = timeout
			address := serve(t, tc.handle)
			began := time.Now()
			wantReport(t, attempt(t, tc.check, address), tc.code, tc.detail)
			if took := time.Since(began); took < timeout || took > 10*time.Second {
				t.Errorf("it took %v, and its timeout is %v", took, timeout)
			}
		})
	}
}

// atOnce writes text, after which more goes on.
func atOnce(text string, more func(net.Conn)) func(net.Conn) {
	return func(c net.Conn) {
		io.WriteString(c, text)
		more(c)
	}
}

// TestGigabyteIsNotFetched: of an answer of 1 GB a probe takes what it looks at
// and what the kernel's buffers hold.
func TestGigabyteIsNotFetched(t *testing.T) {
	const size = 1 << 30
	for _, tc := range []struct {
		name string
		opts HTTPOptions
		code Code
	}{
		{"nobody looks into it", HTTPOptions{}, L7OK},
		{"somebody does", HTTPOptions{Contains: "ready"}, L7RSP},
		{"an error page", HTTPOptions{Status: "204", Contains: "ready"}, L7STS},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var sent atomic.Int64
			ended := make(chan struct{})
			address := serve(t, func(c net.Conn) {
				defer close(ended)
				readRequest(c)
				fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n", size)
				block := make([]byte, 64<<10)
				for sent.Load() < size {
					n, err := c.Write(block)
					sent.Add(int64(n))
					if err != nil {
						return
					}
				}
			})
			check := Check{Type: HTTP, Interval: 10 * time.Second, Timeout: 10 * time.Second, HTTP: tc.opts}
			wantReport(t, attempt(t, check, address), tc.code, "200")
			<-ended
			if n := sent.Load(); n > 64<<20 {
				t.Errorf("the server could send %d bytes", n)
			}
		})
	}
}

// TestRedirectLoop: a redirect is an answer; nobody goes where it points.
func TestRedirectLoop(t *testing.T) {
	var requests atomic.Int32
	address := serve(t, func(c net.Conn) {
		requests.Add(1)
		readRequest(c)
		fmt.Fprintf(c, "HTTP/1.1 302 Found\r\nLocation: http://%s/\r\nContent-Length: 0\r\n\r\n", c.LocalAddr())
	})
	wantReport(t, attempt(t, Check{Type: HTTP, HTTP: HTTPOptions{Status: "200"}}, address), L7STS, "302, want 200")
	wantReport(t, attempt(t, Check{Type: HTTP}, address), L7OK, "302")
	if n := requests.Load(); n != 2 {
		t.Errorf("%d requests of 2 probes", n)
	}
}

// TestCertificateExpiresBetweenProbes: nothing of an earlier handshake makes a
// later one succeed.
func TestCertificateExpiresBetweenProbes(t *testing.T) {
	ca := newAuthority(t)
	config := &tls.Config{Certificates: []tls.Certificate{ca.issue(t, time.Now().Add(4*time.Second))}}
	address := serveTLS(t, config)
	check := Check{Type: HTTPS, Interval: 2 * time.Second, Timeout: 2 * time.Second, TLS: TLSOptions{CAFile: ca.file}}.WithDefaults()
	p, err := kinds[HTTPS].compile(check, wayOf(new(Dialer)))
	if err != nil {
		t.Fatal(err)
	}
	probe := func() report {
		ctx, cancel := context.WithTimeout(t.Context(), check.Timeout)
		defer cancel()
		return p.probe(ctx, address)
	}
	wantReport(t, probe(), L7OK, "200")
	last := report{}
	for range 100 {
		if last = probe(); last.code != L7OK {
			break
		}
		time.Sleep(100 * time.Millisecond)
	}
	wantReport(t, last, L6RSP, "valid only from")
}
