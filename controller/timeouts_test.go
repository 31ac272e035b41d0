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
	closed := vswitch.Timeouts{"tcp_close": 70 * time.Second}
	for _, c := range []struct {
		name     string
		zone     uint16
		timeouts vswitch.Timeouts
		want     map[int64]vswitch.Timeouts
	}{
		{"none", 18200, nil, nil},
		{"not of ended connections", 18200, udp, map[int64]vswitch.Timeouts{18200: udp, 1816: udp}},
		{"of ended connections", 0x8000, closed, map[int64]vswitch.Timeouts{0x8000: closed, 0xc000: closed,
			1: {"tcp_syn_sent": 70 * time.Second, "tcp_syn_recv": 70 * time.Second}}},
	} {
		got := wantedTimeouts(&config.Config{Zone: c.zone, ConntrackTimeouts: c.timeouts})
		if !got.Complete || !reflect.DeepEqual(got.Zones, c.want) {
			t.Errorf("%s: %+v, want %v", c.name, got, c.want)
		}
	}
}
