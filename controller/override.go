package controller

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"brlb/controller/api"
	"brlb/controller/state"
)

// decision is what an operator decides about a member, given what was decided
// before.
type decision func(state.Override) state.Override

// decide turns a request into a decision, and a clause that says what members
// are then: "draining", "enabled", ...
func decide(operation string, req api.ChangeRequest, now time.Time) (decision, string, error) {
	now = now.UTC().Truncate(time.Second)
	admin := func(to state.Admin, until time.Time) decision {
		return func(o state.Override) state.Override {
			o.State, o.Until, o.Who, o.Why, o.At = to, until, req.Who, req.Why, now
			return o
		}
	}
	switch operation {
	case "drain":
		var until time.Time
		text := "draining"
		if req.DeadlineSeconds > 0 {
			until = now.Add(time.Duration(req.DeadlineSeconds * float64(time.Second))).Truncate(time.Second)
			text += " until " + until.Format(time.RFC3339)
		}
		return admin(state.Draining, until), text, nil
	case "disable":
		return admin(state.Disabled, time.Time{}), "disabled", nil
	case "enable":
		return func(state.Override) state.Override { return state.Override{State: state.Enabled, At: now} }, "enabled", nil
	case "weight":
		to, err := state.ParseWeight(req.Weight)
		if err != nil {
			return nil, "", badRequest(http.StatusBadRequest, "%v", err)
		}
		return func(o state.Override) state.Override {
			o.Weighting = state.Weighting{To: to, Who: req.Who, Why: req.Why, At: now}
			return o
		}, "of weight " + string(to), nil
	}
	return nil, "", badRequest(http.StatusBadRequest, "operation %.40q is not known: drain, enable, disable or weight", operation)
}

// override decides about one member or, if none is named, about all members that
// the pool has now.
func (c *consequence) override(member, pool string, d decision, text string) error {
	var members []*state.Member
	if member != "" {
		if pool != "" && !strings.HasPrefix(member, pool+"/") {
			member = pool + "/" + member
		}
		if err := c.find(member); err != nil {
			return err
		}
		members = []*state.Member{c.member}
		c.text = fmt.Sprintf("%s is %s", c.name, text)
	} else {
		p, err := onePool(c.now, pool)
		if err != nil {
			return err
		}
		if len(p.Members) == 0 {
			return badRequest(http.StatusConflict, "pool %s has no members", p.Name)
		}
		c.pool = p.Name
		for i := range p.Members {
			members = append(members, &p.Members[i])
		}
		c.text = fmt.Sprintf("all %d members of pool %s are %s", len(members), p.Name, text)
	}
	c.decided = map[state.MemberID]state.Override{}
	for _, m := range members {
		was := c.state.Override(m.ID)
		o := d(was)
		if err := divisible(m, o.Weighting); err != nil && o.Weighting != was.Weighting {
			return err
		}
		if was.IsNothing() && o.IsNothing() && len(members) > 1 {
			continue // nothing is taken back from it
		}
		c.decided[m.ID] = o
		c.state.SetOverride(m.ID, o)
	}
	return nil
}

// divisible refuses a weight of its own for a member of a pool inside another
// one, where it only has a part of that pool's.
func divisible(m *state.Member, w state.Weighting) error {
	if m.Origin == (state.MemberID{}) || w.To == "" || strings.HasSuffix(string(w.To), "%") {
		return nil
	}
	return badRequest(http.StatusConflict, "in pool %s, %s has a part of the weight of a pool inside: give a percentage, or set the weight of %s, which counts everywhere",
		m.ID.Pool, m.Name, m.Name)
}

// Change implements api.Backend: it carries out what an operator decides about
// members.
func (l *loop) Change(ctx context.Context, operation string, req api.ChangeRequest) (*api.Change, error) {
	d, text, err := decide(operation, req, time.Now())
	if err != nil {
		return nil, err
	}
	change, revision, err := l.change(ctx, req, d, text)
	if err != nil || req.DryRun {
		return change, err
	}
	change.Revision = revision
	if req.WaitSeconds > 0 {
		change.Confirmed = l.wait(ctx, revision, time.Duration(req.WaitSeconds*float64(time.Second)))
		l.settle(ctx)
	}
	return change, nil
}

