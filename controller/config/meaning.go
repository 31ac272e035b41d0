package config

import (
	"net/netip"
	"slices"
	"strings"
)

// The meaning stage: what only shows when settings are seen together. It runs
// before lists are sorted, so that indices are those of the file, and it skips
// zero values, which the shape stage has reported.

func (d *document) checkMeaning(c *Config) {
	d.checkOpenFlow(c)
	d.checkChecks(c)
	d.checkPools(c)
	d.checkNested(c)
	d.checkProbeAllow(c)
	c.addDefaultCheck()
	d.checkFamilies(c)
	d.checkModes(c)
	d.checkTunnels(c)
	d.checkServices(c)
	d.checkZones(c)
	d.checkGateways(c)
}

func (d *document) checkOpenFlow(c *Config) {
	o, at := c.OpenFlow, keyPath{"openflow"}
	listen, target := at.child("listen"), at.child("target")
	if o.Mode == ModeService {
		if o.Listen != "" {
			d.fail(listen, "means nothing in service mode, where brlb dials: remove it, or set target")
		}
		if isRemote(o.Target) && !o.Insecure {
			d.fail(target, "%s goes beyond the loopback interface in plain text: set `insecure: true` if that network is trusted", clip(o.Target))
		}
		return
	}
	network, address := SplitEndpoint(o.Listen)
	if network == "tcp" {
		local, err := netip.ParseAddrPort(address)
		switch {
		case err != nil:
			d.fail(listen, "%s: give the address to listen on, not a name", quote(o.Listen))
		case local.Addr().IsUnspecified() && o.Target == o.Listen:
			d.fail(listen, "Open vSwitch cannot dial %s: set target to the address that it reaches", clip(o.Listen))
		}
		if isRemote(o.Listen) && !o.Insecure {
			d.fail(listen, "%s is open beyond the loopback interface, in plain text: set `insecure: true` if that network is trusted", clip(o.Listen))
		}
	}
	if network == "unix" && o.Target == o.Listen && !strings.HasPrefix(address, c.RunDir+"/") {
		d.fail(listen, "Open vSwitch only dials sockets in its run directory %s: put this one there, or set target to the name that it knows it by", clip(c.RunDir))
	}
}

// isRemote tells whether an endpoint is reachable from, or on, other machines.
func isRemote(endpoint string) bool {
	network, address := SplitEndpoint(endpoint)
	if network != "tcp" || strings.HasPrefix(address, "localhost:") {
		return false
	}
	ap, err := netip.ParseAddrPort(address)
	return err != nil || !ap.Addr().IsLoopback()
}

func (d *document) checkPools(c *Config) {
	checks := make([]string, len(c.Checks))
	for i, check := range c.Checks {
		checks[i] = check.Name
	}
	ids := map[uint16]Pool{}
	for _, p := range c.Pools {
		at := keyPath{"pools", p.Name}
		if first, taken := ids[p.ID]; taken && p.ID != 0 {
			d.fail(at.child("id"), "%d is the id of pool %s too (line %d): every pool needs its own", p.ID, clip(first.Name), d.line(keyPath{"pools", first.Name, "id"}))
		} else {
			ids[p.ID] = p
		}
		if _, known := c.Check(p.Check); !known && p.Check != DefaultCheckName {
			d.fail(at.child("check"), "there is no check %s; %s", quote(p.Check), didYouMean(p.Check, checks))
		}
		if n := len(p.Members) + len(p.Names); n > p.Slots {
			d.fail(at.child("members"), "%d members share %d slots: each needs at least one, raise slots", n, p.Slots)
		}
		if p.MinActive > len(p.Members) && len(p.Members) > 0 && len(p.Nested) == 0 && !p.learnsMembers() {
			d.fail(at.child("min_active"), "%d members are never active: the pool has %d", p.MinActive, len(p.Members))
		}
		d.checkMembers(at.child("members"), p.Members)
		d.checkNames(at.child("members"), p.Names)
		d.checkLayout(at, &p)
	}
}

func (d *document) checkMembers(at keyPath, members []Member) {
	byAddress := map[netip.AddrPort]Member{}
	for _, m := range members {
		if !m.Address.IsValid() {
			continue
		}
		if first, taken := byAddress[m.Address]; taken {
			d.fail(at.child(m.Name).child("address"), "%s is the address of member %s too (line %d): a pool has a member once, use weight for a larger share",
				m.Address, clip(first.Name), d.line(at.child(first.Name).child("address")))
		} else {
			byAddress[m.Address] = m
		}
		if m.Via == m.Address.Addr() {
			d.fail(at.child(m.Name).child("via"), "%s is the member's own address: name the router that leads to it, or remove via", m.Via)
		}
	}
}

// addDefaultCheck makes the check real that pools mean when they name none.
func (c *Config) addDefaultCheck() {
	if _, defined := c.Check(DefaultCheckName); defined {
		return
	}
	for _, p := range c.Pools {
		if p.Check == DefaultCheckName {
			c.Checks = append(c.Checks, DefaultCheck(DefaultCheckName))
			return
		}
	}
}

// owner is what an address of the file belongs to, for messages.
type owner struct {
	what string
	at   keyPath
}

