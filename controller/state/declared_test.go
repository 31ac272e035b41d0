package state

import (
	"net/netip"
	"slices"
	"testing"
)

const fromOVSDB = `
gateways: [10.30.0.1/24]
pools:
  web: {id: 1, slots: 64, from_ovsdb: true, members: {be1: 10.30.0.11:80}}
  shut: {id: 2, slots: 64, members: {x: 10.30.0.21:80}}
services:
  web: {address: 10.20.0.100, ports: [80/tcp], pool: web}
`

func declare(iface, pool string, addr netip.AddrPort, weight uint32) Declared {
	return Declared{Interface: iface, Pool: pool, Address: addr, Weight: weight, MAC: mac(40), OFPort: 1}
}

func TestDeclaredMembers(t *testing.T) {
	vip := netip.MustParseAddrPort("10.20.0.100:80")
	gateway := netip.MustParseAddrPort("10.30.0.1:80")
	cases := []struct {
		name     string
		declared []Declared
		want     string
	}{
		{"none", nil, "be1 owns"},
		{"one, called like its interface", []Declared{declare("vnet1", "web", be2, 1)}, "be1 owns; vnet1 owns"},
		{"one with a name", []Declared{{Interface: "vnet1", Name: "be2", Pool: "web", Address: be2, Weight: 1, MAC: mac(40), OFPort: 1}},
			"be1 owns; be2 owns"},
		{"the file wins", []Declared{declare("vnet1", "web", be1, 0)}, "be1 owns"},
		{"the first of two interfaces wins", []Declared{declare("vnet1", "web", be2, 1), declare("vnet2", "web", be2, 0)},
			"be1 owns; vnet1 owns"},
		{"weight 0", []Declared{declare("vnet1", "web", be2, 0)}, "be1 owns; vnet1 owns nothing"},
		{"another pool", []Declared{declare("vnet1", "shut", be2, 1), declare("vnet2", "nowhere", be3, 1)}, "be1 owns"},
		{"no port yet", []Declared{{Interface: "vnet1", Pool: "web", Address: be2, Weight: 1, MAC: mac(40)}},
			"be1 owns; vnet1 no next hop: nobody has answered ARP for 10.30.0.12"},
		{"no MAC", []Declared{{Interface: "vnet1", Pool: "web", Address: be2, Weight: 1, OFPort: 1}},
			"be1 owns; vnet1 no next hop: nobody has answered ARP for 10.30.0.12"},
		{"a VIP", []Declared{declare("vnet1", "web", vip, 1)},
			"vnet1 10.20.0.100 is an address of brlb's own, a VIP or gateway; be1 owns"},
		{"a gateway", []Declared{declare("vnet1", "web", gateway, 1)},
			"be1 owns; vnet1 10.30.0.1 is an address of brlb's own, a VIP or gateway"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			s := serving(t, fromOVSDB)
			s.SetDeclared(c.declared, start)
			judge(s, Up, s.Probes()...)
			if got := shape(s, "web"); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
			if got := shape(s, "shut"); got != "x owns" {
				t.Errorf("the pool that takes none: %s", got)
			}
		})
	}
}

func TestDeclaredNextHops(t *testing.T) {
	s := connected(t, fromOVSDB)
	addr := func(text string) netip.Addr { return netip.MustParseAddr(text) }
	if got, want := s.NextHops(), []netip.Addr{addr("10.30.0.11"), addr("10.30.0.21")}; !slices.Equal(got, want) {
		t.Errorf("ask for %v, want %v", got, want)
	}
	// OVSDB says where be1 is: nobody need be asked, and what ARP found is old.
	s.SetDeclared([]Declared{declare("vnet1", "elsewhere", be1, 1), {Interface: "vnet2", Pool: "web", Address: be2, Weight: 1}}, start)
	if got, want := s.NextHops(), []netip.Addr{addr("10.30.0.12"), addr("10.30.0.21")}; !slices.Equal(got, want) {
		t.Errorf("ask for %v, want %v", got, want)
	}
	judge(s, Up, s.Probes()...)
	if m := s.Snapshot().Pool("web").Member(be1.String()); m.Next != (NextHop{MAC: mac(40), Port: 1, Source: "ovsdb"}) {
		t.Errorf("be1 is at %+v", m.Next)
	}
}

// A member that OVSDB knows, and one behind it as a router: the router must be
// asked for all the same.
func TestDeclaredMemberIsARouterToo(t *testing.T) {
	s := connected(t, `
pools:
  web:
    id: 1
    slots: 64
    members:
      be1: 10.30.0.11:80
      far: {address: 10.40.0.1:80, via: 10.30.0.11}
`)
	s.SetDeclared([]Declared{declare("vnet1", "", be1, 1)}, start)
	if got := s.NextHops(); !slices.Equal(got, []netip.Addr{be1.Addr()}) {
		t.Errorf("ask for %v", got)
	}
}

func TestDeclaredMemberGoesAndComesBack(t *testing.T) {
	s := serving(t, fromOVSDB)
	here := []Declared{declare("vnet1", "web", be2, 1)}
	s.SetDeclared(here, start)
	judge(s, Up, s.Probes()...)
	number := s.Snapshot().Pool("web").Member(be2.String()).Number
	s.SetDeclared(nil, start)
	if got := shape(s, "web"); got != "be1 owns" {
		t.Errorf("gone: %s", got)
	}
	s.SetDeclared(here, start)
	if got := shape(s, "web"); got != "be1 owns; vnet1 no verdict yet" {
		t.Errorf("back: %s", got)
	}
	if m := s.Snapshot().Pool("web").Member(be2.String()); m.Number != number || !m.Declared {
		t.Errorf("back with %+v, number was %d", m, number)
	}
}

// A member that OVSDB declares outside of probe_allow is told of, is not probed,
// and delays nobody.
func TestDeclaredOutsideOfProbeAllow(t *testing.T) {
	s := connected(t, fromOVSDB+"\nprobe_allow: [10.30.0.8/29, 10.30.0.16/28]\n")
	outside := netip.MustParseAddrPort("10.30.1.1:80")
	s.SetDeclared([]Declared{declare("vnet1", "web", outside, 1)}, start)
	if slices.Contains(s.Probes(), byTCP(outside)) {
		t.Error("it is probed")
	}
	judge(s, Up, s.Probes()...)
	p := s.Snapshot().Pool("web")
	if m := p.Member(outside.String()); m.Active || m.Reason != "10.30.1.1 is in none of the networks of probe_allow, so it is not probed" {
		t.Errorf("got %+v", m)
	}
	if !p.Settled || p.Active != 1 {
		t.Errorf("settled %v, %d active", p.Settled, p.Active)
	}
}
