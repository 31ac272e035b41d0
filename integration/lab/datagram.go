package lab

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"time"
)

// serveDatagrams answers each datagram by the server's name, a line feed and
// the datagram itself, until the socket is closed.
func serveDatagrams(conn net.PacketConn, name string) {
	buffer := make([]byte, 1<<16)
	for {
		n, from, err := conn.ReadFrom(buffer)
		if err != nil {
			return
		}
		conn.WriteTo(append([]byte(name+"\n"), buffer[:n]...), from) // who does not get it asks again
	}
}

// How often, and how long each time, a datagram's answer is waited for.
const (
	datagramTries = 5
	datagramWait  = 3 * time.Second
)

// AskEach sends one datagram of size octets to target from each of the source
// ports, and demands that it comes back whole. A datagram that is lost is sent
// again. The outcomes are in the order of ports; workers are under way at once.
func (n *Namespace) AskEach(ctx context.Context, target string, ports []int, size, workers int) []Connection {
	outcomes := make([]Connection, len(ports))
	var wait sync.WaitGroup
	for w := range workers {
		wait.Go(func() {
			err := n.Do(func() error {
				for i := w; i < len(ports); i += workers {
					outcomes[i] = askOnce(ctx, target, ports[i], size)
				}
				return nil
			})
			if err != nil {
				for i := w; i < len(ports); i += workers {
					outcomes[i] = Connection{SourcePort: ports[i], Err: err}
				}
			}
		})
	}
	wait.Wait()
	return outcomes
}

func askOnce(ctx context.Context, target string, port, size int) Connection {
	start := time.Now()
	outcome := Connection{SourcePort: port}
	to, err := netip.ParseAddrPort(target)
	if err == nil {
		outcome.Server, err = exchange(ctx, to, port, size)
	}
	outcome.Took, outcome.Err = time.Since(start), err
	return outcome
}

func exchange(ctx context.Context, to netip.AddrPort, port, size int) (server string, err error) {
	conn, err := net.DialUDP("udp", &net.UDPAddr{Port: port}, net.UDPAddrFromAddrPort(to))
	if err != nil {
		return "", err
	}
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	defer stop()
	question := bytes.Repeat([]byte{byte(port), byte(port >> 8)}, (size+1)/2)[:size]
	answer := make([]byte, 1<<16)
	for range datagramTries {
		if _, err = conn.Write(question); err != nil {
			return "", err
		}
		conn.SetReadDeadline(time.Now().Add(datagramWait))
		var n int
		if n, err = conn.Read(answer); err != nil {
			if e, ok := err.(net.Error); ok && e.Timeout() {
				continue
			}
			return "", err
		}
		name, rest, _ := bytes.Cut(answer[:n], []byte{'\n'})
		if !bytes.Equal(rest, question) {
			return string(name), fmt.Errorf("%d octets came back otherwise than they were sent", len(rest))
		}
		return string(name), nil
	}
	return "", err
}
