package api

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// maxConns bounds the connections of one listener: those of brlb's probes
	// come out of the same descriptors.
	maxConns = 256
	// ioTime is how long one read of a request or write of an answer may take.
	ioTime = 10 * time.Second
	// graceTime is how long requests may go on when brlb is being stopped.
	graceTime = 3 * time.Second
	// maxSocketPath is the longest path of a unix socket. (unix(7), sun_path)
	maxSocketPath = 107
	// socketMode lets the owner and the group read and change.
	socketMode = 0o660
)

// ListenUnix listens on a unix socket of mode 0660. It makes the directory if
// there is none and replaces a socket on which nobody answers. It refuses to
// replace one that is in use, or a file that is no socket.
func ListenUnix(path string) (net.Listener, error) {
	fail := func(err error) (net.Listener, error) {
		return nil, fmt.Errorf("listen on unix socket %s: %w", path, err)
	}
	if len(path) > maxSocketPath {
		return fail(fmt.Errorf("the path has %d bytes, at most %d are possible: choose a shorter one", len(path), maxSocketPath))
	}
	directory := filepath.Dir(path)
	if err := os.MkdirAll(directory, 0o755); err != nil {
		return fail(err)
	}
	unlock, err := lockDirectory(directory)
	if err != nil {
		return fail(err)
	}
	defer unlock()
	if err := removeStale(path); err != nil {
		return fail(err)
	}
	// On Linux a socket's file gets the mode that the descriptor has, minus the
	// umask: nobody can connect between bind and chmod who could not after it.
	config := net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) (err error) {
		if e := c.Control(func(fd uintptr) { err = unix.Fchmod(int(fd), socketMode) }); e != nil {
			return e
		}
		return err
	}}
	l, err := config.Listen(context.Background(), "unix", path)
	if err != nil {
		return fail(err)
	}
	if err := os.Chmod(path, socketMode); err != nil {
		l.Close()
		return fail(err)
	}
	return l, nil
}

// lockDirectory keeps two brlb that start at the same time from replacing each
// other's socket.
func lockDirectory(path string) (unlock func(), err error) {
	d, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(d.Fd()), unix.LOCK_EX); err != nil {
		d.Close()
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	return func() { d.Close() }, nil
}

// removeStale removes the socket of a brlb that is gone.
func removeStale(path string) error {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case info.Mode().Type() != fs.ModeSocket:
		return errors.New("a file that is not a socket is in the way: remove it, or name another path")
	}
	c, err := net.DialTimeout("unix", path, ioTime)
	switch {
	case err == nil:
		c.Close()
		return errors.New("somebody listens there already: is another brlb running for this bridge?")
	case errors.Is(err, syscall.ECONNREFUSED):
		return os.Remove(path)
	default:
		return fmt.Errorf("cannot tell whether somebody listens there: %w", err)
	}
}

// ListenTCP listens on host:port.
func ListenTCP(address string) (net.Listener, error) {
	l, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("listen for HTTP: %w", err)
	}
	return l, nil
}

// Serve answers on l until ctx is done and the requests in flight have ended, or
// 3 seconds later. It closes l.
func Serve(ctx context.Context, l net.Listener, handler http.Handler, logger *slog.Logger) error {
	server := &http.Server{
		Handler:           handler,
		ReadHeaderTimeout: ioTime,
		ReadTimeout:       ioTime + answerTime,
		WriteTimeout:      ioTime + answerTime,
		IdleTimeout:       time.Minute,
		MaxHeaderBytes:    16 << 10,
		ErrorLog:          slog.NewLogLogger(logger.Handler(), slog.LevelDebug),
		BaseContext:       func(net.Listener) context.Context { return ctx },
	}
	served := make(chan error, 1)
	go func() { served <- server.Serve(&boundedListener{l, make(chan struct{}, maxConns)}) }()
	select {
	case err := <-served:
		return fmt.Errorf("serve HTTP on %s: %w", l.Addr(), err)
	case <-ctx.Done():
	}
	grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), graceTime)
	defer cancel()
	if server.Shutdown(grace) != nil {
		server.Close()
	}
	<-served
	return nil
}

// boundedListener hangs up on those who come when all places are taken.
type boundedListener struct {
	net.Listener
	places chan struct{}
}

func (l *boundedListener) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		select {
		case l.places <- struct{}{}:
			return &placedConn{Conn: c, leave: sync.OnceFunc(func() { <-l.places })}, nil
		default:
			c.Close()
		}
	}
}

// placedConn gives its place back when it is closed.
type placedConn struct {
	net.Conn
	leave func()
}

func (c *placedConn) Close() error {
	c.leave()
	return c.Conn.Close()
}
