package maglev

import (
	"crypto/md5"
	"encoding/binary"
	"fmt"
	"slices"
	"strconv"
)

const (
	// ringPoints is how many points a weight of 1 has on libconhash's ring.
	ringPoints = 64
	// maxRingPoints bounds the memory of a ring.
	maxRingPoints = 1 << 22
)

// points is a sorted ring: each entry is a point's position, times 2^16, plus
// the member that owns it. Positions need up to 34 bits.
type points []uint64

func (p points) owner(i int) uint16    { return uint16(p[i]) }
func (p points) position(i int) uint64 { return p[i] >> 16 }

// at returns the first point at or behind a position, going round.
func (p points) at(position uint64) int {
	i, _ := slices.BinarySearch(p, position<<16)
	if i == len(p) {
		return 0
	}
	return i
}

// ring is the consistent hashing of libconhash: a member of weight w has 64w
// points, the n-th at the hash of its key, "-" and n with at least three
// digits, and a slot, at the hash of "POOL/SLOT", goes to the owner of the next
// point. The hash is the sum of the four little-endian words of the MD5 digest.
type ring struct {
	sorter sorter
	points points
	text   []byte
}

func (*ring) Name() string    { return "ring" }
func (*ring) Version() string { return "ring-1" }

func (l *ring) Build(in Input, t *Table) error {
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
		l.add(members[i].Key, uint16(i), ringPoints*int(members[i].Weight))
	}
	slices.Sort(l.points)
	for slot := range t.Owner {
		l.text = strconv.AppendUint(l.text[:0], uint64(in.Pool), 10)
		l.text = append(l.text, '/')
		l.text = strconv.AppendInt(l.text, int64(slot), 10)
		t.Owner[slot] = l.points.owner(l.points.at(conhash(l.text)))
	}
	return nil
}

// add puts a member's points on the ring.
func (l *ring) add(key string, owner uint16, count int) {
	for n := range count {
		l.text = append(l.text[:0], key...)
		l.text = append(l.text, '-')
		for limit := 100; n < limit && limit > 1; limit /= 10 {
			l.text = append(l.text, '0')
		}
		l.text = strconv.AppendInt(l.text, int64(n), 10)
		l.points = append(l.points, conhash(l.text)<<16|uint64(owner))
	}
}

// conhash is libconhash's hash. Being a sum, it is not uniform over its range
// of 0 to 4*(2^32-1); rings built with it are a little more uneven than need
// be.
func conhash(text []byte) uint64 {
	sum, digest := uint64(0), md5.Sum(text)
	for i := 0; i < len(digest); i += 4 {
		sum += uint64(binary.LittleEndian.Uint32(digest[i:]))
	}
	return sum
}
