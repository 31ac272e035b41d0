package vswitch_test

import (
	"errors"
	"testing"
	"time"

	"brlb/ovsdb"
	"brlb/ovsdb/ovsdbtest"
	"brlb/ovsdb/vswitch"
)

func TestSetBFD(t *testing.T) {
	srv := ovsdbtest.StartServer(t)
	srv.Vsctl("add-br", "br-lb", "--", "add-port", "br-lb", "p1", "--", "set", "interface", "p1",
		"bfd:oam=true", "external_ids:other=kept", "--", "add-port", "br-lb", "p2", "--", "set", "interface", "p2", "bfd:enable=true")
	c, rep := open(t, srv)
	row := func(name string) vswitch.Interface {
		i, ok := vswitch.View{Snapshot: rep.Snapshot()}.InterfaceByName(name)
		if !ok {
			t.Fatalf("no interface %s", name)
		}
		return i
	}
	set := func(name string, want *vswitch.BFD, changes int, bfd, ids string) {
		t.Helper()
		p := vswitch.SetBFD(row(name), "brlb-bfd", want)
		apply(t, c, p, nil)
		if len(p.Changes) != changes {
			t.Errorf("%d changes: %q", len(p.Changes), p.Changes)
		}
		if got := ovsdb.StringMap(row(name).BFD).String(); got != bfd {
			t.Errorf("bfd is %s, want %s", got, bfd)
		}
		if got := ovsdb.StringMap(row(name).ExternalIDs).String(); got != ids {
			t.Errorf("external_ids are %s, want %s", got, ids)
		}
	}
	const mine, theirs = `{"brlb-bfd"="true", "other"="kept"}`, `{"other"="kept"}`
	fast := &vswitch.BFD{MinTx: 100 * time.Millisecond, MinRx: 200 * time.Millisecond, Mult: 3}
	stale := row("p1")
	set("p1", nil, 0, `{"oam"="true"}`, theirs)
	set("p1", fast, 2, `{"enable"="true", "min_rx"="200", "min_tx"="100", "mult"="3", "oam"="true"}`, mine)
	set("p1", fast, 0, `{"enable"="true", "min_rx"="200", "min_tx"="100", "mult"="3", "oam"="true"}`, mine)
	set("p1", &vswitch.BFD{MinTx: time.Second, MinRx: time.Second, Mult: 5}, 1, `{"enable"="true", "min_rx"="1000", "min_tx"="1000", "mult"="5", "oam"="true"}`, mine)
	if err := vswitch.SetBFD(stale, "brlb-bfd", fast).Apply(t.Context(), c); !errors.Is(err, vswitch.ErrChanged) {
		t.Errorf("a plan made from what is no longer so: %v", err)
	}
	set("p1", nil, 2, `{"oam"="true"}`, theirs)
	// What somebody else has turned on stays theirs.
	set("p2", fast, 0, `{"enable"="true"}`, `{}`)
	set("p2", nil, 0, `{"enable"="true"}`, `{}`)
}
