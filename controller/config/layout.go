package config

import (
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"brlb/maglev"
)

// Settings of a pool that belong to its layout.

// maxDomain is how many elements a failure domain may have: what CRUSH can
// descend, less the root.
const maxDomain = 9

// layout reads the settings that only one layout has.
func (d *document) layout(f fields, p *Pool) {
	for _, key := range []string{"anchor", "balance_slack"} {
		if p.Layout != LayoutV2 && f[key].node != nil {
			d.fail(f[key].path, "is for layout v2, and this pool has layout %s: remove it, or set `layout: v2`", p.Layout)
			return
		}
	}
	for _, x := range d.named(f["anchor"]) {
		p.Anchor = append(p.Anchor, d.anchorMember(x))
	}
	if f["anchor"].node != nil && f["anchor"].isEmpty() {
		d.fail(f["anchor"].path, "has no members: list them, or remove the key and brlb keeps the anchor itself")
	}
	integer(d, f["balance_slack"], &p.BalanceSlack, 0, 1)
}

// anchorMember reads a member of an anchor: what it was when it was pinned.
func (d *document) anchorMember(e entry) Member {
	m := Member{Name: e.name(), Weight: DefaultWeight}
	if _, short := scalarText(e.node); short {
		d.addrPort(e, &m.Address)
		return m
	}
	f := d.mapping(e, "address", "weight")
	if f == nil {
		return m
	}
	if f["address"].node == nil {
		d.fail(e.path, "has no address: write %s: ADDRESS:PORT", clip(m.Name))
	}
	d.addrPort(f["address"], &m.Address)
	integer(d, f["weight"], &m.Weight, 0, MaxAnchorWeight)
	return m
}

// pins reads SLOT: MEMBER.
func (d *document) pins(e entry, p *Pool) {
	if !d.isMapping(e) {
		return
	}
	names := make([]string, len(p.Members))
	for i, m := range p.Members {
		names[i] = m.Name
	}
	for _, x := range d.entries(e) {
		slot, err := strconv.Atoi(x.name())
		if err != nil || slot < 0 || slot >= p.Slots || strconv.Itoa(slot) != x.name() {
			d.failAt(x.key, x.path, "%s is no slot of this pool: they are 0 to %d", quote(x.name()), p.Slots-1)
			continue
		}
		name, ok := d.text(x)
		if !ok {
			continue
		}
		if m, known := p.Member(name); known {
			p.Pins = append(p.Pins, Pin{Slot: slot, Key: m.Key()})
			continue
		}
		// Members that OVSDB declares, or DNS knows, have no name here.
		if address, err := netip.ParseAddrPort(name); err == nil && p.learnsMembers() {
			p.Pins = append(p.Pins, Pin{Slot: slot, Key: address.String()})
			continue
		}
		if slices.ContainsFunc(p.Names, func(n Name) bool { return n.Name == name }) {
			d.fail(x.path, "%s may have several addresses: pin the slot to one of them, as ADDRESS:PORT", clip(name))
			continue
		}
		d.fail(x.path, "there is no member %s; %s", quote(name), didYouMean(name, names))
	}
}

// domain reads ZONE/RACK/HOST, or as many elements as there are levels, into dst.
func (d *document) domain(e entry, dst *string) {
	s, ok := d.text(e)
	if !ok {
		return
	}
	elements := strings.Split(s, "/")
	for _, element := range elements {
		if !isName(element) || len(elements) > maxDomain {
			d.fail(e.path, "%s: a domain is 1 to %d names with slashes between, from the widest to the narrowest, such as zone-a/rack-3/host-7", quote(s), maxDomain)
			return
		}
	}
	*dst = s
}

// checkLayout finds members that the layout cannot work with.
func (d *document) checkLayout(at keyPath, p *Pool) {
	d.checkAnchor(at.child("anchor"), p)
	d.checkDomains(at.child("members"), p)
	entries := p.entries()
	members := make([]maglev.Member, len(entries))
	for i, m := range entries {
		members[i] = maglev.Member{Key: m.Name, Weight: m.Weight}
	}
	if err := maglev.CheckWeights(p.Layout, members); err != nil {
		d.fail(at.child("members"), "%v", err)
	}
}

func (d *document) checkAnchor(at keyPath, p *Pool) {
	if len(p.Anchor) == 0 {
		return
	}
	d.checkMembers(at, p.Anchor)
	weighted := 0
	for _, m := range p.Anchor {
		if m.Weight > 0 {
			weighted++
		}
	}
	switch {
	case weighted == 0:
		d.fail(at, "gives nobody a weight above 0")
	case weighted > p.Slots:
		d.fail(at, "%d members share %d slots: each needs at least one, raise slots", weighted, p.Slots)
	}
}

// checkDomains demands a failure domain of all members of a crush pool, or of
// none, and the same number of levels.
func (d *document) checkDomains(at keyPath, p *Pool) {
	entries := p.entries()
	for _, m := range entries {
		here := at.child(m.Name).child("domain")
		if p.Layout != LayoutCrush {
			if m.Domain != "" {
				d.fail(here, "is for layout crush, and this pool has layout %s: remove it, or set `layout: crush`", p.Layout)
			}
			continue
		}
		if first := entries[0]; levels(m.Domain) != levels(first.Domain) {
			d.fail(here, "%s has %d levels, and %s of member %s has %d: give all members of the pool as many", quote(m.Domain), levels(m.Domain),
				quote(first.Domain), clip(first.Name), levels(first.Domain))
			return
		}
	}
}

func levels(domain string) int {
	if domain == "" {
		return 0
	}
	return 1 + strings.Count(domain, "/")
}
