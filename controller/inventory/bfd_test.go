package inventory

import (
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"brlb/controller/config"
	"brlb/ovsdb/ovsdbtest"
)

// TestBFD: where BFD is turned on and off, of a port that nobody has touched, one
// of brlb's and one of somebody else's.
func TestBFD(t *testing.T) {
	srv := ovsdbtest.StartServer(t)
	srv.Vsctl("add-br", "br-lb",
		"--", "add-port", "br-lb", "p1", "--", "set", "interface", "p1", "ofport=1",
		"--", "add-port", "br-lb", "p2", "--", "set", "interface", "p2", "ofport=2", "bfd:enable=true", "bfd:min_tx=300", "bfd:min_rx=300", "bfd:mult=3", "external_ids:brlb-bfd=true",
		"bfd_status:state=down", "bfd_status:forwarding=false", "bfd_status:remote_state=init", `bfd_status:diagnostic="Control Detection Time Expired"`,
		"--", "add-port", "br-lb", "p3", "--", "set", "interface", "p3", "ofport=3", "bfd:enable=true", "bfd_status:state=up", "bfd_status:forwarding=true",
		"--", "add-port", "br-lb", "p4", "--", "set", "interface", "p4", "ofport=-1", "bfd:enable=true", "external_ids:brlb-bfd=true")
	view := viewOf(t, srv)
	bridge, _ := view.Bridge("br-lb")
	rows := view.BridgeInterfaces(bridge)

	want := map[uint32]BFDSession{
		2: {Interface: "p2", Own: true, State: "down", Diagnostic: "Control Detection Time Expired", Remote: "init"},
		3: {Interface: "p3", State: "up", Forwarding: true},
	}
	if got := bfdSessions(rows); !reflect.DeepEqual(got, want) {
		t.Errorf("sessions %+v\nwant %+v", got, want)
	}

	usual := config.BFD{MinTx: 300 * time.Millisecond, MinRx: 300 * time.Millisecond, Mult: 3}
	on := func(ports ...uint32) map[uint32]config.BFD {
		m := map[uint32]config.BFD{}
		for _, p := range ports {
			m[p] = usual
		}
		return m
	}
	for _, c := range []struct {
		name  string
		wants BFDWants
		want  string // interfaces that change
	}{
		{"nobody has said anything", BFDWants{}, ""},
		{"as it is", BFDWants{on(2), true}, ""},
		{"one more", BFDWants{on(1, 2), true}, "p1"},
		{"one more, of which it is not known whether it is all", BFDWants{on(1), false}, "p1"},
		{"another", BFDWants{on(1), true}, "p1 p2"},
		{"none", BFDWants{nil, true}, "p2"},
		{"somebody else's", BFDWants{on(2, 3), true}, ""},
		{"others times", BFDWants{map[uint32]config.BFD{2: {MinTx: time.Second, MinRx: time.Second, Mult: 3}}, true}, "p2"},
	} {
		var changed []string
		for _, plan := range bfdPlans(rows, c.wants) {
			_, after, _ := strings.Cut(plan.Changes[0], "interface ")
			name, _, _ := strings.Cut(after, ":")
			changed = append(changed, name)
		}
		if got := strings.Join(slices.Sorted(slices.Values(changed)), " "); got != c.want {
			t.Errorf("%s: %q change, want %q", c.name, got, c.want)
		}
	}
}
