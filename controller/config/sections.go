package config

import (
	"net/netip"
	"slices"
	"strings"
	"time"

	"brlb/maglev"
)

// The shape stage, section by section: each function reads one kind of mapping
// and knows its keys, ranges and defaults. A value that is wrong is reported and
// left at its default (or zero, if it has none), which the meaning stage skips.

// Ranges of durations and counts.
const (
	minInterval, maxInterval = 10 * time.Millisecond, time.Hour
	maxTurns                 = 100 // of rise and fall
	minSlots, maxSlots       = 64, 65536
	maxPortSlots             = 1 << 15 // with AffinityPort
	maxWeight                = 65535
	// maxRunDir leaves room for the sockets within: a path ends at 107 bytes.
	maxRunDir = 80
	// maxBridge is what Linux permits for the name of an interface.
	maxBridge = 15
)

func (d *document) config(e entry) *Config {
	f := d.mapping(e, "bridge", "run_dir", "ovsdb", "openflow", "api", "mac", "zone", "conntrack", "gateways", "miss",
		"start_deadline", "neighbour_refresh", "dns", "probe_allow", "probe_source", "probe_device", "probe_netns", "allow_exec", "checks", "pools", "services")
	c := defaults()
	d.bridge(f["bridge"], &c.Bridge)
	d.directory(f["run_dir"], &c.RunDir)
	d.endpoint(f["ovsdb"], &c.OVSDB)
	c.OpenFlow = d.openflow(f["openflow"])
	c.API = d.api(f["api"])
	d.mac(f["mac"], &c.MAC)
	integer(d, f["zone"], &c.Zone, 1, 65535)
	d.conntrack(d.mapping(f["conntrack"], "limit", "timeouts"), &c.Conntrack)
	for _, g := range d.list(f["gateways"]) {
		c.Gateways = append(c.Gateways, d.gateway(g))
	}
	choice(d, f["miss"], &c.Miss, MissNormal, MissDrop)
	d.duration(f["start_deadline"], &c.StartDeadline, 0, time.Hour)
	d.duration(f["neighbour_refresh"], &c.NeighbourRefresh, time.Second, time.Hour)
	c.DNS = d.dns(f["dns"])
	for _, x := range d.list(f["probe_allow"]) {
		c.ProbeAllow = append(c.ProbeAllow, d.prefix(x))
	}
	for _, x := range d.list(f["probe_source"]) {
		d.probeSource(x, c)
	}
	d.device(f["probe_device"], &c.ProbeDevice)
	d.netns(f["probe_netns"], &c.ProbeNetns)
	d.boolean(f["allow_exec"], &c.AllowExec)
	for _, x := range d.named(f["checks"]) {
		c.Checks = append(c.Checks, d.check(x))
	}
	for _, x := range d.named(f["pools"]) {
		c.Pools = append(c.Pools, d.pool(x, c))
	}
	for _, x := range d.named(f["services"]) {
		c.Services = append(c.Services, d.service(x))
	}
	c.derive()
	return c
}

func (d *document) openflow(e entry) OpenFlow {
	f := d.mapping(e, "mode", "listen", "target", "insecure")
	o := OpenFlow{Mode: ModeController}
	choice(d, f["mode"], &o.Mode, ModeController, ModeService)
	d.endpoint(f["listen"], &o.Listen)
	d.endpoint(f["target"], &o.Target)
	d.boolean(f["insecure"], &o.Insecure)
	return o
}

func (d *document) api(e entry) API {
	f := d.mapping(e, "socket", "http")
	a := API{HTTP: DefaultHTTP}
	d.socket(f["socket"], &a.Socket)
	d.hostPort(f["http"], &a.HTTP)
	return a
}

func (d *document) pool(e entry, c *Config) Pool {
	f := d.mapping(e, "id", "slots", "layout", "anchor", "balance_slack", "pins", "mode", "tunnel", "transition", "conntrack", "affinity", "check", "on_down", "on_all_down", "min_active", "panic_below",
		"slow_start", "hold_down", "bfd", "from_ovsdb", "members")
	p := Pool{
		Name:      e.name(),
		Slots:     DefaultSlots,
		Layout:    LayoutV2,
		Mode:      ModeNAT,
		Affinity:  AffinityNone,
		Check:     DefaultCheckName,
		OnDown:    OnDownReset,
		OnAllDown: OnAllDownDrop,
		MinActive: 1,
	}
	if f == nil {
		return p
	}
	if f["id"].node == nil {
		d.fail(e.path, "has no id: give it a number of its own, 1 to 65535, and keep it (it decides who serves which client)")
	}
	integer(d, f["id"], &p.ID, 1, 65535)
	integer(d, f["slots"], &p.Slots, minSlots, maxSlots)
	if p.Slots&(p.Slots-1) != 0 {
		below := minSlots
		for below*2 < p.Slots {
			below *= 2
		}
		d.fail(f["slots"].path, "%d is not a power of two: use %d or %d", p.Slots, below, below*2)
	}
	known := choice(d, f["layout"], &p.Layout, maglev.Names()...)
	d.mode(f, &p)
	d.tunnel(f["tunnel"], &p)
	d.zone(f["conntrack"], c, &p)
	if choice(d, f["affinity"], &p.Affinity, AffinityNone, AffinitySource, AffinityPort) && p.Affinity == AffinityPort && p.Slots > maxPortSlots {
		d.fail(f["slots"].path, "%d slots are too many for `affinity: port`, by which ports, leaving out their lowest bit, choose among %d at most", p.Slots, maxPortSlots)
	}
	d.word(f["check"], &p.Check)
	d.policies(f, &p)
	d.bfd(f["bfd"], &p.BFD)
	d.boolean(f["from_ovsdb"], &p.FromOVSDB)
	for _, x := range d.named(f["members"]) {
		d.member(x, &p)
	}
	if known {
		d.layout(f, &p)
	}
	d.pins(f["pins"], &p)
	if f["members"].isEmpty() && !p.FromOVSDB {
		d.fail(e.path, "has no members: add some, or set `from_ovsdb: true` if they are declared in OVSDB")
	}
	return p
}

