package health

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
)

// Bounds of what a tcp, udp or agent attempt exchanges.
const (
	MaxSend   = 4 << 10
	MaxAnswer = 16 << 10
)

func validateExchange(c Check) error {
	if len(c.Send) > MaxSend {
		return fmt.Errorf("send has %d bytes; want at most %d", len(c.Send), MaxSend)
	}
	if len(c.Expect) > MaxSend {
		return fmt.Errorf("expect has %d bytes; want at most %d", len(c.Expect), MaxSend)
	}
	return nil
}

// tcpProbe opens a connection, and may send something and wait for an answer.
type tcpProbe struct {
	way          way
	send, expect []byte
}

func compileTCP(c Check, w way) (probe, error) {
	return tcpProbe{w, []byte(c.Send), []byte(c.Expect)}, nil
}

func (p tcpProbe) probe(ctx context.Context, address netip.AddrPort) report {
	if len(p.send) == 0 && len(p.expect) == 0 {
		if err := p.way.connect(ctx, address); err != nil {
			return dialFailed(err)
		}
		return report{code: L4OK, detail: "connected"}
	}
	conn, err := p.way.dial(ctx, "tcp", address.String())
	if err != nil {
		return dialFailed(err)
	}
	defer conn.Close()
	defer bindContext(ctx, conn)()
	return p.exchange(conn)
}

func (p tcpProbe) exchange(conn net.Conn) report {
	if len(p.send) > 0 {
		if _, err := conn.Write(p.send); err != nil {
			return exchangeFailed(err, "answer")
		}
	}
	if len(p.expect) == 0 {
		return report{code: L4OK, detail: "connected and sent"}
	}
	answer := make([]byte, 0, 512)
	for len(answer) < MaxAnswer {
		if len(answer) == cap(answer) {
			answer = append(make([]byte, 0, 2*cap(answer)), answer...)
		}
		n, err := conn.Read(answer[len(answer):cap(answer)])
		answer = answer[:len(answer)+n]
		if bytes.Contains(answer, p.expect) {
			return report{code: L7OK, detail: "expected answer"}
		}
		if errors.Is(err, io.EOF) {
			return report{code: L7RSP, detail: "closed after " + quote(string(answer)) + ", without the expected text"}
		}
		if err != nil && len(answer) == 0 {
			return silenceFailed(err, "answer", conn)
		}
		if err != nil {
			return exchangeFailed(err, "answer")
		}
	}
	return report{code: L7RSP, detail: fmt.Sprintf("expected text not in the first %d bytes of the answer", MaxAnswer)}
}
