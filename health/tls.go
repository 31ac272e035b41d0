package health

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"
)

// TLSOptions say how a server is verified and how the probe names itself. The
// zero value verifies the server against the system's authorities.
type TLSOptions struct {
	// ServerName is the name in SNI that the certificate must be valid for.
	// Default: the host of the HTTP options, else the target's address.
	ServerName string
	// CAFile holds the authorities, in PEM, in place of the system's.
	CAFile string
	// CertFile and KeyFile hold the client certificate and its key, in PEM.
	CertFile, KeyFile string
	// SkipVerify accepts any certificate.
	SkipVerify bool
}

func validateTLS(o TLSOptions) error {
	if (o.CertFile == "") != (o.KeyFile == "") {
		return errors.New("tls cert and key belong together; give both or neither")
	}
	if o.SkipVerify && o.CAFile != "" {
		return errors.New("tls skip_verify makes ca useless; give one of them")
	}
	for _, f := range []string{o.CAFile, o.CertFile, o.KeyFile} {
		if f != "" && !filepath.IsAbs(f) {
			return fmt.Errorf("tls file %q is not an absolute path", cut(f))
		}
	}
	if !isVisible(o.ServerName) {
		return fmt.Errorf("tls server name %s is not valid", quote(o.ServerName))
	}
	return nil
}

// tlsClient makes handshakes. It reads the files of its options again when they
// change, so that a rotated certificate needs no new check.
type tlsClient struct {
	opts TLSOptions
	name string // server name; empty: the target's address
	alpn string

	mu      sync.Mutex
	config  *tls.Config
	stamps  [3]fileStamp
	checked time.Time
}

// recheck is how often the files are looked at, at most.
const recheck = time.Second

// fileStamp tells one content of a file from another, in practice.
type fileStamp struct {
	modified time.Time
	size     int64
}

// newTLSClient reads the files of o. defaultName is the server name if o has none.
func newTLSClient(o TLSOptions, defaultName, alpn string) (*tlsClient, error) {
	c := &tlsClient{opts: o, name: o.ServerName, alpn: alpn}
	if c.name == "" {
		c.name = defaultName
	}
	stamps := c.look()
	config, err := c.load()
	if err != nil {
		return nil, err
	}
	c.config, c.stamps, c.checked = config, stamps, time.Now()
	return c, nil
}

func (c *tlsClient) look() (stamps [3]fileStamp) {
	for i, f := range []string{c.opts.CAFile, c.opts.CertFile, c.opts.KeyFile} {
		if f == "" {
			continue
		}
		if info, err := os.Stat(f); err == nil {
			stamps[i] = fileStamp{info.ModTime(), info.Size()}
		}
	}
	return stamps
}

func (c *tlsClient) load() (*tls.Config, error) {
	config := &tls.Config{
		ServerName:         c.name,
		NextProtos:         []string{c.alpn},
		InsecureSkipVerify: c.opts.SkipVerify,
	}
	if c.opts.CAFile != "" {
		pem, err := os.ReadFile(c.opts.CAFile)
		if err != nil {
			return nil, fmt.Errorf("read tls ca: %w", err)
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("tls ca %s holds no PEM certificate", c.opts.CAFile)
		}
	}
	if c.opts.CertFile != "" {
		pair, err := tls.LoadX509KeyPair(c.opts.CertFile, c.opts.KeyFile)
		if err != nil {
			return nil, fmt.Errorf("load tls cert %s with key %s: %w", c.opts.CertFile, c.opts.KeyFile, err)
		}
		config.Certificates = []tls.Certificate{pair}
	}
	return config, nil
}

// current returns the configuration for a handshake at now. Files that cannot
// be used now leave the last good one in force.
func (c *tlsClient) current(now time.Time) *tls.Config {
	c.mu.Lock()
	defer c.mu.Unlock()
	if now.Sub(c.checked) < recheck {
		return c.config
	}
	c.checked = now
	stamps := c.look()
	if stamps == c.stamps {
		return c.config
	}
	if config, err := c.load(); err == nil {
		c.config, c.stamps = config, stamps
	}
	return c.config
}

// handshake secures conn, the connection to the server at address.
func (c *tlsClient) handshake(ctx context.Context, conn net.Conn, address netip.Addr) (*tls.Conn, error) {
	config := c.current(time.Now())
	if config.ServerName == "" {
		config = config.Clone()
		config.ServerName = address.WithZone("").String()
	}
	secured := tls.Client(conn, config)
	if err := secured.HandshakeContext(ctx); err != nil {
		return nil, err
	}
	return secured, nil
}

// handshakeFailed reports a TLS handshake that failed.
func handshakeFailed(err error) report {
	var invalid x509.CertificateInvalidError
	var name x509.HostnameError
	var authority x509.UnknownAuthorityError
	var errno syscall.Errno
	switch {
	case timedOut(err):
		return report{code: L6TOUT, detail: "no complete TLS handshake"}
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return report{code: L6RSP, detail: fmt.Sprintf("certificate is valid only from %s to %s",
			invalid.Cert.NotBefore.UTC().Format(time.RFC3339), invalid.Cert.NotAfter.UTC().Format(time.RFC3339))}
	case errors.As(err, &name):
		return report{code: L6RSP, detail: "certificate is not valid for " + quote(name.Host)}
	case errors.As(err, &authority):
		return report{code: L6RSP, detail: "certificate is signed by an unknown authority"}
	}
	if remoteErrno, ok := byEndpoint(err); ok {
		return report{code: L6RSP, detail: remoteErrno.Error() + " during the TLS handshake"}
	}
	if errors.As(err, &errno) {
		return localError(err)
	}
	return report{code: L6RSP, detail: "TLS handshake failed: " + quote(err.Error())}
}
