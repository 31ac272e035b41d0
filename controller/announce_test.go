package controller

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"brlb/openflow"
)

func TestAnnouncements(t *testing.T) {
	begin := time.Date(2024, 5, 1, 12, 0, 0, 0, time.UTC)
	mac := openflow.MAC{2, 0, 0, 0, 0, 1}
	one, two := netip.MustParseAddr("10.20.0.1"), netip.MustParseAddr("2001:db8::2")
	addrs := func(list ...netip.Addr) []netip.Addr { return list }
	type step struct {
		at    int // tenths of a second
		mac   openflow.MAC
		addrs []netip.Addr
	}
	for _, c := range []struct {
		name  string
		steps []step
		want  string // what is announced when, in tenths of a second
	}{
		{"nothing is answered for", nil, ""},
		{"a few times and no more", []step{{0, mac, addrs(one)}}, "0:.1 10:.1 20:.1 40:.1"},
		{"the same again", []step{{0, mac, addrs(one)}, {15, mac, addrs(one)}}, "0:.1 10:.1 20:.1 40:.1"},
		{"another one later", []step{{0, mac, addrs(one)}, {15, mac, addrs(one, two)}}, "0:.1 10:.1 15:::2 20:.1 25:::2 35:::2 40:.1 55:::2"},
		{"withdrawn", []step{{0, mac, addrs(one, two)}, {15, mac, addrs(two)}}, "0:.1 0:::2 10:.1 10:::2 20:::2 40:::2"},
		{"withdrawn, and back", []step{{0, mac, addrs(one)}, {15, mac, nil}, {50, mac, addrs(one)}}, "0:.1 10:.1 50:.1 60:.1 70:.1 90:.1"},
		{"another MAC", []step{{0, mac, addrs(one)}, {60, openflow.MAC{2, 2}, addrs(one)}}, "0:.1 10:.1 20:.1 40:.1 60:.1 70:.1 80:.1 100:.1"},
	} {
		var a announcer
		var log []string
		for at := range 200 {
			now := begin.Add(time.Duration(at) * 100 * time.Millisecond)
			for _, s := range c.steps {
				if s.at == at {
					a.set(s.mac, s.addrs, now)
				}
			}
			for _, addr := range a.due(now) {
				text := addr.String()
				log = append(log, fmt.Sprintf("%d:%s", at, strings.TrimPrefix(strings.TrimPrefix(text, "10.20.0"), "2001:db8")))
			}
		}
		if got := strings.Join(log, " "); got != c.want {
			t.Errorf("%s:\n got %s\nwant %s", c.name, got, c.want)
		}
	}
}
