package inventory

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"brlb/ovsdb/vswitch"
)

// keyZones notes, in the external_ids of a Bridge, which conntrack zones its brlb
// uses: bridges of one datapath share conntrack, in which a member is known by its
// number alone.
const keyZones = "brlb-zones"

// WantZones says which conntrack zones this brlb uses from now on. It may be called
// from any goroutine.
func (i *Inventory) WantZones(zones []uint16) {
	i.mu.Lock()
	i.opts.Zones = zones
	i.mu.Unlock()
	select {
	case i.wake <- struct{}{}:
	default:
	}
}

func (i *Inventory) zonesWanted() []uint16 {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.opts.Zones
}

// zoneClash says which of the zones the brlb of another bridge uses, and what to do;
// "" if it uses none of them. Each kind of datapath has its own conntrack.
func zoneClash(view vswitch.View, bridge vswitch.Bridge, zones []uint16) string {
	for _, other := range view.Bridges() {
		if other.UUID == bridge.UUID || cmp.Or(other.DatapathType, "system") != cmp.Or(bridge.DatapathType, "system") {
			continue
		}
		for _, word := range strings.Fields(other.ExternalIDs[keyZones]) {
			if n, err := strconv.ParseUint(word, 10, 16); err == nil && slices.Contains(zones, uint16(n)) {
				return fmt.Sprintf("the brlb of bridge %.60q uses conntrack zone %d, too, which mixes up their connections: set another `zone`, one that differs in its lower 14 bits, "+
					"and restart; or, if no brlb serves that bridge any more, forget its zones: ovs-vsctl br-set-external-id %.60q %s", other.Name, n, other.Name, keyZones)
			}
		}
	}
	return ""
}

// ZoneClash says what speaks against zones that a configuration would use; "" if
// nothing does.
func (i *Inventory) ZoneClash(zones []uint16) string {
	i.mu.Lock()
	replica := i.replica
	i.mu.Unlock()
	if replica == nil {
		return ""
	}
	view := vswitch.View{Snapshot: replica.Snapshot()}
	bridge, _ := view.Bridge(i.opts.Bridge)
	return zoneClash(view, bridge, zones)
}

func zonesText(zones []uint16) string { return strings.Trim(fmt.Sprint(zones), "[]") }

// MayServe says whether this brlb may use its zones: nobody else does, or it has
// noted them before.
func (u *Update) MayServe() bool { return u.ZoneClash == "" || u.ZonesHeld }

// claimZones notes the zones, if this brlb holds the lock and nobody else uses them.
// It tells whether that must be tried again.
func (i *Inventory) claimZones(ctx context.Context, update Update) (again bool) {
	if !update.Connected || !update.Bridge || !update.Lock.Held || update.ZonesHeld || update.ZoneClash != "" {
		return false
	}
	err := i.store(ctx, map[string]string{keyZones: zonesText(i.zonesWanted())}, nil)
	if err != nil && ctx.Err() == nil {
		i.opts.Logger.Warn("cannot note the conntrack zones", "err", err)
	}
	return err != nil
}
