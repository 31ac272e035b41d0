package inventory

import (
	"cmp"
	"context"
	"errors"

	"brlb/ovsdb/vswitch"
)

// keyTimeouts marks, in the external_ids of a CT_Timeout_Policy and of a CT_Zone,
// that brlb has made that row, and for which bridge.
const keyTimeouts = "brlb-timeouts"

// TimeoutWants says how long conntrack is to keep connections.
type TimeoutWants struct {
	Zones map[int64]vswitch.Timeouts
	// Complete says that Zones are all: timeouts of others, of those that brlb has
	// set for this bridge, are removed.
	Complete bool
}

// WantTimeouts says how long conntrack is to keep connections from now on. Before
// the first call nothing is changed. It may be called from any goroutine; wants
// must not be changed later.
func (i *Inventory) WantTimeouts(wants TimeoutWants) {
	i.mu.Lock()
	i.timeouts = wants
	i.mu.Unlock()
	select {
	case i.wake <- struct{}{}:
	default:
	}
}

// timeoutPlan is the change that brings timeouts where they are wanted.
func timeoutPlan(view vswitch.View, bridge vswitch.Bridge, wants TimeoutWants) (vswitch.Plan, error) {
	if !wants.Complete {
		return vswitch.Plan{}, nil
	}
	return view.SetTimeouts(cmp.Or(bridge.DatapathType, "system"), vswitch.Mark{Key: keyTimeouts, Owner: bridge.Name}, wants.Zones)
}

// setTimeouts brings timeouts where they are wanted, if this brlb holds the lock.
// It tells whether that must be tried again.
func (i *Inventory) setTimeouts(ctx context.Context, update Update) (again bool) {
	if !update.Connected || !update.Bridge || !update.Lock.Held {
		return false
	}
	view := vswitch.View{Snapshot: i.replica.Snapshot()}
	bridge, ok := view.Bridge(i.opts.Bridge)
	if !ok {
		return false
	}
	plan, _ := timeoutPlan(view, bridge, i.timeoutsWanted())
	if err := plan.Apply(ctx, i.client, i.lock.Assert()); err != nil {
		if ctx.Err() == nil && !errors.Is(err, vswitch.ErrChanged) {
			i.opts.Logger.Warn("cannot change conntrack timeouts", "bridge", i.opts.Bridge, "wanted", plan.Changes, "err", err)
		}
		return true
	}
	for _, change := range plan.Changes {
		i.opts.Logger.Info("changed in OVSDB", "bridge", i.opts.Bridge, "change", change)
	}
	return false
}

func (i *Inventory) timeoutsWanted() TimeoutWants {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.timeouts
}

// timeoutProblems says why timeouts are not as they should be.
func timeoutProblems(view vswitch.View, bridge vswitch.Bridge, wants TimeoutWants) []string {
	if _, err := timeoutPlan(view, bridge, wants); err != nil {
		return []string{err.Error()}
	}
	return nil
}

// Timeouts says what of the conntrack timeouts is not as it should be.
func (i *Inventory) Timeouts() []string {
	i.mu.Lock()
	replica, wants := i.replica, i.timeouts
	i.mu.Unlock()
	if replica == nil {
		return []string{"OVSDB is not connected"}
	}
	view := vswitch.View{Snapshot: replica.Snapshot()}
	bridge, ok := view.Bridge(i.opts.Bridge)
	if !ok {
		return nil // the bridge's settings say so
	}
	plan, err := timeoutPlan(view, bridge, wants)
	if err != nil {
		return append(plan.Changes, err.Error())
	}
	return plan.Changes
}
