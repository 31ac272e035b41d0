package config

import (
	"fmt"
	"slices"
	"time"
)

// DefaultTransition is for how long the owner before keeps the open connections
// of a slot that has moved, in a stateless pool.
const DefaultTransition = 5 * time.Minute

// maxTransition fits the seconds of an OpenFlow timeout.
const maxTransition = 12 * time.Hour

// mode reads how packets reach the members, and how long a stateless pool's slots
// take to move.
func (d *document) mode(f fields, p *Pool) {
	choice(d, f["mode"], &p.Mode, ModeNAT, ModeDSR, ModeTunnel)
	e := f["transition"]
	if !p.Stateless() {
		if e.node != nil {
			d.fail(e.path, "is for stateless pools, and this one has mode %s, whose open connections never move: remove it", p.Mode)
		}
		return
	}
	if f["on_down"].node != nil {
		d.fail(f["on_down"].path, "is for mode %s, and this pool has mode %s, whose slots leave a member that is down at once: remove it", ModeNAT, p.Mode)
	}
	p.Transition = DefaultTransition
	d.duration(e, &p.Transition, 0, maxTransition)
	if p.Transition%time.Second != 0 {
		d.fail(e.path, "%v has a fraction: write whole seconds", p.Transition)
	}
}

// checkModes finds members that a stateless pool cannot have, and services that
// it cannot serve.
func (d *document) checkModes(c *Config) {
	for i := range c.Pools {
		d.checkPoolMode(c, &c.Pools[i])
	}
	for i := range c.Services {
		s := &c.Services[i]
		d.checkMode(c, s, "pool", "backup", s.Pool, s.Backup)
		d.checkMode(c, s, "pool6", "backup6", s.pool6, s.backup6)
	}
}

func (d *document) checkPoolMode(c *Config, p *Pool) {
	at := keyPath{"pools", p.Name, "members"}
	for _, n := range p.Nested {
		if q, known := c.Pool(n.Pool); known && q.Mode != p.Mode {
			d.fail(at.child(n.Name).child("pool"), "pool %s has mode %s, and pool %s has mode %s: give both the same, since packets reach all members of a pool alike",
				clip(n.Pool), q.Mode, clip(p.Name), p.Mode)
		}
	}
	if p.Mode != ModeDSR {
		return
	}
	for _, m := range p.entries() {
		if m.Via.IsValid() {
			d.fail(at.child(m.Name).child("via"), "mode %s leaves the VIP in packets as their destination, so no router takes them to a member: remove it, members are neighbours", p.Mode)
		}
	}
}

func (d *document) checkMode(c *Config, s *Service, poolKey, backupKey, pool string, backup []string) {
	at := keyPath{"services", s.Name}
	p, known := c.Pool(pool)
	if !known {
		return
	}
	for i, name := range backup {
		if b, known := c.Pool(name); known && b.Stateless() != p.Stateless() {
			d.fail(d.element(at.child(backupKey), i), "pool %s has mode %s, and pool %s has mode %s: both keep connections in the switch, or none does",
				clip(name), b.Mode, clip(pool), p.Mode)
		}
	}
	for _, name := range append([]string{pool}, backup...) {
		for _, q := range c.within(name) {
			if q.Stateless() && !d.checkModePorts(at.child("ports"), s, &q) {
				return
			}
		}
	}
}

// checkModePorts demands that the members of a stateless pool listen on the ports
// of a service. It is false if one does not.
func (d *document) checkModePorts(at keyPath, s *Service, p *Pool) bool {
	for j, port := range s.Ports {
		if !port.isSet() || port.Kept() {
			continue
		}
		where := d.element(at, j)
		for _, m := range p.Members {
			if m.Address.IsValid() && m.Address.Port() != port.First {
				d.failPort(where, port, p, m.Name, m.Address.String())
				return false
			}
		}
		for _, n := range p.Names {
			if n.Port != 0 && n.Port != port.First {
				d.failPort(where, port, p, n.Name, fmt.Sprintf("%s:%d", clip(n.Host), n.Port))
				return false
			}
		}
	}
	return true
}

func (d *document) failPort(at keyPath, port Port, p *Pool, member, address string) {
	d.fail(at, "%s is not the port of member %s, %s, and mode %s leaves ports as they are: give the members of pool %s that port, and their check another if need be",
		port, clip(member), address, p.Mode, clip(p.Name))
}

// within lists a pool and those inside it.
func (c *Config) within(name string) []Pool {
	var found []Pool
	var visit func(string)
	visit = func(name string) {
		p, known := c.Pool(name)
		if !known || slices.ContainsFunc(found, func(q Pool) bool { return q.Name == name }) {
			return
		}
		found = append(found, p)
		for _, n := range p.Nested {
			visit(n.Pool)
		}
	}
	visit(name)
	return found
}

// StatelessPorts lists, by stateless pool, the ports of services on which its
// members have to listen. The file's own members do, but OVSDB may declare others.
func (c *Config) StatelessPorts() map[string][]Port {
	ports := map[string][]Port{}
	for i := range c.Services {
		s := &c.Services[i]
		for _, name := range append([]string{s.Pool}, s.Backup...) {
			for _, p := range c.within(name) {
				for _, port := range s.Ports {
					if p.Stateless() && !port.Kept() {
						ports[p.Name] = append(ports[p.Name], port)
					}
				}
			}
		}
	}
	return ports
}
