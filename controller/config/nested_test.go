package config

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

func TestNestedPools(t *testing.T) {
	c := parse(t, `
pools:
  all: {id: 1, members: {b: {pool: us, weight: 3}, a: {pool: eu}, own: 10.30.0.19:80}}
  eu: {id: 2, members: {be1: 10.30.0.11:80}}
  us: {id: 3, members: {x: {pool: us-east, weight: 0}, be1: 10.30.0.12:80}}
  us-east: {id: 4, from_ovsdb: true}
`)
	p, _ := c.Pool("all")
	if want := []Nested{{"a", "eu", 1}, {"b", "us", 3}}; !slices.Equal(p.Nested, want) {
		t.Errorf("nested: %+v, want %+v", p.Nested, want)
	}
	if len(p.Members) != 1 || p.Members[0].Name != "own" {
		t.Errorf("members of its own: %+v", p.Members)
	}
	var order []string
	for _, p := range c.InnerFirst() {
		order = append(order, p.Name)
	}
	if got := strings.Join(order, " "); got != "eu us-east us all" {
		t.Errorf("order: %s", got)
	}
}

// TestNestedFamilies: a pool without members of its own has the family of those
// inside it, or of that around it.
func TestNestedFamilies(t *testing.T) {
	for _, member := range []string{"10.30.0.11:80", "'[2001:db8::1]:80'"} {
		c := parse(t, `
pools:
  all: {id: 1, members: {a: {pool: empty}, b: {pool: full}}}
  empty: {id: 2, from_ovsdb: true}
  full: {id: 3, members: {be1: `+member+`}}
`)
		for _, p := range c.Pools {
			if p.IPv6 != strings.Contains(member, "[") {
				t.Errorf("%s: pool %s has IPv6 %v", member, p.Name, p.IPv6)
			}
		}
	}
}

