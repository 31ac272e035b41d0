package lab

import (
	"fmt"
	"strconv"

	"github.com/vishvananda/netlink"
)

// Segment is an Ethernet switch of its own in the switch namespace that joins
// several hosts. Unless isolated, its uplink is a port of the bridge with the
// segment's name.
type Segment struct {
	name    string
	options SegmentOptions
	members int
}

// SegmentOptions says what kind of segment it is.
type SegmentOptions struct {
	// Isolated leaves out the uplink: the bridge does not see the segment.
	Isolated bool
	// Trunk makes the uplink carry 802.1Q tags, each host being in the VLAN
	// its options name. Such a segment is a second Open vSwitch bridge and
	// is down while ovs-vswitchd is; any other is the kernel's and stays up.
	Trunk bool
}

// device is the segment's own device in the switch namespace.
func (s *Segment) device() string { return "seg-" + s.name }

// AddSegment creates a segment; name, at most 11 bytes, is also the name of
// its port on the bridge.
func (l *Lab) AddSegment(name string, options SegmentOptions) error {
	const longest = 15 - len("seg-") // an interface name has at most 15 bytes
	if name == "" || len(name) > longest {
		return fmt.Errorf("lab: add segment %q: its name must have 1 to %d bytes", name, longest)
	}
	l.mu.Lock()
	_, exists := l.segments[name]
	l.mu.Unlock()
	if exists {
		return fmt.Errorf("lab: add segment %s: there is one already", name)
	}
	s := &Segment{name: name, options: options}
	if err := l.createSegment(s); err != nil {
		return err
	}
	l.mu.Lock()
	l.segments[name] = s
	l.mu.Unlock()
	if options.Isolated {
		return nil
	}
	uplink := name + "-up"
	if err := (veth{from: l.Switch, fromName: uplink, to: l.Switch, toName: name}).plug(); err != nil {
		return err
	}
	if err := l.join(s, uplink, 0); err != nil {
		return err
	}
	return l.addPort(l.bridge, name, 0)
}

func (l *Lab) createSegment(s *Segment) error {
	if s.options.Trunk {
		_, err := l.Vsctl("add-br", s.device(), "--", "set", "Bridge", s.device(), "datapath_type="+l.datapath)
		return err
	}
	attrs := netlink.NewLinkAttrs()
	attrs.Name = s.device()
	// Snooping holds multicast back until it has seen reports, and neighbour
	// discovery is multicast.
	snooping := false
	if err := l.Switch.link.LinkAdd(&netlink.Bridge{LinkAttrs: attrs, MulticastSnooping: &snooping}); err != nil {
		return fmt.Errorf("lab: create Ethernet bridge %s in %s: %w", s.device(), l.Switch.Name, err)
	}
	if err := l.Switch.silence(s.device()); err != nil {
		return err
	}
	return l.Switch.setLink(s.device(), true)
}

// join makes device a port of the segment.
func (l *Lab) join(s *Segment, device string, vlan int) error {
	if err := l.Switch.silence(device); err != nil {
		return err
	}
	if s.options.Trunk {
		args := []string{"add-port", s.device(), device}
		if vlan != 0 {
			args = append(args, "tag="+strconv.Itoa(vlan))
		}
		_, err := l.Vsctl(args...)
		return err
	}
	if vlan != 0 {
		return fmt.Errorf("lab: segment %s is no trunk: it can have no host in VLAN %d", s.name, vlan)
	}
	bridge, err := l.Switch.link.LinkByName(s.device())
	if err != nil {
		return fmt.Errorf("lab: find %s in %s: %w", s.device(), l.Switch.Name, err)
	}
	port, err := l.Switch.link.LinkByName(device)
	if err != nil {
		return fmt.Errorf("lab: find %s in %s: %w", device, l.Switch.Name, err)
	}
	if err := l.Switch.link.LinkSetMaster(port, bridge); err != nil {
		return fmt.Errorf("lab: add %s to %s in %s: %w", device, s.device(), l.Switch.Name, err)
	}
	return nil
}

// connect plugs a host's interface into the segment its port names or, where
// there is none, into the bridge.
func (l *Lab) connect(iface *Interface, options HostOptions) error {
	l.mu.Lock()
	s := l.segments[iface.Port]
	device := iface.Port
	if s != nil {
		s.members++
		device = fmt.Sprintf("%s-%d", s.name, s.members)
	}
	l.mu.Unlock()
	cable := veth{from: iface.host.Namespace, fromName: iface.Name, fromMAC: iface.MAC, to: l.Switch, toName: device}
	if err := cable.plug(); err != nil {
		return err
	}
	if s != nil {
		return l.join(s, device, options.VLAN)
	}
	bridge := options.Bridge
	if bridge == "" {
		bridge = l.bridge
	}
	return l.addPort(bridge, device, options.VLAN)
}

// addPort makes device a port of a bridge, with the next free OpenFlow port
// number: 1 for the first port added, 2 for the second.
func (l *Lab) addPort(bridge, device string, vlan int) error {
	if err := l.Switch.silence(device); err != nil {
		return err
	}
	l.mu.Lock()
	l.ports++
	number := l.ports
	l.mu.Unlock()
	args := []string{"add-port", bridge, device}
	if vlan != 0 {
		args = append(args, "tag="+strconv.Itoa(vlan))
	}
	_, err := l.Vsctl(append(args, "--", "set", "Interface", device, "ofport_request="+strconv.Itoa(number))...)
	return err
}

// silence keeps the kernel from sending neighbour discovery of its own on a
// device that only carries others' frames.
func (n *Namespace) silence(device string) error {
	return n.Sysctl("net/ipv6/conf/"+device+"/disable_ipv6", "1")
}
