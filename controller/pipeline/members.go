package pipeline

import (
	"slices"

	"brlb/controller/config"
	"brlb/controller/state"
	"brlb/openflow"
)

// behind is what the rows of all of a pool's members depend on.
type behind struct {
	frame
	pool uint16
	own  uint16 // conntrack zone of its connections
	// checked says that new connections come back from conntrack: it may lack room.
	checked bool
	ipv6    bool
	mode    string
	tunnel  config.Tunnel
}

// members returns the rows of a pool's members, sorted. Those of members that are
// as they were are taken from before.
func (b behind) members(members []state.Member, before rendered) ([]Row, error) {
	var old []Row
	var was []state.Member
	if g := before.groups[GroupID{KindMember, b.pool}]; g != nil && before.behind == b {
		old, was = g.Rows, before.pool.Members
	}
	stale := map[uint32]bool{} // numbers of members whose old rows go
	var flows []*openflow.FlowMod
	for i := range members {
		m := &members[i]
		for len(was) > 0 && was[0].ID.Key < m.ID.Key {
			stale[uint32(was[0].Number)] = true
			was = was[1:]
		}
		if len(was) > 0 && was[0].ID.Key == m.ID.Key {
			before := &was[0]
			was = was[1:]
			if sameRows(before, m) {
				continue
			}
			stale[uint32(before.Number)] = true
		}
		flows = append(flows, b.rowsOf(m)...)
	}
	for i := range was {
		stale[uint32(was[i].Number)] = true
	}
	b.fitMeters(flows)
	fresh, err := sortedRows(flows)
	if err != nil {
		return nil, err
	}
	kept := slices.DeleteFunc(slices.Clone(old), func(r Row) bool { _, _, number := CookieParts(r.Mod.Cookie); return stale[number] })
	return merge(kept, fresh), nil
}

// sameRows says whether two pictures of a member, which has one address, make the
// same rows.
func sameRows(a, b *state.Member) bool {
	return a.Number == b.Number && a.HasNext == b.HasNext && a.Next == b.Next && a.Active == b.Active && a.Cut == b.Cut
}

// rowsOf are the rows of one member, if packets can reach it.
func (b behind) rowsOf(m *state.Member) []*openflow.FlowMod {
	switch {
	case !m.HasNext || m.Number == 0 || m.Address.Addr().Is6() != b.ipv6:
		return nil
	case b.mode == config.ModeDSR:
		return b.dsrFlows(m, b.pool)
	case b.mode == config.ModeTunnel:
		return b.tunnelFlows(m, b.pool, b.tunnel)
	}
	return b.memberFlows(m)
}

// merge returns the rows of two sorted lists, sorted.
func merge(a, b []Row) []Row {
	if len(b) == 0 {
		return a
	}
	all := make([]Row, 0, len(a)+len(b))
	for len(b) > 0 {
		n, _ := slices.BinarySearchFunc(a, &b[0], func(r Row, to *Row) int { return r.compare(to) })
		all = append(append(all, a[:n]...), b[0])
		a, b = a[n:], b[1:]
	}
	return append(all, a...)
}
