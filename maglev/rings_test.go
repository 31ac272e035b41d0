package maglev

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"testing"
)

func TestRingMatchesLibconhash(t *testing.T) {
	var golden struct {
		Nodes   [][2]any
		Hash    map[string]uint64
		VNodes  int
		First   []uint64 `json:"first_vnodes"`
		Last    []uint64 `json:"last_vnodes"`
		Lookup  map[string]string
		Without map[string]string `json:"lookup_without_Xenomorph"`
		VNodesW int               `json:"vnodes_without_Xenomorph"`
	}
	readJSON(t, "testdata/libconhash.json", &golden)
	for text, want := range golden.Hash {
		if got := conhash([]byte(text)); got != want {
			t.Errorf("hash of %q is %d, want %d", text, got, want)
		}
	}
	check := func(without string, count int, lookup map[string]string) *ring {
		l := new(ring)
		var names []string
		for _, node := range golden.Nodes {
			if name := node[0].(string); name != without {
				l.add(name, uint16(len(names)), int(node[1].(float64)))
				names = append(names, name)
			}
		}
		slices.Sort(l.points)
		if len(l.points) != count {
			t.Errorf("%d points, want %d", len(l.points), count)
		}
		for object, want := range lookup {
			if got := names[l.points.owner(l.points.at(conhash([]byte(object))))]; got != want {
				t.Errorf("%s goes to %s, want %s", object, got, want)
			}
		}
		return l
	}
	l := check("", golden.VNodes, golden.Lookup)
	for i, want := range golden.First {
		if got := l.points.position(i); got != want {
			t.Errorf("point %d is at %d, want %d", i, got, want)
		}
	}
	for i, want := range golden.Last {
		if got := l.points.position(len(l.points) - len(golden.Last) + i); got != want {
			t.Errorf("last points: %d, want %d", got, want)
		}
	}
	check("Xenomorph", golden.VNodesW, golden.Without)
}

func TestChashMatchesHAProxy(t *testing.T) {
	var golden struct {
		FullHash map[uint32]uint32   `json:"full_hash"`
		Nodes    map[uint32][]uint32 `json:"node_keys_puid_weight1"`
		Servers  map[string]uint32   `json:"hash_key_addr_port_80_little_endian"`
		Lookup   map[uint32]uint16   `json:"ring4_lookup"`
		Counts   []int               `json:"counts_full_hash_0_1023"`
	}
	readJSON(t, "testdata/haproxy_chash.json", &golden)
	for a, want := range golden.FullHash {
		if got := fullHash(a); got != want {
			t.Errorf("full hash of %d is %d, want %d", a, got, want)
		}
	}
	for key, want := range golden.Servers {
		if got, err := chashServerKey(key); got != want || err != nil {
			t.Errorf("key of %s is %d, %v, want %d", key, got, err, want)
		}
	}
	// The golden ring is of servers known by number, 4096 apart.
	var ring points
	for id := range uint32(4) {
		for n := range uint32(chashPoints) {
			at := fullHash((id+1)*4096 + n)
			if want := golden.Nodes[id+1][n]; at != want {
				t.Errorf("point %d of server %d is at %d, want %d", n, id+1, at, want)
			}
			ring = append(ring, uint64(at)<<16|uint64(id+1))
		}
	}
	slices.Sort(ring)
	for hash, want := range golden.Lookup {
		if got := ring.nearest(hash); got != want {
			t.Errorf("%d goes to %d, want %d", hash, got, want)
		}
	}
	counts := make([]int, 4)
	for slot := range uint32(1024) {
		counts[ring.nearest(fullHash(slot))-1]++
	}
	if !slices.Equal(counts, golden.Counts) {
		t.Errorf("counts %v, want %v", counts, golden.Counts)
	}
}