// checkServices finds VIPs that somebody else has, and tuples that two share.
func (d *document) checkServices(c *Config) {
	pools := make([]string, len(c.Pools))
	for i, p := range c.Pools {
		pools[i] = p.Name
	}
	hosts := memberHosts(c)
	taken := map[netip.Addr][]taking{}
	for _, s := range c.Services {
		at := keyPath{"services", s.Name}
		d.checkPoolName(at.child("pool"), s.Pool, pools)
		d.checkPoolName(at.child("pool6"), s.pool6, pools)
		if s.ReturnAfter > 0 && len(s.Backup)+len(s.backup6) == 0 {
			d.fail(at.child("return_after"), "means nothing without backup: name a backup pool, or remove it")
		}
		d.checkBackup(at.child("backup"), s.Pool, s.Backup, pools)
		d.checkBackup(at.child("backup6"), s.pool6, s.backup6, pools)
		for i, vip := range s.Addresses {
			here := d.element(at.child("address"), i)
			if slices.Contains(s.Addresses[:i], vip) && vip.IsValid() {
				d.fail(here, "%s is listed twice", vip)
				continue
			}
			if host, taken := hosts[vip]; taken && vip.IsValid() {
				d.fail(here, "%s is %s too (line %d): a VIP must be an address that no host has", vip, host.what, d.line(host.at))
			}
			if !vip.IsValid() {
				continue
			}
			for j, port := range s.Ports {
				if !port.isSet() {
					continue
				}
				this := taking{port: port, service: s.Name, at: d.element(at.child("ports"), j), other: s.OtherPorts}
				if k := slices.IndexFunc(taken[vip], func(t taking) bool { return t.port.overlaps(port) }); k >= 0 {
					first := taken[vip][k]
					d.fail(this.at, "%s port %s belongs to service %s already (line %d)", vip, port, clip(first.service), d.line(first.at))
					continue
				}
				taken[vip] = append(taken[vip], this)
			}
			if first := taken[vip]; len(first) > 0 && first[0].other != s.OtherPorts {
				d.fail(at.child("other_ports"), "is %s, and for %s service %s says %s (line %d): say the same in both", s.OtherPorts, vip,
					clip(first[0].service), first[0].other, d.line(keyPath{"services", first[0].service}))
			}
		}
	}
}

// taking is a port of a VIP that a service has.
type taking struct {
	port    Port
	service string
	at      keyPath
	other   OtherPorts
}

func (d *document) checkPoolName(at keyPath, name string, pools []string) {
	if name != "" && !slices.Contains(pools, name) {
		d.fail(at, "there is no pool %s; %s", quote(name), didYouMean(name, pools))
	}
}

func (d *document) checkBackup(at keyPath, pool string, backup, pools []string) {
	for i, name := range backup {
		here := d.element(at, i)
		d.checkPoolName(here, name, pools)
		if name != "" && (name == pool || slices.Contains(backup[:i], name)) {
			d.fail(here, "pool %s serves already: a backup is another pool", clip(name))
		}
	}
}

// memberHosts are the addresses of members and of routers that lead to them.
func memberHosts(c *Config) map[netip.Addr]owner {
	hosts := map[netip.Addr]owner{}
	for _, p := range c.Pools {
		for _, m := range p.entries() {
			at := keyPath{"pools", p.Name, "members", m.Name}
			if _, taken := hosts[m.Address.Addr()]; !taken && m.Address.IsValid() {
				hosts[m.Address.Addr()] = owner{"the address of member " + clip(m.Name) + " of pool " + clip(p.Name), at.child("address")}
			}
			if _, taken := hosts[m.Via]; !taken && m.Via.IsValid() {
				hosts[m.Via] = owner{"the router (via) of member " + clip(m.Name) + " of pool " + clip(p.Name), at.child("via")}
			}
		}
	}
	return hosts
}

func (d *document) checkGateways(c *Config) {
	hosts := memberHosts(c)
	vips := map[netip.Addr]owner{}
	for _, s := range c.Services {
		for i, vip := range s.Addresses {
			vips[vip] = owner{"a VIP of service " + clip(s.Name), keyPath{"services", s.Name, "address"}.index(i)}
		}
	}
	seen := map[netip.Addr]keyPath{}
	for i, g := range c.Gateways {
		at := keyPath{"gateways"}.index(i)
		if !g.IsValid() {
			continue
		}
		if first, again := seen[g.Addr()]; again {
			d.fail(at, "%s is listed twice: first on line %d", g.Addr(), d.line(first))
			continue
		}
		seen[g.Addr()] = at
		if host, taken := hosts[g.Addr()]; taken {
			d.fail(at, "%s is %s too (line %d): a gateway must be an address that no host has", g.Addr(), host.what, d.line(host.at))
		}
		if vip, taken := vips[g.Addr()]; taken {
			d.fail(at, "%s is %s too (line %d): keep VIPs and gateways apart", g.Addr(), vip.what, d.line(vip.at))
		}
		if len(hosts) > 0 && !anyInside(g, hosts) && !mayLearnMembers(c) {
			d.fail(at, "no member, and no router (via) of one, is in the network %s: is the gateway mistyped?", g.Masked())
		}
	}
}

func anyInside(network netip.Prefix, hosts map[netip.Addr]owner) bool {
	for a := range hosts {
		if network.Contains(a) {
			return true
		}
	}
	return false
}

// mayLearnMembers tells whether a pool may have members that the file does not
// know.
func mayLearnMembers(c *Config) bool {
	return slices.ContainsFunc(c.Pools, func(p Pool) bool { return p.learnsMembers() })
}

// learnsMembers tells whether OVSDB, or DNS, may say who is a member.
func (p *Pool) learnsMembers() bool { return p.FromOVSDB || len(p.Names) > 0 }