// member reads the short form, ADDRESS:PORT or NAME:PORT, or the mapping, and
// adds what that is to the pool.
func (d *document) member(e entry, p *Pool) {
	m := Member{Name: e.name(), Weight: DefaultWeight}
	if _, short := scalarText(e.node); short {
		d.addMember(e, m, p)
		return
	}
	f := d.mapping(e, "address", "weight", "via", "domain", "pool")
	switch {
	case f["pool"].node != nil:
		p.Nested = append(p.Nested, d.nested(e, f))
		return
	case f["address"].node == nil && f != nil:
		d.fail(e.path, "has no address: write %s: ADDRESS:PORT", clip(m.Name))
	}
	integer(d, f["weight"], &m.Weight, 0, maxWeight)
	d.addr(f["via"], &m.Via)
	d.domain(f["domain"], &m.Domain)
	d.addMember(f["address"], m, p)
}

// addMember adds a member with what it says of its address.
func (d *document) addMember(address entry, m Member, p *Pool) {
	if host, port, isName := d.host(address); isName {
		p.Names = append(p.Names, Name{Member: m, Host: host, Port: port})
		return
	}
	d.addrPort(address, &m.Address)
	p.Members = append(p.Members, m)
}

func (d *document) service(e entry) Service {
	f := d.mapping(e, "address", "ports", "pool", "backup", "pool6", "backup6", "return_after", "other_ports")
	s := Service{Name: e.name(), OtherPorts: OtherPortsReject}
	if f == nil {
		return s
	}
	for _, x := range d.list(f["address"]) {
		var a netip.Addr
		d.addr(x, &a)
		s.Addresses = append(s.Addresses, a)
	}
	for _, x := range d.list(f["ports"]) {
		s.Ports = append(s.Ports, d.port(x))
	}
	d.word(f["pool"], &s.Pool)
	s.Backup = d.words(f["backup"])
	d.word(f["pool6"], &s.pool6)
	s.backup6 = d.words(f["backup6"])
	choice(d, f["other_ports"], &s.OtherPorts, OtherPortsReject, OtherPortsDrop)
	d.duration(f["return_after"], &s.ReturnAfter, 0, time.Hour)
	if f["address"].isEmpty() {
		d.fail(e.path, "has no address: give it the address that clients use, as `address: ADDRESS`")
	}
	if f["ports"].isEmpty() {
		d.fail(e.path, "has no ports: give it a list such as `ports: [80/tcp]`")
	}
	if f["pool"].node == nil {
		d.fail(e.path, "has no pool: name the pool that serves it, as `pool: NAME`")
	}
	return s
}

// sort gives every list the order that makes equal meanings equal.
func (c *Config) sort() {
	slices.SortFunc(c.Gateways, netip.Prefix.Compare)
	slices.SortFunc(c.ProbeAllow, netip.Prefix.Compare)
	slices.SortFunc(c.Checks, func(a, b Check) int { return strings.Compare(a.Name, b.Name) })
	slices.SortFunc(c.Pools, func(a, b Pool) int { return strings.Compare(a.Name, b.Name) })
	slices.SortFunc(c.Services, func(a, b Service) int { return strings.Compare(a.Name, b.Name) })
	for _, p := range c.Pools {
		slices.SortFunc(p.Members, func(a, b Member) int { return strings.Compare(a.Name, b.Name) })
		slices.SortFunc(p.Nested, func(a, b Nested) int { return strings.Compare(a.Name, b.Name) })
		slices.SortFunc(p.Names, func(a, b Name) int { return strings.Compare(a.Name, b.Name) })
		slices.SortFunc(p.Anchor, func(a, b Member) int { return strings.Compare(a.Name, b.Name) })
		slices.SortFunc(p.Pins, func(a, b Pin) int { return a.Slot - b.Slot })
	}
	for _, s := range c.Services {
		slices.SortFunc(s.Addresses, netip.Addr.Compare)
		slices.SortFunc(s.Ports, Port.Compare)
	}
}
