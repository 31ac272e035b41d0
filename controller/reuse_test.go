package controller

import (
	"log/slog"
	"testing"
	"time"

	"brlb/controller/bridge"
	"brlb/controller/config"
	"brlb/controller/inventory"
)

// Only a switch whose conntrack leaves tuples behind has entries flushed before
// their ports are used again; while OVSDB is away, what it said holds.
func TestWhoHasReusedPortsFlushed(t *testing.T) {
	cfg, err := config.Parse("test.yaml", []byte(`
pools:
  web: {id: 1, slots: 64, members: {be1: 10.30.0.11:80}}
services:
  web: {address: 10.20.0.100, ports: [80/tcp], pool: web}
`))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ userspace, keeps bool }{{false, false}, {false, true}, {true, false}, {true, true}} {
		l := newLoop(cfg, loopOptions{Logger: slog.New(slog.DiscardHandler)}, nil)
		steps := map[string]func(){
			"OVSDB": func() {
				l.takeInventory(t.Context(), inventory.Update{Connected: true, Bridge: true, Userspace: c.userspace})
			},
			"switch": func() {
				l.takeConnected(t.Context(), bridge.Connected{Session: 1, KeepsReplyTuples: c.keeps}, time.Now())
			},
		}
		for _, order := range [][]string{{"OVSDB", "switch"}, {"switch", "OVSDB"}} {
			for _, step := range order {
				steps[step]()
			}
			l.takeInventory(t.Context(), inventory.Update{})
			if got := l.state.Snapshot().FlushReused; got != (c.userspace && c.keeps) {
				t.Errorf("userspace %t, keeps tuples %t, %v: flushed %t", c.userspace, c.keeps, order, got)
			}
		}
	}
}
