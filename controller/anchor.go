package controller

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"

	"brlb/controller/api"
	"brlb/controller/config"
	"brlb/controller/state"
	"brlb/maglev"
)

// Rebase implements api.Backend: it makes a pool's members its anchor.
func (l *loop) Rebase(ctx context.Context, req api.RebaseRequest) (*api.Change, error) {
	c, err := l.whatIf(ctx, func(c *consequence) error { return c.rebase(req.Pool) })
	if err != nil {
		return nil, err
	}
	change := c.describe()
	if req.DryRun {
		return change, nil
	}
	if c.before.Anchor.Pinned {
		return nil, badRequest(http.StatusConflict, "the anchor of pool %s is pinned in the configuration: remove `anchor` there and reload, rebase, and pin what brlb slots --anchor prints", c.pool)
	}
	if v := l.view.Load(); !v.writer || !v.inventory.Connected {
		return nil, badRequest(http.StatusConflict, "the anchor is kept in OVSDB, and this brlb cannot write there now (not connected, or another brlb holds the lock); nothing was changed")
	}
	err = l.do(ctx, func() {
		l.state.Rebase(c.pool)
		change.Revision = l.state.Snapshot().Revision
		l.note(state.Event{
			Time: time.Now(), Pool: c.pool,
			Text: fmt.Sprintf("rebased%s: %d of %d slots move", by(state.Override{Who: req.Who, Why: req.Why}), change.Moves.Moved, change.Moves.Slots),
		})
	})
	if err != nil {
		return nil, err
	}
	if req.WaitSeconds > 0 {
		change.Confirmed = l.wait(ctx, change.Revision, time.Duration(req.WaitSeconds*float64(time.Second)))
		l.settle(ctx)
	}
	return change, nil
}

// storeAnchors keeps anchors in OVSDB where it says something else.
func (l *loop) storeAnchors(ctx context.Context) {
	if l.storingAnchors || !l.mayStore() {
		return
	}
	anchors := l.state.Anchors()
	var remove []string
	for pool := range l.inventory.Anchors {
		if _, known := anchors[pool]; !known {
			remove = append(remove, pool)
		}
	}
	slices.Sort(remove)
	for pool, members := range anchors {
		if slices.Equal(members, l.inventory.Anchors[pool]) {
			delete(anchors, pool)
		}
	}
	if len(anchors) == 0 && len(remove) == 0 {
		return
	}
	l.keep(ctx, &l.storingAnchors, "anchors are not stored", func() error { return l.inv.StoreAnchors(ctx, anchors, remove) })
}

// anchorDocument describes a pool's anchor; nil if it has none.
func (l *loop) anchorDocument(p *state.Pool) *api.Anchor {
	if p.Anchor == nil {
		return nil
	}
	doc := &api.Anchor{Digest: p.Anchor.Digest, Pinned: p.Anchor.Pinned, Stale: p.Stale()}
	if doc.Stale {
		doc.RebaseMoves = l.rebases.moves(p)
	}
	return doc
}

// anchorMembers lists an anchor, with the names that its members have now.
func anchorMembers(p *state.Pool) []api.AnchorMember {
	var list []api.AnchorMember
	for _, m := range p.Anchor.Members {
		member := api.AnchorMember{Address: m.Key, Weight: m.Weight}
		if known := p.Member(m.Key); known != nil {
			member.Name = known.Name
		}
		list = append(list, member)
	}
	return list
}

// rebaseCosts remembers how many slots a rebase of each pool would move. It may
// be asked in any goroutine.
type rebaseCosts struct {
	mu    sync.Mutex
	pools map[string]rebaseCost
}

type rebaseCost struct {
	table   *maglev.Table
	nominal []maglev.Member
	moves   int
}

func newRebaseCosts() *rebaseCosts { return &rebaseCosts{pools: map[string]rebaseCost{}} }

func (r *rebaseCosts) moves(p *state.Pool) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	nominal := p.Nominal()
	known := r.pools[p.Name]
	if known.table != p.Table || !slices.Equal(known.nominal, nominal) {
		rebased := p.Rebased()
		if rebased == nil {
			rebased = new(maglev.Table)
		}
		known = rebaseCost{table: p.Table, nominal: nominal, moves: maglev.Compare(table(p), rebased).Moved}
		r.pools[p.Name] = known
	}
	return known.moves
}

// anchor checks that a pool's anchor is stored.
func (c *checker) anchor(name string, p *state.Pool) {
	if p.Layout != config.LayoutV2 || p.Anchor == nil {
		return
	}
	stored := "none"
	if members := c.view.inventory.Anchors[p.Name]; len(members) > 0 {
		stored = maglev.AnchorDigest(p.ID, p.Slots, members)
	}
	c.say(name+"anchor", stored == p.Anchor.Digest, "OVSDB keeps %s, in force is %s", stored, p.Anchor.Digest)
}
