package health

import (
	"bytes"
	"context"
	"errors"
	"net/netip"
)

func validateUDP(c Check) error {
	if c.Send == "" {
		return errors.New("check type udp needs send, the datagram that the endpoint reacts to")
	}
	return validateExchange(c)
}

// udpProbe sends one datagram. If it expects a text, a datagram that holds it
// must come back. If it expects none, any datagram passes at once, and silence
// passes when the timeout ends: many services never answer, and what is left
// to notice is that the port or the host is reported unreachable. A firewall
// that drops silently is not noticed then.
type udpProbe struct {
	dial         DialFunc
	send, expect []byte
}

func compileUDP(c Check, w way) (probe, error) {
	return udpProbe{w.dial, []byte(c.Send), []byte(c.Expect)}, nil
}

func (p udpProbe) probe(ctx context.Context, address netip.AddrPort) report {
	conn, err := p.dial(ctx, "udp", address.String())
	if err != nil {
		return dialFailed(err)
	}
	defer conn.Close()
	defer bindContext(ctx, conn)()
	if _, err := conn.Write(p.send); err != nil {
		return dialFailed(err)
	}
	answer := make([]byte, MaxAnswer)
	heard := 0
	for {
		n, err := conn.Read(answer)
		if err == nil {
			heard++
			if bytes.Contains(answer[:n], p.expect) {
				return report{code: L7OK, detail: "expected answer"}
			}
			continue // a late answer to an earlier attempt, or somebody else's
		}
		if !timedOut(err) {
			return dialFailed(err) // port unreachable reads as connection refused
		}
		switch {
		case len(p.expect) == 0:
			return report{code: L4OK, detail: "no answer and no error"}
		case heard > 0:
			return report{code: L7RSP, detail: "only answers without the expected text, the last " + quote(string(answer[:n]))}
		default:
			return report{code: L7TOUT, detail: "no answer"}
		}
	}
}
