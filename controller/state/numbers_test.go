package state

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func id(n int) MemberID {
	return MemberID{Pool: "web", Key: fmt.Sprintf("10.0.%d.%d:80", n>>8, n&0xff)}
}

func TestNumbersAreStable(t *testing.T) {
	n := NewNumbers()
	if a, b := n.Get(id(1)), n.Get(id(2)); a != 1 || b != 2 {
		t.Errorf("the first numbers are %d and %d", a, b)
	}
	if a := n.Get(id(1)); a != 1 {
		t.Errorf("asked again: %d", a)
	}
	if a := n.Get(MemberID{"tls", id(1).Key}); a != 3 {
		t.Errorf("the same address in another pool: %d", a)
	}
}

func TestNumbersStoredAndLoaded(t *testing.T) {
	n := NewNumbers()
	n.Get(id(1))
	n.Get(id(2))
	n.Get(id(3))
	n.Release(func(m MemberID) bool { return m != id(3) })
	text := n.String()
	if text != "next=4 web/10.0.0.1:80=1 web/10.0.0.2:80=2" {
		t.Errorf("stored as %q", text)
	}
	loaded := NewNumbers()
	if err := loaded.Load(text); err != nil {
		t.Fatal(err)
	}
	if loaded.String() != text {
		t.Errorf("loaded as %q", loaded)
	}
	if a := loaded.Get(id(4)); a != 4 {
		t.Errorf("the number of a member that is gone was given away: %d", a)
	}
	if err := loaded.Load(text); err != nil {
		t.Errorf("loaded twice: %v", err)
	}
}

// A number goes to somebody else only after all others have been used.
func TestNumbersAreNotReusedSoon(t *testing.T) {
	n := NewNumbers()
	n.Get(id(0))
	for i := 1; i < 65535; i++ {
		if number := n.Get(id(i)); number != uint16(i+1) {
			t.Fatalf("member %d has number %d", i, number)
		}
		n.Release(func(m MemberID) bool { return m == id(0) })
	}
	if number := n.Get(id(7)); number != 2 {
		t.Errorf("after 65535 comes %d, want 2: 1 is still in use, 0 is never used", number)
	}
}

func TestNumbersAllInUse(t *testing.T) {
	n := NewNumbers()
	for i := range 65535 {
		if n.Get(id(i)) == 0 {
			t.Fatalf("no number for member %d", i)
		}
	}
	if number := n.Get(id(65535)); number != 0 {
		t.Errorf("one member too many has number %d", number)
	}
	n.Release(func(m MemberID) bool { return m != id(100) })
	if number := n.Get(id(65535)); number != 101 {
		t.Errorf("the only free number is 101, got %d", number)
	}
}

func TestNumbersLoadMalformed(t *testing.T) {
	cases := []struct{ text, want, problem string }{
		{"", "next=1", ""},
		{"next=7", "next=7", ""},
		{"web/a=5", "next=6 web/a=5", ""},
		{"next=3 web/a=5", "next=3 web/a=5", ""},
		{"next=65535 web/a=65535", "next=65535 web/a=65535", ""},
		{"web/a=65535", "next=1 web/a=65535", ""},
		{"web/a=0", "next=1", `1 entries`},
		{"web/a=65536", "next=1", `1 entries`},
		{"web/a=-1", "next=1", `1 entries`},
		{"next=0", "next=1", `1 entries`},
		{"web/a", "next=1", `first is "web/a"`},
		{"a=5", "next=1", `first is "a=5"`},
		{"= / =/= web/a=1", "next=2 web/a=1", "3 entries"},
		{"web/a=1=2", "next=1", "1 entries"},
		{"web/a=1 web/b=1", "next=2 web/a=1", `first is "web/b=1"`},
		{"web/a=1 web/a=2", "next=2 web/a=1", `first is "web/a=2"`},
		{"web/a=1\nweb/b=2", "next=3 web/a=1 web/b=2", ""},
		{strings.Repeat("x", 1000), "next=1", "xxx"},
		{strings.Repeat("web/a=1 ", 65537), "next=1", "at most 65535"},
	}
	for _, c := range cases {
		n := NewNumbers()
		err := n.Load(c.text)
		if n.String() != c.want {
			t.Errorf("%.40q: %.80s, want %s", c.text, n, c.want)
		}
		if (err != nil) != (c.problem != "") || err != nil && !strings.Contains(err.Error(), c.problem) {
			t.Errorf("%.40q: error %v, want %q", c.text, err, c.problem)
		}
		if err != nil && len(err.Error()) > 250 {
			t.Errorf("%.40q: an error of %d octets", c.text, len(err.Error()))
		}
	}
}

func TestNumbersOutliveRestarts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := NewNumbers()
		for range rapid.IntRange(0, 40).Draw(t, "steps") {
			m := id(rapid.IntRange(0, 12).Draw(t, "member"))
			switch rapid.IntRange(0, 3).Draw(t, "do") {
			case 0:
				n.Get(m)
			case 1:
				n.Adopt(m, rapid.Uint16().Draw(t, "number"))
			case 2:
				n.Release(func(x MemberID) bool { return x != m })
			case 3:
				again := NewNumbers()
				if err := again.Load(n.String()); err != nil {
					t.Fatal(err)
				}
				if again.String() != n.String() || again.next != n.next {
					t.Fatalf("stored %s, loaded %s", n, again)
				}
				n = again
			}
			if len(n.byID) != len(n.used) || n.next == 0 {
				t.Fatalf("%d members, %d numbers, next %d", len(n.byID), len(n.used), n.next)
			}
			for m, number := range n.byID {
				if n.used[number] != m || number == 0 {
					t.Fatalf("%v has %d, which is %v's", m, number, n.used[number])
				}
			}
		}
	})
}

// Members that come and go for ever do not use up the numbers, nor the room in
// OVSDB where they are stored.
func TestNumbersOfTheGoneAreFreed(t *testing.T) {
	s := serving(t, fromOVSDB)
	s.Snapshot()
	keep := s.numbers.Get(inWeb(be1))
	for i := range 3000 {
		s.SetDeclared([]Declared{declare("v", "web", netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 9, byte(i >> 8), byte(i)}), 80), 1)}, after(time.Duration(i)*time.Second))
		s.Snapshot()
	}
	if n := s.numbers.Len(); n > maxGone+4 {
		t.Errorf("%d numbers are kept", n)
	}
	if s.numbers.Get(inWeb(be1)) != keep {
		t.Error("a member that stayed has another number")
	}
}
