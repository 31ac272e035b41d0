package health

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// Connect opens a TCP connection and resets it at once, so that nothing of it
// stays behind: without that, each would leave a socket in TIME_WAIT here, for a
// minute. Most probes are no more than that, and it costs them half of what a
// net.Conn does.
func (d *Dialer) Connect(ctx context.Context, address netip.AddrPort) error {
	address = netip.AddrPortFrom(address.Addr().Unmap(), address.Port())
	family := unix.AF_INET
	if address.Addr().Is6() {
		family = unix.AF_INET6
	}
	fd, err := unix.Socket(family, unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, unix.IPPROTO_TCP)
	if err != nil {
		return os.NewSyscallError("socket", err)
	}
	remote, err := d.ready(fd, address)
	connected := false
	// Where the endpoint is near, the connection is open when the first call
	// returns, and the second says so.
	for range 2 {
		if err == nil && !connected {
			connected, err = tryConnect(fd, remote)
		}
	}
	if connected || err != nil {
		unix.Close(fd)
		return err
	}
	return awaitConnection(ctx, fd, remote)
}

// ready makes a socket ready to connect to address.
func (d *Dialer) ready(fd int, address netip.AddrPort) (remote unix.Sockaddr, err error) {
	source := d.Source4
	if address.Addr().Is6() {
		source = d.Source6
	}
	if err := d.prepare(fd, source.IsValid()); err != nil {
		return nil, err
	}
	if source.IsValid() {
		local, err := sockaddr(netip.AddrPortFrom(source, 0))
		if err != nil {
			return nil, err
		}
		if err := unix.Bind(fd, local); err != nil {
			return nil, os.NewSyscallError("bind", err)
		}
	}
	if err := unix.SetsockoptLinger(fd, unix.SOL_SOCKET, unix.SO_LINGER, &unix.Linger{Onoff: 1}); err != nil {
		return nil, os.NewSyscallError("setsockopt SO_LINGER", err)
	}
	return sockaddr(address)
}

// tryConnect begins to connect, or looks what has become of it: connect(2) may be
// called again.
func tryConnect(fd int, remote unix.Sockaddr) (connected bool, err error) {
	switch err := unix.Connect(fd, remote); err {
	case nil, unix.EISCONN:
		return true, nil
	case unix.EINPROGRESS, unix.EALREADY, unix.EINTR:
		return false, nil
	default:
		return false, os.NewSyscallError("connect", err)
	}
}

// awaitConnection waits until fd, which it closes, is connected.
func awaitConnection(ctx context.Context, fd int, remote unix.Sockaddr) error {
	f := os.NewFile(uintptr(fd), "probe") // for the runtime's poller
	defer f.Close()
	raw, err := f.SyscallConn()
	if err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, func() { f.SetWriteDeadline(time.Unix(1, 0)) })
	defer stop()
	var failed error
	err = raw.Write(func(fd uintptr) bool {
		var connected bool
		connected, failed = tryConnect(int(fd), remote)
		return connected || failed != nil
	})
	return errors.Join(err, failed)
}

// connect is a [ConnectFunc] made of a dial.
func (dial DialFunc) connect(ctx context.Context, address netip.AddrPort) error {
	conn, err := dial(ctx, "tcp", address.String())
	if err != nil {
		return err
	}
	return conn.Close()
}

func sockaddr(address netip.AddrPort) (unix.Sockaddr, error) {
	addr := address.Addr()
	if addr.Is4() {
		return &unix.SockaddrInet4{Addr: addr.As4(), Port: int(address.Port())}, nil
	}
	zone, err := zoneID(addr.Zone())
	return &unix.SockaddrInet6{Addr: addr.As16(), Port: int(address.Port()), ZoneId: zone}, err
}

// zoneID is the number of the interface that a zone names.
func zoneID(zone string) (uint32, error) {
	if zone == "" {
		return 0, nil
	}
	if n, err := strconv.ParseUint(zone, 10, 32); err == nil {
		return uint32(n), nil
	}
	device, err := net.InterfaceByName(zone)
	if err != nil {
		return 0, fmt.Errorf("zone %s: %w", zone, err)
	}
	return uint32(device.Index), nil
}
