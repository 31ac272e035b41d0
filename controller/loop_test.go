package controller

import (
	"net/netip"
	"testing"
	"time"

	"brlb/controller/config"
	"brlb/controller/state"
	"brlb/openflow"
)

// A VIP is announced when the switch answers for it, and that is not before all
// members have a first verdict.
func TestAnsweredVIPs(t *testing.T) {
	cfg, err := config.Parse("test.yaml", []byte(`
mac: 02:00:5e:00:01:02
pools:
  web: {id: 1, slots: 64, members: {be1: 10.30.0.11:80, be2: 10.30.0.12:80}}
services:
  web: {address: 10.20.0.100, ports: [80/tcp], pool: web}
  tls: {address: 10.20.0.100, ports: [443/tcp], pool: web}
`))
	if err != nil {
		t.Fatal(err)
	}
	now := time.Date(2024, 5, 1, 12, 0, 0, 0, time.UTC)
	s := state.New(cfg, now)
	if err := s.LoadNumbers(""); err != nil {
		t.Fatal(err)
	}
	s.SetPorts([]state.Port{{Number: 1, Name: "p1", Live: true}}, now)
	for _, addr := range s.NextHops() {
		s.SetNextHop(addr, state.NextHop{MAC: openflow.MAC{2}, Port: 1}, now)
	}
	for i, id := range s.Probes() {
		if got := answered(s.Snapshot()); len(got) != 0 {
			t.Errorf("after %d of 2 verdicts: %v", i, got)
		}
		s.SetVerdict(id, state.Verdict{Health: state.Up}, now)
	}
	if got := answered(s.Snapshot()); len(got) != 1 || got[0] != netip.MustParseAddr("10.20.0.100") {
		t.Errorf("after all verdicts: %v", got)
	}
}
