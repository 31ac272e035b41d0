package controller

import (
	"reflect"
	"testing"
	"time"

	"brlb/controller/config"
	"brlb/ovsdb/vswitch"
)

// Every zone that holds connections has the timeouts, and ports are remembered
// for as long as entries of ended connections stay.
func TestWantedTimeouts(t *testing.T) {
	udp := vswitch.Timeouts{"udp_first": time.Minute}
	longer := vswitch.Timeouts{"udp_first": 2 * time.Minute, "tcp_close": 5 * time.Second}
	soon := vswitch.Timeouts{"tcp_close": 5 * time.Second}
	closed := vswitch.Timeouts{"tcp_close": 70 * time.Second}
	for _, c := range []struct {
		name     string
		zone     uint16
		timeouts vswitch.Timeouts
		pool     vswitch.Timeouts // of one with zone 7
		want     map[int64]vswitch.Timeouts
	}{
		{"none", 18200, nil, nil, map[int64]vswitch.Timeouts{}},
		{"not of ended connections", 18200, udp, nil, map[int64]vswitch.Timeouts{18200: udp, 1816: udp}},
		{"of ended connections", 0x8000, closed, nil, map[int64]vswitch.Timeouts{0x8000: closed, 0xc000: closed,
			1: {"tcp_syn_sent": 70 * time.Second, "tcp_syn_recv": 70 * time.Second}}},
		{"of a pool", 18200, nil, udp, map[int64]vswitch.Timeouts{7: udp}},
		{"of a pool, longer", 18200, udp, longer, map[int64]vswitch.Timeouts{18200: udp, 7: longer, 1816: {"udp_first": 2 * time.Minute},
			50968: {"tcp_syn_sent": 30 * time.Second, "tcp_syn_recv": 30 * time.Second}}},
		{"of a pool, shorter", 18200, closed, soon, map[int64]vswitch.Timeouts{18200: closed, 7: soon, 1816: closed,
			50968: {"tcp_syn_sent": 70 * time.Second, "tcp_syn_recv": 70 * time.Second}}},
	} {
		cfg := &config.Config{Zone: c.zone, Conntrack: config.Conntrack{Timeouts: c.timeouts}, Pools: []config.Pool{{Name: "web"}}}
		if c.pool != nil {
			cfg.Pools = append(cfg.Pools, config.Pool{Name: "dns", Zone: 7, Conntrack: config.Conntrack{Timeouts: c.pool}})
		}
		got := wantedTimeouts(cfg)
		if !got.Complete || !reflect.DeepEqual(got.Zones, c.want) {
			t.Errorf("%s: %+v, want %v", c.name, got, c.want)
		}
	}
}
