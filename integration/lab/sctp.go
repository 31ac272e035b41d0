package lab

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// Associations have one address at each end: the one that their socket is bound to.

// HasSCTP tells whether this machine's kernel has SCTP.
func HasSCTP() bool {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, unix.IPPROTO_SCTP)
	if err == nil {
		unix.Close(fd)
	}
	return err == nil
}

// sctpSocket returns a socket that is bound to an address, and has use make
// something of it.
func sctpSocket(local netip.AddrPort, use func(fd int, file *os.File) error) error {
	family := unix.AF_INET
	if local.Addr().Is6() {
		family = unix.AF_INET6
	}
	fd, err := unix.Socket(family, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, unix.IPPROTO_SCTP)
	if err != nil {
		return os.NewSyscallError("socket", err)
	}
	file := os.NewFile(uintptr(fd), "sctp")
	defer file.Close() // use makes a copy
	if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEADDR, 1); err != nil {
		return os.NewSyscallError("setsockopt", err)
	}
	if err := unix.Bind(fd, sockaddr(local)); err != nil {
		return os.NewSyscallError("bind", err)
	}
	return use(fd, file)
}

func sockaddr(addr netip.AddrPort) unix.Sockaddr {
	if addr.Addr().Is4() {
		return &unix.SockaddrInet4{Addr: addr.Addr().As4(), Port: int(addr.Port())}
	}
	return &unix.SockaddrInet6{Addr: addr.Addr().As16(), Port: int(addr.Port())}
}

func listenSCTP(addr string) (net.Listener, error) {
	local, err := netip.ParseAddrPort(addr)
	if err != nil {
		return nil, err
	}
	var listener net.Listener
	err = sctpSocket(local, func(fd int, file *os.File) (err error) {
		if err := unix.Listen(fd, 1024); err != nil {
			return os.NewSyscallError("listen", err)
		}
		listener, err = net.FileListener(file)
		return err
	})
	return listener, err
}

// serveSCTP answers each message by the server's name, a line feed and the message
// itself, until the listener is closed.
func serveSCTP(listener net.Listener, name string) {
	for {
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		go func() {
			defer conn.Close()
			buffer := make([]byte, 1<<16)
			for {
				n, err := conn.Read(buffer)
				if err != nil {
					return
				}
				if _, err := conn.Write(append([]byte(name+"\n"), buffer[:n]...)); err != nil {
					return
				}
			}
		}()
	}
}

// Associate opens an SCTP association from an address of the namespace. It gives
// up after connectTimeout.
func (n *Namespace) Associate(from, to netip.AddrPort) (net.Conn, error) {
	var conn net.Conn
	err := n.Do(func() (err error) {
		conn, err = associate(from, to)
		return err
	})
	return conn, err
}

// associate is Associate in the namespace of the calling thread.
func associate(from, to netip.AddrPort) (conn net.Conn, err error) {
	err = sctpSocket(from, func(fd int, file *os.File) (err error) {
		if err := connect(fd, sockaddr(to)); err != nil {
			return os.NewSyscallError("connect", err)
		}
		conn, err = net.FileConn(file)
		return err
	})
	return conn, err
}

// connect connects a socket, which does not block after that.
func connect(fd int, to unix.Sockaddr) error {
	if err := unix.SetNonblock(fd, true); err != nil {
		return err
	}
	if err := unix.Connect(fd, to); !errors.Is(err, unix.EINPROGRESS) {
		return err
	}
	poll := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLOUT}}
	for deadline := time.Now().Add(connectTimeout); poll[0].Revents == 0; {
		left := time.Until(deadline)
		if left <= 0 {
			return unix.ETIMEDOUT
		}
		if _, err := unix.Poll(poll, int(left.Milliseconds())+1); err != nil && !errors.Is(err, unix.EINTR) {
			return err
		}
	}
	code, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_ERROR)
	if err == nil && code != 0 {
		err = unix.Errno(code)
	}
	return err
}

// AssociateEach opens one SCTP association to target from each of the ports of an
// address, has one message of size octets echoed, and returns the outcomes in the
// order of ports. Workers associations are under way at once.
func (n *Namespace) AssociateEach(ctx context.Context, from netip.Addr, target netip.AddrPort, ports []int, size, workers int) []Connection {
	outcomes := make([]Connection, len(ports))
	var wait sync.WaitGroup
	for w := range workers {
		wait.Go(func() {
			err := n.Do(func() error {
				for i := w; i < len(ports) && ctx.Err() == nil; i += workers {
					outcomes[i] = associateOnce(netip.AddrPortFrom(from, uint16(ports[i])), target, size)
				}
				return ctx.Err()
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

func associateOnce(from, to netip.AddrPort, size int) Connection {
	start := time.Now()
	conn, err := associate(from, to)
	outcome := Connection{SourcePort: int(from.Port()), Took: time.Since(start), Err: err}
	if err != nil {
		return outcome
	}
	defer conn.Close()
	conn.SetDeadline(start.Add(connectTimeout))
	outcome.Server, outcome.Err = Echo(conn, size)
	return outcome
}

// Echo sends a message of size octets on an association, and demands that it comes
// back whole. It returns who has answered.
func Echo(conn net.Conn, size int) (server string, err error) {
	question := bytes.Repeat([]byte{'x'}, size)
	if _, err := conn.Write(question); err != nil {
		return "", err
	}
	var answer []byte
	buffer := make([]byte, 1<<16)
	for {
		name, rest, _ := bytes.Cut(answer, []byte{'\n'})
		switch {
		case len(rest) > size || len(rest) == size && !bytes.Equal(rest, question):
			return string(name), fmt.Errorf("%d octets came back otherwise than they were sent", len(rest))
		case len(rest) == size && len(name) > 0:
			return string(name), nil
		}
		n, err := conn.Read(buffer)
		if err != nil {
			return string(name), err
		}
		answer = append(answer, buffer[:n]...)
	}
}
