package pipeline

import (
	"strings"
	"testing"
)

// On a datapath that cannot make neighbour advertisements no row tries to, and
// whoever asks is answered by the controller.
func TestAskedND(t *testing.T) {
	s := serving(t, `
mac: 02:00:5e:00:01:02
gateways: ["2001:db8:1::1/64"]
pools:
  web: {id: 1, slots: 64, members: {be1: "[2001:db8:1::11]:8080"}}
services:
  web: {address: "2001:db8::100", ports: [80/tcp], pool: web}
`)
	s.SetKernel(true)
	asked := 0
	for _, f := range render(t, s.Snapshot()).Flows() {
		text := f.String()
		if strings.Contains(text, "nd_reserved") || strings.Contains(text, "nd_options_type") {
			t.Errorf("what the kernel refuses: %s", text)
		}
		if f.Table == TableOwn && strings.Contains(text, "icmp_type=135") && strings.Contains(text, "controller(") {
			asked++
		}
	}
	if asked != 1 {
		t.Errorf("%d rows hand solicitations to the controller, not 1", asked)
	}
}
