package controller

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"time"

	"brlb/controller/api"
	"brlb/controller/config"
	"brlb/controller/state"
	"brlb/maglev"
)

// Plan implements api.Backend: what a change would move.
func (l *loop) Plan(ctx context.Context, req api.PlanRequest) (*api.Change, error) {
	c, err := l.whatIf(ctx, func(c *consequence) error { return c.carryOut(req, time.Now()) })
	if err != nil {
		return nil, err
	}
	change := c.describe()
	if req.Compare {
		change.Compare = compareLayouts(c.before, c.after, req.Operation == "layout")
	}
	return change, nil
}

// whatIf lets a change happen to a copy of the state.
func (l *loop) whatIf(ctx context.Context, change func(*consequence) error) (*consequence, error) {
	var now *state.Snapshot
	var copied *state.State
	err := l.do(ctx, func() { now, copied = l.state.Snapshot(), l.state.Clone() })
	if err != nil {
		return nil, err
	}
	return consider(now, copied, change)
}

// consider lets a change happen to a copy of the state that now is of.
func consider(now *state.Snapshot, copied *state.State, change func(*consequence) error) (*consequence, error) {
	c := &consequence{now: now, state: copied}
	if err := change(c); err != nil {
		return nil, err
	}
	c.compare()
	if c.after.Problem != "" && c.before.Problem == "" {
		return nil, badRequest(http.StatusConflict, "pool %s would have no table: %s", c.pool, c.after.Problem)
	}
	return c, nil
}

// compare looks at the pool before and after the change.
func (c *consequence) compare() {
	c.then = c.state.Snapshot()
	c.before, c.after = c.now.Pool(c.pool), c.then.Pool(c.pool)
	for i := range c.now.Pools {
		p := &c.now.Pools[i]
		if p.Name == c.pool || len(p.Nested) == 0 {
			continue
		}
		if m := moves(p, c.then.Pool(p.Name)); m.Moved > 0 {
			c.text += fmt.Sprintf("; in pool %s, which contains it, %d of %d slots move", p.Name, m.Moved, m.Slots)
		}
	}
}

// consequence is what a change would do to one pool.
type consequence struct {
	now   *state.Snapshot
	state *state.State // a copy, to which the change has happened

	pool          string
	member        *state.Member                     // as it is now; nil if the change is not about one
	name          string                            // of the member
	decided       map[state.MemberID]state.Override // by operators
	text          string
	cut           bool // connections to the member end
	then          *state.Snapshot
	before, after *state.Pool
}

// carryOut makes the change that a request describes.
func (c *consequence) carryOut(req api.PlanRequest, now time.Time) error {
	switch req.Operation {
	case "drain", "enable", "disable":
		d, text, err := decide(req.Operation, api.ChangeRequest{}, now)
		if err != nil {
			return err
		}
		return c.override(req.Member, req.Pool, d, text)
	case "weight":
		return c.weight(req.Member, req.Weight, now)
	case "remove":
		return c.remove(req.Member)
	case "add":
		return c.add(req)
	case "rebase":
		return c.rebase(req.Pool)
	case "layout":
		return c.layout(req.Pool, req.Layout)
	}
	return badRequest(http.StatusBadRequest, "operation %.40q is not known: drain, enable, disable, weight, remove, add, rebase or layout", req.Operation)
}

// find finds the member that a request means.
func (c *consequence) find(what string) error {
	member, err := findOne(c.now, what)
	if err != nil {
		return err
	}
	c.member, c.pool, c.name = member, member.ID.Pool, member.Name
	return nil
}

// weight does what the operation weight does to one member.
func (c *consequence) weight(member string, weight uint32, now time.Time) error {
	if err := c.find(member); err != nil {
		return err
	}
	d, _, err := decide("weight", api.ChangeRequest{Weight: fmt.Sprint(weight)}, now)
	if err != nil {
		return err
	}
	o := d(c.member.Admin)
	if err := divisible(c.member, o.Weighting); err != nil {
		return err
	}
	c.state.SetOverride(c.member.ID, o)
	c.text = fmt.Sprintf("the weight of %s is %d instead of %d", c.name, weight, c.member.Weight)
	return nil
}

func (c *consequence) remove(member string) error {
	if err := c.find(member); err != nil {
		return err
	}
	if origin := c.member.Origin; origin != (state.MemberID{}) {
		return badRequest(http.StatusConflict, "%s is a member of pool %s, which is inside pool %s: it can only be removed there", c.name, origin.Pool, c.pool)
	}
	c.state.RemoveMember(c.member.ID)
	c.text, c.cut = c.name+" is removed", true
	return nil
}

func (c *consequence) add(req api.PlanRequest) error {
	pool, err := onePool(c.now, req.Pool)
	if err != nil {
		return err
	}
	address, err := netip.ParseAddrPort(req.Address)
	if err != nil || config.HostProblem(address.Addr()) != "" || address.Port() == 0 {
		return badRequest(http.StatusBadRequest, "%.60q is not the address and port of a member, such as 10.30.0.15:8080", req.Address)
	}
	c.pool, c.name = pool.Name, req.Member
	if m := pool.Member(address.String()); m != nil {
		return badRequest(http.StatusConflict, "%s is member %s of pool %s already", address, m.Name, pool.Name)
	}
	if slices.ContainsFunc(pool.Members, func(m state.Member) bool { return m.Name == req.Member }) {
		return badRequest(http.StatusConflict, "%s is the name of another member of pool %s", req.Member, pool.Name)
	}
	c.state.AddMember(pool.Name, config.Member{Name: req.Member, Address: address, Weight: req.Weight})
	added := c.state.Snapshot().Pool(pool.Name).Member(address.String())
	if !added.Active {
		return badRequest(http.StatusConflict, "%s would own no slots: %s", req.Member, added.Reason)
	}
	c.text = fmt.Sprintf("%s, %s of weight %d, is added and its probes pass", req.Member, address, req.Weight)
	return nil
}

