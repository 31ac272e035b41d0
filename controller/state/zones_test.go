package state

import (
	"net/netip"
	"testing"
)

const ownZone = `
pools:
  web: {id: 1, slots: 64, from_ovsdb: true, members: {be1: 10.30.0.11:80}}
  dns: {id: 2, slots: 64, from_ovsdb: true, conntrack: {limit: 10}, members: {be2: 10.30.0.12:53}}
services:
  web: {address: 10.20.0.100, ports: [80/tcp], pool: web}
  dns: {address: 10.20.0.101, ports: [53/udp, 8000-8010/tcp], pool: dns}
`

// Members of pools with different conntrack zones answer from different addresses
// or ports; of those that OVSDB declares otherwise, one serves.
func TestRivals(t *testing.T) {
	at := netip.MustParseAddrPort
	rival := func(pool string) string {
		return "pool " + pool + " has a member that answers from there too, and another conntrack zone: give both pools the same conntrack, zone included"
	}
	for _, c := range []struct {
		name     string
		declared []Declared
		web, dns string
	}{
		{"none", nil, "be1 owns", "be2 owns"},
		{"another port", []Declared{declare("a", "dns", at("10.30.0.11:53"), 1)}, "be1 owns", "a owns; be2 owns"},
		{"one of the file's", []Declared{declare("a", "dns", at("10.30.0.11:80"), 1)}, "be1 owns", "a " + rival("web") + "; be2 owns"},
		{"one of the file's, of the pool that comes later", []Declared{declare("a", "web", at("10.30.0.12:53"), 1)}, "be1 owns; a " + rival("dns"), "be2 owns"},
		{"a port of a range", []Declared{declare("a", "web", at("10.30.0.12:8005"), 1)}, "be1 owns; a " + rival("dns"), "be2 owns"},
		{"none of the file's", []Declared{declare("a", "dns", at("10.30.0.13:80"), 1), declare("b", "web", at("10.30.0.13:80"), 1)},
			"be1 owns; b owns", "be2 owns; a " + rival("web")},
		{"twice in one pool", []Declared{declare("a", "web", at("10.30.0.13:80"), 1), declare("b", "web", at("10.30.0.13:81"), 1)},
			"be1 owns; a owns; b owns", "be2 owns"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := serving(t, ownZone)
			s.SetDeclared(c.declared, start)
			judge(s, Up, s.Probes()...)
			if got := shape(s, "web"); got != c.web {
				t.Errorf("web: %s\nwant %s", got, c.web)
			}
			if got := shape(s, "dns"); got != c.dns {
				t.Errorf("dns: %s\nwant %s", got, c.dns)
			}
			// When the one is gone, the other serves.
			s.SetDeclared(nil, start)
			if got := shape(s, "web") + shape(s, "dns"); got != "be1 ownsbe2 owns" {
				t.Errorf("when they are gone: %s", got)
			}
		})
	}
	zones := serving(t, ownZone).Snapshot().VIPZones()
	if len(zones) != 1 || zones[netip.MustParseAddr("10.20.0.101")] != 18202 {
		t.Errorf("zones of VIPs: %v", zones)
	}
}
