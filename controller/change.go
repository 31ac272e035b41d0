package controller

import (
	"context"
	"fmt"
	"slices"
	"time"

	"brlb/controller/api"
	"brlb/controller/state"
)

// wait waits until the switch has confirmed a revision, and until no pool waits
// for first verdicts any more: of a pool that waits, the switch keeps what it
// holds. It reports whether it has come to that.
func (l *loop) wait(ctx context.Context, revision uint64, most time.Duration) bool {
	ctx, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	for {
		changed := l.Changed()
		v := l.view.Load()
		if (v.confirmed > revision || v.confirmed == revision && v.inSync) && allSettled(v.snapshot) {
			return true
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return false
		case <-l.done:
			return false
		}
	}
}

func allSettled(s *state.Snapshot) bool {
	return !slices.ContainsFunc(s.Pools, func(p state.Pool) bool { return !p.Settled })
}

// Reapply implements api.Backend: it reads the switch and corrects what is
// wrong there.
func (l *loop) Reapply(ctx context.Context) (*api.ReapplyResult, error) {
	before, err := l.Flows(ctx, "diff")
	if err != nil {
		return nil, err
	}
	if err := l.bridge.Reread(ctx); err != nil {
		return nil, err
	}
	var revision uint64
	err = l.do(ctx, func() {
		l.reconcile.retryAt = time.Time{} // who asks does not wait for a back-off
		revision = l.snapshot.Revision
	})
	if err != nil {
		return nil, err
	}
	result := &api.ReapplyResult{FlowMods: len(before.Flows)}
	if !l.wait(ctx, revision, confirmTimeout) {
		return nil, fmt.Errorf("the switch has not confirmed the table within %v; see brlb status", confirmTimeout)
	}
	result.OwnFlows = l.view.Load().ownFlows
	result.Text = fmt.Sprintf("%d flows were wrong; the switch holds %d own flows", result.FlowMods, result.OwnFlows)
	return result, nil
}

// confirmTimeout is how long a reload or reapply waits for the switch.
const confirmTimeout = 5 * time.Second
