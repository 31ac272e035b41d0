package oftest

import (
	"fmt"
	"maps"
	"slices"

	"brlb/openflow"
)

// changeGroup does a group-mod. Deleting a group deletes the flows that use it.
func (t *tables) changeGroup(m *openflow.GroupMod) ([]change, openflow.ErrorCode) {
	_, exists := t.groups[m.ID]
	switch m.Command {
	case openflow.GroupAdd:
		if exists {
			return nil, openflow.GroupModFailedGroupExists
		}
		t.groups[m.ID] = m
	case openflow.GroupModify:
		if !exists {
			return nil, openflow.GroupModFailedUnknownGroup
		}
		t.groups[m.ID] = m
	case openflow.GroupDelete:
		var changes []change
		for _, id := range slices.Sorted(maps.Keys(t.groups)) {
			if id != m.ID && m.ID != openflow.GroupAll {
				continue
			}
			delete(t.groups, id)
			users := openflow.NewFlowMod(openflow.FlowDelete)
			users.Table, users.OutGroup = openflow.TableAll, id
			changes = append(changes, t.remove(users, openflow.RemovedGroupDelete)...)
		}
		return changes, 0
	default:
		return nil, openflow.GroupModFailedBadCommand
	}
	return nil, 0
}

// haveGroups says whether all groups that instructions name exist.
func (t *tables) haveGroups(list openflow.Instructions) bool {
	return !slices.ContainsFunc(actionsOf(list), func(a openflow.Action) bool {
		id, ok := a.(openflow.Group)
		return ok && t.groups[uint32(id)] == nil
	})
}

// groupDesc lists the groups.
func (t *tables) groupDesc() openflow.GroupDescReply {
	var list openflow.GroupDescReply
	for _, id := range slices.Sorted(maps.Keys(t.groups)) {
		g := t.groups[id]
		list = append(list, openflow.GroupDesc{Kind: g.Kind, ID: g.ID, Buckets: g.Buckets})
	}
	return list
}

// group sends the packet through a group. A group that is gone drops it.
func (r *run) group(p *Packet, id uint32, table uint8) error {
	g := r.sw.tables.groups[id]
	if g == nil {
		return nil
	}
	if r.depth >= maxDepth {
		return fmt.Errorf("over %d nested groups", maxDepth)
	}
	r.depth++
	defer func() { r.depth-- }()
	buckets := g.Buckets
	switch g.Kind {
	case openflow.GroupTypeSelect:
		return fmt.Errorf("cannot tell which bucket of select group %d a switch takes", id)
	case openflow.GroupTypeFF:
		first := slices.IndexFunc(buckets, func(b openflow.Bucket) bool { return r.isLive(b, 0) })
		if first < 0 {
			return nil
		}
		buckets = buckets[first : first+1]
	}
	for _, b := range buckets {
		if err := r.apart(p, b.Actions, table); err != nil {
			return err
		}
	}
	return nil
}

// isLive says whether a bucket of a fast-failover group can be used: it watches
// nothing, or a port that is live, or a group with such a bucket.
func (r *run) isLive(b openflow.Bucket, depth int) bool {
	if b.WatchPort == openflow.PortAny && b.WatchGroup == openflow.GroupAny {
		return true
	}
	if p, ok := r.sw.ports[b.WatchPort]; ok && p.IsLive() {
		return true
	}
	g := r.sw.tables.groups[b.WatchGroup]
	return g != nil && depth < maxDepth && slices.ContainsFunc(g.Buckets, func(b openflow.Bucket) bool { return r.isLive(b, depth+1) })
}
