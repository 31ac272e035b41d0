package config

import "time"

// DefaultTransition is for how long the owner before keeps the open connections
// of a slot that has moved, in a stateless pool.
const DefaultTransition = 5 * time.Minute

// maxTransition fits the seconds of an OpenFlow timeout.
const maxTransition = 12 * time.Hour

// transition reads how long a stateless pool's slots take to move.
func (d *document) transition(e entry, p *Pool) {
	if !p.Stateless() {
		if e.node != nil {
			d.fail(e.path, "is for stateless pools, and this one has mode %s, whose open connections never move: remove it", p.Mode)
		}
		return
	}
	p.Transition = DefaultTransition
	d.duration(e, &p.Transition, 0, maxTransition)
	if p.Transition%time.Second != 0 {
		d.fail(e.path, "%v has a fraction: write whole seconds", p.Transition)
	}
}

// checkModes finds services that a stateless pool cannot serve.
func (d *document) checkModes(c *Config) {
	for i := range c.Services {
		s := &c.Services[i]
		d.checkMode(c, s, "pool", "backup", s.Pool, s.Backup)
		d.checkMode(c, s, "pool6", "backup6", s.pool6, s.backup6)
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
	if !p.Stateless() {
		return
	}
	for j, port := range s.Ports {
		for _, m := range p.Members {
			if port.isSet() && !port.Kept() && m.Address.IsValid() && m.Address.Port() != port.First {
				d.fail(d.element(at.child("ports"), j), "%s is not the port of member %s, %s, and mode %s leaves ports as they are: give the members of pool %s that port, and their check another if need be",
					port, clip(m.Name), m.Address, p.Mode, clip(pool))
				return
			}
		}
	}
}
