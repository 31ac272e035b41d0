package inventory

import (
	"strings"
	"testing"
	"time"

	"brlb/ovsdb/ovsdbtest"
	"brlb/ovsdb/vswitch"
)

// Timeouts go to the bridge's own datapath, and are taken from it.
func TestTimeouts(t *testing.T) {
	srv := ovsdbtest.StartServer(t)
	srv.Vsctl("add-br", "br-lb", "--", "set", "bridge", "br-lb", "datapath_type=netdev", "--", "add-br", "br-kernel",
		"--", "--id=@p", "create", "ct_timeout_policy", "timeouts:udp_first=3", "external_ids:brlb-timeouts=br-lb",
		"--", "--id=@z", "create", "ct_zone", "timeout_policy=@p", "external_ids:brlb-timeouts=br-lb",
		"--", "--id=@d", "create", "datapath", "ct_zones:7=@z", "--", "set", "open_vswitch", ".", "datapaths:netdev=@d",
		"--", "add-zone-tp", "netdev", "zone=8", "udp_first=4")
	view := viewOf(t, srv)
	three := vswitch.Timeouts{"udp_first": 3 * time.Second}
	for _, c := range []struct {
		name, bridge string
		wants        TimeoutWants
		changes      string
		problem      string
	}{
		{"nobody has said anything", "br-lb", TimeoutWants{}, "", ""},
		{"as it is", "br-lb", TimeoutWants{map[int64]vswitch.Timeouts{7: three}, true}, "", ""},
		{"none", "br-lb", TimeoutWants{nil, true}, "timeouts removed from conntrack zone 7 of datapath netdev", ""},
		{"none of another bridge", "br-kernel", TimeoutWants{nil, true}, "", ""},
		{"the kernel's", "br-kernel", TimeoutWants{map[int64]vswitch.Timeouts{9: three}, true}, "timeouts of conntrack zone 9 of datapath system: udp_first=3s", ""},
		{"a zone that somebody has", "br-lb", TimeoutWants{map[int64]vswitch.Timeouts{7: three, 8: three}, true}, "", "zone 8 of datapath netdev has timeouts that somebody else has set"},
	} {
		bridge, _ := view.Bridge(c.bridge)
		plan, _ := timeoutPlan(view, bridge, c.wants)
		if got := strings.Join(plan.Changes, "; "); got != c.changes {
			t.Errorf("%s: changes %q, want %q", c.name, got, c.changes)
		}
		problems := strings.Join(timeoutProblems(view, bridge, c.wants), "; ")
		if !strings.Contains(problems, c.problem) || problems != "" && c.problem == "" {
			t.Errorf("%s: problems %q, want %q", c.name, problems, c.problem)
		}
	}
}
