package config

import (
	"net/netip"
	"slices"
)

// A pool's members are all of one address family, since packets are not
// translated between families. A service with VIPs of both has a pool for each.

// ipv6Suffix is what the IPv6 half of a service with both families is called
// by, after the service's own name. No name in a file has a slash.
const ipv6Suffix = "/ipv6"

func is6(a netip.Addr) bool { return a.Is6() }

func familyName(ipv6 bool) string {
	if ipv6 {
		return "IPv6"
	}
	return "IPv4"
}

// checkFamilies finds pools with members of both families, and decides the
// family of each.
func (d *document) checkFamilies(c *Config) {
	decided := map[string]bool{}
	for i := range c.Pools {
		p := &c.Pools[i]
		for _, m := range p.Members {
			a := m.Address.Addr()
			at := keyPath{"pools", p.Name, "members", m.Name}
			switch {
			case !a.IsValid():
			case !decided[p.Name]:
				decided[p.Name], p.IPv6 = true, is6(a)
			case p.IPv6 != is6(a):
				d.fail(at.child("address"), "%s is %s, and the pool's first member is %s: give each family a pool of its own", a, familyName(is6(a)), familyName(p.IPv6))
			}
			if m.Via.IsValid() && a.IsValid() && is6(m.Via) != is6(a) {
				d.fail(at.child("via"), "%s is %s, and the member is %s: name the router's %s address", m.Via, familyName(is6(m.Via)), familyName(is6(a)), familyName(is6(a)))
			}
		}
	}
	inner := c.InnerFirst()
	for _, p := range inner {
		for _, n := range p.Nested {
			if q, known := c.Pool(n.Pool); known && decided[n.Pool] {
				d.decideFamily(c, decided, p.Name, q.IPv6)
			}
		}
	}
	// The members of other pools are declared in OVSDB or known by name: they are
	// of their services' family, or of the pools' around them.
	for i := range c.Services {
		s := &c.Services[i]
		for _, name := range append([]string{s.Pool}, s.Backup...) {
			d.decideFamily(c, decided, name, !s.has(false))
		}
		for _, name := range append([]string{s.pool6}, s.backup6...) {
			d.decideFamily(c, decided, name, true)
		}
	}
	for _, p := range slices.Backward(inner) {
		for _, n := range p.Nested {
			d.decideFamily(c, decided, n.Pool, p.IPv6)
		}
	}
	for _, p := range inner {
		for _, n := range p.Nested {
			if q, known := c.Pool(n.Pool); known && q.IPv6 != p.IPv6 {
				d.fail(keyPath{"pools", p.Name, "members", n.Name, "pool"}, "pool %s has %s members, and pool %s has %s members: give each family a pool of its own",
					clip(n.Pool), familyName(q.IPv6), clip(p.Name), familyName(p.IPv6))
			}
		}
	}
	for _, p := range c.Pools {
		for _, n := range p.Names {
			if n.Via.IsValid() && is6(n.Via) != p.IPv6 {
				d.fail(keyPath{"pools", p.Name, "members", n.Name, "via"}, "%s is %s, and pool %s has %s members: name the router's %s address",
					n.Via, familyName(is6(n.Via)), clip(p.Name), familyName(p.IPv6), familyName(p.IPv6))
			}
		}
	}
	for i := range c.Services {
		d.checkServiceFamilies(c, &c.Services[i])
	}
}

func (d *document) decideFamily(c *Config, decided map[string]bool, name string, ipv6 bool) {
	for i := range c.Pools {
		if c.Pools[i].Name == name && !decided[name] {
			decided[name], c.Pools[i].IPv6 = true, ipv6
		}
	}
}

// has says whether a VIP is of the family.
func (s *Service) has(ipv6 bool) bool {
	for _, a := range s.Addresses {
		if a.IsValid() && is6(a) == ipv6 {
			return true
		}
	}
	return false
}

func (d *document) checkServiceFamilies(c *Config, s *Service) {
	at := keyPath{"services", s.Name}
	both := s.has(false) && s.has(true)
	switch {
	case both && s.pool6 == "":
		d.fail(at.child("address"), "has IPv4 and IPv6 addresses, and clients of one family cannot be sent to members of the other: name the pool of the IPv6 members with pool6")
	case !both && s.pool6 != "":
		d.fail(at.child("pool6"), "is for a service with addresses of both families: remove it, and name the pool with pool")
	case !both && len(s.backup6) > 0:
		d.fail(at.child("backup6"), "is for a service with addresses of both families: remove it, and name the pools with backup")
	}
	if s.has(false) || s.has(true) {
		d.checkFamily(c, at.child("pool"), s.Pool, !s.has(false))
		for i, name := range s.Backup {
			d.checkFamily(c, d.element(at.child("backup"), i), name, !s.has(false))
		}
	}
	d.checkFamily(c, at.child("pool6"), s.pool6, true)
	for i, name := range s.backup6 {
		d.checkFamily(c, d.element(at.child("backup6"), i), name, true)
	}
}

// element is the path of a list's element, or of the setting itself where a
// single value stands for the list.
func (d *document) element(list keyPath, i int) keyPath {
	if d.where[list.index(i).key()] != (position{}) {
		return list.index(i)
	}
	return list
}

// checkFamily demands that a pool can serve VIPs of a family.
func (d *document) checkFamily(c *Config, at keyPath, name string, ipv6 bool) {
	if p, known := c.Pool(name); known && p.IPv6 != ipv6 {
		d.fail(at, "pool %s has %s members, which cannot serve clients of an %s address: name a pool of %s members",
			clip(name), familyName(p.IPv6), familyName(ipv6), familyName(ipv6))
	}
}

// splitFamilies makes two services of each that has both families, so that
// everything behind a configuration deals with one.
func (c *Config) splitFamilies() {
	var split []Service
	for i := range c.Services {
		s := &c.Services[i]
		if !s.has(false) || !s.has(true) {
			continue
		}
		six := *s
		six.Name, six.Pool, six.Backup = s.Name+ipv6Suffix, s.pool6, s.backup6
		six.Addresses = ofFamily(s.Addresses, true)
		s.Addresses = ofFamily(s.Addresses, false)
		for _, half := range []*Service{s, &six} {
			half.pool6, half.backup6 = "", nil
		}
		split = append(split, six)
	}
	c.Services = append(c.Services, split...)
}

func ofFamily(list []netip.Addr, ipv6 bool) []netip.Addr {
	var found []netip.Addr
	for _, a := range list {
		if is6(a) == ipv6 {
			found = append(found, a)
		}
	}
	return found
}
