package state

import (
	"slices"

	"brlb/controller/config"
	"brlb/maglev"
)

// active lists the members that own slots, with their weights in force. A
// layout has whole weights only, so where a member has a percentage of its own
// all weights are counted in hundredths; or, where the layout takes weights
// literally, percentages are rounded, and 1 is the least that remains.
func (p *Pool) active() []maglev.Member {
	hundredths := slices.ContainsFunc(p.Members, func(m Member) bool { return m.Active && m.Percent != 100 }) &&
		slices.Contains(config.Proportional(), p.Layout)
	var members []maglev.Member
	for i := range p.Members {
		m := &p.Members[i]
		if !m.Active {
			continue
		}
		weight := m.Weight * m.Percent
		switch {
		case len(p.Nested) > 0:
			weight = m.Part
		case hundredths || weight == 0:
		case weight < 100:
			weight = 1
		default:
			weight = (weight + 50) / 100
		}
		members = append(members, maglev.Member{Key: m.ID.Key, Weight: weight, Domain: m.Domain})
	}
	return members
}
