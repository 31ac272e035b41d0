package config

import (
	"fmt"
	"maps"
	"net/netip"
	"reflect"
	"slices"
)

// A pool with limits or timeouts of its own has a conntrack zone of its own, for
// Open vSwitch has both by zone. What a packet shows before conntrack has seen it
// must tell the zone: the VIP, and the address and port from which a member answers.

// zoneBits are those by which a pool's zone may differ from the bridge's if it
// follows from that: the zones beside it differ by others.
const zoneBits = 0x3fff

// Zone is a conntrack zone that holds connections.
type Zone struct {
	Number uint16
	Pools  []string // whose connections these are, sorted; none: of all pools without a zone of their own
	Conntrack
}

// Zones lists the zones that hold connections: the bridge's, and then those of
// pools by number.
func (c *Config) Zones() []Zone {
	own := map[uint16]Zone{}
	for i := range c.Pools {
		p := &c.Pools[i]
		if p.Zone == 0 {
			continue
		}
		z := own[p.Zone]
		own[p.Zone] = Zone{Number: p.Zone, Pools: append(z.Pools, p.Name), Conntrack: p.Conntrack}
	}
	zones := []Zone{{Number: c.Zone, Conntrack: c.Conntrack}}
	for _, number := range slices.Sorted(maps.Keys(own)) {
		zones = append(zones, own[number])
	}
	return zones
}

// Limited says whether the zone of a pool's connections has a limit.
func (c *Config) Limited(p *Pool) bool {
	if p.Zone != 0 {
		return p.Conntrack.Limit > 0
	}
	return !p.Stateless() && c.Conntrack.Limit > 0
}

// AllZones lists all conntrack zones that brlb uses: beside those that hold
// connections, that of clients' sources, and that which remembers ports.
func (c *Config) AllZones() []uint16 {
	all := []uint16{c.Zone, HairpinZone(c.Zone), ReuseZone(c.Zone)}
	for _, z := range c.Zones()[1:] {
		all = append(all, z.Number)
	}
	return all
}

// HairpinZone is the conntrack zone in which clients' sources are translated,
// beside the bridge's zone.
func HairpinZone(zone uint16) uint16 { return beside(zone, 0x4000) }

// ReuseZone is the conntrack zone that remembers ports, beside the bridge's zone.
func ReuseZone(zone uint16) uint16 { return beside(zone, 0x8000) }

func beside(zone, bit uint16) uint16 {
	if zone ^= bit; zone != 0 {
		return zone
	}
	return 1 // zone 0 is everybody's
}

// zone reads the pool's own conntrack zone.
func (d *document) zone(e entry, c *Config, p *Pool) {
	f := d.mapping(e, "zone", "limit", "timeouts")
	if e.isEmpty() || f == nil {
		return
	}
	if p.Stateless() {
		d.fail(e.path, "is for mode %s, and this pool has mode %s, whose connections the switch does not keep: remove it", ModeNAT, p.Mode)
		return
	}
	if f["zone"].node != nil {
		integer(d, f["zone"], &p.Zone, 1, 65535)
	} else if p.ID != 0 {
		number, last := int(c.Zone)+int(p.ID), int(c.Zone|zoneBits)
		if number > last {
			d.fail(e.path, "the pool's zone would be %d, the sum of the bridge's and the pool's id, and those up to %d are free for that: choose one, as `zone: NUMBER`", number, last)
			return
		}
		p.Zone = uint16(number)
	}
	d.conntrack(f, &p.Conntrack)
	if timeouts := maps.Clone(c.Conntrack.Timeouts); timeouts != nil {
		maps.Copy(timeouts, p.Conntrack.Timeouts)
		p.Conntrack.Timeouts = timeouts
	}
}

// checkZones finds pools of different zones whose packets could not be told
// apart.
func (d *document) checkZones(c *Config) {
	if !slices.ContainsFunc(c.Pools, func(p Pool) bool { return p.Zone != 0 }) {
		return
	}
	d.checkZoneNumbers(c)
	for _, p := range c.Pools {
		for _, n := range p.Nested {
			d.checkSameZone(c, keyPath{"pools", p.Name, "members", n.Name, "pool"}, n.Pool, p.Name, "the first is inside the second, so that they share members")
		}
	}
	serving := map[netip.Addr]string{}
	for i := range c.Services {
		s := &c.Services[i]
		at := keyPath{"services", s.Name}
		for _, half := range []struct {
			poolKey, backupKey, pool string
			backup                   []string
			ipv6                     bool
		}{{"pool", "backup", s.Pool, s.Backup, !s.has(false)}, {"pool6", "backup6", s.pool6, s.backup6, true}} {
			for j, name := range half.backup {
				d.checkSameZone(c, d.element(at.child(half.backupKey), j), name, half.pool, "the first serves in place of the second")
			}
			if p, known := c.Pool(half.pool); !known || p.Stateless() {
				continue
			}
			for _, vip := range ofFamily(s.Addresses, half.ipv6) {
				first, taken := serving[vip]
				if !vip.IsValid() {
					continue
				}
				if !taken {
					serving[vip] = half.pool
				} else if !d.checkSameZone(c, at.child(half.poolKey), half.pool, first, "both serve "+vip.String()+", and not every packet to that shows its port") {
					break
				}
			}
		}
	}
	d.checkAnswers(c)
}

