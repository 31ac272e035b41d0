package lab

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
)

// Host is a machine of the lab's network: a namespace with one or more
// interfaces eth0, eth1, ...
type Host struct {
	*Namespace

	name       string
	interfaces []*Interface
}

// HostOptions says how a host is attached.
type HostOptions struct {
	// Port is the bridge's port that the host is reached through. If it is
	// a segment's name, the host joins that segment; else the host gets a
	// bridge port of its own with that name. Empty means the host's name.
	Port string
	// Gateway is the address of the host's default route; none if empty.
	Gateway string
	// MAC is the interface's address; if empty it is 02:00 and the last
	// four bytes of the IP address.
	MAC string
	// VLAN makes the host's port an access port of that VLAN, 1 to 4094;
	// 0 means untagged. On a segment it needs a trunk.
	VLAN int
	// Bridge is the bridge of the host's own port; empty means the lab's. It
	// means nothing on a segment.
	Bridge string
}

// Interface is one of a host's network interfaces.
type Interface struct {
	Name string // in the host: eth0, ...
	Addr netip.Prefix
	MAC  net.HardwareAddr
	Port string // the bridge port it is reached through

	host *Host
}

// AddHost creates a host with one interface. cidr is its address with prefix
// length, such as "10.20.0.10/24".
func (l *Lab) AddHost(name, cidr string, options HostOptions) (*Host, error) {
	l.mu.Lock()
	_, exists := l.hosts[name]
	l.mu.Unlock()
	if exists {
		return nil, fmt.Errorf("lab: add host %s: there is one already", name)
	}
	ns, err := l.addNamespace(name)
	if err != nil {
		return nil, err
	}
	// Ports that tests choose are below those that the kernel gives.
	if err := ns.Sysctl("net/ipv4/ip_local_port_range", "46000 60999"); err != nil {
		return nil, err
	}
	h := &Host{Namespace: ns, name: name}
	if _, err := h.Attach(cidr, options); err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.hosts[name] = h
	return h, nil
}

// Attach gives the host another interface, such as a router's second one.
func (h *Host) Attach(cidr string, options HostOptions) (*Interface, error) {
	iface, err := h.newInterface(cidr, options)
	if err != nil {
		return nil, fmt.Errorf("lab: attach host %s: %w", h.name, err)
	}
	if err := h.lab.connect(iface, options); err != nil {
		return nil, err
	}
	if err := h.addAddress(iface.Name, iface.Addr); err != nil {
		return nil, err
	}
	if err := h.addDefaultRoute(iface.Addr, options.Gateway); err != nil {
		return nil, err
	}
	h.interfaces = append(h.interfaces, iface)
	return iface, nil
}

func (h *Host) newInterface(cidr string, options HostOptions) (*Interface, error) {
	addr, err := netip.ParsePrefix(cidr)
	if err != nil {
		return nil, err
	}
	if options.VLAN < 0 || options.VLAN > 4094 {
		return nil, fmt.Errorf("VLAN %d: must be 0 to 4094", options.VLAN)
	}
	iface := &Interface{
		Name: fmt.Sprintf("eth%d", len(h.interfaces)),
		Addr: addr,
		MAC:  macOf(addr.Addr()),
		Port: options.Port,
		host: h,
	}
	if iface.Port == "" {
		iface.Port = h.name
	}
	if options.MAC != "" {
		if iface.MAC, err = net.ParseMAC(options.MAC); err != nil {
			return nil, err
		}
	}
	return iface, nil
}

// AddAddress gives the host's first interface another address, such as one of
// the other family, and gateway, unless it is empty, as the default route of that
// family.
func (h *Host) AddAddress(cidr, gateway string) error {
	prefix, err := netip.ParsePrefix(cidr)
	if err != nil {
		return fmt.Errorf("lab: add address to host %s: %w", h.name, err)
	}
	if err := h.addAddress(h.interfaces[0].Name, prefix); err != nil {
		return err
	}
	return h.addDefaultRoute(prefix, gateway)
}

func (h *Host) addDefaultRoute(own netip.Prefix, gateway string) error {
	if gateway == "" {
		return nil
	}
	everywhere := "0.0.0.0/0"
	if own.Addr().Is6() {
		everywhere = "::/0"
	}
	return h.AddRoute(everywhere, gateway)
}

// Interface returns the host's first interface.
func (h *Host) Interface() *Interface { return h.interfaces[0] }

// Addr returns the address of the host's first interface.
func (h *Host) Addr() netip.Addr { return h.interfaces[0].Addr.Addr() }

// Forward makes the host a router.
func (h *Host) Forward() error {
	return errors.Join(
		h.Sysctl("net/ipv4/ip_forward", "1"),
		h.Sysctl("net/ipv6/conf/all/forwarding", "1"),
	)
}

// SetUp sets the interface up or down, as pulling its cable would. Down takes
// the host's routes through the interface away.
func (i *Interface) SetUp(up bool) error { return i.host.setLink(i.Name, up) }
