package pipeline

import (
	"slices"
	"strings"
	"testing"

	"brlb/openflow"
)

const refusing = `
mac: 02:00:5e:00:01:02
gateways: [10.30.0.1/24]
pools:
  web: {id: 1, slots: 64, on_all_down: reject, members: {be1: 10.30.0.11:8080}}
  far: {id: 2, slots: 64, mode: tunnel, tunnel: {type: vxlan, key: 5}, members: {be1: 10.30.0.11:80}}
services:
  web: {address: 10.20.0.100, ports: [80/tcp, 53/udp], pool: web, other_ports: reject}
  far: {address: 10.20.0.101, ports: [80/tcp], pool: far}
`

func meterOf(f *openflow.FlowMod) (id uint32) {
	for _, i := range f.Instructions {
		if m, ok := i.(openflow.Meter); ok {
			id = uint32(m)
		}
	}
	return id
}

// A switch without meters gets the same rows, but none that names a meter: what
// would be refused is dropped, so that a flood of it does not come up.
func TestNoMeters(t *testing.T) {
	s := serving(t, refusing)
	usual := render(t, s.Snapshot()).Flows()
	s.SetNoMeters(true)
	bare := map[string]*openflow.FlowMod{}
	for _, f := range render(t, s.Snapshot()).Flows() {
		bare[place(f)] = f
	}
	seen := map[uint32]int{}
	for _, f := range usual {
		now := bare[place(f)]
		if now == nil {
			t.Errorf("gone: %s", f)
			continue
		}
		id := meterOf(f)
		seen[id]++
		want := f.Instructions
		switch id {
		case meterRefused:
			want = nil
		case meterServed:
			want = slices.DeleteFunc(slices.Clone(want), func(i openflow.Instruction) bool { return i == openflow.Instruction(openflow.Meter(meterServed)) })
		}
		if now.Instructions.String() != want.String() {
			t.Errorf("%s\nbecomes %s", f, now)
		}
		if strings.Contains(now.String(), "meter:") {
			t.Errorf("names a meter: %s", now)
		}
	}
	if len(bare) != len(usual) || seen[meterRefused] == 0 || seen[meterServed] == 0 {
		t.Errorf("%d rows, with meters %d; by meter %v", len(bare), len(usual), seen)
	}
}
