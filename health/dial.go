package health

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strings"
	"syscall"
	"time"
)

// Dialer opens connections from a chosen source address, device or network
// namespace. The zero value leaves them to the kernel. Its
// [Dialer.DialContext] is a [DialFunc].
type Dialer struct {
	// Source4 and Source6 are the local addresses for IPv4 and IPv6 targets.
	Source4, Source6 netip.Addr
	// Device is the network interface that connections must use
	// (SO_BINDTODEVICE), such as "eth1".
	Device string
	// Netns is the path of the network namespace that connections are opened
	// in, such as /run/netns/probes; empty is that of this process. Entering
	// it takes CAP_SYS_ADMIN.
	Netns string
}

// ipBindAddressNoPort is IP_BIND_ADDRESS_NO_PORT of linux/in.h: bind the
// address alone and choose the port when connecting. Without it one source
// address has as many probes as there are ephemeral ports, not that many for
// each target.
const ipBindAddressNoPort = 24

// DialContext connects to address as [DialFunc] says.
func (d *Dialer) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	nd := net.Dialer{KeepAlive: -1} // an attempt is too short for keep-alive probes
	source := d.source(address)
	if source.IsValid() {
		nd.LocalAddr = localAddr(network, source)
	}
	if d.Device != "" || d.Netns != "" || source.IsValid() {
		nd.Control = func(_, _ string, raw syscall.RawConn) error {
			var err error
			if ctlErr := raw.Control(func(fd uintptr) { err = d.prepare(int(fd), source.IsValid()) }); ctlErr != nil {
				return ctlErr
			}
			return err
		}
	}
	return nd.DialContext(ctx, network, address)
}

func (d *Dialer) source(address string) netip.Addr {
	if strings.Count(address, ":") > 1 {
		return d.Source6
	}
	return d.Source4
}

// localAddr makes the net.Addr type that the net package demands for network.
func localAddr(network string, source netip.Addr) net.Addr {
	ap := netip.AddrPortFrom(source, 0)
	switch {
	case strings.HasPrefix(network, "udp"):
		return net.UDPAddrFromAddrPort(ap)
	case strings.HasPrefix(network, "ip"):
		return &net.IPAddr{IP: source.AsSlice(), Zone: source.Zone()}
	default:
		return net.TCPAddrFromAddrPort(ap)
	}
}

// prepare sets the options of a socket before it is bound.
func (d *Dialer) prepare(fd int, sourced bool) error {
	if d.Netns != "" {
		if err := moveSocket(fd, d.Netns); err != nil {
			return err
		}
	}
	if d.Device != "" {
		if err := syscall.BindToDevice(fd, d.Device); err != nil {
			return fmt.Errorf("bind to device %q: %w", d.Device, err)
		}
	}
	if sourced {
		return os.NewSyscallError("setsockopt IP_BIND_ADDRESS_NO_PORT",
			syscall.SetsockoptInt(fd, syscall.IPPROTO_IP, ipBindAddressNoPort, 1))
	}
	return nil
}

// bindContext ends every read and write of conn when ctx ends: the one place
// where a context becomes a deadline. stop releases it.
func bindContext(ctx context.Context, conn net.Conn) (stop func() bool) {
	return context.AfterFunc(ctx, func() { conn.SetDeadline(time.Unix(1, 0)) })
}

// silenceFailed is exchangeFailed for a connection of which nothing was read
// yet. If the deadline passed but bytes wait to be read, the endpoint answered
// and this process was slow to notice: that is LATE.
func silenceFailed(err error, what string, conn net.Conn) report {
	rep := exchangeFailed(err, what)
	if rep.code != L7TOUT {
		return rep
	}
	if secured, ok := conn.(*tls.Conn); ok {
		conn = secured.NetConn()
	}
	conn.SetReadDeadline(time.Now().Add(time.Millisecond)) // in the future: a read tries before it waits
	if n, _ := conn.Read(make([]byte, 1)); n > 0 {
		return report{code: LATE, detail: "not counted: " + what + " came, but this process did not read it in time"}
	}
	return rep
}

// timedOut reports whether err says that a deadline passed.
func timedOut(err error) bool {
	var ne net.Error
	return errors.Is(err, context.DeadlineExceeded) || errors.Is(err, syscall.ETIMEDOUT) ||
		errors.As(err, &ne) && ne.Timeout()
}

// remote lists the errors by which the endpoint, or the network on the way to
// it, answers. Every other error number is taken for a local one: EMFILE,
// ENFILE, EADDRNOTAVAIL, ENETUNREACH, ENETDOWN, ENOBUFS, ENOMEM, EPERM, EACCES,
// EINVAL, ENODEV and those not yet met.
var remote = []syscall.Errno{
	syscall.ECONNREFUSED,
	syscall.ECONNRESET,
	syscall.ECONNABORTED,
	syscall.EPIPE,
	syscall.EHOSTUNREACH, // the neighbour did not resolve, or a router said so
	syscall.EHOSTDOWN,
	syscall.ENOPROTOOPT, // ICMP protocol unreachable
}

// byEndpoint returns the error number by which the endpoint caused err, if it did.
func byEndpoint(err error) (syscall.Errno, bool) {
	for _, errno := range remote {
		if errors.Is(err, errno) {
			return errno, true
		}
	}
	return 0, false
}

// dialFailed reports a connection that did not open.
func dialFailed(err error) report {
	if timedOut(err) {
		return report{code: L4TOUT, detail: "no connection"}
	}
	if errno, ok := byEndpoint(err); ok {
		return report{code: L4CON, detail: errno.Error()}
	}
	return localError(err)
}

// localError reports an attempt that failed on our own side. The reason alone
// is said: what was dialed is known.
func localError(err error) report {
	var op *net.OpError
	if errors.As(err, &op) {
		err = op.Err
	}
	return report{code: SOCKERR, detail: "local error: " + cut(err.Error())}
}

// exchangeFailed reports an open connection that failed while its answer was
// awaited. what names the answer: "answer", "header", "body".
func exchangeFailed(err error, what string) report {
	if timedOut(err) {
		return report{code: L7TOUT, detail: "no complete " + what}
	}
	if errno, ok := byEndpoint(err); ok {
		return report{code: L7RSP, detail: errno.Error() + " before the " + what + " was complete"}
	}
	var errno syscall.Errno
	if errors.As(err, &errno) {
		return localError(err)
	}
	return report{code: L7RSP, detail: fmt.Sprintf("bad %s: %s", what, quote(err.Error()))}
}
