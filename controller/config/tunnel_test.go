package config

import (
	"fmt"
	"testing"
)

func TestTunnel(t *testing.T) {
	usual := MAC{0x02, 0x62, 0x72, 0x6c, 0x62, 0x00}
	for _, c := range []struct {
		text   string
		want   Tunnel
		v4, v6 int // what fits within
	}{
		{"", Tunnel{"vxlan", 0, usual, 1500}, 1450, 1430},
		{"{}", Tunnel{"vxlan", 0, usual, 1500}, 1450, 1430},
		{"{type: geneve, key: 16777215}", Tunnel{"geneve", 1<<24 - 1, usual, 1500}, 1450, 1430},
		{"{type: gre, key: 4294967295, mtu: 9000}", Tunnel{"gre", 1<<32 - 1, usual, 9000}, 8958, 8938},
		{"{mac: 02:00:5e:00:01:09, mtu: 1350}", Tunnel{"vxlan", 0, MAC{2, 0, 0x5e, 0, 1, 9}, 1350}, 1300, 1280},
	} {
		key := "tunnel: " + c.text
		if c.text == "" {
			key = ""
		}
		text := fmt.Sprintf("pools:\n  web:\n    id: 1\n    mode: tunnel\n    %s\n    members: {be1: 10.30.0.11:80}\nservices:\n  web: {address: 10.20.0.100, ports: [80/tcp], pool: web}\n", key)
		cfg, err := Parse("test.yaml", []byte(text))
		if err != nil {
			t.Errorf("%s: %v", c.text, err)
			continue
		}
		got := cfg.Pools[0].Tunnel
		if got != c.want || got.Inner(false) != c.v4 || got.Inner(true) != c.v6 {
			t.Errorf("%s: %+v with room for %d and %d, want %+v, %d and %d", c.text, got, got.Inner(false), got.Inner(true), c.want, c.v4, c.v6)
		}
	}
}
