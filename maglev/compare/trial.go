package compare

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"brlb/maglev"
)

// trial is one layout under one event, over all pools.
type trial struct {
	*Options
	layout maglev.Layout
	event  Event
	err    error

	before, after maglev.Table
	counts        []int

	collateral         []int
	moved, bound       int
	needed, exactBound int
	tables             int
	maxShare, minShare float64
	builds             int
	nanos              int64
}

func newTrial(layout string, event Event, o *Options) (*trial, error) {
	l, err := maglev.ByName(layout)
	if err != nil {
		return nil, err
	}
	return &trial{Options: o, layout: l, event: event}, nil
}

// run lets the event happen to a pool.
func (t *trial) run(pool uint64, members []maglev.Member) {
	if t.err != nil {
		return
	}
	in := t.input(pool, members)
	if !t.build(in, &t.before) {
		return
	}
	t.share(&t.before)
	for next := range t.steps(t.random(pool, 1), members) {
		in.Members, in.Previous = next, &t.before
		if !t.build(in, &t.after) {
			return
		}
		t.share(&t.after)
		c := maglev.Compare(&t.before, &t.after)
		t.moved += c.Moved
		t.bound += c.LowerBound
		t.needed += c.Needed
		t.collateral = append(t.collateral, c.Collateral)
		t.before, t.after = t.after, t.before
	}
}

// input is what a layout gets before anything has happened.
func (t *trial) input(pool uint64, members []maglev.Member) maglev.Input {
	return maglev.Input{Pool: uint16(1 + pool%65535), Slots: t.Slots, Members: members, Anchor: members, Slack: t.Slack}
}

// steps yields the members after each step of the event.
func (t *trial) steps(rng *rand.Rand, members []maglev.Member) func(yield func([]maglev.Member) bool) {
	without := func(i int) []maglev.Member { return slices.Delete(slices.Clone(members), i, i+1) }
	return func(yield func([]maglev.Member) bool) {
		switch t.event {
		case Leave:
			yield(without(rng.IntN(len(members))))
		case Join:
			taken := make(map[string]bool)
			for _, m := range members {
				taken[m.Key] = true
			}
			yield(append(slices.Clone(members), maglev.Member{Key: newKey(rng, taken), Weight: t.weight(rng)}))
		case Weight:
			changed := slices.Clone(members)
			m := &changed[rng.IntN(len(changed))]
			if old := m.Weight; t.MinWeight == t.MaxWeight {
				m.Weight = 2 * old
			} else {
				for m.Weight == old {
					m.Weight = t.weight(rng)
				}
			}
			yield(changed)
		case Rolling:
			for _, i := range rng.Perm(len(members)) {
				if !yield(without(i)) || !yield(members) {
					return
				}
			}
		case Half:
			order := rng.Perm(len(members))
			left := slices.Clone(members)
			for _, i := range order[:len(members)/2] {
				left = slices.DeleteFunc(left, func(m maglev.Member) bool { return m.Key == members[i].Key })
				if !yield(slices.Clone(left)) {
					return
				}
			}
		}
	}
}

// build builds a table and takes the time.
func (t *trial) build(in maglev.Input, table *maglev.Table) bool {
	start := t.now()
	t.err = t.layout.Build(in, table)
	t.nanos += t.now() - start
	t.builds++
	return t.err == nil
}

func (t *trial) now() int64 {
	if t.Clock == nil {
		return 0
	}
	return t.Clock()
}

// share notes the extreme shares of a table's members.
func (t *trial) share(table *maglev.Table) {
	t.counts = table.Counts(t.counts[:0])
	total := 0.0
	for _, m := range table.Members {
		total += float64(m.Weight)
	}
	most, least := 0.0, 0.0
	for i, n := range t.counts {
		share := float64(n) * total / (float64(table.Members[i].Weight) * float64(table.Slots()))
		if i == 0 || share > most {
			most = share
		}
		if i == 0 || share < least {
			least = share
		}
	}
	t.maxShare += most
	t.minShare += least
	t.tables++
}

func (t *trial) result() Result {
	r := Result{Layout: t.layout.Name(), Version: t.layout.Version(), Event: t.event, Steps: len(t.collateral)}
	if t.err != nil {
		r.Error = fmt.Sprintf("%.200s", t.err)
		return r
	}
	if steps := float64(r.Steps); steps > 0 {
		r.Moved = float64(t.moved) / steps
		r.LowerBound = float64(t.bound) / steps
		r.Needed = float64(t.needed) / steps
		r.ExactBound = float64(t.exactBound) / steps
	}
	r.MaxShare = t.maxShare / float64(t.tables)
	r.MinShare = t.minShare / float64(t.tables)
	r.BuildNanos = float64(t.nanos) / float64(t.builds)
	r.Collateral = spreadOf(t.collateral)
	return r
}
