package maglev

import (
	"encoding/binary"
	"fmt"
	"math/bits"
	"net/netip"
	"slices"
)

const (
	// chashPoints is how many points a weight of 1 has on HAProxy's ring
	// (BE_WEIGHT_SCALE), chashMaxWeight the largest weight (SRV_UWGHT_MAX).
	chashPoints    = 16
	chashMaxWeight = 256
)

// chash is HAProxy's "hash-type consistent" with "hash-key addr-port": the
// server's key is the hash of the port, plus the IPv4 address as a
// little-endian number, hashed again (for IPv6: XXH32 of the address, seeded
// with the hash of the port); point n of the 16w points of a server of weight w
// is at the hash of the server's key plus n. A slot goes to the nearer of the
// two points around it. Slot s of pool p is at the hash of s + p*2^16.
type chash struct {
	sorter sorter
	points points
}

func (*chash) Name() string    { return "chash" }
func (*chash) Version() string { return "chash-1" }

// Build, beside the errors of every layout, refuses keys that are no
// address:port and weights above 256.
func (l *chash) Build(in Input, t *Table) error {
	members, err := l.sorter.start(in, l.Version(), t)
	if err != nil {
		return err
	}
	if err := CheckWeights(l.Name(), members); err != nil {
		t.reset()
		return fmt.Errorf("pool %d: %w", in.Pool, err)
	}
	l.points = l.points[:0]
	for i := range members {
		if err := l.add(members[i], uint16(i)); err != nil {
			t.reset()
			return fmt.Errorf("pool %d: %w", in.Pool, err)
		}
	}
	slices.Sort(l.points)
	for slot := range t.Owner {
		t.Owner[slot] = l.points.nearest(fullHash(uint32(slot) + uint32(in.Pool)<<16))
	}
	return nil
}

func (l *chash) add(m Member, owner uint16) error {
	key, err := chashServerKey(m.Key)
	if err != nil {
		return err
	}
	for n := range chashPoints * m.Weight {
		l.points = append(l.points, uint64(fullHash(key+n))<<16|uint64(owner))
	}
	return nil
}

func chashServerKey(key string) (uint32, error) {
	endpoint, err := netip.ParseAddrPort(key)
	if err != nil {
		return 0, fmt.Errorf("chash hashes addresses and ports, but member key %.80q is not address:port", key)
	}
	hash := fullHash(uint32(endpoint.Port()))
	address := endpoint.Addr()
	if address.Is6() {
		return xxh32(address.As16(), hash), nil
	}
	v4 := address.As4()
	return fullHash(hash + binary.LittleEndian.Uint32(v4[:])), nil
}

// nearest returns the owner of the point nearest to a hash; of two equally
// near ones, of the one before it.
func (p points) nearest(hash uint32) uint16 {
	next := p.at(uint64(hash))
	previous := next - 1
	if next == 0 {
		previous = len(p) - 1
	}
	// Distances on a ring of 2^32.
	if hash-uint32(p.position(previous)) <= uint32(p.position(next))-hash {
		return p.owner(previous)
	}
	return p.owner(next)
}

// fullHash is HAProxy's __full_hash: Bob Jenkins' integer hash with six shifts
// (https://burtleburtle.net/bob/hash/integer.html), times a large prime.
func fullHash(a uint32) uint32 {
	a = (a + 0x7ed55d16) + a<<12
	a = (a ^ 0xc761c23c) ^ a>>19
	a = (a + 0x165667b1) + a<<5
	a = (a + 0xd3a2646c) ^ a<<9
	a = (a + 0xfd7046c5) + a<<3
	a = (a ^ 0xb55a4f09) ^ a>>16
	return a * 3221225473
}

// xxh32 is the 32-bit xxHash of 16 bytes
// (https://github.com/Cyan4973/xxHash/blob/dev/doc/xxhash_spec.md).
func xxh32(data [16]byte, seed uint32) uint32 {
	const prime1, prime2, prime3 = 2654435761, 2246822519, 3266489917
	start := [4]uint32{seed, seed, seed, seed}
	start[0] += prime1
	start[0] += prime2
	start[1] += prime2
	start[3] -= prime1
	hash := uint32(len(data))
	for i, n := range [4]int{1, 7, 12, 18} {
		lane := binary.LittleEndian.Uint32(data[4*i:])
		hash += bits.RotateLeft32(bits.RotateLeft32(start[i]+lane*prime2, 13)*prime1, n)
	}
	hash = (hash ^ hash>>15) * prime2
	hash = (hash ^ hash>>13) * prime3
	return hash ^ hash>>16
}