// change stores a decision and takes it over. One at a time: each is based on
// what was decided before.
func (l *loop) change(ctx context.Context, req api.ChangeRequest, d decision, text string) (*api.Change, uint64, error) {
	l.changing.Lock()
	defer l.changing.Unlock()
	c, err := l.whatIf(ctx, func(c *consequence) error { return c.override(req.Member, req.Pool, d, text) })
	if err != nil {
		return nil, 0, err
	}
	change := c.describe()
	if req.DryRun {
		return change, 0, nil
	}
	if emptied := c.empties(); emptied != "" && !req.Force {
		return nil, 0, badRequest(http.StatusConflict, "this would leave pool %s without a member that owns slots, so that it serves nobody; use force if that is meant", emptied)
	}
	revision, err := l.store(ctx, c.decided)
	if err != nil {
		return nil, 0, err
	}
	for id, o := range c.decided {
		// Of these, no snapshot says who it was.
		if o.State == state.Enabled {
			l.note(state.Event{Time: time.Now(), Pool: id.Pool, Member: c.nameOf(id), Text: text + by(state.Override{Who: req.Who, Why: req.Why})})
		}
	}
	return change, revision, nil
}

func (c *consequence) nameOf(id state.MemberID) string {
	if p := c.now.Pool(id.Pool); p != nil {
		if m := p.Member(id.Key); m != nil {
			return m.Name
		}
	}
	return id.Key
}

// store keeps overrides in OVSDB and takes them over. It returns the revision
// that does.
func (l *loop) store(ctx context.Context, overrides map[state.MemberID]state.Override) (revision uint64, err error) {
	if err := l.inv.StoreOverrides(ctx, overrides); err != nil {
		return 0, err
	}
	err = l.do(ctx, func() {
		update, _ := l.inv.Latest()
		l.takeInventory(ctx, update)
		revision = l.state.Snapshot().Revision
	})
	return revision, err
}

func by(o state.Override) string {
	text := ""
	if o.Who != "" {
		text += " by " + o.Who
	}
	if o.Why != "" {
		text += ": " + o.Why
	}
	return text
}

// Overrides implements api.Backend.
func (l *loop) Overrides(ctx context.Context) (*api.Overrides, error) {
	var overrides map[state.MemberID]state.Override
	var snapshot *state.Snapshot
	err := l.do(ctx, func() { overrides, snapshot = l.state.Overrides(), l.state.Snapshot() })
	if err != nil {
		return nil, err
	}
	doc := &api.Overrides{}
	for id, o := range overrides {
		entry := api.Override{
			Pool: id.Pool, Address: id.Key, State: string(o.State), Until: o.Until,
			Who: o.Who, Why: o.Why, At: o.At,
		}
		if w := o.Weighting; w.To != "" {
			entry.Weight = &api.WeightOverride{To: string(w.To), Who: w.Who, Why: w.Why, At: w.At}
		}
		if p := snapshot.Pool(id.Pool); p != nil {
			if m := p.Member(id.Key); m != nil {
				entry.Member, entry.State = m.Name, string(m.Admin.State)
			}
		}
		doc.Overrides = append(doc.Overrides, entry)
	}
	slices.SortFunc(doc.Overrides, func(a, b api.Override) int {
		return cmp.Or(cmp.Compare(a.Pool, b.Pool), cmp.Compare(a.Member, b.Member), cmp.Compare(a.Address, b.Address))
	})
	return doc, nil
}

// Clear implements api.Backend: it is enable, and works for members that have
// left the configuration too.
func (l *loop) Clear(ctx context.Context, req api.ChangeRequest) (*api.Change, error) {
	var gone []state.MemberID
	err := l.do(ctx, func() {
		snapshot := l.state.Snapshot()
		for id := range l.state.Overrides() {
			named := req.Member == id.Key || req.Member == id.Pool+"/"+id.Key
			if p := snapshot.Pool(id.Pool); named && (p == nil || p.Member(id.Key) == nil) {
				gone = append(gone, id)
			}
		}
	})
	switch {
	case err != nil:
		return nil, err
	case len(gone) == 0:
		return l.Change(ctx, "enable", req)
	case len(gone) > 1:
		return nil, badRequest(http.StatusBadRequest, "%.60q has left several pools: name the pool too", req.Member)
	}
	id := gone[0]
	change := &api.Change{
		Member: id.Key, Pool: id.Pool, Text: fmt.Sprintf("the override of %s/%s, which the configuration does not know, is cleared", id.Pool, id.Key),
		Connections: "none moves",
	}
	if req.DryRun {
		return change, nil
	}
	l.changing.Lock()
	defer l.changing.Unlock()
	if change.Revision, err = l.store(ctx, map[state.MemberID]state.Override{id: {State: state.Enabled}}); err != nil {
		return nil, err
	}
	change.Confirmed = req.WaitSeconds > 0 // there is nothing for the switch to do
	l.note(state.Event{Time: time.Now(), Pool: id.Pool, Member: id.Key, Text: "override cleared" + by(state.Override{Who: req.Who, Why: req.Why})})
	return change, nil
}
