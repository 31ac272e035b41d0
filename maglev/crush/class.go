package crush

import "fmt"

// AddShadow adds to a map the shadow tree of a root: a copy of the buckets from
// root down, with ids of their own, that holds only the devices for which in
// reports true, those of one device class. It returns the id of the shadow of
// root, which a rule can take. The straws of shadow buckets are drawn by their
// own ids, so devices of other classes may come and go without moving anything
// in this one.
//
// ids gives the shadows of known buckets the ids that they had before; AddShadow
// adds those that it chooses, the nearest free ones to -1. A map's choose_args
// are carried over, except for ids, as Ceph does.
func AddShadow(m *Map, root int32, in func(device int32) bool, ids map[int32]int32) (int32, error) {
	if _, err := New(*m); err != nil {
		return 0, err
	}
	s := shadowing{m: m, in: in, ids: ids, index: make(map[int32]int), taken: make(map[int32]bool), sums: make(map[int32][]uint32)}
	for i, b := range m.Buckets {
		s.index[b.ID] = i
		s.taken[b.ID] = true
	}
	if _, ok := s.index[root]; !ok {
		return 0, fmt.Errorf("crush shadow of bucket %d: there is none", root)
	}
	for _, id := range ids {
		s.taken[id] = true
	}
	id, err := s.add(root)
	if err != nil {
		return 0, err
	}
	return id, nil
}

type shadowing struct {
	m     *Map
	in    func(int32) bool
	ids   map[int32]int32
	index map[int32]int  // of a bucket's id in m.Buckets
	taken map[int32]bool // ids in use or reserved
	sums  map[int32][]uint32
}

// add adds the shadow of a bucket, behind those of the buckets below it.
func (s *shadowing) add(original int32) (int32, error) {
	b := s.m.Buckets[s.index[original]]
	shadow := Bucket{Type: b.Type, Algorithm: b.Algorithm}
	var kept []int // which items of b
	for i, item := range b.Items {
		if item >= 0 {
			if s.in(item) {
				shadow.Items = append(shadow.Items, item)
				shadow.Weights = append(shadow.Weights, b.Weights[i])
				kept = append(kept, i)
			}
			continue
		}
		child, err := s.add(item)
		if err != nil {
			return 0, err
		}
		below := s.m.Buckets[s.index[child]]
		shadow.Items = append(shadow.Items, child)
		shadow.Weights = append(shadow.Weights, below.Weight())
		kept = append(kept, i)
	}
	id, err := s.newID(original)
	if err != nil {
		return 0, err
	}
	shadow.ID = id
	s.index[id] = len(s.m.Buckets)
	s.m.Buckets = append(s.m.Buckets, shadow)
	s.addArg(original, shadow, kept)
	return id, nil
}

// newID returns the id that the shadow of a bucket has or is to have.
func (s *shadowing) newID(original int32) (int32, error) {
	if id, ok := s.ids[original]; ok {
		if _, exists := s.index[id]; exists {
			return 0, fmt.Errorf("crush shadow of bucket %d: id %d is in use", original, id)
		}
		return id, nil
	}
	id := int32(-1)
	for s.taken[id] {
		id--
	}
	s.taken[id] = true
	if s.ids != nil {
		s.ids[original] = id
	}
	return id, nil
}

// addArg carries over the weight sets of a bucket to its shadow. A bucket in it
// weighs, at each position, what its own shadow's set adds up to.
func (s *shadowing) addArg(original int32, shadow Bucket, kept []int) {
	arg, ok := s.m.ChooseArgs[original]
	if !ok || len(arg.Weights) == 0 {
		return
	}
	var sets [][]uint32
	var sums []uint32
	for position, set := range arg.Weights {
		weights := make([]uint32, len(kept))
		sum := uint32(0)
		for i, item := range shadow.Items {
			if item >= 0 {
				weights[i] = set[kept[i]]
			} else if below := s.sums[item]; len(below) > 0 {
				weights[i] = below[min(position, len(below)-1)]
			}
			sum += weights[i]
		}
		sets = append(sets, weights)
		sums = append(sums, sum)
	}
	s.m.ChooseArgs[shadow.ID] = ChooseArg{Weights: sets}
	s.sums[shadow.ID] = sums
}
