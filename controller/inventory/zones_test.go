package inventory

import (
	"strings"
	"testing"

	"brlb/ovsdb/ovsdbtest"
)

// Bridges of one kind of datapath share conntrack; others do not.
func TestZoneClash(t *testing.T) {
	srv := ovsdbtest.StartServer(t)
	srv.Vsctl("add-br", "br-lb", "--", "set", "bridge", "br-lb", "datapath_type=netdev", `external_ids:brlb-zones="7 8"`,
		"--", "add-br", "br-2", "--", "set", "bridge", "br-2", "datapath_type=netdev", `external_ids:brlb-zones="2 70000 -1 x 16386"`,
		"--", "add-br", "br-kernel", "--", "set", "bridge", "br-kernel", `external_ids:brlb-zones="3"`,
		"--", "add-br", "br-system", "--", "set", "bridge", "br-system", "datapath_type=system")
	view := viewOf(t, srv)
	for _, c := range []struct {
		bridge string
		zones  []uint16
		want   string
	}{
		{"br-lb", []uint16{7, 8}, ""},
		{"br-lb", []uint16{1, 16386}, "the brlb of bridge \"br-2\" uses conntrack zone 16386, too, "},
		{"br-lb", []uint16{3}, ""},
		{"br-lb", []uint16{4464, 65535}, ""}, // 70000 and -1 in 16 bits
		{"br-2", []uint16{2}, ""},
		{"br-2", []uint16{8}, "the brlb of bridge \"br-lb\" uses conntrack zone 8, too, "},
		{"br-system", []uint16{3, 7}, "the brlb of bridge \"br-kernel\" uses conntrack zone 3, too, "},
	} {
		bridge, _ := view.Bridge(c.bridge)
		if got := zoneClash(view, bridge, c.zones); !strings.HasPrefix(got, c.want) || got != "" && c.want == "" {
			t.Errorf("%s, %v: %q, want %q", c.bridge, c.zones, got, c.want)
		}
	}
}
