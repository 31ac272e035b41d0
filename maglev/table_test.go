package maglev

import (
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestCanonicalKey(t *testing.T) {
	for _, c := range []struct {
		address string
		port    uint16
		want    string
		errPart string
	}{
		{"10.30.0.11", 8080, "10.30.0.11:8080", ""},
		{"2001:DB8:0:0::1", 80, "[2001:db8::1]:80", ""},
		{"::ffff:10.0.0.1", 80, "10.0.0.1:80", ""},
		{"fe80::1%eth0", 80, "", "zone"},
		{"0.0.0.0", 80, "", "unicast"},
		{"ff02::1", 80, "", "unicast"},
		{"10.0.0.1", 0, "", "port 0"},
	} {
		got, err := CanonicalKey(netip.MustParseAddr(c.address), c.port)
		if got != c.want || (err != nil) != (c.errPart != "") || err != nil && !strings.Contains(err.Error(), c.errPart) {
			t.Errorf("CanonicalKey(%s, %d) = %q, %v", c.address, c.port, got, err)
		}
	}
	if _, err := CanonicalKey(netip.Addr{}, 80); err == nil {
		t.Error("a missing address is accepted")
	}
}

func TestParseKey(t *testing.T) {
	for _, key := range []string{"10.30.0.11:8080", "[2001:db8::1]:80"} {
		got, err := ParseKey(key)
		if err != nil || got.String() != key {
			t.Errorf("ParseKey(%q) = %v, %v", key, got, err)
		}
	}
	for key, part := range map[string]string{
		"[2001:db8:0::1]:80":     `write "[2001:db8::1]:80"`,
		"[::ffff:10.0.0.1]:80":   `write "10.0.0.1:80"`,
		"10.0.0.1:080":           "", // refused one way or the other
		"10.0.0.1":               "not address:port",
		"be1:80":                 "not address:port",
		"10.0.0.1:80\n":          "not address:port",
		strings.Repeat("x", 999): "not address:port",
	} {
		if _, err := ParseKey(key); err == nil || !strings.Contains(err.Error(), part) || len(err.Error()) > 300 {
			t.Errorf("ParseKey(%.40q): %v", key, err)
		}
	}
}

func FuzzParseKey(f *testing.F) {
	f.Add("10.30.0.11:8080")
	f.Add("[2001:db8::1]:80")
	f.Add("[fe80::1%eth0]:1")
	f.Fuzz(func(t *testing.T, key string) {
		parsed, err := ParseKey(key)
		if err != nil {
			return
		}
		again, err := CanonicalKey(parsed.Addr(), parsed.Port())
		if err != nil || again != key {
			t.Fatalf("%q is accepted, but its canonical form is %q, %v", key, again, err)
		}
	})
}

func TestTableReuseAndOrder(t *testing.T) {
	for _, name := range Names() {
		layout, err := ByName(name)
		if err != nil {
			t.Fatal(err)
		}
		big := Input{Pool: 3, Slots: 256, Members: testMembers(40, 5)}
		small := Input{Pool: 4, Slots: 16, Members: testMembers(3, 1)}
		var fresh, reused Table
		if err := layout.Build(small, &fresh); err != nil {
			t.Fatal(err)
		}
		for _, in := range []Input{big, small} {
			if err := layout.Build(in, &reused); err != nil {
				t.Fatal(err)
			}
		}
		if diff := cmp.Diff(fresh, reused); diff != "" {
			t.Errorf("%s: a reused table differs:\n%s", name, diff)
		}
		reversed := big
		reversed.Members = slices.Clone(big.Members)
		slices.Reverse(reversed.Members)
		first := reversed.Members[0]
		if err := layout.Build(big, &fresh); err != nil {
			t.Fatal(err)
		}
		if err := layout.Build(reversed, &reused); err != nil {
			t.Fatal(err)
		}
		if fresh.Digest() != reused.Digest() {
			t.Errorf("%s depends on the order of the members", name)
		}
		if reversed.Members[0] != first {
			t.Errorf("%s reordered its input", name)
		}
		if n := testing.AllocsPerRun(10, func() { _ = layout.Build(big, &fresh) }); n != 0 {
			t.Errorf("%s: %v allocations in a repeated build", name, n)
		}
		clone := fresh.Clone()
		clone.Owner[0], clone.Members[0].Weight = NoOwner, 77
		if fresh.Owner[0] == NoOwner || fresh.Members[0].Weight == 77 {
			t.Errorf("a clone shares memory")
		}
	}
}

func TestWeightZeroOwnsNothing(t *testing.T) {
	for _, name := range Names() {
		layout, _ := ByName(name)
		members := testMembers(5, 1)
		members[0].Weight = 0
		var with, without Table
		if err := layout.Build(Input{Pool: 1, Slots: 64, Members: members}, &with); err != nil {
			t.Fatal(err)
		}
		if err := layout.Build(Input{Pool: 1, Slots: 64, Members: members[1:]}, &without); err != nil {
			t.Fatal(err)
		}
		if with.Counts(nil)[0] != 0 || with.Digest() != without.Digest() {
			t.Errorf("%s: a member of weight 0 matters", name)
		}
	}
}

func TestDigest(t *testing.T) {
	// printf 'brlb-layout v1 pool=7 slots=2\na\n\n' | sha256sum
	if got, want := Digest("v1", 7, []string{"a", ""}), "0b49bdd2dfd0d27c"; got != want {
		t.Errorf("digest %s, want %s", got, want)
	}
	if got := new(Table).Digest(); got != "" {
		t.Errorf("digest of no layout: %q", got)
	}
}