// The values are of another implementation of xxHash.
func TestXXH32(t *testing.T) {
	for _, c := range []struct {
		address string
		seed    uint32
		want    uint32
	}{
		{"2001:db8::1", 0, 172839367},
		{"2001:db8::1", 520581159, 1692833467},
		{"fe80::1234:5678:9abc:def0", 1, 3680496513},
	} {
		if got := xxh32(netip.MustParseAddr(c.address).As16(), c.seed); got != c.want {
			t.Errorf("%s, seed %d: %d, want %d", c.address, c.seed, got, c.want)
		}
	}
}

// Brute force over all points instead of a search in the sorted ring.
func TestRingsAgreeWithNaive(t *testing.T) {
	members := append(testMembers(9, 4), Member{Key: "[2001:db8::7]:443", Weight: 3})
	in := Input{Pool: 9, Slots: 256, Members: members}
	type point struct {
		at  uint64
		key string
	}
	var conhashPoints, chashPointList []point
	for _, m := range members {
		for n := range 64 * int(m.Weight) {
			conhashPoints = append(conhashPoints, point{conhash(fmt.Appendf(nil, "%s-%03d", m.Key, n)), m.Key})
		}
		endpoint := netip.MustParseAddrPort(m.Key)
		server := fullHash(uint32(endpoint.Port()))
		if endpoint.Addr().Is4() {
			v4 := endpoint.Addr().As4()
			server = fullHash(server + binary.LittleEndian.Uint32(v4[:]))
		} else {
			server = xxh32(endpoint.Addr().As16(), server)
		}
		for n := range 16 * int(m.Weight) {
			chashPointList = append(chashPointList, point{uint64(fullHash(server + uint32(n))), m.Key})
		}
	}
	closest := func(points []point, distance func(at uint64) uint64) string {
		return slices.MinFunc(points, func(a, b point) int {
			if x, y := distance(a.at), distance(b.at); x < y {
				return -1
			} else if x > y {
				return 1
			}
			return 0
		}).key
	}
	var byRing, byChash Table
	if err := errors.Join(new(ring).Build(in, &byRing), new(chash).Build(in, &byChash)); err != nil {
		t.Fatal(err)
	}
	for slot := range in.Slots {
		at := conhash(fmt.Appendf(nil, "9/%d", slot))
		ahead := func(point uint64) uint64 { return point - at } // wraps: the next first
		if want := closest(conhashPoints, ahead); byRing.Key(slot) != want {
			t.Errorf("ring: slot %d has %s, want %s", slot, byRing.Key(slot), want)
		}
		hash := fullHash(uint32(9<<16 + slot))
		around := func(point uint64) uint64 {
			d := uint32(point) - hash
			return 2*uint64(min(d, -d)) + uint64(d>>31^1) // the one before wins a tie
		}
		if want := closest(chashPointList, around); byChash.Key(slot) != want {
			t.Errorf("chash: slot %d has %s, want %s", slot, byChash.Key(slot), want)
		}
	}
}

func TestRingsRefuseWeights(t *testing.T) {
	var table Table
	for layout, weight := range map[Layout]uint32{new(ring): 1 << 16, new(chash): 257} {
		in := Input{Pool: 1, Slots: 8, Members: []Member{{Key: "10.0.0.1:80", Weight: weight}, {Key: "10.0.0.2:80", Weight: 1}}}
		if err := layout.Build(in, &table); !errors.Is(err, ErrWeights) || table.Slots() != 0 {
			t.Errorf("%s takes weight %d: %v", layout.Name(), weight, err)
		}
	}
	in := Input{Pool: 1, Slots: 2048, Members: testMembers(1100, 1)}
	for i := range in.Members {
		in.Members[i].Weight = 256
	}
	if err := new(chash).Build(in, &table); !errors.Is(err, ErrWeights) {
		t.Errorf("chash takes a sum of weights of 1100*256: %v", err)
	}
	in = Input{Pool: 1, Slots: 8, Members: []Member{{Key: "be1", Weight: 1}}}
	if err := new(chash).Build(in, &table); err == nil {
		t.Error("chash takes a key that is no address")
	}
}
