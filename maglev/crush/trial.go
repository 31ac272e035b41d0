package crush

// Trial is what a rule gave for a range of inputs, as crushtool --test tells.
type Trial struct {
	// Inputs is how many inputs there were.
	Inputs int

	// Sizes counts the inputs by how many devices they got.
	Sizes []int

	// Bad lists the first inputs, 100 at most, that got fewer devices than
	// asked for.
	Bad []uint32

	// Devices holds, for each device, how many placements it has, and how
	// many its weight times its reweight would give it, rounded down.
	Devices []Utilisation
}

// Utilisation is one device's part of a [Trial].
type Utilisation struct {
	Placed, Expected int
}

const maxBadListed = 100

// Try runs a rule for inputs from..to, both included. each, if not nil, is
// called with every result, which it must not keep.
func (m *Mapper) Try(rule Rule, size int, from, to uint32, reweight []uint32, each func(x uint32, devices []int32)) (*Trial, error) {
	t := &Trial{Sizes: make([]int, size+1), Devices: make([]Utilisation, m.devices)}
	var devices []int32
	placed := 0
	for x := uint64(from); x <= uint64(to); x++ {
		var err error
		if devices, err = m.Do(devices[:0], rule, uint32(x), size, reweight); err != nil {
			return nil, err
		}
		got := 0
		for _, device := range devices {
			if device >= 0 && device < m.devices {
				t.Devices[device].Placed++
				got++
			}
		}
		t.Inputs++
		t.Sizes[got]++
		placed += got
		if got < size && len(t.Bad) < maxBadListed {
			t.Bad = append(t.Bad, uint32(x))
		}
		if each != nil {
			each(uint32(x), devices)
		}
	}
	m.expect(t, rule, placed, reweight)
	return t, nil
}

// expect works out what each device's weight below the rule's roots gives it
// of the placements made.
func (m *Mapper) expect(t *Trial, rule Rule, placed int, reweight []uint32) {
	weights := make([]uint64, m.devices)
	total := uint64(0)
	var walk func(b *node)
	walk = func(b *node) {
		for i, item := range b.Items {
			if item < 0 {
				walk(m.bucket(item))
				continue
			}
			in := uint64(One)
			if reweight != nil {
				in = 0
				if int(item) < len(reweight) {
					in = uint64(min(reweight[item], One))
				}
			}
			w := uint64(b.Weights[i]) * in >> 16
			weights[item] += w
			total += w
		}
	}
	for _, step := range rule.Steps {
		if b := m.bucket(step.Arg1); step.Op == Take && b != nil {
			walk(b)
		}
	}
	for device, w := range weights {
		if total > 0 {
			t.Devices[device].Expected = int(uint64(placed) * w / total)
		}
	}
}
