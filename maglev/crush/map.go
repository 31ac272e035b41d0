package crush

import (
	"errors"
	"fmt"
)

// Limits of a map. They bound memory and the time of a placement.
const (
	MaxBuckets     = 1 << 20
	MaxDevices     = 1 << 20
	MaxBucketItems = 1 << 16
	MaxDepth       = 10
)

// None in a result is a position that stays empty.
const None int32 = 0x7fffffff

// undefined is a position that is not decided yet.
const undefined int32 = 0x7ffffffe

// One is the weight 1 in 16.16 fixed point.
const One = 0x10000

// Algorithm is how a bucket chooses among its items.
type Algorithm uint8

// The bucket algorithms, with Ceph's numbers. All but Straw2 are there for the
// sake of old maps: Uniform reshuffles everything when an item comes or goes,
// List is good at growing only, Tree moves more than needed.
const (
	Uniform Algorithm = 1
	List    Algorithm = 2
	Tree    Algorithm = 3
	Straw2  Algorithm = 5
)

// Bucket is an inner node of the hierarchy.
type Bucket struct {
	ID        int32 // below 0, unique
	Type      int32 // above 0: a level such as host or rack
	Algorithm Algorithm
	Items     []int32  // devices, from 0, or buckets, below 0
	Weights   []uint32 // 16.16, one an item; a Uniform bucket's are all equal
}

// Weight is the sum of the items' weights.
func (b *Bucket) Weight() uint32 {
	sum := uint32(0)
	for _, w := range b.Weights {
		sum += w
	}
	return sum
}

// ChooseArg replaces, for placements only, what a Straw2 bucket knows of its
// items: Ceph's choose_args.
type ChooseArg struct {
	// IDs, if any, are hashed in place of the items' own.
	IDs []int32
	// Weights, if any, are used in place of the bucket's: one set for each
	// position in the result, the last one also for all further positions.
	Weights [][]uint32
}

// Tunables are the knobs of the algorithm.
type Tunables struct {
	LocalTries         int  // choose_local_tries
	LocalFallbackTries int  // choose_local_fallback_tries
	TotalTries         int  // choose_total_tries: retries after the first try
	DescendOnce        bool // chooseleaf_descend_once
	VaryR              int  // chooseleaf_vary_r
	Stable             bool // chooseleaf_stable
	MSRDescents        int  // msr_descents
	MSRCollisionTries  int  // msr_collision_tries
}

// Jewel returns the tunables of Ceph's profile of that name, which has been
// the optimal one since.
func Jewel() Tunables {
	return Tunables{TotalTries: 50, DescendOnce: true, VaryR: 1, Stable: true, MSRDescents: 100, MSRCollisionTries: 100}
}

// Map is a hierarchy of devices.
type Map struct {
	Buckets    []Bucket
	Devices    int // their ids are 0..Devices-1
	Tunables   Tunables
	ChooseArgs map[int32]ChooseArg // by bucket id
}

// Mapper computes placements on a map. It has scratch memory: one goroutine at
// a time.
type Mapper struct {
	buckets  []*node // at -1-id
	devices  int32
	tunables Tunables
	perm     []int32
	scratch  [3][]int32
	msr      [][]int32
}

// node is a bucket with what its algorithm derives from the weights.
type node struct {
	Bucket
	sums  []uint32 // List: of the weights up to each item
	nodes []uint32 // Tree: of the weights below each node
	arg   ChooseArg
}

// New checks a map and prepares it for placements. It keeps the map's slices,
// which must not change afterwards.
func New(m Map) (*Mapper, error) {
	if m.Devices < 0 || m.Devices > MaxDevices {
		return nil, fmt.Errorf("crush map with %d devices: 0 to %d are possible", m.Devices, MaxDevices)
	}
	t := m.Tunables
	for _, n := range []int{t.LocalTries, t.LocalFallbackTries, t.TotalTries, t.MSRDescents, t.MSRCollisionTries} {
		if n < 0 || n > maxTries {
			return nil, fmt.Errorf("crush tunable of %d tries: use 0 to %d", n, maxTries)
		}
	}
	if t.VaryR < 0 || t.VaryR > maxVaryR {
		return nil, fmt.Errorf("crush tunable chooseleaf_vary_r %d: use 0 to %d", t.VaryR, maxVaryR)
	}
	mapper := &Mapper{devices: int32(m.Devices), tunables: t}
	for i := range m.Buckets {
		if err := mapper.add(m.Buckets[i]); err != nil {
			return nil, err
		}
	}
	for id, arg := range m.ChooseArgs {
		if err := mapper.addArg(id, arg); err != nil {
			return nil, err
		}
	}
	heights := make([]int, len(mapper.buckets))
	for _, b := range mapper.buckets {
		if b != nil {
			if _, err := mapper.height(b, heights); err != nil {
				return nil, err
			}
		}
	}
	return mapper, nil
}

