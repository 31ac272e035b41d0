package bridge

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// switchListener accepts the switch's connections. If it is a unix socket, it
// notices when its file has gone: nobody could connect to it any more.
type switchListener struct {
	net.Listener
	path string // of the unix socket; empty for TCP
	file os.FileInfo
}

var errSocketGone = errors.New("the socket's file is gone")

// lookForFile is how often a unix socket's file is looked at.
const lookForFile = time.Second

// listenSocket listens on unix:PATH or tcp:ADDRESS:PORT. A unix socket that
// nobody listens on any more is replaced.
func listenSocket(target string) (*switchListener, error) {
	network, address := splitTarget(target)
	l := &switchListener{}
	if network == "unix" {
		l.path = address
		if conn, err := net.DialTimeout(network, address, time.Second); err == nil {
			conn.Close()
			return nil, fmt.Errorf("listen on %s: another process answers there; is a second brlb running?", target)
		}
		if err := removeSocket(address); err != nil {
			return nil, fmt.Errorf("listen on %s: %w", target, err)
		}
	}
	var err error
	if l.Listener, err = net.Listen(network, address); err != nil {
		return nil, fmt.Errorf("listen for the switch on %s: %w", target, err)
	}
	if network != "unix" {
		return l, nil
	}
	// A replaced socket must not be removed with the listener that it replaces.
	l.Listener.(*net.UnixListener).SetUnlinkOnClose(false)
	if l.file, err = shareWithDirectory(address); err != nil {
		l.Close()
		return nil, fmt.Errorf("listen for the switch on %s: %w", target, err)
	}
	return l, nil
}

// removeSocket removes an old socket, but no other file.
func removeSocket(path string) error {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return nil
	case err != nil:
		return err
	case info.Mode()&os.ModeSocket == 0:
		return fmt.Errorf("%s is there and is no socket: remove it, or choose another path", path)
	}
	return os.Remove(path)
}

// shareWithDirectory lets those connect to a socket who own its directory: an
// Open vSwitch that does not run as root.
func shareWithDirectory(path string) (os.FileInfo, error) {
	directory, err := os.Stat(filepath.Dir(path))
	if err != nil {
		return nil, err
	}
	if owner, ok := directory.Sys().(*syscall.Stat_t); ok && os.Geteuid() == 0 {
		if err := os.Chown(path, int(owner.Uid), int(owner.Gid)); err != nil {
			return nil, err
		}
	}
	if err := os.Chmod(path, 0o660); err != nil {
		return nil, err
	}
	return os.Lstat(path)
}

// accept waits for a connection, until ctx ends or the socket's file is gone.
func (l *switchListener) accept(ctx context.Context) (net.Conn, error) {
	stop := context.AfterFunc(ctx, func() { l.Close() })
	defer stop()
	deadliner, ok := l.Listener.(interface{ SetDeadline(time.Time) error })
	for ok && l.path != "" {
		deadliner.SetDeadline(time.Now().Add(lookForFile))
		conn, err := l.Accept()
		if !errors.Is(err, os.ErrDeadlineExceeded) {
			return conn, err
		}
		if now, err := os.Lstat(l.path); err != nil || !os.SameFile(now, l.file) {
			return nil, errSocketGone
		}
	}
	return l.Accept()
}
