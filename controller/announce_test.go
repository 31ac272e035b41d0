package controller

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"brlb/controller/bridge"
	"brlb/controller/state"
	"brlb/openflow"
)

func TestAnnouncements(t *testing.T) {
	begin := time.Date(2024, 5, 1, 12, 0, 0, 0, time.UTC)
	us := audience{mac: openflow.MAC{2, 0, 0, 0, 0, 1}, ports: []state.Port{{Number: 1, Name: "p1", Live: true}, {Number: 2, Name: "p2"}}}
	change := func(f func(*audience)) audience {
		other := us
		f(&other)
		return other
	}
	another := change(func(a *audience) { a.mac = openflow.MAC{2, 2} })
	carrier := change(func(a *audience) {
		a.ports = []state.Port{{Number: 1, Name: "p1", Live: true}, {Number: 2, Name: "p2", Live: true}}
	})
	gone := change(func(a *audience) { a.ports = []state.Port{{Number: 2, Name: "p2"}} })
	renamed := change(func(a *audience) { a.ports = []state.Port{{Number: 1, Name: "p3", Live: true}} })
	tagged := change(func(a *audience) { a.vlans = []uint16{30} })
	one, two := netip.MustParseAddr("10.20.0.1"), netip.MustParseAddr("2001:db8::2")
	addrs := func(list ...netip.Addr) []netip.Addr { return list }
	type step struct {
		at    int // tenths of a second
		to    audience
		addrs []netip.Addr
	}
	const once, again = "0:.1 10:.1 20:.1 40:.1", " 60:.1 70:.1 80:.1 100:.1"
	for _, c := range []struct {
		name  string
		steps []step
		want  string // what is announced when, in tenths of a second
	}{
		{"nothing is answered for", nil, ""},
		{"a few times and no more", []step{{0, us, addrs(one)}}, once},
		{"the same again", []step{{0, us, addrs(one)}, {15, us, addrs(one)}}, once},
		{"another one later", []step{{0, us, addrs(one)}, {15, us, addrs(one, two)}}, "0:.1 10:.1 15:::2 20:.1 25:::2 35:::2 40:.1 55:::2"},
		{"withdrawn", []step{{0, us, addrs(one, two)}, {15, us, addrs(two)}}, "0:.1 0:::2 10:.1 10:::2 20:::2 40:::2"},
		{"withdrawn, and back", []step{{0, us, addrs(one)}, {15, us, nil}, {50, us, addrs(one)}}, "0:.1 10:.1 50:.1 60:.1 70:.1 90:.1"},
		{"another MAC", []step{{0, us, addrs(one)}, {60, another, addrs(one)}}, once + again},
		{"a port has a carrier", []step{{0, us, addrs(one)}, {60, carrier, addrs(one)}}, once + again},
		{"a port has lost its carrier", []step{{0, carrier, addrs(one)}, {60, us, addrs(one)}}, once},
		{"a port is gone, and back", []step{{0, us, addrs(one)}, {50, gone, addrs(one)}, {60, us, addrs(one)}}, once + again},
		{"a port's number is another one's", []step{{0, us, addrs(one)}, {60, renamed, addrs(one)}}, once + again},
		{"a VLAN more", []step{{0, us, addrs(two)}, {60, tagged, addrs(two)}}, "0:::2 10:::2 20:::2 40:::2 60:::2 60:::2/30 70:::2 70:::2/30 80:::2 80:::2/30 100:::2 100:::2/30"},
		{"a VLAN less", []step{{0, tagged, addrs(two)}, {5, us, addrs(two)}}, "0:::2 0:::2/30 10:::2 20:::2 40:::2"},
	} {
		var a announcer
		var log []string
		for at := range 200 {
			now := begin.Add(time.Duration(at) * 100 * time.Millisecond)
			for _, s := range c.steps {
				if s.at == at {
					a.set(s.to, s.addrs, now)
				}
			}
			for _, next := range a.due(now) {
				text := fmt.Sprintf("%d:%s", at, strings.TrimPrefix(strings.TrimPrefix(next.Addr.String(), "10.20.0"), "2001:db8"))
				if next.VLAN != 0 {
					text += fmt.Sprint("/", next.VLAN)
				}
				log = append(log, text)
			}
		}
		if got := strings.Join(log, " "); got != c.want {
			t.Errorf("%s:\n got %s\nwant %s", c.name, got, c.want)
		}
	}
}

// Many addresses in many VLANs are no burst, every network hears of each of them
// as often as of one alone, and a new one does not wait for the old ones.
func TestManyAnnouncements(t *testing.T) {
	begin := time.Date(2024, 5, 1, 12, 0, 0, 0, time.UTC)
	to := audience{mac: openflow.MAC{2, 0, 0, 0, 0, 1}, vlans: []uint16{10, 20, 30}}
	var addrs []netip.Addr
	for i := range 100 {
		addrs = append(addrs, netip.AddrFrom4([4]byte{10, 20, 0, byte(i)}), netip.AddrFrom16([16]byte{0x20, 1, 15: byte(i)}))
	}
	late := netip.MustParseAddr("192.0.2.1")
	const frames = 4 * 4 * (100*2 + 100) // rounds, networks
	var a announcer
	a.set(to, addrs, begin)
	sent := map[bridge.Announcement]int{}
	var perTick []int
	for now := begin; now.Sub(begin) < 2*time.Minute; now = now.Add(tick) {
		if now.Sub(begin) == 20*time.Second {
			a.set(to, append(addrs, late), now)
		}
		n := 0
		for _, next := range a.due(now) {
			sent[next]++
			n += next.Frames()
		}
		perTick = append(perTick, n)
		if now.Sub(begin) == 20*time.Second && sent[bridge.Announcement{Addr: late, VLAN: 30}] != 1 {
			t.Errorf("a new address waits for the others: %v", sent)
		}
	}
	perSecond := int(time.Second / tick)
	total := 0
	for i, n := range perTick {
		total += n
		sum := 0
		for _, n := range perTick[i:min(i+perSecond, len(perTick))] {
			sum += n
		}
		if sum > announceRate+announceBurst {
			t.Errorf("%d frames in a second, from the %dth tick on", sum, i)
		}
	}
	if total != frames+4*4*2 {
		t.Errorf("%d frames in all, want %d", total, frames+4*4*2)
	}
	if len(sent) != 4*(len(addrs)+1) {
		t.Errorf("%d addresses and networks, want %d", len(sent), 4*(len(addrs)+1))
	}
	for next, n := range sent {
		if n != 1+len(announceAgain) {
			t.Errorf("%v is announced %d times", next, n)
		}
	}
}
