package controller

import (
	"testing"
	"time"

	"brlb/controller/config"
	"brlb/controller/state"
	"brlb/openflow"
)

// noon is when the states of tests begin.
var noon = time.Date(2024, 5, 1, 12, 0, 0, 0, time.UTC)

// reachable is a state in which all next hops are known, and no verdict is.
func reachable(t *testing.T, text string) *state.State {
	t.Helper()
	cfg, err := config.Parse("test.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	s := state.New(cfg, noon)
	if err := s.LoadNumbers(""); err != nil {
		t.Fatal(err)
	}
	s.SetPorts([]state.Port{{Number: 1, Name: "p1", Live: true}}, noon)
	for _, addr := range s.NextHops() {
		s.SetNextHop(addr, state.NextHop{MAC: openflow.MAC{2}, Port: 1}, noon)
	}
	return s
}

// allUp is a state in which all members are up.
func allUp(t *testing.T, text string) *state.State {
	t.Helper()
	s := reachable(t, text)
	for _, id := range s.Probes() {
		s.SetVerdict(id, state.Verdict{Health: state.Up}, noon)
	}
	return s
}
