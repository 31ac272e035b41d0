package controller

import (
	"testing"
	"time"

	"brlb/controller/api"
	"brlb/controller/config"
	"brlb/controller/state"
	"brlb/openflow"
)

func TestEmpties(t *testing.T) {
	now := time.Date(2024, 5, 1, 12, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		members, service string
		want             bool
	}{
		{"be1: 10.30.0.11:80, be2: 10.30.0.12:80", "", false},
		{"be1: 10.30.0.11:80", "", true},
		{"be1: 10.30.0.11:80", ", backup: spare", false},
		{"be1: 10.30.0.11:80, be2: {address: 10.30.0.12:80, weight: 0}", "", true},
		{"be1: {address: 10.30.0.11:80, weight: 0}, be2: {address: 10.30.0.12:80, weight: 0}", "", false},
	} {
		cfg, err := config.Parse("test.yaml", []byte(`
pools:
  web: {id: 1, slots: 64, members: {`+c.members+`}}
  spare: {id: 2, slots: 64, members: {sp1: 10.30.0.21:80}}
services:
  web: {address: 10.20.0.100, ports: [80/tcp], pool: web`+c.service+`}
`))
		if err != nil {
			t.Fatal(err)
		}
		s := state.New(cfg, now)
		if err := s.LoadNumbers(""); err != nil {
			t.Fatal(err)
		}
		s.SetPorts([]state.Port{{Number: 1, Name: "p1", Live: true}}, now)
		for _, addr := range s.NextHops() {
			s.SetNextHop(addr, state.NextHop{MAC: openflow.MAC{2}, Port: 1}, now)
		}
		for _, id := range s.Probes() {
			s.SetVerdict(id, state.Verdict{Health: state.Up}, now)
		}
		ask := &consequence{now: s.Snapshot(), state: s.Clone()}
		d, text, err := decide("drain", api.ChangeRequest{}, now)
		if err != nil {
			t.Fatal(err)
		}
		if err := ask.override("web/be1", "", d, text); err != nil {
			t.Fatal(err)
		}
		ask.compare()
		if got := ask.empties() == "web"; got != c.want {
			t.Errorf("draining be1 of %s%s empties the pool: %v", c.members, c.service, got)
		}
	}
}
