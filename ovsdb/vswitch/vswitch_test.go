package vswitch_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"brlb/ovsdb"
	"brlb/ovsdb/ovsdbtest"
	"brlb/ovsdb/vswitch"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func open(t *testing.T, s *ovsdbtest.Server) (*ovsdb.Client, *ovsdb.Replica) {
	t.Helper()
	c, err := ovsdb.Dial(t.Context(), ovsdb.Config{Endpoints: []string{s.Endpoint()}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	rep, err := c.Monitor(t.Context(), vswitch.Monitor())
	if err != nil {
		t.Fatal(err)
	}
	return c, rep
}

func apply(t *testing.T, c *ovsdb.Client, p vswitch.Plan, err error) {
	t.Helper()
	if err == nil {
		err = p.Apply(t.Context(), c)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func TestSetController(t *testing.T) {
	srv := ovsdbtest.StartServer(t)
	srv.Vsctl("add-br", "br-lb", "--", "set-controller", "br-lb", "tcp:192.0.2.1:6653", "--", "set", "bridge", "br-lb", "protocols=OpenFlow13")
	srv.Vsctl("add-br", "br1")
	c, rep := open(t, srv)
	view := func() vswitch.View { return vswitch.View{Snapshot: rep.Snapshot()} }
	cfg := vswitch.ControllerConfig{Target: "unix:brlb.sock", InactivityProbe: 5 * time.Second, MaxBackoff: time.Second, ExternalIDs: map[string]string{"owner": "brlb"}}

	stale := view()
	p, err := stale.SetController("br-lb", cfg)
	apply(t, c, p, err)
	if got := strings.Join(p.Changes, "\n"); got != `fail_mode of bridge br-lb: not set -> secure, so that its flows stay when the controller is away
protocols of bridge br-lb: OpenFlow14 added to OpenFlow13
controller unix:brlb.sock added to bridge br-lb` {
		t.Errorf("changes:\n%s", got)
	}
	br, _ := view().Bridge("br-lb")
	if br.FailMode != vswitch.FailModeSecure || strings.Join(br.Protocols, " ") != "OpenFlow13 OpenFlow14" {
		t.Errorf("bridge: %+v", br)
	}
	cs := view().Controllers(br)
	if len(cs) != 2 {
		t.Fatalf("controllers: %+v", cs)
	}
	for _, ctl := range cs {
		if ctl.Target == "unix:brlb.sock" && (ctl.ConnectionMode != "out-of-band" || *ctl.InactivityProbe != 5*time.Second || *ctl.MaxBackoff != time.Second || ctl.ExternalIDs["owner"] != "brlb") {
			t.Errorf("controller: %+v", ctl)
		}
	}

	// Once is enough.
	if p, err := view().SetController("br-lb", cfg); err != nil || !p.Empty() || p.Ops() != nil {
		t.Errorf("again: %v, %v", p.Changes, err)
	}
	// A plan from a view that is no longer true is refused.
	p, err = stale.SetController("br-lb", cfg)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Apply(t.Context(), c); !errors.Is(err, vswitch.ErrChanged) || ovsdb.OutcomeOf(err) != ovsdb.Refused {
		t.Errorf("stale plan: %v", err)
	}
	// What others change in our row is set right.
	srv.Vsctl("set", "controller", cs[0].UUID.String(), "connection_mode=in-band", "--", "set", "controller", cs[1].UUID.String(), "connection_mode=in-band")
	err = rep.Wait(t.Context(), func(s *ovsdb.Snapshot) bool {
		for _, ctl := range (vswitch.View{Snapshot: s}).Controllers(br) {
			if ctl.ConnectionMode != "in-band" {
				return false
			}
		}
		return true
	})
	if err != nil {
		t.Fatal(err)
	}
	cfg.InactivityProbe = 0 // leave it
	cfg.ExternalIDs = map[string]string{"owner": "me", "more": "x"}
	p, err = view().SetController("br-lb", cfg)
	apply(t, c, p, err)
	if got := strings.Join(p.Changes, "\n"); got != `connection_mode of controller unix:brlb.sock of bridge br-lb: "in-band" -> "out-of-band"
external_ids of controller unix:brlb.sock of bridge br-lb: more="x", owner="me" (was "brlb")` {
		t.Errorf("changes:\n%s", got)
	}
	// The first controller of a bridge costs its flows, and the plan says so.
	p, err = view().SetController("br1", cfg)
	apply(t, c, p, err)
	if got := strings.Join(p.Changes, "\n"); !strings.Contains(got, "removes all flows") || strings.Contains(got, "protocols") {
		t.Errorf("changes:\n%s", got)
	}
	if _, err := view().SetController("nope", cfg); err == nil || !strings.Contains(err.Error(), "add-br nope") {
		t.Errorf("no bridge: %v", err)
	}
}

func TestSetBridgeExternalIDs(t *testing.T) {
	srv := ovsdbtest.StartServer(t)
	srv.Vsctl("add-br", "br-lb", "--", "br-set-external-id", "br-lb", "other", "kept", "--", "br-set-external-id", "br-lb", "a", "1")
	c, rep := open(t, srv)
	set := func(want string, set map[string]string, remove ...string) {
		t.Helper()
		p, err := vswitch.View{Snapshot: rep.Snapshot()}.SetBridgeExternalIDs("br-lb", set, remove)
		apply(t, c, p, err)
		br, _ := vswitch.View{Snapshot: rep.Snapshot()}.Bridge("br-lb")
		if got := ovsdb.StringMap(br.ExternalIDs).String(); got != want {
			t.Errorf("got %s, want %s (%v)", got, want, p.Changes)
		}
	}
	set(`{"a"="2", "b"="3", "other"="kept"}`, map[string]string{"a": "2", "b": "3"})
	set(`{"b"="", "other"="kept"}`, map[string]string{"b": ""}, "a", "absent")
	set(`{"b"="", "other"="kept"}`, nil)
}

func TestRealSwitch(t *testing.T) {
	sw := ovsdbtest.StartSwitch(t)
	c, rep := open(t, sw.Server)
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	until := func(holds func(vswitch.View) bool) {
		t.Helper()
		if err := rep.Wait(ctx, func(s *ovsdb.Snapshot) bool { return holds(vswitch.View{Snapshot: s}) }); err != nil {
			t.Fatal(err)
		}
	}
	sw.Vsctl("add-br", "br-lb", "--", "set", "bridge", "br-lb", "datapath_type=dummy",
		"--", "add-port", "br-lb", "p1", "--", "set", "interface", "p1", "type=dummy", "ofport_request=7",
		"--", "add-port", "br-lb", "bad", "--", "set", "interface", "bad", "type=no-such-type",
		"--", "set", "port", "p1", "tag=9")
	until(func(v vswitch.View) bool {
		p1, _ := v.InterfaceByName("p1")
		bad, _ := v.InterfaceByName("bad")
		n, ok := p1.OFPort.Number()
		return ok && n == 7 && p1.AdminState != vswitch.StateUnknown && p1.LinkState != vswitch.StateUnknown && p1.MACInUse != "" && bad.Error != ""
	})
	v := vswitch.View{Snapshot: rep.Snapshot()}
	br, _ := v.Bridge("br-lb")
	if n := len(v.BridgeInterfaces(br)); n != 3 || len(br.DatapathID) != 16 || br.DatapathType != "dummy" {
		t.Errorf("%d interfaces on %+v", n, br)
	}
	if p, _ := v.PortByName("p1"); !p.Tag.Set || p.Tag.ID != 9 {
		t.Errorf("port: %+v", p)
	}
	if bad, _ := v.InterfaceByName("bad"); !bad.OFPort.Failed() && bad.OFPort.String() != "not assigned" {
		t.Errorf("interface that cannot be: %+v", bad)
	}
	p, err := v.SetController("br-lb", vswitch.ControllerConfig{Target: "unix:" + sw.Dir + "/nobody.sock"})
	if err != nil {
		t.Fatal(err)
	}
	if err := p.ApplyAndWait(ctx, c, rep); err != nil {
		t.Fatal(err)
	}
	root, _ := vswitch.View{Snapshot: rep.Snapshot()}.Root()
	if root.CurCfg < 1 {
		t.Errorf("cur_cfg is %d", root.CurCfg)
	}
	// Ephemeral columns vanish with ovsdb-server, and come back.
	sw.Kill()
	sw.Start()
	until(func(v vswitch.View) bool {
		i, _ := v.InterfaceByName("p1")
		return i.LinkState == vswitch.StateUnknown
	})
	if i, _ := (vswitch.View{Snapshot: rep.Snapshot()}).InterfaceByName("p1"); i.OFPort.String() != "7" {
		t.Errorf("ofport %v did not survive", i.OFPort)
	}
	until(func(v vswitch.View) bool {
		i, _ := v.InterfaceByName("p1")
		return i.LinkState != vswitch.StateUnknown
	})
}

// editedSchema writes the installed schema with some changes.
func editedSchema(t *testing.T, edit func(tables map[string]map[string]any)) string {
	t.Helper()
	text, err := os.ReadFile(ovsdbtest.SchemaFile)
	if err != nil {
		t.Skipf("needs the Open_vSwitch schema: %v", err)
	}
	var schema map[string]any
	if err := json.Unmarshal(text, &schema); err != nil {
		t.Fatal(err)
	}
	columns := make(map[string]map[string]any)
	tables := schema["tables"].(map[string]any)
	for name, table := range tables {
		columns[name] = table.(map[string]any)["columns"].(map[string]any)
	}
	edit(columns)
	for name := range tables {
		if columns[name] == nil {
			delete(tables, name)
		}
	}
	if text, err = json.Marshal(schema); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "edited.ovsschema")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestOtherSchemas(t *testing.T) {
	limit := map[string]any{"type": map[string]any{"key": "integer", "min": 0, "max": 1}}
	newer := editedSchema(t, func(tables map[string]map[string]any) {
		tables["CT_Zone"]["limit"] = limit
		tables["Datapath"]["ct_zone_default_limit"] = limit
		tables["Flow_Table"]["prefixes"].(map[string]any)["type"].(map[string]any)["max"] = 4
	})
	older := editedSchema(t, func(tables map[string]map[string]any) {
		delete(tables, "CT_Zone")
		delete(tables, "CT_Timeout_Policy")
		delete(tables, "Datapath")
		delete(tables["Open_vSwitch"], "datapaths")
		delete(tables["Controller"], "type")
		delete(tables["Flow_Table"], "external_ids")
	})
	fill := func(srv *ovsdbtest.Server) {
		srv.Vsctl("add-br", "br0", "--", "add-port", "br0", "p1", "--", "set-manager", "ptcp:6640:127.0.0.1",
			"--", "--id=@t", "create", "flow_table", "name=slots", "flow_limit=10", "prefixes=ip_dst,ip_src", "--", "set", "bridge", "br0", "flow_tables:11=@t")
	}

	srv := ovsdbtest.StartServerOn(t, newer)
	fill(srv)
	srv.Vsctl("--id=@d", "create", "datapath", "datapath_version=1", "--", "set", "Open_vSwitch", ".", "datapaths:netdev=@d", "--", "add-zone-tp", "netdev", "zone=5", "icmp_first=3", "udp_single=60")
	_, rep := open(t, srv)
	v := vswitch.View{Snapshot: rep.Snapshot()}
	br, _ := v.Bridge("br0")
	if tables := v.FlowTables(br); len(tables) != 1 || tables[11].Name != "slots" || *tables[11].FlowLimit != 10 || len(tables[11].Prefixes) != 2 {
		t.Errorf("flow tables: %+v", tables)
	}
	if m := v.Managers(); len(m) != 1 || m[0].Target != "ptcp:6640:127.0.0.1" || m[0].InactivityProbe != nil {
		t.Errorf("managers: %+v", m)
	}
	dp, ok := v.Datapath("netdev")
	if !ok || dp.CTZoneDefaultLimit != nil {
		t.Errorf("datapath: %+v, %v", dp, ok)
	}
	zone, ok := v.CTZones(dp)[5]
	if !ok || zone.Limit != nil {
		t.Errorf("zone: %+v, %v", zone, ok)
	}
	if tp, ok := v.CTTimeoutPolicy(zone); !ok || len(tp.Timeouts) != 2 || tp.Timeouts["udp_single"] != time.Minute {
		t.Errorf("timeouts: %+v, %v", tp, ok)
	}
	if !rep.Snapshot().Has("CT_Zone", "limit") {
		t.Error("a newer column is not read")
	}

	srv = ovsdbtest.StartServerOn(t, older)
	fill(srv)
	c, rep := open(t, srv)
	v = vswitch.View{Snapshot: rep.Snapshot()}
	if rep.Snapshot().Has("CT_Zone", "") || rep.Snapshot().Has("Controller", "type") || !rep.Snapshot().Has("Bridge", "name") {
		t.Error("Has is wrong about what the schema lacks")
	}
	if _, ok := v.Datapath("netdev"); ok || len(v.BridgeInterfaces(v.Bridges()[0])) != 2 {
		t.Errorf("bridges: %+v", v.Bridges())
	}
	p, err := v.SetController("br0", vswitch.ControllerConfig{Target: "unix:x.sock"})
	apply(t, c, p, err)
	mark := vswitch.Mark{Key: "k", Owner: "o"}
	if p, err := v.SetTimeouts("netdev", mark, nil); err != nil || !p.Empty() {
		t.Errorf("no timeouts: %v, %v", p, err)
	}
	if _, err := v.SetTimeouts("netdev", mark, map[int64]vswitch.Timeouts{5: {"udp_first": time.Second}}); err == nil || !strings.Contains(err.Error(), "2.13") {
		t.Errorf("timeouts where there is no place for them: %v", err)
	}
}
