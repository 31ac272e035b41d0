package vswitch_test

import (
	"errors"
	"strings"
	"testing"

	"brlb/ovsdb"
	"brlb/ovsdb/ovsdbtest"
	"brlb/ovsdb/vswitch"
)

func TestSetTunnels(t *testing.T) {
	srv := ovsdbtest.StartServer(t)
	srv.Vsctl("add-br", "br-lb", "--", "add-port", "br-lb", "p1", "--", "add-br", "other", "--", "add-port", "other", "brlb-gre")
	c, rep := open(t, srv)
	vxlan, geneve, gre := vswitch.Tunnel{Name: "brlb-vxlan", Type: "vxlan"}, vswitch.Tunnel{Name: "brlb-geneve", Type: "geneve"}, vswitch.Tunnel{Name: "brlb-gre", Type: "gre"}
	plan := func(want ...vswitch.Tunnel) (vswitch.Plan, error) {
		return vswitch.View{Snapshot: rep.Snapshot()}.SetTunnels("br-lb", "brlb-tunnel", want)
	}
	set := func(changes int, want ...vswitch.Tunnel) {
		t.Helper()
		p, err := plan(want...)
		if err != nil {
			t.Error(err)
		}
		apply(t, c, p, nil)
		if len(p.Changes) != changes {
			t.Errorf("%d changes, want %d: %q", len(p.Changes), changes, p.Changes)
		}
	}
	bridgeIs := func(want string) {
		t.Helper()
		v := vswitch.View{Snapshot: rep.Snapshot()}
		b, _ := v.Bridge("br-lb")
		var have []string
		for _, i := range v.BridgeInterfaces(b) {
			if i.Name == "br-lb" || i.Name == "p1" {
				continue
			}
			port, _ := v.PortByName(i.Name)
			if i.ExternalIDs["brlb-tunnel"] != "true" || i.Options["remote_ip"] != "flow" || i.Options["key"] != "flow" || (i.Options["csum"] == "true") != (i.Type != "gre") || port.Tag.ID != 4095 {
				t.Errorf("%+v, %+v", i, port)
			}
			have = append(have, i.Name+":"+i.Type)
		}
		if got := strings.Join(have, " "); got != want {
			t.Errorf("the bridge has %s, want %s", got, want)
		}
	}
	set(0)
	set(1, vxlan)
	bridgeIs("brlb-vxlan:vxlan")
	set(0, vxlan)
	srv.Vsctl("set", "interface", "brlb-vxlan", "type=gre", "options:remote_ip=10.0.0.1", "options:df_default=false", "--", "clear", "port", "brlb-vxlan", "tag")
	settle(t, rep, func(v vswitch.View) bool { i, _ := v.InterfaceByName("brlb-vxlan"); return i.Type == "gre" })
	set(3, vxlan)
	bridgeIs("brlb-vxlan:vxlan")
	if i, _ := (vswitch.View{Snapshot: rep.Snapshot()}).InterfaceByName("brlb-vxlan"); i.Options["df_default"] != "false" {
		t.Errorf("an operator's option is gone: %v", i.Options)
	}
	stale, _ := plan(geneve)
	set(2, geneve)
	bridgeIs("brlb-geneve:geneve")
	if err := stale.Apply(t.Context(), c); !errors.Is(err, vswitch.ErrChanged) {
		t.Errorf("a plan made from what is no longer so: %v", err)
	}
	// The name is taken; the other tunnel comes all the same.
	p, err := plan(vxlan, geneve, gre)
	if err == nil || !strings.Contains(err.Error(), "needs a port brlb-gre") || len(p.Changes) != 1 {
		t.Errorf("%q, %v", p.Changes, err)
	}
	set(1)
	bridgeIs("")
}

// settle waits until the replica shows something.
func settle(t *testing.T, rep *ovsdb.Replica, shows func(vswitch.View) bool) {
	t.Helper()
	if err := rep.Wait(t.Context(), func(s *ovsdb.Snapshot) bool { return shows(vswitch.View{Snapshot: s}) }); err != nil {
		t.Fatal(err)
	}
}
