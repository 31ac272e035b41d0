package controller

import (
	"brlb/controller/api"
	"brlb/controller/state"
	"brlb/maglev"
)

// compareLayouts says what each layout would make of a change. It starts from
// the table that the layout has for what was before or, if the change is of the
// layout, from the pool's own.
func compareLayouts(before, after *state.Pool, ofLayout bool) []api.LayoutChange {
	list := make([]api.LayoutChange, 0, len(maglev.Names()))
	for _, name := range maglev.Names() {
		list = append(list, compareLayout(name, before, after, ofLayout))
	}
	return list
}

func compareLayout(name string, before, after *state.Pool, ofLayout bool) api.LayoutChange {
	c := api.LayoutChange{Layout: name}
	layout, err := maglev.ByName(name)
	if err != nil {
		c.Error = err.Error()
		return c
	}
	c.Version = layout.Version()
	from, to := before.Input(), after.Input()
	if from.Anchor == nil {
		from.Anchor = before.Nominal()
	}
	if to.Anchor == nil {
		to.Anchor = from.Anchor
	}
	old, new := new(maglev.Table), new(maglev.Table)
	if ofLayout || before.Layout == name {
		old = table(before)
	} else if len(from.Members) > 0 {
		if err := layout.Build(from, old); err != nil {
			c.Error = err.Error()
			return c
		}
	}
	to.Previous = old
	if err := layout.Build(to, new); err != nil && len(to.Members) > 0 {
		c.Error = err.Error()
		return c
	}
	c.Moves = tableMoves(old, new, old.Digest(), new.Digest())
	c.MaxShare, c.MinShare = extremes(new)
	return c
}

// extremes returns the largest and the least share of a member, relative to
// what its weight entitles it to.
func extremes(t *maglev.Table) (most, least float64) {
	total := 0.0
	for _, m := range t.Members {
		total += float64(m.Weight)
	}
	first := true
	for i, n := range t.Counts(nil) {
		weight := float64(t.Members[i].Weight)
		if weight == 0 {
			continue
		}
		share := float64(n) * total / (weight * float64(t.Slots()))
		if first || share > most {
			most = share
		}
		if first || share < least {
			least = share
		}
		first = false
	}
	return most, least
}
