package lab

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// How often a hop is asked, and how long each time it is waited for.
const (
	hopTries = 3
	hopWait  = 3 * time.Second
	mostHops = 10
)

// Hops finds the way to a target as traceroute does: who says that the time to
// live has run out, hop by hop, and last who is there. network is tcp, udp or
// icmp; target an address and port, whose port doesn't count for icmp.
func (n *Namespace) Hops(ctx context.Context, network string, target netip.AddrPort) ([]netip.Addr, error) {
	var hops []netip.Addr
	for ttl := 1; ttl <= mostHops; ttl++ {
		hop, arrived, err := n.hop(ctx, network, target, ttl)
		if err != nil {
			return hops, fmt.Errorf("hop %d by %s to %s: %w", ttl, network, target, err)
		}
		if hops = append(hops, hop); arrived {
			return hops, nil
		}
	}
	return hops, fmt.Errorf("%s is not reached by %s", target, network)
}

func (n *Namespace) hop(ctx context.Context, network string, target netip.AddrPort, ttl int) (hop netip.Addr, arrived bool, err error) {
	family, echo := "ip4:icmp", []byte{8, 0, 0xf7, 0xfd, 0, 1, 0, 1}
	if target.Addr().Is6() {
		family, echo = "ip6:ipv6-icmp", []byte{128, 0, 0, 0, 0, 1, 0, 1}
	}
	var icmp net.PacketConn
	listen := net.ListenConfig{}
	if network == "icmp" {
		listen.Control = limitTTL(ttl)
	}
	if err := n.Do(func() (err error) {
		icmp, err = listen.ListenPacket(ctx, family, "")
		return err
	}); err != nil {
		return hop, false, err
	}
	defer icmp.Close()
	for range hopTries {
		ctx, cancel := context.WithTimeout(ctx, hopWait)
		connected := make(chan struct{})
		switch network {
		case "icmp":
			_, err = icmp.WriteTo(echo, &net.IPAddr{IP: target.Addr().AsSlice()})
		case "udp":
			err = n.sendLimited(ctx, target, ttl)
		default:
			go n.connectLimited(ctx, target, ttl, connected, icmp)
		}
		if err == nil {
			hop, arrived, err = told(icmp, time.Now().Add(hopWait))
		}
		cancel()
		select {
		case <-connected:
			return target.Addr(), true, nil
		default:
		}
		if err == nil {
			return hop, arrived, nil
		}
	}
	return hop, false, err
}

// told waits for an ICMP message that tells of a probe.
func told(icmp net.PacketConn, deadline time.Time) (from netip.Addr, arrived bool, err error) {
	icmp.SetReadDeadline(deadline)
	buffer := make([]byte, 1<<16)
	for {
		length, sender, err := icmp.ReadFrom(buffer)
		if err != nil {
			return from, false, err
		}
		from, _ := netip.AddrFromSlice(sender.(*net.IPAddr).IP)
		if length == 0 {
			continue
		}
		switch kind := buffer[0]; {
		case from.Unmap().Is4() && kind == 11, from.Unmap().Is6() && kind == 3:
			return from.Unmap(), false, nil
		case from.Unmap().Is4() && (kind == 3 || kind == 0), from.Unmap().Is6() && (kind == 1 || kind == 129):
			return from.Unmap(), true, nil
		}
	}
}

// sendLimited sends a datagram that lives for ttl hops.
func (n *Namespace) sendLimited(ctx context.Context, target netip.AddrPort, ttl int) error {
	return n.Do(func() error {
		conn, err := (&net.Dialer{Control: limitTTL(ttl)}).DialContext(ctx, "udp", target.String())
		if err != nil {
			return err
		}
		defer conn.Close()
		_, err = conn.Write([]byte{0})
		return err
	})
}

// connectLimited connects by segments that live for ttl hops, and when it is
// connected says so and ends the wait for an ICMP message.
func (n *Namespace) connectLimited(ctx context.Context, target netip.AddrPort, ttl int, connected chan<- struct{}, icmp net.PacketConn) {
	n.Do(func() error {
		conn, err := (&net.Dialer{Control: limitTTL(ttl)}).DialContext(ctx, "tcp", target.String())
		if err != nil {
			return err // told by ICMP
		}
		close(connected)
		icmp.SetReadDeadline(time.Now())
		return conn.Close()
	})
}

func limitTTL(ttl int) func(network, _ string, c syscall.RawConn) error {
	return func(network, _ string, c syscall.RawConn) error {
		var err error
		if e := c.Control(func(fd uintptr) {
			level, option := unix.IPPROTO_IP, unix.IP_TTL
			if strings.HasSuffix(network, "6") {
				level, option = unix.IPPROTO_IPV6, unix.IPV6_UNICAST_HOPS
			}
			err = os.NewSyscallError("setsockopt", unix.SetsockoptInt(int(fd), level, option, ttl))
		}); e != nil {
			return e
		}
		return err
	}
}