// TestNestedRefusals: what cannot be inside a pool, and where the error stands.
func TestNestedRefusals(t *testing.T) {
	const eu = "\n  eu: {id: 8, members: {be1: 10.30.0.11:80}}"
	for _, x := range []struct{ pools, refusal string }{
		{"p: {id: 1, members: {a: {pool: eu}}}" + eu, ""},
		{"p: {id: 1, layout: sticky, members: {a: {pool: eu, weight: 7}}}" + eu, ""},
		{"p: {id: 1, min_active: 2, members: {a: {pool: eu}, b: 10.30.0.12:80}}" + eu, ""},
		{"p: {id: 1, members: {a: {pool: ue}}}" + eu, `2:34: pools.p.members.a.pool: there is no pool "ue"; did you mean eu?`},
		{"p: {id: 1, members: {a: {pool: p}}}", "2:34: pools.p.members.a.pool: a pool cannot contain itself"},
		{"p: {id: 1, members: {a: {pool: }}}", "2:28: pools.p.members.a.pool: has no value"},
		{"p: {id: 1, members: {a: {pool: eu, weight: -1}}}" + eu, "2:46: pools.p.members.a.weight: -1 is out of range: 0 to 65535"},
		{"p: {id: 1, members: {a: {pool: eu, address: 10.30.0.11:80}}}" + eu, "2:47: pools.p.members.a.address: is for a member with an address"},
		{"p: {id: 1, members: {a: {pool: eu, via: 10.30.0.1}}}" + eu, "pools.p.members.a.via: is for a member with an address"},
		{"p: {id: 1, members: {eu: {pools: eu, address: 10.30.0.12:80}}}" + eu, "2:29: pools.p.members.eu.pools: unknown key; did you mean pool?"},
		{"p: {id: 1, layout: ring, members: {a: {pool: eu}}}" + eu, "pools.p.members.a.pool: layout ring has whole weights only: a pool that contains others needs layout v2, v1, sticky or rendezvous"},
		{"p: {id: 1, members: {a: {pool: eu}, b: {pool: eu}}}" + eu, "2:49: pools.p.members.b.pool: pool eu is inside this pool twice"},
		{
			"p: {id: 1, members: {a: {pool: eu}, b: 10.30.0.11:80}}" + eu,
			"2:34: pools.p.members.a.pool: 10.30.0.11:80 would be in this pool twice: as member b of pool p (line 2) and as member be1 of pool eu (line 3)",
		},
		{
			"p: {id: 1, members: {a: {pool: eu}, b: {pool: us}}}" + eu + "\n  us: {id: 2, members: {x: 10.30.0.12:80, y: 10.30.0.11:80}}",
			"2:49: pools.p.members.b.pool: 10.30.0.11:80 would be in this pool twice: as member be1 of pool eu (line 3) and as member y of pool us (line 4)",
		},
		{
			"p: {id: 1, members: {a: {pool: q}}}\n  q: {id: 2, members: {b: {pool: p}}}",
			"3:34: pools.q.members.b.pool: pool p contains pool q: pools cannot contain each other",
		},
		{
			"p: {id: 1, members: {a: {pool: q}}}\n  q: {id: 2, members: {b: {pool: r}}}\n  r: {id: 3, members: {c: {pool: q}}}\n  s: {id: 4, members: {d: {pool: p}}}",
			"4:34: pools.r.members.c.pool: pool q contains pool r: pools cannot contain each other",
		},
		{
			"p: {id: 1, members: {a: {pool: eu}, b: {pool: six}}}" + eu + "\n  six: {id: 2, members: {x: '[2001:db8::1]:80'}}",
			"2:49: pools.p.members.b.pool: pool six has IPv6 members, and pool p has IPv4 members: give each family a pool of its own",
		},
		{chain(maxDepth), ""},
		{chain(maxDepth + 1), fmt.Sprintf("%d:35: pools.p%d.members.a.pool: pools lie more than 4 deep inside each other", maxDepth+3, maxDepth+1)},
		{chain(20), "pools lie more than 4 deep inside each other"},
		{
			"p: {id: 1, min_active: 3, members: {a: {pool: eu}, b: 10.30.0.12:80}}" + eu,
			"2:26: pools.p.min_active: 3 members are never active: the pool has 2, those of pools inside counted",
		},
		{"p: {id: 1, slots: 64, members: {a: {pool: eu}, b: {pool: us}}}" + eu + "\n  us: {id: 2, slots: 64, members: {" + many(64) + "}}", "65 members, those of pools inside counted, share 64 slots"},
	} {
		_, err := Parse("f", []byte("pools:\n  "+x.pools+"\n"))
		switch {
		case x.refusal == "" && err != nil:
			t.Errorf("%s\n\tis good, but: %v", x.pools, err)
		case x.refusal != "" && (err == nil || !strings.Contains(err.Error(), x.refusal)):
			t.Errorf("%s\n\tgot %v, want ...%s...", x.pools, err, x.refusal)
		case x.refusal != "" && strings.Contains(err.Error(), "\n"):
			t.Errorf("%s\n\tone mistake, more errors: %v", x.pools, err)
		}
	}
}

// chain is a pool with so many others inside each other.
func chain(depth int) string {
	pools := "p0: {id: 1, members: {be1: 10.30.0.11:80}}"
	for i := range depth {
		pools += fmt.Sprintf("\n  p%d: {id: %d, members: {a: {pool: p%d}}}", i+1, i+2, i)
	}
	return pools
}

func many(n int) string {
	members := make([]string, n)
	for i := range members {
		members[i] = fmt.Sprintf("m%d: 10.31.0.%d:80", i, i+1)
	}
	return strings.Join(members, ", ")
}

// TestNestedMembersAreCounted: many pools that contain a big one have more
// members than there are numbers.
func TestNestedMembersAreCounted(t *testing.T) {
	var text strings.Builder
	text.WriteString("pools:\n  big:\n    id: 1\n    members:\n")
	for i := range 1000 {
		fmt.Fprintf(&text, "      m%d: 10.31.%d.%d:80\n", i, i/250, 1+i%250)
	}
	for i := range 70 {
		fmt.Fprintf(&text, "  p%d: {id: %d, members: {a: {pool: big}}}\n", i, i+2)
	}
	_, err := Parse("f", []byte(text.String()))
	if err == nil || !strings.Contains(err.Error(), "all pools together have more than 65535 members") || strings.Contains(err.Error(), "\n") {
		t.Errorf("got %v", err)
	}
}
