package health

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io"
	"math/big"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// authority is a private certificate authority.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	file string // its certificate in PEM
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	key := newKey(t)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test authority"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return &authority{cert, key, writePEM(t, "CERTIFICATE", der)}
}

func newKey(t *testing.T) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func writePEM(t *testing.T, kind string, der []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), strings.ReplaceAll(strings.ToLower(kind), " ", "-")+".pem")
	if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// issue makes a certificate for 127.0.0.1 and example.test until notAfter.
func (a *authority) issue(t *testing.T, notAfter time.Time) tls.Certificate {
	t.Helper()
	key := newKey(t)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "leaf"},
		NotBefore: time.Now().Add(-2 * time.Hour), NotAfter: notAfter,
		DNSNames: []string{"example.test"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, &key.PublicKey, a.key)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

// files writes a certificate and its key for a client.
func files(t *testing.T, c tls.Certificate) (certFile, keyFile string) {
	t.Helper()
	der, err := x509.MarshalECPrivateKey(c.PrivateKey.(*ecdsa.PrivateKey))
	if err != nil {
		t.Fatal(err)
	}
	return writePEM(t, "CERTIFICATE", c.Certificate[0]), writePEM(t, "EC PRIVATE KEY", der)
}

// serveTLS answers 200 to every request over TLS.
func serveTLS(t *testing.T, config *tls.Config) netip.AddrPort {
	t.Helper()
	return serve(t, func(c net.Conn) {
		secured := tls.Server(c, config)
		defer secured.Close()
		if readRequest(secured) != "" {
			io.WriteString(secured, "HTTP/1.1 200 OK\r\n\r\n")
		}
	})
}

func TestHTTPSOnLoopback(t *testing.T) {
	ca, other := newAuthority(t), newAuthority(t)
	good := ca.issue(t, time.Now().Add(time.Hour))
	config := &tls.Config{Certificates: []tls.Certificate{good}}
	https := func(o TLSOptions) Check {
		return Check{Type: HTTPS, Interval: 2 * time.Second, Timeout: 2 * time.Second, TLS: o}
	}
	named := https(TLSOptions{CAFile: ca.file})
	named.HTTP.Host = "example.test:8443"
	for _, tc := range []struct {
		name   string
		check  Check
		config *tls.Config
		code   Code
		detail string
	}{
		{"valid for the address", https(TLSOptions{CAFile: ca.file}), config, L7OK, "200"},
		{"valid for the host option", named, config, L7OK, "200"},
		{"valid for the server name", https(TLSOptions{CAFile: ca.file, ServerName: "example.test"}), config, L7OK, "200"},
		{"another name", https(TLSOptions{CAFile: ca.file, ServerName: "other.test"}), config, L6RSP, `not valid for "other.test"`},
		{"another authority", https(TLSOptions{CAFile: other.file}), config, L6RSP, "unknown authority"},
		{"the system's authorities", https(TLSOptions{}), config, L6RSP, "unknown authority"},
		{"unverified on demand", https(TLSOptions{SkipVerify: true}), config, L7OK, "200"},
		{"expired", https(TLSOptions{CAFile: ca.file}),
			&tls.Config{Certificates: []tls.Certificate{ca.issue(t, time.Now().Add(-time.Hour))}}, L6RSP, "valid only from"},
		{"client certificate wanted", https(TLSOptions{CAFile: ca.file}),
			&tls.Config{Certificates: config.Certificates, ClientAuth: tls.RequireAnyClientCert, MaxVersion: tls.VersionTLS12}, L6RSP, "handshake"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			wantReport(t, attempt(t, tc.check, serveTLS(t, tc.config)), tc.code, tc.detail)
		})
	}
	t.Run("client certificate given", func(t *testing.T) {
		certFile, keyFile := files(t, ca.issue(t, time.Now().Add(time.Hour)))
		pool := x509.NewCertPool()
		pool.AddCert(ca.cert)
		server := &tls.Config{Certificates: config.Certificates, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: pool}
		check := https(TLSOptions{CAFile: ca.file, CertFile: certFile, KeyFile: keyFile})
		wantReport(t, attempt(t, check, serveTLS(t, server)), L7OK, "200")
	})
	t.Run("not TLS", func(t *testing.T) {
		wantReport(t, attempt(t, https(TLSOptions{}), serve(t, answer("HTTP/1.1 400 Bad Request\r\n\r\n"))), L6RSP, "TLS handshake failed")
	})
	t.Run("hung handshake", func(t *testing.T) {
		wantReport(t, attempt(t, Check{Type: HTTPS, Timeout: 100 * time.Millisecond}, serve(t, untilClosed)), L6TOUT, "no complete TLS handshake")
	})
	t.Run("closed during the handshake", func(t *testing.T) {
		wantReport(t, attempt(t, https(TLSOptions{}), serve(t, func(net.Conn) {})), L6RSP, "")
	})
}

// TestTLSFilesAreReread rotates the authority between two handshakes.
func TestTLSFilesAreReread(t *testing.T) {
	first, second := newAuthority(t), newAuthority(t)
	c, err := newTLSClient(TLSOptions{CAFile: first.file}, "", "http/1.1")
	if err != nil {
		t.Fatal(err)
	}
	before, now := c.current(time.Now()), time.Now()
	if c.current(now.Add(time.Minute)) != before {
		t.Error("unchanged files were loaded again")
	}
	if err := os.WriteFile(first.file, []byte("truncated"), 0o600); err != nil {
		t.Fatal(err)
	}
	if c.current(now.Add(2*time.Minute)) != before {
		t.Error("a broken file replaced the last good one")
	}
	pem, err := os.ReadFile(second.file)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(first.file, append(pem, '\n'), 0o600); err != nil {
		t.Fatal(err)
	}
	if c.current(now.Add(2*time.Minute+recheck/2)) != before {
		t.Error("files were looked at twice within a second")
	}
	if c.current(now.Add(3*time.Minute)) == before {
		t.Error("a new file was not loaded")
	}
}

func TestTLSFilesMissing(t *testing.T) {
	p := New(Options{})
	address := netip.MustParseAddrPort("127.0.0.1:443")
	for _, o := range []TLSOptions{{CAFile: "/nonexistent/ca.pem"}, {CertFile: "/nonexistent/c.pem", KeyFile: "/nonexistent/k.pem"}} {
		err := p.Set([]Target{{address, Check{Type: HTTPS, TLS: o}.WithDefaults()}})
		if err == nil || !strings.Contains(err.Error(), "/nonexistent/") {
			t.Errorf("%+v: error is %v, want one that names the file", o, err)
		}
	}
}
