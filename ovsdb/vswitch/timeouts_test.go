package vswitch_test

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"brlb/ovsdb/ovsdbtest"
	"brlb/ovsdb/vswitch"
)

func TestSetTimeouts(t *testing.T) {
	srv := ovsdbtest.StartServer(t)
	c, rep := open(t, srv)
	mark := vswitch.Mark{Key: "brlb-timeouts", Owner: "br-lb"}
	view := func() vswitch.View { return vswitch.View{Snapshot: rep.Snapshot()} }
	set := func(want map[int64]vswitch.Timeouts, changes string) {
		t.Helper()
		p, err := view().SetTimeouts("netdev", mark, want)
		apply(t, c, p, err)
		if got := strings.Join(p.Changes, "; "); got != changes {
			t.Errorf("changes %q, want %q", got, changes)
		}
	}
	databaseIs := func(want string) {
		t.Helper()
		v := view()
		root, _ := v.Root()
		var have []string
		for _, kind := range slices.Sorted(maps.Keys(root.Datapaths)) {
			dp, _ := v.Datapath(kind)
			zones := v.CTZones(dp)
			for _, n := range slices.Sorted(maps.Keys(zones)) {
				policy, _ := v.CTTimeoutPolicy(zones[n])
				have = append(have, fmt.Sprintf("%s %d {%v} of %q", kind, n, vswitch.Timeouts(policy.Timeouts), policy.ExternalIDs["brlb-timeouts"]))
			}
		}
		if got := strings.Join(have, "; "); got != want {
			t.Errorf("the database has %s, want %s", got, want)
		}
	}
	changed := func(args ...string) {
		t.Helper()
		before := rep.Snapshot()
		srv.Vsctl(args...)
		settle(t, rep, func(v vswitch.View) bool { return v.Snapshot != before })
	}
	short := vswitch.Timeouts{"udp_multiple": 5 * time.Second, "tcp_established": 2 * time.Hour}

	set(nil, "")
	databaseIs("")
	stale, _ := view().SetTimeouts("netdev", mark, map[int64]vswitch.Timeouts{7: short})
	// A database that has no row of the datapath yet.
	set(map[int64]vswitch.Timeouts{7: short, 8: short}, "timeouts of conntrack zone 7 of datapath netdev: tcp_established=2h0m0s, udp_multiple=5s; "+
		"timeouts of conntrack zone 8 of datapath netdev: tcp_established=2h0m0s, udp_multiple=5s")
	databaseIs(`netdev 7 {tcp_established=2h0m0s, udp_multiple=5s} of "br-lb"; netdev 8 {tcp_established=2h0m0s, udp_multiple=5s} of "br-lb"`)
	set(map[int64]vswitch.Timeouts{7: short, 8: short}, "")
	if err := stale.Apply(t.Context(), c); !errors.Is(err, vswitch.ErrChanged) {
		t.Errorf("a plan made from what is no longer so: %v", err)
	}

	// What somebody has changed is put right.
	dp, _ := view().Datapath("netdev")
	policy, _ := view().CTTimeoutPolicy(view().CTZones(dp)[7])
	changed("set", "ct_timeout_policy", policy.UUID.String(), "timeouts:udp_multiple=9")
	changed("del-zone-tp", "netdev", "zone=8")
	set(map[int64]vswitch.Timeouts{7: short, 8: short}, "timeouts of conntrack zone 7 of datapath netdev: tcp_established=2h0m0s, udp_multiple=5s (was tcp_established=2h0m0s, udp_multiple=9s); "+
		"timeouts of conntrack zone 8 of datapath netdev: tcp_established=2h0m0s, udp_multiple=5s")

	// Somebody else's stay, and so do those of another bridge's brlb.
	changed("add-zone-tp", "netdev", "zone=9", "udp_first=1")
	other := vswitch.Mark{Key: "brlb-timeouts", Owner: "br1"}
	p, err := view().SetTimeouts("netdev", other, map[int64]vswitch.Timeouts{10: short})
	apply(t, c, p, err)
	p, err = view().SetTimeouts("netdev", mark, map[int64]vswitch.Timeouts{8: short, 9: short})
	if err == nil || !strings.Contains(err.Error(), "zone 9 of datapath netdev has timeouts that somebody else has set: remove them (ovs-vsctl del-zone-tp netdev zone=9)") {
		t.Errorf("timeouts of somebody else: %v", err)
	}
	apply(t, c, p, nil)
	databaseIs(`netdev 8 {tcp_established=2h0m0s, udp_multiple=5s} of "br-lb"; netdev 9 {udp_first=1s} of ""; netdev 10 {tcp_established=2h0m0s, udp_multiple=5s} of "br1"`)

	// Another type of datapath: the zones move with the bridge.
	p, err = view().SetTimeouts("system", mark, map[int64]vswitch.Timeouts{8: short})
	apply(t, c, p, err)
	databaseIs(`netdev 9 {udp_first=1s} of ""; netdev 10 {tcp_established=2h0m0s, udp_multiple=5s} of "br1"; system 8 {tcp_established=2h0m0s, udp_multiple=5s} of "br-lb"`)

	// A zone that was there already, without timeouts, is left like that.
	changed("--id=@z", "create", "ct_zone", "external_ids:a=b", "--", "set", "datapath", dp.UUID.String(), "ct_zones:7=@z")
	set(map[int64]vswitch.Timeouts{7: short}, "timeouts of conntrack zone 7 of datapath netdev: tcp_established=2h0m0s, udp_multiple=5s; timeouts removed from conntrack zone 8 of datapath system")
	set(nil, "timeouts removed from conntrack zone 7 of datapath netdev")
	databaseIs(`netdev 7 {} of ""; netdev 9 {udp_first=1s} of ""; netdev 10 {tcp_established=2h0m0s, udp_multiple=5s} of "br1"`)
}
