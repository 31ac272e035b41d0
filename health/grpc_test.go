package health

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	grpchealth "google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
)

// serveGRPC runs a gRPC server until the test ends.
func serveGRPC(t *testing.T, register func(*grpc.Server), opts ...grpc.ServerOption) netip.AddrPort {
	t.Helper()
	return serveGRPCOn(t, "127.0.0.1:0", register, opts...)
}

func serveGRPCOn(t *testing.T, address string, register func(*grpc.Server), opts ...grpc.ServerOption) netip.AddrPort {
	t.Helper()
	l, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	s := grpc.NewServer(opts...)
	register(s)
	done := make(chan struct{})
	go func() { defer close(done); s.Serve(l) }()
	t.Cleanup(func() { s.Stop(); <-done })
	return l.Addr().(*net.TCPAddr).AddrPort()
}

func TestGRPCOnLoopback(t *testing.T) {
	status := grpchealth.NewServer()
	status.SetServingStatus("shop", healthpb.HealthCheckResponse_SERVING)
	status.SetServingStatus("mail", healthpb.HealthCheckResponse_NOT_SERVING)
	withHealth := func(s *grpc.Server) { healthpb.RegisterHealthServer(s, status) }
	plain := serveGRPC(t, withHealth)
	without := serveGRPC(t, func(*grpc.Server) {})
	slow := serveGRPC(t, func(s *grpc.Server) { healthpb.RegisterHealthServer(s, slowHealth{}) })
	ca := newAuthority(t)
	secured := serveGRPC(t, withHealth, grpc.Creds(credentials.NewServerTLSFromCert(ptr(ca.issue(t, time.Now().Add(time.Hour))))))
	check := func(service string) Check {
		return Check{Type: GRPC, Interval: 2 * time.Second, Timeout: 2 * time.Second, Service: service}
	}
	over := check("shop")
	over.Type, over.TLS = GRPCS, TLSOptions{CAFile: ca.file}
	short := Check{Type: GRPC, Timeout: 100 * time.Millisecond}
	for _, tc := range []struct {
		name    string
		check   Check
		address netip.AddrPort
		code    Code
		detail  string
	}{
		{"the server as a whole", check(""), plain, L7OK, "SERVING"},
		{"a service that serves", check("shop"), plain, L7OK, "SERVING"},
		{"a service that does not", check("mail"), plain, L7STS, "NOT_SERVING"},
		{"a service that is not known", check("none"), plain, L7STS, "NOT_FOUND"},
		{"no health service", check(""), without, L7STS, "UNIMPLEMENTED"},
		{"an answer that does not come", short, slow, L7TOUT, "no complete answer"},
		{"over TLS", over, secured, L7OK, "SERVING"},
		{"TLS where plain is spoken", over, plain, L6RSP, "TLS handshake failed"},
		{"plain where TLS is spoken", check(""), secured, L7RSP, ""},
		{"refused", check(""), closedPort(t), L4CON, "connection refused"},
		{"hung", short, serve(t, untilClosed), L7TOUT, "no complete answer"},
		{"HTTP/1.1", check(""), serve(t, answer("HTTP/1.1 200 OK\r\n\r\n")), L7RSP, ""},
		{"endless garbage", check(""), serve(t, flood("", "\x00")), L7RSP, ""},
		{"HTTP/2 without gRPC", check(""), serveHTTP2(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(404) }), L7STS, "HTTP 404"},
		{"no grpc-status", check(""), serveHTTP2(t, func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "hello") }), L7RSP, "without grpc-status"},
		{"an endless answer", check(""), serveHTTP2(t, func(w http.ResponseWriter, _ *http.Request) {
			for err := error(nil); err == nil; {
				_, err = io.WriteString(w, strings.Repeat("x", 4096))
			}
		}), L7RSP, "longer than 1024 bytes"},
		{"an endless header", check(""), serveHTTP2(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("X-Junk", strings.Repeat("x", 2*MaxHeader))
		}), L7RSP, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			wantReport(t, attempt(t, tc.check, tc.address), tc.code, tc.detail)
		})
	}
	t.Run("TLS without HTTP/2", func(t *testing.T) {
		address := serveTLS(t, &tls.Config{Certificates: []tls.Certificate{ca.issue(t, time.Now().Add(time.Hour))}})
		wantReport(t, attempt(t, over, address), L7RSP, "does not offer HTTP/2")
	})
}

func ptr[T any](v T) *T { return &v }

// slowHealth never answers.
type slowHealth struct {
	healthpb.UnimplementedHealthServer
}

func (slowHealth) Check(ctx context.Context, _ *healthpb.HealthCheckRequest) (*healthpb.HealthCheckResponse, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

// serveHTTP2 serves unencrypted HTTP/2 until the test ends.
func serveHTTP2(t *testing.T, handle http.HandlerFunc) netip.AddrPort {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &http.Server{Handler: handle, Protocols: new(http.Protocols)}
	s.Protocols.SetUnencryptedHTTP2(true)
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := s.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			t.Error(err)
		}
	}()
	t.Cleanup(func() { s.Close(); <-done })
	return l.Addr().(*net.TCPAddr).AddrPort()
}

// TestGRPCRequestBytes compares the request with protobuf's own encoding.
func TestGRPCRequestBytes(t *testing.T) {
	for service, want := range map[string]string{
		"":     "\x00\x00\x00\x00\x00",
		"shop": "\x00\x00\x00\x00\x06\x0a\x04shop",
	} {
		if got := string(grpcRequest(service)); got != want {
			t.Errorf("request for %q is %q, want %q", service, got, want)
		}
	}
}

// FuzzGRPCAnswer feeds arbitrary bodies: a status or an error, never a panic.
func FuzzGRPCAnswer(f *testing.F) {
	for _, seed := range []string{
		"", "\x00\x00\x00\x00\x00", "\x00\x00\x00\x00\x02\x08\x01", "\x00\x00\x00\x00\x02\x08\x02",
		"\x01\x00\x00\x00\x02\x08\x01", "\x00\xff\xff\xff\xff\x08\x01",
		"\x00\x00\x00\x00\x08\x12\x02hi\x08\x01\x08\x03", "\x00\x00\x00\x00\x04\x12\xff\xff\xff",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		got := judgeGRPC("0", body)
		if got.code != L7OK && got.code != L7STS && got.code != L7RSP {
			t.Errorf("code %v", got.code)
		}
	})
}
