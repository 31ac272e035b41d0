package bridge

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"
)

var begin = time.Date(2024, 5, 1, 12, 0, 0, 0, time.UTC)

func at(ms int) time.Time { return begin.Add(time.Duration(ms) * time.Millisecond) }

func host(n int) netip.Addr { return netip.AddrFrom4([4]byte{10, 30, 0, byte(n)}) }

// asked lets time pass as the owner's timer would, and says when which host
// was asked for, in milliseconds.
func asked(n *Neighbours, from, to int) string {
	var log []string
	for now := at(from); !now.After(at(to)); {
		ask, next := n.Due(now)
		for _, addr := range ask {
			log = append(log, fmt.Sprintf("%d:.%d", now.Sub(begin).Milliseconds(), addr.As4()[3]))
		}
		if next.IsZero() {
			break
		}
		if !next.After(now) {
			log = append(log, "STUCK")
			break
		}
		now = next
	}
	return strings.Join(log, " ")
}

func TestNeighbours(t *testing.T) {
	cases := []struct {
		name string
		do   func(n *Neighbours) string
		want string
	}{
		{"nobody is wanted", func(n *Neighbours) string { return asked(n, 0, 10000) }, ""},
		{"who does not answer is asked quickly, then once a second", func(n *Neighbours) string {
			n.Want([]netip.Addr{host(1)}, at(0))
			return asked(n, 0, 3000)
		}, "0:.1 100:.1 200:.1 300:.1 400:.1 500:.1 1500:.1 2500:.1"},
		{"who answers is asked again after the refresh", func(n *Neighbours) string {
			n.Want([]netip.Addr{host(1)}, at(0))
			n.Due(at(0))
			n.Learned(host(1), at(50))
			return asked(n, 50, 30049) + "|" + asked(n, 30050, 30050)
		}, "|30050:.1"},
		{"who answered once and then not is asked once a second", func(n *Neighbours) string {
			n.Want([]netip.Addr{host(1)}, at(0))
			n.Learned(host(1), at(0))
			return asked(n, 0, 33000)
		}, "30000:.1 31000:.1 32000:.1 33000:.1"},
		{"wanted again changes nothing", func(n *Neighbours) string {
			n.Want([]netip.Addr{host(1)}, at(0))
			n.Learned(host(1), at(0))
			n.Want([]netip.Addr{host(1)}, at(10))
			return asked(n, 10, 20000)
		}, ""},
		{"a new one is asked at once, the others wait", func(n *Neighbours) string {
			n.Want([]netip.Addr{host(1)}, at(0))
			n.Learned(host(1), at(0))
			n.Want([]netip.Addr{host(2), host(1)}, at(10))
			return asked(n, 10, 50)
		}, "10:.2"},
		{"not wanted any more", func(n *Neighbours) string {
			n.Want([]netip.Addr{host(1), host(2)}, at(0))
			n.Want([]netip.Addr{host(2)}, at(0))
			return asked(n, 0, 50)
		}, "0:.2"},
		{"several at once come in order", func(n *Neighbours) string {
			n.Want([]netip.Addr{host(3), host(1), host(2)}, at(0))
			return asked(n, 0, 100)
		}, "0:.1 0:.2 0:.3 100:.1 100:.2 100:.3"},
		{"after a reset all are asked as if new", func(n *Neighbours) string {
			n.Want([]netip.Addr{host(1)}, at(0))
			n.Learned(host(1), at(0))
			n.Reset(at(1000))
			return asked(n, 1000, 1200)
		}, "1000:.1 1100:.1 1200:.1"},
		{"another refresh counts from the next answer", func(n *Neighbours) string {
			n.Want([]netip.Addr{host(1)}, at(0))
			n.SetRefresh(5 * time.Second)
			n.Learned(host(1), at(0))
			return asked(n, 0, 5500)
		}, "5000:.1"},
		{"an answer of somebody unknown", func(n *Neighbours) string {
			n.Learned(host(9), at(0))
			return asked(n, 0, 60000)
		}, ""},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if got := c.do(NewNeighbours(30 * time.Second)); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

func TestNeighboursOfAReload(t *testing.T) {
	n := NewNeighbours(time.Minute)
	var addrs []netip.Addr
	for i := range 5000 {
		addrs = append(addrs, netip.AddrFrom4([4]byte{10, 0, byte(i >> 8), byte(i)}))
	}
	n.Want(addrs, at(0))
	n.Want(addrs, at(0))
	due, _ := n.Due(at(0))
	if !slices.Equal(due, addrs) || !n.Wanted(addrs[0]) || n.Wanted(host(1).Next()) {
		t.Errorf("%d of %d are due", len(due), len(addrs))
	}
}
