package health

import (
	"context"
	"net/netip"
)

// tcpProbe opens a connection and closes it at once.
type tcpProbe struct{ dial DialFunc }

func compileTCP(_ Check, dial DialFunc) (probe, error) { return tcpProbe{dial}, nil }

func (p tcpProbe) probe(ctx context.Context, address netip.AddrPort) report {
	conn, err := p.dial(ctx, "tcp", address.String())
	if err != nil {
		return dialFailed(err)
	}
	// A reset in place of a close: otherwise each attempt would leave a socket
	// in TIME_WAIT here, for a minute.
	if c, ok := conn.(interface{ SetLinger(sec int) error }); ok {
		c.SetLinger(0)
	}
	conn.Close()
	return report{L4OK, "connected"}
}
