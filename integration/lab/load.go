package lab

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// LoadOptions says what requests a load makes.
type LoadOptions struct {
	// Path is what is requested; / if empty.
	Path string
	// Workers is how many requests are under way at once; 1 if 0.
	Workers int
	// KeepAlive makes each worker use one connection for all its requests,
	// with a new one after a failure; else each request has its own.
	KeepAlive bool
	// Pause is how long a worker waits between two requests.
	Pause time.Duration
	// Timeout fails a request that takes longer, connecting included; 5 s
	// if 0.
	Timeout time.Duration
}

// Phase is the part of a request that failed.
type Phase string

// The parts of a request.
const (
	PhaseConnect  Phase = "connect"
	PhaseSend     Phase = "send"
	PhaseResponse Phase = "response"
	PhaseStatus   Phase = "status" // an answer other than 200
)

// Failure is a request that failed.
type Failure struct {
	At     time.Time // when it failed
	Took   time.Duration
	Phase  Phase
	Source netip.AddrPort // of the connection; without an address if it never stood
	Server string         // who answered before on the connection; may be empty
	Err    error
}

func (f Failure) String() string {
	return fmt.Sprintf("%s %s after %s from %s (server %q): %v",
		f.At.Format("15:04:05.000"), f.Phase, f.Took.Round(time.Millisecond), f.Source, f.Server, f.Err)
}

// maxFailures is how many failures a report describes; all are counted.
const maxFailures = 1000

// Report is what a load has done so far.
type Report struct {
	Requests       int // answered with 200
	Connections    int // established
	Failed         int
	Failures       []Failure      // the first 1000
	PerServer      map[string]int // requests by the name of who answered
	SlowestConnect time.Duration
	Slowest        time.Duration // request, connecting included
}

// Load is a stream of HTTP requests in the background.
type Load struct {
	ns      *Namespace
	target  string
	options LoadOptions
	cancel  context.CancelFunc
	workers sync.WaitGroup

	mu      sync.Mutex
	report  Report
	aborted bool
	conns   map[net.Conn]struct{}
}

// StartLoad begins GET requests to target, an address with port such as
// "10.20.0.100:80". It goes on until Stop, Abort, or the end of ctx.
func (n *Namespace) StartLoad(ctx context.Context, target string, options LoadOptions) *Load {
	if options.Path == "" {
		options.Path = "/"
	}
	if options.Workers == 0 {
		options.Workers = 1
	}
	if options.Timeout == 0 {
		options.Timeout = 5 * time.Second
	}
	ctx, cancel := context.WithCancel(ctx)
	load := &Load{
		ns:      n,
		target:  target,
		options: options,
		cancel:  cancel,
		report:  Report{PerServer: make(map[string]int)},
		conns:   make(map[net.Conn]struct{}),
	}
	for range options.Workers {
		load.workers.Go(func() { load.work(ctx) })
	}
	return load
}

// Report tells what the load has done so far.
func (l *Load) Report() Report {
	l.mu.Lock()
	defer l.mu.Unlock()
	report := l.report
	report.Failures = append([]Failure(nil), l.report.Failures...)
	report.PerServer = make(map[string]int, len(l.report.PerServer))
	for name, count := range l.report.PerServer {
		report.PerServer[name] = count
	}
	return report
}

// Stop lets the requests that are under way finish, ends the load and tells
// what it did.
func (l *Load) Stop() Report {
	l.cancel()
	l.workers.Wait()
	return l.Report()
}

// Abort ends the load as killing the client does: the connections are closed
// with requests under way, which count as nothing.
func (l *Load) Abort() Report {
	l.mu.Lock()
	l.aborted = true
	for conn := range l.conns {
		conn.Close()
	}
	l.mu.Unlock()
	return l.Stop()
}

// work makes requests one after the other. It holds a connection only between
// two requests of a keep-alive load.
func (l *Load) work(ctx context.Context) {
	var conn *loadConn
	for ctx.Err() == nil {
		conn = l.request(conn)
		if l.options.Pause > 0 {
			select {
			case <-ctx.Done():
			case <-time.After(l.options.Pause):
			}
		}
	}
	if conn != nil {
		l.hangUp(conn)
	}
}

// loadConn is a client connection.
type loadConn struct {
	net.Conn
	reader *bufio.Reader
	server string // who answered last
	seen   string // the client's address, as that one sees it
}

func (c *loadConn) source() netip.AddrPort {
	return c.LocalAddr().(*net.TCPAddr).AddrPort()
}

