package apitest

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"time"

	"brlb/controller/api"
)

// find returns the pool and the member that a request means.
func (b *Backend) find(member string) (*api.Pool, *api.Member, error) {
	s := b.Status()
	for i := range s.Pools {
		p := &s.Pools[i]
		j := slices.IndexFunc(p.Members, func(m api.Member) bool {
			return member == m.Name || member == p.Name+"/"+m.Name || member == m.Address
		})
		if j >= 0 {
			return p, &p.Members[j], nil
		}
	}
	return nil, nil, &api.RequestError{Status: http.StatusNotFound, Message: fmt.Sprintf("there is no member %q", member)}
}

// History implements [api.Backend]: a pass and two results like the newest.
func (b *Backend) History(member string) (*api.History, error) {
	p, m, err := b.find(member)
	if err != nil {
		return nil, err
	}
	doc := &api.History{Pool: p.Name, Member: m.Name, Address: m.Address, Probed: m.Address, Check: m.Check.Name, Health: m.Health, Since: m.Since}
	outcome := map[bool]string{true: "pass", false: "fail"}[m.Health == "up"]
	doc.Results = []api.ProbeResult{{At: b.now.Add(-3 * time.Second), Code: "L7OK", Outcome: "pass", Text: "200", DurationSeconds: 0.0011}}
	for i := range 2 {
		doc.Results = append(doc.Results, api.ProbeResult{
			At: b.now.Add(time.Duration(i-2) * time.Second), Code: m.Check.Code, Outcome: outcome, Text: m.Check.Detail, DurationSeconds: m.Check.DurationSeconds,
		})
	}
	return doc, nil
}

// Explain implements [api.Backend].
func (b *Backend) Explain(_ context.Context, member string) (*api.Explanation, error) {
	p, m, err := b.find(member)
	if err != nil {
		return nil, err
	}
	history, err := b.History(member)
	if err != nil {
		return nil, err
	}
	doc := &api.Explanation{
		Pool: p.Name, Member: *m, Results: history.Results,
		Weight: api.WeightStory{Configured: m.Weight, Effective: float64(m.Weight)},
		Slots:  api.SlotsStory{Wanted: m.Slots, Installed: m.Slots, Known: true, InSync: true},
		Facts: []api.Fact{
			{Name: "admin", OK: true, Text: "enabled"},
			{Name: "check", OK: m.Active, Text: m.Health + ": check web (http " + m.Address + ")"},
			{Name: "next hop", OK: true, Text: m.MAC},
		},
	}
	if !m.Active {
		doc.Remedies = []string{"check web: 2 passes in a row, of which it has 0"}
	}
	return doc, nil
}
