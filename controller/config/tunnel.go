package config

import "slices"

// TunnelType is the protocol that carries packets to members.
type TunnelType string

// The types of tunnels. What they carry are Ethernet frames.
const (
	TunnelVXLAN  TunnelType = "vxlan"  // RFC 7348, UDP port 4789
	TunnelGeneve TunnelType = "geneve" // RFC 8926, UDP port 6081
	TunnelGRE    TunnelType = "gre"    // RFC 2890, with a key; called gretap by Linux
)

// Port is the name of the bridge's port for all tunnels of a type.
func (t TunnelType) Port() string { return "brlb-" + string(t) }

// Tunnel says how packets reach the members of a pool of mode tunnel. The zero
// value is that of other pools.
type Tunnel struct {
	Type TunnelType
	// Key is the network identifier of VXLAN and Geneve, 0..16777215, or the key
	// of GRE.
	Key uint32
	// MAC is the address that every member gives its tunnel's device.
	MAC MAC
	// MTU, 1350..65535, is how long packets may be on the way to members, with all
	// headers of the tunnel.
	MTU int
}

// DefaultTunnelMAC is the MAC address of members' tunnel devices. It is
// "brlb" in ASCII within an address that is locally administered.
var DefaultTunnelMAC = MAC{0x02, 'b', 'r', 'l', 'b', 0x00}

// DefaultTunnelMTU is Ethernet's.
const DefaultTunnelMTU = 1500

// Inside of 1350 octets there is room for 1280, which IPv6 wants at least.
const minTunnelMTU, maxTunnelMTU = 1350, 65535

// Inner is how long packets to a VIP may be, without their own Ethernet header,
// if members have IPv6 addresses or not.
func (t Tunnel) Inner(ipv6 bool) int {
	const ethernet = 14
	outer := 20
	if ipv6 {
		outer = 40
	}
	if t.Type == TunnelGRE {
		return t.MTU - outer - 8 - ethernet
	}
	return t.MTU - outer - 8 - 8 - ethernet // UDP and VXLAN, or Geneve
}

// Tunnels lists the types of tunnels that pools have, in order.
func (c *Config) Tunnels() []TunnelType {
	var types []TunnelType
	for i := range c.Pools {
		if t := c.Pools[i].Tunnel.Type; t != "" {
			types = append(types, t)
		}
	}
	slices.Sort(types)
	return slices.Compact(types)
}

// tunnel reads how a pool's members are reached.
func (d *document) tunnel(e entry, p *Pool) {
	if p.Mode != ModeTunnel {
		if e.node != nil {
			d.fail(e.path, "is for mode tunnel, and this pool has mode %s: remove it", p.Mode)
		}
		return
	}
	p.Tunnel = Tunnel{Type: TunnelVXLAN, MAC: DefaultTunnelMAC, MTU: DefaultTunnelMTU}
	f := d.mapping(e, "type", "key", "mac", "mtu")
	choice(d, f["type"], &p.Tunnel.Type, TunnelVXLAN, TunnelGeneve, TunnelGRE)
	most := int64(1<<24 - 1)
	if p.Tunnel.Type == TunnelGRE {
		most = 1<<32 - 1
	}
	integer(d, f["key"], &p.Tunnel.Key, 0, most)
	d.mac(f["mac"], &p.Tunnel.MAC)
	integer(d, f["mtu"], &p.Tunnel.MTU, minTunnelMTU, maxTunnelMTU)
}

// checkTunnels finds what means nothing where the switch's host knows the way to
// members.
func (d *document) checkTunnels(c *Config) {
	for i := range c.Pools {
		p := &c.Pools[i]
		at := keyPath{"pools", p.Name}
		for _, n := range p.Nested {
			if inner, known := c.Pool(n.Pool); known && inner.Mode == p.Mode && inner.Tunnel != p.Tunnel {
				d.fail(at.child("members").child(n.Name).child("pool"), "pool %s has another tunnel: say the same of both pools", clip(n.Pool))
			}
		}
		if p.Mode != ModeTunnel {
			continue
		}
		if p.BFD != (BFD{}) {
			d.fail(at.child("bfd"), "watches the port that leads to a member, and in mode tunnel one port leads to all: remove it")
		}
		if check, known := c.Check(p.Check); known && check.ByPort() {
			d.fail(at.child("check"), "%s watches the port that leads to a member, and in mode tunnel one port leads to all: name a check that probes", clip(p.Check))
		}
		for _, m := range p.entries() {
			if m.Via.IsValid() {
				d.fail(at.child("members").child(m.Name).child("via"), "means nothing in mode tunnel, where the host's own routes lead to members: remove it")
			}
		}
	}
}
