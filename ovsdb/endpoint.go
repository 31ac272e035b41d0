package ovsdb

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"strings"
)

// DefaultPort is the TCP port that IANA assigned to OVSDB.
const DefaultPort = "6640"

// maxUnixPath is the longest path of a unix socket on Linux.
const maxUnixPath = 107

// DialFunc opens a connection to address; network is "unix" or "tcp".
type DialFunc func(ctx context.Context, network, address string) (net.Conn, error)

// endpoint is where a server listens.
type endpoint struct {
	name             string // as configured
	network, address string
	tls              bool
}

// parseEndpoint reads unix:PATH, tcp:HOST[:PORT] or ssl:HOST[:PORT], the
// notation of ovs-vsctl --db.
func parseEndpoint(s string) (endpoint, error) {
	scheme, rest, ok := strings.Cut(s, ":")
	if !ok || rest == "" {
		return endpoint{}, fmt.Errorf("ovsdb: endpoint %s: want unix:PATH, tcp:HOST:PORT or ssl:HOST:PORT", quoteCut(s))
	}
	e := endpoint{name: s, network: "tcp", address: rest}
	switch scheme {
	case "unix":
		if len(rest) > maxUnixPath {
			return endpoint{}, fmt.Errorf("ovsdb: endpoint %s: the path has %d bytes, and a unix socket's has at most %d", quoteCut(s), len(rest), maxUnixPath)
		}
		e.network = "unix"
		return e, nil
	case "tcp":
	case "ssl":
		e.tls = true
	default:
		return endpoint{}, fmt.Errorf("ovsdb: endpoint %s: unknown kind %s, want unix, tcp or ssl", quoteCut(s), quoteCut(scheme))
	}
	if _, _, err := net.SplitHostPort(rest); err != nil {
		if strings.HasPrefix(rest, "[") != strings.HasSuffix(rest, "]") {
			return endpoint{}, fmt.Errorf("ovsdb: endpoint %s: %w", quoteCut(s), err)
		}
		e.address = net.JoinHostPort(strings.Trim(rest, "[]"), DefaultPort)
	}
	return e, nil
}

// dial connects, with the TLS handshake where the endpoint wants one.
func (e endpoint) dial(ctx context.Context, dial DialFunc, config *tls.Config) (net.Conn, error) {
	nc, err := dial(ctx, e.network, e.address)
	if err != nil || !e.tls {
		return nc, err
	}
	if config.ServerName == "" && !config.InsecureSkipVerify {
		host, _, _ := net.SplitHostPort(e.address)
		config = config.Clone()
		config.ServerName = host
	}
	tc := tls.Client(nc, config)
	if err := tc.HandshakeContext(ctx); err != nil {
		return nil, errors.Join(err, nc.Close())
	}
	return tc, nil
}
