package inventory

import (
	"strings"
	"testing"

	"brlb/controller/config"
	"brlb/ovsdb/ovsdbtest"
)

// Ports for tunnels that are missing or too many, and what is said of those that
// cannot be.
func TestTunnels(t *testing.T) {
	srv := ovsdbtest.StartServer(t)
	srv.Vsctl("add-br", "br-lb",
		"--", "add-port", "br-lb", "brlb-vxlan", "--", "set", "interface", "brlb-vxlan", "type=vxlan", "options:remote_ip=flow", "options:key=flow", "options:csum=true",
		"external_ids:brlb-tunnel=true", "error=\"could not add network device brlb-vxlan to ofproto (File exists)\"", "--", "set", "port", "brlb-vxlan", "tag=4095",
		"--", "add-br", "other", "--", "add-port", "other", "brlb-gre")
	view := viewOf(t, srv)
	bridge, _ := view.Bridge("br-lb")
	const broken = "Open vSwitch cannot make port brlb-vxlan: could not add network device brlb-vxlan to ofproto (File exists)"
	for _, c := range []struct {
		name     string
		wants    TunnelWants
		changes  string
		problems string
	}{
		{"nobody has said anything", TunnelWants{}, "", broken},
		{"as it is", TunnelWants{[]config.TunnelType{"vxlan"}, true}, "", broken},
		{"one more", TunnelWants{[]config.TunnelType{"geneve", "vxlan"}, true}, "port brlb-geneve added", broken},
		{"none", TunnelWants{nil, true}, "port brlb-vxlan removed", broken},
		{"a name that is taken", TunnelWants{[]config.TunnelType{"gre", "vxlan"}, true}, "", broken + "; vswitch: bridge br-lb needs a port brlb-gre"},
	} {
		plan, _ := tunnelPlan(view, "br-lb", c.wants)
		if got := strings.Join(plan.Changes, "; "); !strings.HasPrefix(got, c.changes) || got != "" && c.changes == "" {
			t.Errorf("%s: %q, want %q", c.name, got, c.changes)
		}
		if got := strings.Join(tunnelProblems(view, bridge, c.wants), "; "); !strings.HasPrefix(got, c.problems) {
			t.Errorf("%s: problems %q, want %q", c.name, got, c.problems)
		}
	}
}
