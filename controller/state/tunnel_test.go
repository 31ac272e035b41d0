package state

import (
	"testing"
	"time"

	"brlb/controller/config"
	"brlb/openflow"
)

const tunnelled = `
pools:
  web: {id: 1, mode: tunnel, tunnel: {type: geneve}, members: {be1: 10.30.0.11:80, be2: 10.30.0.12:80}}
services:
  web: {address: 10.20.0.100, ports: [80/tcp], pool: web}
`

// A tunnel's members need no neighbours, but its port.
func TestMembersBehindATunnel(t *testing.T) {
	cfg, err := config.Parse("test.yaml", []byte(tunnelled))
	if err != nil {
		t.Fatal(err)
	}
	now := time.Date(2024, 5, 1, 12, 0, 0, 0, time.UTC)
	s := New(cfg, now)
	if err := s.LoadNumbers(""); err != nil {
		t.Fatal(err)
	}
	for _, id := range s.Probes() {
		s.SetVerdict(id, Verdict{Health: Up}, now)
	}
	if hops := s.NextHops(); len(hops) > 0 {
		t.Errorf("asks for %v, although the host's routes lead there", hops)
	}
	port := func(live bool) Port { return Port{Number: 7, Name: "brlb-geneve", Live: live} }
	for _, c := range []struct {
		what   string
		ports  []Port
		reason string
	}{
		{"no port", nil, "no tunnel: port brlb-geneve is not on the bridge"},
		{"another tunnel's port", []Port{{Number: 7, Name: "brlb-vxlan", Live: true}}, "no tunnel: port brlb-geneve is not on the bridge"},
		{"a port that does not live", []Port{port(false)}, "port brlb-geneve (7) is down"},
		{"a port", []Port{port(true)}, ""},
	} {
		s.SetPorts(c.ports, now)
		// A member of a dsr pool may have been found there before.
		s.Adopt([]Adopted{{Number: 1, PoolID: 1, Address: cfg.Pools[0].Members[0].Address, HasNext: true, Next: NextHop{MAC: openflow.MAC{2}, Port: 9}}}, now)
		for _, m := range s.Snapshot().Pools[0].Members {
			if m.Reason != c.reason || m.Active != (c.reason == "") {
				t.Errorf("%s: %s is not active because of %q, want %q", c.what, m.Name, m.Reason, c.reason)
			}
			if want := (NextHop{MAC: openflow.MAC(config.DefaultTunnelMAC), Port: 7, Source: "tunnel"}); m.Active && m.Next != want {
				t.Errorf("%s: %s is at %+v, want %+v", c.what, m.Name, m.Next, want)
			}
		}
	}
	for _, m := range AllActive(cfg).Pools[0].Members {
		if !m.Active {
			t.Errorf("of a file alone: %s is not active: %s", m.Name, m.Reason)
		}
	}
}
