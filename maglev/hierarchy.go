package maglev

import (
	"fmt"
	"slices"
	"strings"

	"brlb/maglev/crush"
)

// hierarchy is the layout "crush": Ceph's CRUSH over members that live in
// failure domains. Each element of [Member.Domain] is a level of straw2 buckets,
// the members are the devices. A slot's owner is the first of an ordered list of
// members in different domains, which [Replicas] gives whole.
//
// Slots stand for inputs as in straw2. Buckets and members are hashed by ids of
// their own, [crush.HashString] of the path or the key (the next free one in the
// same bucket if it is taken), so that nothing depends on how many others there
// are or in which order they came.
//
// When the members change, a build allocates.
type hierarchy struct {
	sorter  sorter
	members []Member // that the mapper is for
	mapper  *crush.Mapper
	owners  []uint16 // member of each device
	levels  int
	picked  []int32
}

// maxDomainLevels is how many elements a domain may have: CRUSH's depth less
// the root.
const maxDomainLevels = crush.MaxDepth - 1

func (*hierarchy) Name() string    { return "crush" }
func (*hierarchy) Version() string { return "crush-1" }

// Build, beside the errors of every layout, refuses domains with different
// numbers of elements, more than nine or empty ones.
func (l *hierarchy) Build(in Input, t *Table) error {
	if err := l.prepare(in, t); err != nil {
		return err
	}
	for slot := range t.Owner {
		if err := l.pick(in.Pool, slot, 1, 0); err != nil {
			t.reset()
			return err
		}
		t.Owner[slot] = l.owners[l.picked[0]]
	}
	return nil
}

// Replicas returns, for each slot, up to size members, as indexes into
// t.Members, of which no two share the first apart elements of their domains;
// with apart 0 they are just different members. The first one is the slot's
// owner in the layout "crush", whose table Replicas builds in t; each next one is
// who should serve the slot when those before it cannot. Where there are fewer
// domains than size, lists are shorter.
func Replicas(in Input, size, apart int, t *Table) ([][]uint16, error) {
	l := new(hierarchy)
	if err := l.Build(in, t); err != nil {
		return nil, err
	}
	if apart < 0 || apart > l.levels {
		t.reset()
		return nil, fmt.Errorf("pool %d: replicas with %d different domain elements: the domains have %d", in.Pool, apart, l.levels)
	}
	lists := make([][]uint16, in.Slots)
	for slot := range lists {
		if err := l.pick(in.Pool, slot, size, apart); err != nil {
			t.reset()
			return nil, err
		}
		for _, device := range l.picked {
			lists[slot] = append(lists[slot], l.owners[device])
		}
	}
	return lists, nil
}

// pick sets l.picked to the devices of a slot.
func (l *hierarchy) pick(pool uint16, slot, size, apart int) error {
	// With as many tries, a list is as long as the domains allow, for all but
	// the most lopsided weights.
	const tries = 500
	choose := crush.Step{Op: crush.ChooseFirstn}
	if apart > 0 {
		choose = crush.Step{Op: crush.ChooseleafFirstn, Arg2: int32(l.levels - apart + 1)}
	}
	steps := [...]crush.Step{{Op: crush.SetChooseTries, Arg1: tries}, {Op: crush.Take, Arg1: -1}, choose, {Op: crush.Emit}}
	x := crush.Hash2(uint32(slot), uint32(pool))
	var err error
	l.picked, err = l.mapper.Do(l.picked[:0], crush.Rule{Type: crush.Replicated, Steps: steps[:]}, x, size, nil)
	if err == nil && len(l.picked) == 0 {
		err = fmt.Errorf("pool %d: crush finds no member for slot %d", pool, slot)
	}
	return err
}

// prepare starts the table and makes the mapper fit the members.
func (l *hierarchy) prepare(in Input, t *Table) error {
	members, err := l.sorter.start(in, l.Version(), t)
	if err != nil {
		return err
	}
	if l.mapper != nil && slices.Equal(members, l.members) {
		return nil
	}
	l.mapper = nil
	m, err := l.build(in.Pool, members)
	if err == nil {
		l.mapper, err = crush.New(m)
	}
	if err != nil {
		t.reset()
		return err
	}
	l.members = append(l.members[:0], members...)
	return nil
}

// build makes the map: the root is bucket -1.
func (l *hierarchy) build(pool uint16, members []Member) (crush.Map, error) {
	if err := CheckWeights(l.Name(), members); err != nil {
		return crush.Map{}, fmt.Errorf("pool %d: %w", pool, err)
	}
	l.levels = -1
	l.owners = l.owners[:0]
	root := &domain{}
	for i := range members {
		m := &members[i]
		if m.Weight == 0 {
			continue
		}
		var path []string
		if m.Domain != "" {
			path = strings.Split(m.Domain, "/")
		}
		if l.levels < 0 {
			l.levels = len(path)
		}
		if len(path) != l.levels || len(path) > maxDomainLevels || slices.Contains(path, "") {
			return crush.Map{}, fmt.Errorf("pool %d: member %.80q is in domain %.80q: give all members a domain of the same number of non-empty elements, at most %d",
				pool, m.Key, m.Domain, maxDomainLevels)
		}
		root.add(path, m, int32(len(l.owners)))
		l.owners = append(l.owners, uint16(i))
	}
	m := crush.Map{Devices: len(l.owners), Tunables: crush.Jewel(), ChooseArgs: make(map[int32]crush.ChooseArg)}
	root.emit(&m, int32(l.levels+1))
	return m, nil
}

// domain is one failure domain under construction. It holds members or domains.
type domain struct {
	name    string // the whole path
	weight  uint32
	members []int32 // devices
	keys    []string
	weights []uint32
	inner   []*domain
	byName  map[string]*domain
}

// add puts a member into the domain at the end of a path.
func (d *domain) add(path []string, m *Member, device int32) {
	weight := m.Weight * crush.One
	d.weight += weight
	if len(path) == 0 {
		d.members = append(d.members, device)
		d.keys = append(d.keys, m.Key)
		d.weights = append(d.weights, weight)
		return
	}
	if d.byName == nil {
		d.byName = make(map[string]*domain)
	}
	inner := d.byName[path[0]]
	if inner == nil {
		inner = &domain{name: d.name + "/" + path[0]}
		d.byName[path[0]] = inner
		d.inner = append(d.inner, inner)
	}
	inner.add(path[1:], m, device)
}

// emit appends the domain's bucket and, behind it, those inside to a map. It
// returns the bucket's id.
func (d *domain) emit(m *crush.Map, kind int32) int32 {
	at := len(m.Buckets)
	b := crush.Bucket{ID: int32(-1 - at), Type: kind, Algorithm: crush.Straw2, Items: d.members, Weights: d.weights}
	m.Buckets = append(m.Buckets, b)
	taken := make(map[int32]bool)
	var hashed []int32
	for _, key := range d.keys {
		hashed = append(hashed, freeID(taken, key))
	}
	// The order matters only for names with the same hash.
	slices.SortFunc(d.inner, func(a, b *domain) int { return strings.Compare(a.name, b.name) })
	for _, inner := range d.inner {
		hashed = append(hashed, freeID(taken, inner.name))
		b.Weights = append(b.Weights, inner.weight)
		b.Items = append(b.Items, inner.emit(m, kind-1))
	}
	m.Buckets[at] = b
	m.ChooseArgs[b.ID] = crush.ChooseArg{IDs: hashed}
	return b.ID
}
