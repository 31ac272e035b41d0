package resolve

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

var begin = time.Date(2024, 5, 1, 12, 0, 0, 0, time.UTC)

func at(seconds int) time.Time { return begin.Add(time.Duration(seconds) * time.Second) }

func host(name string) Name { return Name{Host: name} }

func good(ttl time.Duration) Answer {
	return Answer{Addrs: []netip.Addr{netip.MustParseAddr("10.30.0.11")}, TTL: ttl}
}

// asked lets time pass as the owner's timer would, answers every question at
// once, and says when which name was asked for, in seconds.
func asked(n *Names, answer Answer, from, to int) string {
	var log []string
	for now := at(from); !now.After(at(to)); {
		ask, next := n.Due(now)
		for _, name := range ask {
			log = append(log, fmt.Sprintf("%g:%s", now.Sub(begin).Seconds(), name.Host))
			n.Answered(name, answer, now)
		}
		if len(ask) > 0 {
			continue
		}
		if next.IsZero() {
			break
		}
		now = next
	}
	return strings.Join(log, " ")
}

func TestNames(t *testing.T) {
	const floor = 5 * time.Second
	a, b := host("a"), host("b")
	for _, c := range []struct {
		name string
		do   func(n *Names) string
		want string
	}{
		{"nobody is wanted", func(n *Names) string { return asked(n, good(0), 0, 100) }, ""},
		{"an answer holds for its TTL", func(n *Names) string {
			n.Want([]Name{a}, floor, at(0))
			return asked(n, good(30*time.Second), 0, 100)
		}, "0:a 30:a 60:a 90:a"},
		{"but at least for the floor", func(n *Names) string {
			n.Want([]Name{a}, floor, at(0))
			return asked(n, good(0), 0, 14)
		}, "0:a 5:a 10:a"},
		{"and not for a lifetime", func(n *Names) string {
			n.Want([]Name{a}, floor, at(0))
			return asked(n, good(1<<31*time.Second), 0, 7200)
		}, "0:a 3600:a 7200:a"},
		{"a failure holds for the floor", func(n *Names) string {
			n.Want([]Name{a}, floor, at(0))
			return asked(n, Answer{TTL: time.Hour, Problem: "NXDOMAIN"}, 0, 14)
		}, "0:a 5:a 10:a"},
		{"wanted again changes nothing", func(n *Names) string {
			n.Want([]Name{a}, floor, at(0))
			first := asked(n, good(30*time.Second), 0, 10)
			n.Want([]Name{b, a}, floor, at(10))
			return first + "|" + asked(n, good(time.Minute), 10, 50)
		}, "0:a|10:b 30:a"},
		{"not wanted any more", func(n *Names) string {
			n.Want([]Name{a, b}, floor, at(0))
			n.Want([]Name{b}, floor, at(0))
			return asked(n, good(time.Minute), 0, 50)
		}, "0:b"},
		{"both families of a host", func(n *Names) string {
			n.Want([]Name{{Host: "a", V6: true}, a}, floor, at(0))
			ask, _ := n.Due(at(0))
			return fmt.Sprint(ask)
		}, "[{a false} {a true}]"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := c.do(NewNames()); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

// Whatever happens, a name that is wanted is asked for once at a time, never
// again before the floor has passed, and always again in the end.
func TestNamesProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		floor := time.Duration(rapid.IntRange(1, 60).Draw(t, "floor")) * time.Second
		names := []Name{host("a"), host("b"), host("c"), {Host: "a", V6: true}}
		n := NewNames()
		now := begin
		var wanted []Name
		asking, answered := map[Name]bool{}, map[Name]time.Time{}
		for range rapid.IntRange(1, 50).Draw(t, "steps") {
			now = now.Add(time.Duration(rapid.IntRange(0, 4000).Draw(t, "seconds")) * time.Second)
			switch rapid.IntRange(0, 2).Draw(t, "do") {
			case 0:
				wanted = rapid.SliceOfNDistinct(rapid.SampledFrom(names), 0, 4, rapid.ID[Name]).Draw(t, "wanted")
				n.Want(wanted, floor, now)
				for _, name := range names {
					if !slices.Contains(wanted, name) {
						delete(asking, name)
						delete(answered, name)
					}
				}
			case 1:
				name := rapid.SampledFrom(names).Draw(t, "name")
				answer := rapid.SampledFrom([]Answer{good(0), good(time.Minute), good(time.Hour * 1000), {Problem: "no"}}).Draw(t, "answer")
				if !asking[name] {
					break
				}
				if !n.Answered(name, answer, now) {
					t.Fatalf("the answer for %v is not wanted", name)
				}
				delete(asking, name)
				answered[name] = now
			}
			ask, next := n.Due(now)
			for _, name := range ask {
				switch last, before := answered[name]; {
				case !slices.Contains(wanted, name):
					t.Fatalf("%v is asked for and not wanted", name)
				case asking[name]:
					t.Fatalf("%v is asked for twice at once", name)
				case before && now.Sub(last) < floor:
					t.Fatalf("%v is asked for %v after its answer", name, now.Sub(last))
				}
				asking[name] = true
			}
			for _, name := range wanted {
				if asking[name] {
					continue
				}
				if next.IsZero() || !next.After(now) || next.Sub(now) > maxTTL {
					t.Fatalf("%v is asked for at %v, and it is %v", name, next, now)
				}
			}
		}
	})
}
