package config

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// The zones of one brlb differ, and none is everybody's.
func TestZonesDiffer(t *testing.T) {
	for zone := uint16(1); zone != 0; zone++ {
		if h, r := HairpinZone(zone), ReuseZone(zone); h == 0 || r == 0 || h == r || h == zone || r == zone {
			t.Fatalf("zone %d: %d for sources, %d for ports", zone, h, r)
		}
	}
	for zone, want := range map[uint16]uint16{18200: 50968, 1: 32769, 32768: 1, 65535: 32767} {
		if got := ReuseZone(zone); got != want {
			t.Errorf("zone %d: %d, want %d", zone, got, want)
		}
	}
}

// A pool's zone follows from the bridge's, and its timeouts are the bridge's but
// for those that it names. Pools that share one say so.
func TestZones(t *testing.T) {
	c, err := Parse("f", []byte(`
conntrack: {limit: 1000, timeouts: {udp_first: 20s, udp_single: 30s}}
pools:
  web: {id: 1, members: {a: "10.30.0.1:80"}}
  dns: {id: 2, conntrack: {limit: 50, timeouts: {udp_single: 5s}}, members: {a: "10.30.0.2:53"}}
  ntp: {id: 3, conntrack: {zone: 7}, members: {a: "10.30.0.1:123"}}
  log: {id: 4, conntrack: {zone: 7}, members: {a: "10.30.0.1:514", ntp: {pool: ntp}}}
services:
  dns: {address: [10.20.0.1], ports: [53/udp, 53/tcp], pool: dns}
  ntp: {address: [10.20.0.2], ports: [123/udp], pool: ntp, backup: [log]}
`))
	if err != nil {
		t.Fatal(err)
	}
	bridge := map[string]time.Duration{"udp_first": 20 * time.Second, "udp_single": 30 * time.Second}
	want := []Zone{
		{Number: 18200, Conntrack: Conntrack{Limit: 1000, Timeouts: bridge}},
		{Number: 7, Pools: []string{"log", "ntp"}, Conntrack: Conntrack{Timeouts: bridge}},
		{Number: 18202, Pools: []string{"dns"}, Conntrack: Conntrack{
			Limit: 50, Timeouts: map[string]time.Duration{"udp_first": 20 * time.Second, "udp_single": 5 * time.Second},
		}},
	}
	if diff := cmp.Diff(want, c.Zones()); diff != "" {
		t.Errorf("zones differ (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]uint16{18200, 1816, 50968, 7, 18202}, c.AllZones()); diff != "" {
		t.Errorf("all zones differ (-want +got):\n%s", diff)
	}
}
