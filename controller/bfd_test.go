package controller

import (
	"maps"
	"net/netip"
	"testing"
	"time"

	"brlb/controller/config"
	"brlb/controller/inventory"
	"brlb/controller/state"
)

func TestWantedBFD(t *testing.T) {
	const slow, quick = "{min_tx: 1s, min_rx: 1s, mult: 3}", "{min_tx: 100ms, min_rx: 100ms, mult: 3}"
	parse := func(web, api string) *config.Config {
		t.Helper()
		cfg, err := config.Parse("test.yaml", []byte(`
pools:
  api: {id: 2, slots: 64, bfd: `+api+`, members: {be2: 10.30.0.12:81, be3: 10.30.0.13:81}}
  web: {id: 1, slots: 64, bfd: `+web+`, members: {be1: 10.30.0.11:80, be2: 10.30.0.12:80}}
`))
		if err != nil {
			t.Fatal(err)
		}
		return cfg
	}
	second := config.BFD{MinTx: time.Second, MinRx: time.Second, Mult: 3}
	tenth := config.BFD{MinTx: time.Second / 10, MinRx: time.Second / 10, Mult: 3}
	now := time.Time{}
	for _, c := range []struct {
		name     string
		web, api string
		found    map[string]uint32 // ports of addresses
		want     inventory.BFDWants
	}{
		{"nobody asks", "false", "false", nil, inventory.BFDWants{Complete: true}},
		{"nobody is found", slow, "false", nil, inventory.BFDWants{}},
		{"one is found", slow, "false", map[string]uint32{"10.30.0.11": 3}, inventory.BFDWants{Ports: map[uint32]config.BFD{3: second}}},
		{"one pool asks", slow, "false", map[string]uint32{"10.30.0.11": 3, "10.30.0.12": 4}, inventory.BFDWants{Ports: map[uint32]config.BFD{3: second, 4: second}, Complete: true}},
		{"two pools, and one port", slow, quick, map[string]uint32{"10.30.0.11": 3, "10.30.0.12": 3, "10.30.0.13": 4}, inventory.BFDWants{Ports: map[uint32]config.BFD{3: second, 4: tenth}, Complete: true}},
	} {
		cfg := parse(c.web, c.api)
		s := state.New(cfg, now)
		for addr, port := range c.found {
			s.SetNextHop(netip.MustParseAddr(addr), state.NextHop{Port: port}, now)
		}
		if got := wantedBFD(cfg, s.Snapshot()); got.Complete != c.want.Complete || !maps.Equal(got.Ports, c.want.Ports) {
			t.Errorf("%s: %+v, want %+v", c.name, got, c.want)
		}
	}
}
