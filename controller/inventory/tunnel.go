package inventory

import (
	"context"
	"errors"
	"fmt"

	"brlb/controller/config"
	"brlb/ovsdb/vswitch"
)

// keyTunnel marks, in the external_ids of an Interface, that brlb has made that
// port for tunnels.
const keyTunnel = "brlb-tunnel"

// TunnelWants says for which tunnels the bridge needs ports.
type TunnelWants struct {
	Types []config.TunnelType
	// Complete says that Types are all: ports for others, of those that brlb has
	// made, are removed.
	Complete bool
}

// WantTunnels says for which tunnels the bridge needs ports from now on. Before
// the first call nothing is changed. It may be called from any goroutine; wants
// must not be changed later.
func (i *Inventory) WantTunnels(wants TunnelWants) {
	i.mu.Lock()
	i.tunnels = wants
	i.mu.Unlock()
	select {
	case i.wake <- struct{}{}:
	default:
	}
}

// tunnelPlan is the change that brings ports for tunnels where they are wanted.
func tunnelPlan(view vswitch.View, bridge string, wants TunnelWants) (vswitch.Plan, error) {
	if !wants.Complete {
		return vswitch.Plan{}, nil
	}
	var want []vswitch.Tunnel
	for _, kind := range wants.Types {
		want = append(want, vswitch.Tunnel{Name: kind.Port(), Type: string(kind)})
	}
	return view.SetTunnels(bridge, keyTunnel, want)
}

// setTunnels brings ports for tunnels where they are wanted, if this brlb holds
// the lock. It tells whether that must be tried again.
func (i *Inventory) setTunnels(ctx context.Context, update Update) (again bool) {
	if !update.Connected || !update.Bridge || !update.Lock.Held {
		return false
	}
	plan, _ := tunnelPlan(vswitch.View{Snapshot: i.replica.Snapshot()}, i.opts.Bridge, i.tunnelsWanted())
	if err := plan.Apply(ctx, i.client, i.lock.Assert()); err != nil {
		if ctx.Err() == nil && !errors.Is(err, vswitch.ErrChanged) {
			i.opts.Logger.Warn("cannot change ports for tunnels", "wanted", plan.Changes, "err", err)
		}
		return true
	}
	for _, change := range plan.Changes {
		i.opts.Logger.Info("changed in OVSDB", "change", change)
	}
	return false
}

func (i *Inventory) tunnelsWanted() TunnelWants {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.tunnels
}

// Tunnels says what of the ports for tunnels is not as it should be.
func (i *Inventory) Tunnels() []string {
	i.mu.Lock()
	replica, wants := i.replica, i.tunnels
	i.mu.Unlock()
	if replica == nil {
		return nil // the bridge's settings say so
	}
	view := vswitch.View{Snapshot: replica.Snapshot()}
	bridge, _ := view.Bridge(i.opts.Bridge)
	plan, _ := tunnelPlan(view, i.opts.Bridge, wants)
	return append(plan.Changes, tunnelProblems(view, bridge, wants)...)
}

// tunnelProblems says why ports for tunnels are not as they should be.
func tunnelProblems(view vswitch.View, bridge vswitch.Bridge, wants TunnelWants) (problems []string) {
	for _, row := range view.BridgeInterfaces(bridge) {
		if _, own := row.ExternalIDs[keyTunnel]; own && row.Error != "" {
			problems = append(problems, fmt.Sprintf("Open vSwitch cannot make port %s: %.200s", row.Name, row.Error))
		}
	}
	if _, err := tunnelPlan(view, bridge.Name, wants); err != nil {
		problems = append(problems, err.Error())
	}
	return problems
}
