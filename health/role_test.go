package health

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
)

// A role makes the test binary a server or a prober in a process of its own, so
// that a benchmark can tell their costs apart and stop one of them. It ends
// with its standard input.
const (
	roleVar    = "BRLB_HEALTH_TEST_ROLE"
	serverRole = "server"
	proberRole = "prober"
)

type role struct {
	cmd    *exec.Cmd
	stdin  io.Closer
	output *bufio.Reader
}

// startRole starts the test binary in a role, to end with the benchmark at the
// latest.
func startRole(tb testing.TB, name string, args ...string) *role {
	tb.Helper()
	cmd := exec.Command(os.Args[0], args...)
	if name == serverRole { // what is measured is the prober: it must not wait for the server's share
		cmd = exec.Command("nice", append([]string{"-n", "-15", os.Args[0]}, args...)...)
	}
	cmd.Env = append(os.Environ(), roleVar+"="+name)
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		tb.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		tb.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { stdin.Close(); cmd.Wait() })
	return &role{cmd, stdin, bufio.NewReader(stdout)}
}

func (r *role) end() { r.stdin.Close() }

func (r *role) signal(tb testing.TB, s syscall.Signal) {
	tb.Helper()
	if err := r.cmd.Process.Signal(s); err != nil {
		tb.Fatal(err)
	}
}

func (r *role) readLine(tb testing.TB) string {
	tb.Helper()
	line, err := r.output.ReadString('\n')
	if err != nil {
		tb.Fatal(err)
	}
	return strings.TrimSpace(line)
}

// runServerRole listens on all addresses, prints its port and answers every
// request with 200.
func runServerRole() {
	l, err := net.Listen("tcp4", "0.0.0.0:0")
	if err != nil {
		panic(err)
	}
	fmt.Println(l.Addr().(*net.TCPAddr).Port)
	go func() { io.Copy(io.Discard, os.Stdin); os.Exit(0) }()
	for {
		c, err := l.Accept()
		if err != nil {
			continue
		}
		go func() {
			defer c.Close()
			if readRequest(c) != "" {
				io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
			}
		}()
	}
}

// startServer returns the port on which every address of 127.0.0.0/8 is served.
func startServer(tb testing.TB) uint16 {
	tb.Helper()
	return parsePort(startRole(tb, serverRole).readLine(tb))
}

func parsePort(s string) uint16 {
	port, err := strconv.ParseUint(s, 10, 16)
	if err != nil {
		panic(err)
	}
	return uint16(port)
}

// loopbackTargets returns n targets with addresses of their own.
func loopbackTargets(n int, port uint16, c Check) []Target {
	targets := make([]Target, n)
	for i := range targets {
		ip := netip.AddrFrom4([4]byte{127, 1 + byte(i>>16), byte(i >> 8), byte(i)})
		targets[i] = Target{netip.AddrPortFrom(ip, port), c.WithDefaults()}
	}
	return targets
}

// runProberRole watches 1,000 targets on the port that is its argument. It
// prints "up" after the cold start, then each transition, and at the end how
// many results there were of each code.
func runProberRole() {
	var mu sync.Mutex
	codes := make(map[Code]int)
	p := New(Options{OnResult: func(_ Target, r Result) {
		mu.Lock()
		defer mu.Unlock()
		codes[r.Code]++
	}})
	targets := loopbackTargets(1000, parsePort(os.Args[1]), Check{Type: HTTP})
	if err := p.Set(targets); err != nil {
		panic(err)
	}
	go p.Run(context.Background())
	for range targets {
		<-p.Transitions()
	}
	fmt.Println("up")
	end := make(chan struct{})
	go func() { io.Copy(io.Discard, os.Stdin); close(end) }()
	for {
		select {
		case tr := <-p.Transitions():
			fmt.Println("transition:", tr.From, tr.To, tr.Result)
		case <-end:
			mu.Lock()
			fmt.Println("results by code:", codes)
			os.Exit(0)
		}
	}
}