func (m *Mapper) add(b Bucket) error {
	switch {
	case b.ID >= 0 || b.ID < -MaxBuckets:
		return fmt.Errorf("crush bucket id %d: use -1 to %d", b.ID, -MaxBuckets)
	case m.bucket(b.ID) != nil:
		return fmt.Errorf("crush bucket %d is there twice", b.ID)
	case b.Type <= 0:
		return fmt.Errorf("crush bucket %d has type %d: types of buckets start from 1", b.ID, b.Type)
	case len(b.Items) > MaxBucketItems || len(b.Items) != len(b.Weights):
		return fmt.Errorf("crush bucket %d has %d items with %d weights: give one weight an item, and at most %d", b.ID, len(b.Items), len(b.Weights), MaxBucketItems)
	}
	seen := make(map[int32]bool, len(b.Items))
	sum := uint64(0)
	for i, item := range b.Items {
		if seen[item] {
			return fmt.Errorf("crush bucket %d holds item %d twice", b.ID, item)
		}
		seen[item] = true
		sum += uint64(b.Weights[i])
		if b.Algorithm == Uniform && b.Weights[i] != b.Weights[0] {
			return fmt.Errorf("crush bucket %d is uniform but its weights differ: use straw2", b.ID)
		}
	}
	if sum > 1<<32-1 {
		return fmt.Errorf("crush bucket %d weighs %d, more than 32 bits hold: use smaller weights", b.ID, sum)
	}
	n := &node{Bucket: b}
	switch b.Algorithm {
	case Uniform, Straw2:
	case List:
		n.sums = listSums(b.Weights)
	case Tree:
		n.nodes = treeNodes(b.Weights)
	default:
		return fmt.Errorf("crush bucket %d has algorithm %d: use uniform (1), list (2), tree (3) or straw2 (5)", b.ID, b.Algorithm)
	}
	for len(m.buckets) <= int(-1-b.ID) {
		m.buckets = append(m.buckets, nil)
	}
	m.buckets[-1-b.ID] = n
	return nil
}

func (m *Mapper) addArg(id int32, arg ChooseArg) error {
	b := m.bucket(id)
	if b == nil {
		return fmt.Errorf("crush choose_args for bucket %d: there is none", id)
	}
	if len(arg.IDs) != 0 && len(arg.IDs) != len(b.Items) {
		return fmt.Errorf("crush choose_args for bucket %d: %d ids for %d items", id, len(arg.IDs), len(b.Items))
	}
	for _, set := range arg.Weights {
		if len(set) != len(b.Items) {
			return fmt.Errorf("crush choose_args for bucket %d: %d weights for %d items", id, len(set), len(b.Items))
		}
	}
	b.arg = arg
	return nil
}

// errLoop is what height reports when a bucket contains itself.
var errLoop = errors.New("crush map contains a loop: a bucket is inside itself")

// height returns how many levels of buckets there are from b down. heights
// memorises it; -1 stands for being under way.
func (m *Mapper) height(b *node, heights []int) (int, error) {
	known := &heights[-1-b.ID]
	if *known < 0 {
		return 0, errLoop
	}
	if *known > 0 {
		return *known, nil
	}
	*known = -1
	below := 0
	for _, item := range b.Items {
		if item >= 0 {
			if item >= m.devices {
				return 0, fmt.Errorf("crush bucket %d holds device %d: the devices are 0 to %d", b.ID, item, m.devices-1)
			}
			continue
		}
		child := m.bucket(item)
		if child == nil {
			return 0, fmt.Errorf("crush bucket %d holds bucket %d: there is none", b.ID, item)
		}
		h, err := m.height(child, heights)
		if err != nil {
			return 0, err
		}
		below = max(below, h)
	}
	if below+1 > MaxDepth {
		return 0, fmt.Errorf("crush bucket %d has more than %d levels below it", b.ID, MaxDepth-1)
	}
	*known = below + 1
	return below + 1, nil
}

// bucket returns the bucket of that id, nil if there is none.
func (m *Mapper) bucket(id int32) *node {
	if id >= 0 || int(-1-id) >= len(m.buckets) {
		return nil
	}
	return m.buckets[-1-id]
}

// typeOf returns the type of an item, 0 for a device.
func (m *Mapper) typeOf(item int32) int32 {
	if b := m.bucket(item); b != nil {
		return b.Type
	}
	return 0
}
