package inventory

import (
	"slices"
	"strings"
	"testing"

	"brlb/ovsdb/vswitch"
)

func TestVLANs(t *testing.T) {
	access := func(id uint16) vswitch.Port { return vswitch.Port{Tag: vswitch.VLAN{ID: id, Set: true}} }
	var all vswitch.Port
	for id := range 4096 {
		all.Trunks = append(all.Trunks, int64(id))
	}
	for _, c := range []struct {
		name  string
		ports []vswitch.Port
		want  []uint16
	}{
		{"no ports", nil, nil},
		{"ports without VLANs", []vswitch.Port{{}, {}}, nil},
		{"access ports", []vswitch.Port{access(30), access(7), access(30)}, []uint16{7, 30}},
		{"trunks", []vswitch.Port{{Trunks: []int64{100, 30}}, access(30)}, []uint16{30, 100}},
		{"a trunk with a native VLAN", []vswitch.Port{{Trunks: []int64{100}, Tag: vswitch.VLAN{ID: 5, Set: true}}}, []uint16{5, 100}},
		{"ids that mean something else", []vswitch.Port{access(0), {Trunks: []int64{0, 4095}}}, nil},
	} {
		if got, problems := vlans(c.ports); !slices.Equal(got, c.want) || len(problems) > 0 {
			t.Errorf("%s: %v, want %v; %q", c.name, got, c.want, problems)
		}
	}
	if got, problems := vlans([]vswitch.Port{all}); len(got) != 64 || len(problems) != 1 || !strings.Contains(problems[0], "4094 VLANs") {
		t.Errorf("%d VLANs, %q", len(got), problems)
	}
}