func (c *consequence) rebase(name string) error {
	pool, err := onePool(c.now, name)
	if err != nil {
		return err
	}
	c.pool = pool.Name
	switch {
	case pool.Layout != config.LayoutV2:
		return badRequest(http.StatusConflict, "pool %s has layout %s: only layout %s has an anchor", pool.Name, pool.Layout, config.LayoutV2)
	case pool.Anchor == nil:
		return badRequest(http.StatusConflict, "pool %s has had no table yet, and gets its anchor with the first", pool.Name)
	case pool.Anchor.Pinned:
		c.state.EditPool(pool.Name, func(p *config.Pool) { p.Anchor = nil })
	}
	if !c.state.Rebase(pool.Name) {
		return badRequest(http.StatusConflict, "the members of pool %s cannot be its anchor: nobody has a weight above 0", pool.Name)
	}
	c.text = fmt.Sprintf("the anchor of pool %s is its members as they are now", pool.Name)
	return nil
}

func (c *consequence) layout(name, layout string) error {
	pool, err := onePool(c.now, name)
	if err != nil {
		return err
	}
	if !slices.Contains(maglev.Names(), layout) {
		return badRequest(http.StatusBadRequest, "no layout is called %.40q; there is %s", layout, strings.Join(maglev.Names(), ", "))
	}
	if len(pool.Nested) > 0 && !slices.Contains(config.Proportional(), layout) {
		return badRequest(http.StatusConflict, "pool %s contains other pools, and layout %s has whole weights only", pool.Name, layout)
	}
	c.pool = pool.Name
	c.state.EditPool(pool.Name, func(p *config.Pool) {
		p.Layout = layout
		if layout != config.LayoutV2 {
			p.Anchor, p.BalanceSlack = nil, 0
		}
	})
	c.text = fmt.Sprintf("pool %s has layout %s instead of %s", pool.Name, layout, pool.Layout)
	return nil
}

// describe says what the change does.
func (c *consequence) describe() *api.Change {
	return &api.Change{
		Member: c.name, Pool: c.pool, Text: c.text, Connections: c.connections(),
		Moves: moves(c.before, c.after), Members: memberMoves(c.before, c.after),
	}
}

// connections says what becomes of those that are open.
func (c *consequence) connections() string {
	cut := fmt.Sprintf("those that are open to %s are cut (drain it first, and wait for their end)", c.name)
	pool, _ := c.state.Config().Pool(c.pool)
	switch {
	case c.cut && !pool.Stateless():
		return cut + "; no other moves"
	case c.cut:
		return cut
	case !pool.Stateless():
		return "none that is open moves: they are tracked, and only new ones go by the new table"
	case pool.Transition == 0:
		return "those on slots that move break: they are not tracked, and the transition is 0s"
	}
	return fmt.Sprintf("they are not tracked: those on slots that move stay where they are for %v (transition), and break if they last longer", pool.Transition)
}

// empties returns a pool that a change takes the last owner of slots from, if no
// backup pool serves in its place; "" if there is none. Active members of weight
// 0 own none. A pool that is only inside others may be left empty.
func (c *consequence) empties() string {
	for i := range c.now.Pools {
		name := c.now.Pools[i].Name
		if c.now.Pools[i].Table == nil || c.then.Pool(name).Table != nil {
			continue
		}
		used := slices.ContainsFunc(c.now.Pools, func(p state.Pool) bool {
			return slices.ContainsFunc(p.Nested, func(n config.Nested) bool { return n.Pool == name })
		})
		for j := range c.now.Services {
			if c.now.Services[j].Pool == name {
				used = true
				if c.then.Pool(c.then.Services[j].Pool).Table == nil {
					return name
				}
			}
		}
		if !used {
			return name
		}
	}
	return ""
}

func memberNames(s *state.Snapshot) string {
	var names []string
	for i := range s.Pools {
		for j := range s.Pools[i].Members {
			if m := &s.Pools[i].Members[j]; m.Origin == (state.MemberID{}) {
				names = append(names, m.Name)
			}
		}
	}
	slices.Sort(names)
	const most = 20
	if names = slices.Compact(names); len(names) > most {
		names = append(names[:most], "...")
	}
	return strings.Join(names, ", ")
}

func moves(before, after *state.Pool) api.Moves {
	return tableMoves(table(before), table(after), before.Digest, after.Digest)
}

func tableMoves(before, after *maglev.Table, from, to string) api.Moves {
	change := maglev.Compare(before, after)
	return api.Moves{
		Slots: change.Slots, Moved: change.Moved, Needed: change.Needed, Collateral: change.Collateral,
		LowerBound: change.LowerBound, Before: from, After: to,
	}
}

func memberMoves(before, after *state.Pool) []api.MemberMove {
	var list []api.MemberMove
	change := maglev.Compare(table(before), table(after))
	for _, m := range change.Members {
		name := m.Key
		if member := after.Member(m.Key); member != nil {
			name = member.Name
		} else if member := before.Member(m.Key); member != nil {
			name = member.Name
		}
		list = append(list, api.MemberMove{
			Name: name, Before: m.Before, After: m.After, Gained: m.Gained, Lost: m.Lost,
			ShareBefore: share(m.Before, change.Slots), ShareAfter: share(m.After, change.Slots),
		})
	}
	slices.SortFunc(list, func(a, b api.MemberMove) int { return cmp.Compare(a.Name, b.Name) })
	return list
}

func share(slots, all int) float64 { return float64(slots) / float64(max(all, 1)) }
