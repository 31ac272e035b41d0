package controller

import (
	"net/netip"
	"testing"

	"brlb/controller/state"
)

// A VIP is announced when the switch answers for it, and that is not before all
// members have a first verdict.
func TestAnsweredVIPs(t *testing.T) {
	s := reachable(t, `
mac: 02:00:5e:00:01:02
pools:
  web: {id: 1, slots: 64, members: {be1: 10.30.0.11:80, be2: 10.30.0.12:80}}
services:
  web: {address: 10.20.0.100, ports: [80/tcp], pool: web}
  tls: {address: 10.20.0.100, ports: [443/tcp], pool: web}
`)
	for i, id := range s.Probes() {
		if got := answered(s.Snapshot()); len(got) != 0 {
			t.Errorf("after %d of 2 verdicts: %v", i, got)
		}
		s.SetVerdict(id, state.Verdict{Health: state.Up}, noon)
	}
	if got := answered(s.Snapshot()); len(got) != 1 || got[0] != netip.MustParseAddr("10.20.0.100") {
		t.Errorf("after all verdicts: %v", got)
	}
}
