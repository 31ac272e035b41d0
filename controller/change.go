package controller

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"brlb/controller/api"
	"brlb/controller/config"
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

// Reload implements api.Backend: it reads the configuration file again. A file
// that cannot be taken over leaves the running configuration in force.
func (l *loop) Reload(ctx context.Context) (*api.ReloadResult, error) {
	// One at a time: else what was read first could be taken last.
	l.reloading.Lock()
	defer l.reloading.Unlock()
	cfg, err := config.Load(l.opts.ConfigPath)
	result := &api.ReloadResult{}
	if err == nil {
		doErr := l.do(ctx, func() {
			old := l.state.Config()
			if err = unchangeable(old, cfg); err != nil || old.Equal(cfg) {
				result.Revision = l.snapshot.Revision
				return
			}
			before := l.state.Snapshot()
			l.state.SetConfig(cfg, time.Now())
			after := l.state.Snapshot()
			result.Changed, result.Changes, result.Revision = true, describeReload(before, after), after.Revision
		})
		if doErr != nil {
			return nil, doErr
		}
	}
	l.stats.reloaded(err == nil, time.Now())
	if err != nil {
		return nil, badRequest(http.StatusUnprocessableEntity, "the running configuration stays in force: %v", err)
	}
	if result.Changed {
		result.Confirmed = l.wait(ctx, result.Revision, confirmTimeout)
		l.settle(ctx)
		l.note(state.Event{Time: time.Now(), Text: "configuration reloaded: " + strings.Join(result.Changes, "; ")})
	}
	return result, nil
}

// reloadAndLog is Reload for SIGHUP: there is nobody to answer.
func (l *loop) reloadAndLog(ctx context.Context) {
	result, err := l.Reload(ctx)
	switch {
	case err != nil:
		l.opts.Logger.Error("reload refused", "file", l.opts.ConfigPath, "err", err)
	case !result.Changed:
		l.opts.Logger.Info("reloaded, nothing has changed", "file", l.opts.ConfigPath)
	}
}

// describeReload says what a reload has changed, a sentence each.
func describeReload(before, after *state.Snapshot) []string {
	var changes []string
	say := func(format string, args ...any) { changes = append(changes, fmt.Sprintf(format, args...)) }
	for i := range after.Pools {
		p := &after.Pools[i]
		was := before.Pool(p.Name)
		if was == nil {
			say("pool %s added", p.Name)
			continue
		}
		if was.Layout != p.Layout {
			say("pool %s: layout %s instead of %s", p.Name, p.Layout, was.Layout)
		}
		if was.Anchor != p.Anchor && was.Anchor != nil && p.Anchor != nil && was.Anchor.Digest != p.Anchor.Digest {
			say("pool %s: anchor %s instead of %s", p.Name, p.Anchor.Digest, was.Anchor.Digest)
		}
		if was.ID != p.ID {
			say("pool %s: id %d instead of %d", p.Name, p.ID, was.ID)
		}
		for j := range p.Members {
			m := &p.Members[j]
			switch old := was.Member(m.ID.Key); {
			case old == nil:
				say("pool %s: member %s added", p.Name, m.Name)
			case old.Weight != m.Weight:
				say("pool %s: weight of %s is %d instead of %d", p.Name, m.Name, m.Weight, old.Weight)
			}
		}
		for j := range was.Members {
			if p.Member(was.Members[j].ID.Key) == nil {
				say("pool %s: member %s removed", p.Name, was.Members[j].Name)
			}
		}
		if was.Table != p.Table && p.Settled {
			m := moves(was, p)
			say("pool %s: %d of %d slots move, %d needed and %d collateral", p.Name, m.Moved, m.Slots, m.Needed, m.Collateral)
		}
	}
	for i := range before.Pools {
		if name := before.Pools[i].Name; after.Pool(name) == nil {
			say("pool %s removed", name)
		}
	}
	if !slices.EqualFunc(before.Services, after.Services, sameService) {
		say("services changed")
	}
	if len(changes) == 0 {
		say("settings changed")
	}
	return changes
}

func sameService(a, b state.Service) bool {
	return a.Name == b.Name && a.Primary == b.Primary && slices.Equal(a.Addresses, b.Addresses) && slices.Equal(a.Ports, b.Ports)
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
