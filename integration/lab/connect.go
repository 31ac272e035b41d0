package lab

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/netip"
	"strconv"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// connectTimeout bounds one connection of ConnectFrom, its request included.
const connectTimeout = 20 * time.Second

// Connection is the outcome of one connection with one request.
type Connection struct {
	SourcePort int
	Server     string        // who answered
	Seen       string        // address and port of the client, as the server sees it
	Took       time.Duration // to connect
	Err        error
}

// DialFrom connects from a chosen source port, 1 to 65535, of the namespace's
// address. The port may have been used just before (SO_REUSEADDR).
func (n *Namespace) DialFrom(ctx context.Context, network, addr string, sourcePort int) (net.Conn, error) {
	var conn net.Conn
	err := n.Do(func() (err error) {
		conn, err = dialFrom(ctx, network, addr, sourcePort)
		return err
	})
	return conn, err
}

// dialFrom connects from the namespace of the calling thread.
func dialFrom(ctx context.Context, network, addr string, sourcePort int) (net.Conn, error) {
	dialer := net.Dialer{
		LocalAddr: &net.TCPAddr{Port: sourcePort},
		Control: func(_, _ string, c syscall.RawConn) error {
			var err error
			if e := c.Control(func(fd uintptr) {
				err = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_REUSEADDR, 1)
			}); e != nil {
				return e
			}
			return err
		},
	}
	return dialer.DialContext(ctx, network, addr)
}

// ConnectEach makes one connection to target from each of the source ports,
// sends one request on it, and returns the outcomes in the order of ports.
// Workers connections are under way at once, but never two from one port: a
// port that is listed again is used again, after the connection before it has
// ended. The server closes first, so TIME_WAIT stays on its side.
func (n *Namespace) ConnectEach(ctx context.Context, target string, ports []int, workers int) []Connection {
	outcomes := make([]Connection, len(ports))
	var wait sync.WaitGroup
	for w := range workers {
		each := func(f func(port int) Connection) {
			for i, port := range ports {
				if port%workers == w {
					outcomes[i] = f(port)
				}
			}
		}
		wait.Go(func() {
			// One Do for all: to enter the namespace each time costs more
			// than to connect.
			err := n.Do(func() error {
				each(func(port int) Connection { return connectOnce(ctx, target, port) })
				return nil
			})
			if err != nil {
				each(func(port int) Connection { return Connection{SourcePort: port, Err: err} })
			}
		})
	}
	wait.Wait()
	return outcomes
}

func connectOnce(ctx context.Context, target string, port int) Connection {
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	start := time.Now()
	conn, err := dialFrom(ctx, "tcp", target, port)
	outcome := Connection{SourcePort: port, Took: time.Since(start), Err: err}
	if err != nil {
		return outcome
	}
	defer conn.Close()
	client := loadConn{Conn: conn, reader: bufio.NewReader(conn)}
	client.SetDeadline(start.Add(connectTimeout))
	_, outcome.Err = client.get("/", false)
	outcome.Server, outcome.Seen = client.server, client.seen
	if outcome.Err == nil {
		// Close then waits until the server has acknowledged it: before
		// that the source port cannot be used again.
		outcome.Err = conn.(*net.TCPConn).SetLinger(int(connectTimeout / time.Second))
	}
	return outcome
}

// Stream is a long-lived response that is being read in the background.
type Stream struct {
	Server string // who sends it
	Source netip.AddrPort

	conn *loadConn
	done chan struct{}

	mu    sync.Mutex
	bytes int
	last  time.Time
	err   error
}

// OpenStream connects to target, asks for a byte every interval (whole
// milliseconds), and returns when the first has come.
func (n *Namespace) OpenStream(ctx context.Context, target string, interval time.Duration) (*Stream, error) {
	conn, err := n.DialContext(ctx, "tcp", target)
	if err != nil {
		return nil, err
	}
	client := &loadConn{Conn: conn, reader: bufio.NewReader(conn)}
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	defer stop()
	response, _, err := client.open("/stream?ms="+strconv.FormatInt(interval.Milliseconds(), 10), true)
	if err != nil {
		conn.Close()
		return nil, err
	}
	s := &Stream{Server: client.server, Source: client.source(), conn: client, done: make(chan struct{})}
	if _, err := io.ReadFull(response.Body, make([]byte, 1)); err != nil {
		conn.Close()
		return nil, err
	}
	s.bytes, s.last = 1, time.Now()
	go s.read(response.Body)
	return s, nil
}

// read takes what comes until the stream ends.
func (s *Stream) read(body io.Reader) {
	defer close(s.done)
	buffer := make([]byte, 1024)
	for {
		count, err := body.Read(buffer)
		s.mu.Lock()
		s.bytes += count
		if count > 0 {
			s.last = time.Now()
		}
		s.err = err
		s.mu.Unlock()
		if err != nil {
			return
		}
	}
}

// Progress tells how many bytes have come, when the last one did, and the
// error that ended the stream, nil while it lives.
func (s *Stream) Progress() (bytes int, last time.Time, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.bytes, s.last, s.err
}

// Done is closed when the stream has ended.
func (s *Stream) Done() <-chan struct{} { return s.done }

// Close ends the stream from the client's side.
func (s *Stream) Close() error {
	err := s.conn.Close()
	<-s.done
	return err
}