// checkZoneNumbers finds pools whose zone is used for something else.
func (d *document) checkZoneNumbers(c *Config) {
	first := map[uint16]Pool{}
	for _, p := range c.Pools {
		at := keyPath{"pools", p.Name, "conntrack"}
		switch other, taken := first[p.Zone]; {
		case p.Zone == 0:
		case p.Zone == c.Zone:
			d.fail(at.child("zone"), "%d is the bridge's zone: give the pool another one, or remove conntrack", p.Zone)
		case p.Zone == HairpinZone(c.Zone), p.Zone == ReuseZone(c.Zone):
			d.fail(at.child("zone"), "%d is what brlb uses beside the bridge's zone %d, which has bit 14 or 15 flipped: give the pool another one", p.Zone, c.Zone)
		case !taken:
			first[p.Zone] = p
		case !reflect.DeepEqual(other.Conntrack, p.Conntrack):
			d.fail(at, "zone %d is that of pool %s too (line %d), with other limits or timeouts, which a zone has once: say the same in both, or give one of them another zone",
				p.Zone, clip(other.Name), d.line(keyPath{"pools", other.Name, "conntrack"}))
		}
	}
}

// checkSameZone demands that two pools have the same zone. It is false if they do
// not.
func (d *document) checkSameZone(c *Config, at keyPath, name, other, why string) bool {
	p, known := c.Pool(name)
	q, known2 := c.Pool(other)
	if !known || !known2 || p.Zone == q.Zone || p.Stateless() || q.Stateless() {
		return true
	}
	d.fail(at, "pool %s has %s, and pool %s %s; %s: give both the same conntrack, zone included",
		clip(name), zoneText(&p), clip(other), zoneText(&q), why)
	return false
}

func zoneText(p *Pool) string {
	if p.Zone == 0 {
		return "the bridge's conntrack zone"
	}
	return fmt.Sprintf("conntrack zone %d", p.Zone)
}

// checkAnswers finds members of different zones that answer from the same address
// and port.
func (d *document) checkAnswers(c *Config) {
	type place struct {
		pool  *Pool
		at    keyPath
		ports []Port
	}
	found := map[netip.Addr][]place{}
	kept := c.KeptPorts()
	for i := range c.Pools {
		p := &c.Pools[i]
		if p.Stateless() {
			continue
		}
		for _, m := range p.Members {
			if !m.Address.IsValid() {
				continue
			}
			addr := m.Address.Addr()
			here := place{p, keyPath{"pools", p.Name, "members", m.Name, "address"}, AnswersFrom(m.Address.Port(), kept[p.Name])}
			for _, there := range found[addr] {
				if there.pool.Zone != p.Zone && PortsMeet(there.ports, here.ports) {
					d.fail(here.at, "%s answers for pool %s too (line %d), from the same port, and the pools have different conntrack zones, of which one alone knows the answer: give both pools the same conntrack, zone included",
						addr, clip(there.pool.Name), d.line(there.at))
					break
				}
			}
			found[addr] = append(found[addr], here)
		}
	}
}

// KeptPorts lists, by pool, the ports of services on which its members get packets
// although they are not their own.
func (c *Config) KeptPorts() map[string][]Port {
	ports := map[string][]Port{}
	for i := range c.Services {
		s := &c.Services[i]
		for _, name := range slices.Concat([]string{s.Pool, s.pool6}, s.Backup, s.backup6) {
			for _, p := range c.within(name) {
				for _, port := range s.Ports {
					if port.isSet() && port.Kept() {
						ports[p.Name] = append(ports[p.Name], port)
					}
				}
			}
		}
	}
	return ports
}

// AnswersFrom lists the ports from which a member answers: its own one, of
// whatever protocol, and those that are kept.
func AnswersFrom(own uint16, kept []Port) []Port {
	return append([]Port{{First: own, Last: own}}, kept...)
}

// PortsMeet says whether two lists of [AnswersFrom] have a port in common.
func PortsMeet(a, b []Port) bool {
	for _, p := range a {
		for _, q := range b {
			protos := p.Proto == q.Proto || p.Proto == "" || q.Proto == ""
			if p.Proto == ProtoAny || q.Proto == ProtoAny || protos && p.First <= q.Last && q.First <= p.Last {
				return true
			}
		}
	}
	return false
}
