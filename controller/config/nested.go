package config

import (
	"maps"
	"net/netip"
	"slices"
)

// Pools inside pools.

const (
	// maxDepth is how many pools may lie inside each other.
	maxDepth = 4
	// maxEndpoints is how many members all pools may have together, those of
	// pools inside others counted in each: every one has a number of 16 bits.
	maxEndpoints = 65535
	// MaxAnchorWeight is the greatest weight in an anchor. Those of a pool that
	// contains others are parts of theirs, in whole numbers.
	MaxAnchorWeight = 1<<31 - 1
)

// Nested is a pool inside another one.
type Nested struct {
	// Name is what the outer pool calls it, unique among its members.
	Name string
	// Pool names an entry of Config.Pools.
	Pool string
	// Weight, 0..65535, is the share of the inner pool relative to the members
	// beside it. Its active members divide it among themselves.
	Weight uint32
}

// InnerFirst lists the pools, each one after those inside it.
func (c *Config) InnerFirst() []*Pool {
	byName := make(map[string]*Pool, len(c.Pools))
	for i := range c.Pools {
		byName[c.Pools[i].Name] = &c.Pools[i]
	}
	order := make([]*Pool, 0, len(c.Pools))
	visited := map[string]bool{}
	var visit func(name string)
	visit = func(name string) {
		p := byName[name]
		if p == nil || visited[name] {
			return
		}
		visited[name] = true
		for _, n := range p.Nested {
			visit(n.Pool)
		}
		order = append(order, p)
	}
	for i := range c.Pools {
		visit(c.Pools[i].Name)
	}
	return order
}

// nested reads a member that is a pool.
func (d *document) nested(e entry, f fields) Nested {
	n := Nested{Name: e.name(), Weight: DefaultWeight}
	for _, key := range []string{"address", "via", "domain"} {
		if f[key].node != nil {
			d.fail(f[key].path, "is for a member with an address, and this one is a pool: remove it, or remove pool")
		}
	}
	d.word(f["pool"], &n.Pool)
	integer(d, f["weight"], &n.Weight, 0, maxWeight)
	return n
}

// content is all that is in a pool, in those inside it too.
type content struct {
	members map[netip.AddrPort]owner
	pools   []string
	depth   int
	grows   bool // OVSDB or DNS may name further members
}

// checkNested finds what cannot be inside a pool. It does not look at what
// contains something wrong.
func (d *document) checkNested(c *Config) {
	names := make([]string, len(c.Pools))
	for i, p := range c.Pools {
		names[i] = p.Name
	}
	contents := map[string]*content{} // nil if something is wrong with it
	endpoints := 0
	for _, p := range c.InnerFirst() {
		contents[p.Name] = nil
		in := &content{members: map[netip.AddrPort]owner{}, grows: p.learnsMembers()}
		for _, m := range p.Members {
			if m.Address.IsValid() {
				in.members[m.Address] = owner{"member " + clip(m.Name) + " of pool " + clip(p.Name), keyPath{"pools", p.Name, "members", m.Name, "address"}}
			}
		}
		good := true
		for _, n := range p.Nested {
			good = d.nest(p, n, names, contents, in) && good
		}
		if !good {
			continue
		}
		if len(p.Nested) > 0 {
			d.checkSize(p, in)
		}
		if endpoints += len(in.members); endpoints > maxEndpoints {
			d.fail(keyPath{"pools", p.Name, "members"}, "all pools together have more than %d members, those of pools inside others counted in each", maxEndpoints)
			return
		}
		contents[p.Name] = in
	}
}

// nest adds a pool to what is in p. It is false if that cannot be.
func (d *document) nest(p *Pool, n Nested, names []string, contents map[string]*content, in *content) bool {
	at := keyPath{"pools", p.Name, "members", n.Name, "pool"}
	inner, seen := contents[n.Pool]
	switch {
	case n.Pool == "":
		return false
	case n.Pool == p.Name:
		d.fail(at, "a pool cannot contain itself")
		return false
	case !slices.Contains(names, n.Pool):
		d.fail(at, "there is no pool %s; %s", quote(n.Pool), didYouMean(n.Pool, names))
		return false
	case !slices.Contains(Proportional(), p.Layout):
		d.fail(at, "layout %s has whole weights only: a pool that contains others needs layout %s", p.Layout, enumerate(Proportional(), "or"))
		return false
	case !seen: // it comes after p, so p is inside it
		d.fail(at, "pool %s contains pool %s: pools cannot contain each other", clip(n.Pool), clip(p.Name))
		return false
	case inner == nil:
		return false
	case inner.depth == maxDepth:
		d.fail(at, "pools lie more than %d deep inside each other here: name inner ones directly", maxDepth)
		return false
	}
	for _, name := range append([]string{n.Pool}, inner.pools...) {
		if slices.Contains(in.pools, name) {
			d.fail(at, "pool %s is inside this pool twice: a pool has a member once, use weight for a larger share", clip(name))
			return false
		}
		in.pools = append(in.pools, name)
	}
	var twice netip.AddrPort
	for address := range inner.members {
		if _, taken := in.members[address]; taken && (!twice.IsValid() || address.Compare(twice) < 0) {
			twice = address
		}
	}
	if twice.IsValid() {
		a, b := in.members[twice], inner.members[twice]
		d.fail(at, "%s would be in this pool twice: as %s (line %d) and as %s (line %d)", twice, a.what, d.line(a.at), b.what, d.line(b.at))
		return false
	}
	maps.Copy(in.members, inner.members)
	in.depth = max(in.depth, inner.depth+1)
	in.grows = in.grows || inner.grows
	return true
}

// checkSize compares a pool that contains others with its own settings.
func (d *document) checkSize(p *Pool, in *content) {
	at := keyPath{"pools", p.Name}
	if len(in.members) > p.Slots {
		d.fail(at.child("members"), "%d members, those of pools inside counted, share %d slots: each needs at least one, raise slots", len(in.members), p.Slots)
	}
	if p.MinActive > len(in.members) && !in.grows {
		d.fail(at.child("min_active"), "%d members are never active: the pool has %d, those of pools inside counted", p.MinActive, len(in.members))
	}
}
