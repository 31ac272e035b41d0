package lab

import (
	"fmt"
	"net"
	"net/netip"
	"unsafe"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// veth is a cable between two namespaces.
type veth struct {
	from, to         *Namespace
	fromName, toName string
	fromMAC          net.HardwareAddr // nil: the kernel chooses
}

// plug creates the cable with both ends up and transmit checksum offload off.
func (v veth) plug() error {
	attrs := netlink.NewLinkAttrs()
	attrs.Name = v.fromName
	attrs.HardwareAddr = v.fromMAC
	link := netlink.NewVeth(attrs)
	link.PeerName = v.toName
	link.PeerNamespace = netlink.NsFd(v.to.handle)
	if err := v.from.link.LinkAdd(link); err != nil {
		return fmt.Errorf("lab: create veth %s in %s to %s in %s: %w", v.fromName, v.from.Name, v.toName, v.to.Name, err)
	}
	for _, end := range []struct {
		ns   *Namespace
		name string
	}{{v.from, v.fromName}, {v.to, v.toName}} {
		if err := end.ns.disableChecksumOffload(end.name); err != nil {
			return err
		}
		if err := end.ns.setLink(end.name, true); err != nil {
			return err
		}
	}
	return nil
}

// setLink sets an interface up or down.
func (n *Namespace) setLink(name string, up bool) error {
	link, err := n.link.LinkByName(name)
	if err != nil {
		return fmt.Errorf("lab: find %s in %s: %w", name, n.Name, err)
	}
	set := n.link.LinkSetDown
	if up {
		set = n.link.LinkSetUp
	}
	if err := set(link); err != nil {
		return fmt.Errorf("lab: set %s in %s up=%t: %w", name, n.Name, up, err)
	}
	return nil
}

// addAddress gives an interface an address; one that it has already is no
// error.
func (n *Namespace) addAddress(name string, prefix netip.Prefix) error {
	link, err := n.link.LinkByName(name)
	if err != nil {
		return fmt.Errorf("lab: find %s in %s: %w", name, n.Name, err)
	}
	addr := &netlink.Addr{IPNet: &net.IPNet{
		IP:   prefix.Addr().AsSlice(),
		Mask: net.CIDRMask(prefix.Bits(), prefix.Addr().BitLen()),
	}}
	if prefix.Addr().Is6() {
		addr.Flags = unix.IFA_F_NODAD // usable at once
	}
	if err := n.link.AddrReplace(link, addr); err != nil {
		return fmt.Errorf("lab: add address %s to %s in %s: %w", prefix, name, n.Name, err)
	}
	return nil
}

// AddRoute routes dst ("10.30.0.0/24", "0.0.0.0/0", "::/0") through gateway.
func (n *Namespace) AddRoute(dst, gateway string) error {
	prefix, err := netip.ParsePrefix(dst)
	if err != nil {
		return fmt.Errorf("lab: route in %s: %w", n.Name, err)
	}
	via, err := netip.ParseAddr(gateway)
	if err != nil {
		return fmt.Errorf("lab: route in %s: gateway: %w", n.Name, err)
	}
	route := &netlink.Route{
		Dst: &net.IPNet{
			IP:   prefix.Masked().Addr().AsSlice(),
			Mask: net.CIDRMask(prefix.Bits(), prefix.Addr().BitLen()),
		},
		Gw: via.AsSlice(),
	}
	if err := n.link.RouteReplace(route); err != nil {
		return fmt.Errorf("lab: add route %s via %s in %s: %w", prefix, via, n.Name, err)
	}
	return nil
}

// ethtoolValue is struct ethtool_value of linux/ethtool.h.
type ethtoolValue struct {
	cmd, data uint32
}

// ifreqData is struct ifreq of linux/if.h with its pointer member, padded to
// the size the kernel copies.
type ifreqData struct {
	name [unix.IFNAMSIZ]byte
	data *ethtoolValue
	_    [16]byte
}

// disableChecksumOffload makes the kernel compute the checksums of packets
// sent on an interface. Without it a veth hands packets over with checksums
// still to be filled in by hardware that does not exist, and the userspace
// datapath, which forwards the bytes as they are and checks them in
// conntrack, takes them for damaged.
func (n *Namespace) disableChecksumOffload(name string) error {
	return n.Do(func() error {
		fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			return fmt.Errorf("lab: open socket in %s: %w", n.Name, err)
		}
		defer unix.Close(fd)
		request := ifreqData{data: &ethtoolValue{cmd: unix.ETHTOOL_STXCSUM, data: 0}}
		copy(request.name[:unix.IFNAMSIZ-1], name)
		_, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.SIOCETHTOOL, uintptr(unsafe.Pointer(&request)))
		if errno != 0 {
			return fmt.Errorf("lab: turn off checksum offload of %s in %s: %w", name, n.Name, errno)
		}
		return nil
	})
}
