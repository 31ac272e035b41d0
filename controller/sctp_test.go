package controller

import (
	"log/slog"
	"testing"
	"time"

	"brlb/controller/bridge"
	"brlb/controller/config"
	"brlb/controller/inventory"
)

// Who has SCTP services on a switch that does not know SCTP's ports is told so.
func TestUntrackedSCTPIsTold(t *testing.T) {
	for _, c := range []struct {
		service               string
		userspace, tracksNone bool
		told                  bool
	}{
		{"ports: [80/tcp, 9000/sctp], pool: web", true, true, true},
		{"ports: [80/tcp, 9000/sctp], pool: web", true, false, false},
		{"ports: [80/tcp, 9000/sctp], pool: web", false, true, false},
		{"ports: [80/tcp], pool: web", true, true, false},
		{"ports: [80/sctp], pool: direct", true, true, false},
	} {
		cfg, err := config.Parse("test.yaml", []byte(`
pools:
  web: {id: 1, slots: 64, members: {be1: 10.30.0.11:80}}
  direct: {id: 2, slots: 64, mode: dsr, members: {be1: 10.30.0.11:80}}
services:
  web: {address: 10.20.0.100, `+c.service+`}
`))
		if err != nil {
			t.Fatal(err)
		}
		l := newLoop(cfg, loopOptions{Logger: slog.New(slog.DiscardHandler)}, nil)
		l.takeInventory(t.Context(), inventory.Update{Connected: true, Bridge: true, Userspace: c.userspace})
		l.takeConnected(t.Context(), bridge.Connected{Session: 1, TracksNoSCTP: c.tracksNone}, time.Now())
		if told := l.sw.confusesAssociations(&l.state.Snapshot().Services[0]); told != c.told {
			t.Errorf("%+v: told %t", c, told)
		}
	}
}