// request makes one request, on conn unless it is nil, and returns the
// connection if it is to be used again.
func (l *Load) request(conn *loadConn) *loadConn {
	start := time.Now()
	deadline := start.Add(l.options.Timeout)
	if conn == nil {
		var err error
		var source netip.AddrPort
		if conn, source, err = l.connect(deadline); err != nil {
			l.fail(Failure{Phase: PhaseConnect, Source: source, Err: err}, start)
			return nil
		}
	}
	conn.SetDeadline(deadline)
	phase, err := conn.get(l.options.Path, l.options.KeepAlive)
	if err != nil {
		l.fail(Failure{Phase: phase, Source: conn.source(), Server: conn.server, Err: err}, start)
		l.hangUp(conn)
		return nil
	}
	l.succeed(conn.server, time.Since(start))
	if !l.options.KeepAlive {
		l.hangUp(conn)
		return nil
	}
	return conn
}

// connect makes a connection. The source port is chosen before, so that it is
// known also if the connection fails.
func (l *Load) connect(deadline time.Time) (_ *loadConn, source netip.AddrPort, err error) {
	// Not bound to the load's context: Stop lets requests finish.
	ctx, cancel := context.WithDeadline(context.Background(), deadline)
	defer cancel()
	dialer := net.Dialer{Control: func(network, _ string, c syscall.RawConn) error {
		var bindErr error
		err := c.Control(func(fd uintptr) { source, bindErr = bindAnyPort(network, int(fd)) })
		return errors.Join(err, bindErr)
	}}
	start := time.Now()
	var conn net.Conn
	err = l.ns.Do(func() (err error) {
		conn, err = dialer.DialContext(ctx, "tcp", l.target)
		return err
	})
	if err != nil {
		return nil, source, err
	}
	took := time.Since(start)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.report.Connections++
	l.report.SlowestConnect = max(l.report.SlowestConnect, took)
	l.conns[conn] = struct{}{}
	return &loadConn{Conn: conn, reader: bufio.NewReader(conn)}, source, nil
}

// bindAnyPort gives a socket a port that the kernel chooses, and returns it. The
// port may be chosen again (SO_REUSEADDR) as soon as its connection has ended.
func bindAnyPort(network string, fd int) (netip.AddrPort, error) {
	if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEADDR, 1); err != nil {
		return netip.AddrPort{}, os.NewSyscallError("setsockopt", err)
	}
	var any unix.Sockaddr = &unix.SockaddrInet4{}
	if network == "tcp6" {
		any = &unix.SockaddrInet6{}
	}
	if err := unix.Bind(fd, any); err != nil {
		return netip.AddrPort{}, os.NewSyscallError("bind", err)
	}
	name, err := unix.Getsockname(fd)
	if err != nil {
		return netip.AddrPort{}, os.NewSyscallError("getsockname", err)
	}
	switch name := name.(type) {
	case *unix.SockaddrInet4:
		return netip.AddrPortFrom(netip.AddrFrom4(name.Addr), uint16(name.Port)), nil
	case *unix.SockaddrInet6:
		return netip.AddrPortFrom(netip.AddrFrom16(name.Addr), uint16(name.Port)), nil
	}
	return netip.AddrPort{}, fmt.Errorf("the socket's name is a %T", name)
}

func (l *Load) hangUp(conn *loadConn) {
	conn.Close()
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.conns, conn.Conn)
}

func (l *Load) succeed(server string, took time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.report.Requests++
	l.report.PerServer[server]++
	l.report.Slowest = max(l.report.Slowest, took)
}

func (l *Load) fail(f Failure, start time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.aborted {
		return
	}
	f.At = time.Now()
	f.Took = f.At.Sub(start)
	l.report.Failed++
	if len(l.report.Failures) < maxFailures {
		l.report.Failures = append(l.report.Failures, f)
	}
}

// get makes one GET request and notes who answered it. Without keepAlive the
// server closes first, so that the client's port is free at once.
func (c *loadConn) get(path string, keepAlive bool) (Phase, error) {
	response, phase, err := c.open(path, keepAlive)
	if err != nil {
		return phase, err
	}
	defer response.Body.Close()
	if _, err := io.Copy(io.Discard, response.Body); err != nil {
		return PhaseResponse, err
	}
	if response.StatusCode != http.StatusOK {
		return PhaseStatus, fmt.Errorf("status %s", response.Status)
	}
	if !keepAlive {
		if _, err := c.reader.ReadByte(); err != io.EOF {
			return PhaseResponse, fmt.Errorf("wait for the server to close: %w", err)
		}
	}
	return "", nil
}

// open sends a GET request and reads the head of the response.
func (c *loadConn) open(path string, keepAlive bool) (*http.Response, Phase, error) {
	head := "GET " + path + " HTTP/1.1\r\nHost: lab\r\n"
	if !keepAlive {
		head += "Connection: close\r\n"
	}
	if _, err := io.WriteString(c.Conn, head+"\r\n"); err != nil {
		return nil, PhaseSend, err
	}
	response, err := http.ReadResponse(c.reader, nil)
	if err != nil {
		return nil, PhaseResponse, err
	}
	c.server = response.Header.Get("Server")
	c.seen = response.Header.Get("X-Client")
	return response, "", nil
}
