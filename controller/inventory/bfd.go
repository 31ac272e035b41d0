package inventory

import (
	"context"

	"brlb/controller/config"
	"brlb/ovsdb/vswitch"
)

// keyBFD marks, in the external_ids of an Interface, that brlb has turned on its
// BFD.
const keyBFD = "brlb-bfd"

// BFDWants says where BFD is wanted.
type BFDWants struct {
	Ports map[uint32]config.BFD // by OpenFlow port number
	// Complete says that Ports are all: elsewhere, what brlb has turned on is
	// turned off.
	Complete bool
}

// BFDSession is BFD at one port, whoever turned it on.
type BFDSession struct {
	Interface  string
	Own        bool   // brlb has turned it on
	State      string // "up", "down", ...; "" while Open vSwitch does not tell
	Forwarding bool
	Diagnostic string
	Remote     string // the state that the other end tells
}

// bfdSessions lists the ports of a bridge at which BFD is on.
func bfdSessions(interfaces []vswitch.Interface) map[uint32]BFDSession {
	sessions := map[uint32]BFDSession{}
	for _, row := range interfaces {
		number, ok := row.OFPort.Number()
		if !ok || row.BFD["enable"] != "true" {
			continue
		}
		_, own := row.ExternalIDs[keyBFD]
		sessions[number] = BFDSession{
			Interface: row.Name, Own: own,
			State: row.BFDStatus["state"], Forwarding: row.BFDStatus["forwarding"] == "true",
			Diagnostic: row.BFDStatus["diagnostic"], Remote: row.BFDStatus["remote_state"],
		}
	}
	return sessions
}

// WantBFD says where BFD is wanted from now on. Before the first call nothing is
// changed. It may be called from any goroutine; wants must not be changed later.
func (i *Inventory) WantBFD(wants BFDWants) {
	i.mu.Lock()
	i.bfd = wants
	i.mu.Unlock()
	select {
	case i.wake <- struct{}{}:
	default:
	}
}

// bfdPlans are the changes that bring BFD where it is wanted.
func bfdPlans(interfaces []vswitch.Interface, wants BFDWants) []vswitch.Plan {
	var plans []vswitch.Plan
	for _, row := range interfaces {
		number, ok := row.OFPort.Number()
		if !ok {
			continue
		}
		var want *vswitch.BFD
		if b, wanted := wants.Ports[number]; wanted {
			want = &vswitch.BFD{MinTx: b.MinTx, MinRx: b.MinRx, Mult: b.Mult}
		} else if !wants.Complete {
			continue
		}
		if plan := vswitch.SetBFD(row, keyBFD, want); !plan.Empty() {
			plans = append(plans, plan)
		}
	}
	return plans
}

// setBFD brings BFD where it is wanted, if this brlb holds the lock. It tells
// whether that must be tried again.
func (i *Inventory) setBFD(ctx context.Context, update Update) (again bool) {
	if !update.Connected || !update.Bridge || !update.Lock.Held {
		return false
	}
	i.mu.Lock()
	wants := i.bfd
	i.mu.Unlock()
	view := vswitch.View{Snapshot: i.replica.Snapshot()}
	bridge, ok := view.Bridge(i.opts.Bridge)
	if !ok {
		return false
	}
	for _, plan := range bfdPlans(view.BridgeInterfaces(bridge), wants) {
		if err := plan.Apply(ctx, i.client, i.lock.Assert()); err != nil {
			if ctx.Err() == nil {
				i.opts.Logger.Warn("cannot change BFD", "bridge", i.opts.Bridge, "wanted", plan.Changes, "err", err)
			}
			again = true
			continue
		}
		for _, change := range plan.Changes {
			i.opts.Logger.Info("changed in OVSDB", "bridge", i.opts.Bridge, "change", change)
		}
	}
	return again
}
