package controller

import (
	"net/netip"
	"testing"

	"brlb/controller/config"
	"brlb/controller/state"
	"brlb/health"
)

// What the prober is given can be probed as it is: complete, valid, and at the
// port that the check names.
func TestProbeTargets(t *testing.T) {
	cfg, err := config.Parse("test.yaml", []byte(`
checks:
  web: {type: http, path: /healthz, interval: 100ms}
  shop: {type: https, sni: shop.example.org}
  agent: {type: agent, port: 9000}
  dns: {type: udp, send_hex: "00", expect_hex: "81"}
pools:
  a: {id: 1, check: web, members: {m: 10.30.0.11:80}}
  b: {id: 2, members: {m: 10.30.0.11:80}}
`))
	if err != nil {
		t.Fatal(err)
	}
	member := netip.MustParseAddrPort("10.30.0.11:80")
	for check, want := range map[string]struct {
		address string
		kind    health.Type
	}{
		"web":   {"10.30.0.11:80", health.HTTP},
		"shop":  {"10.30.0.11:80", health.HTTPS},
		"agent": {"10.30.0.11:9000", health.AgentLine},
		"dns":   {"10.30.0.11:80", health.UDP},
		"tcp":   {"10.30.0.11:80", health.TCP},
	} {
		target := probeTarget(cfg, state.ProbeID{Address: member, Check: check})
		if target.Address.String() != want.address || target.Check.Type != want.kind {
			t.Errorf("%s: got %v %s", check, target.Address, target.Check.Type)
		}
		if err := health.New(health.Options{}).Set([]health.Target{target}); err != nil {
			t.Errorf("%s: %v", check, err)
		}
	}
}
