package pipeline

import (
	"net/netip"
	"reflect"

	"brlb/controller/state"
	"brlb/openflow"
)

// Renderer turns snapshots into flow sets. It keeps the groups of pools that
// have not changed, so that a change in one pool costs what that pool costs.
type Renderer struct {
	frame frame
	pools map[uint16]rendered
}

// frame is what every pool's rows depend on.
type frame struct {
	mac  openflow.MAC
	zone uint16
}

type rendered struct {
	pool   state.Pool
	groups Set
}

// NewRenderer returns a renderer that has rendered nothing yet.
func NewRenderer() *Renderer { return &Renderer{pools: map[uint16]rendered{}} }

// Render returns the flows that the switch must hold, and says of which groups
// not everything is known yet. See Diff for what becomes of those.
func (r *Renderer) Render(s *state.Snapshot) (Set, func(GroupID) bool, error) {
	now := frame{mac: s.MAC, zone: s.Zone}
	if now != r.frame {
		r.frame, r.pools = now, map[uint16]rendered{}
	}
	set := Set{}
	pools := map[uint16]rendered{}
	held := map[uint16]bool{}
	for i := range s.Pools {
		p := &s.Pools[i]
		if !p.Settled {
			held[p.ID] = true
			held[0] = true
		}
		done, ok := r.pools[p.ID]
		if !ok || !reflect.DeepEqual(done.pool, *p) {
			groups, err := renderPool(s, p)
			if err != nil {
				return nil, nil, err
			}
			done = rendered{pool: *p, groups: groups}
		}
		pools[p.ID] = done
		for id, g := range done.groups {
			set[id] = g
		}
	}
	r.pools = pools
	common, err := renderCommon(s)
	if err != nil {
		return nil, nil, err
	}
	for id, g := range common {
		set[id] = g
	}
	hold := func(id GroupID) bool {
		switch id.Kind {
		case KindBase, KindService:
			return false
		}
		return held[id.Pool]
	}
	return set, hold, nil
}

func renderPool(s *state.Snapshot, p *state.Pool) (Set, error) {
	var members []*openflow.FlowMod
	for i := range p.Members {
		if m := &p.Members[i]; m.HasNext && m.Number != 0 {
			members = append(members, memberFlows(s, m, p.ID)...)
		}
	}
	return groups(map[GroupID][]*openflow.FlowMod{
		{KindHash, p.ID}:   {hashFlow(p)},
		{KindSlot, p.ID}:   slotFlows(p),
		{KindMember, p.ID}: members,
	})
}

// renderCommon renders what is not of one pool alone: base rows, own
// addresses, services, replies.
func renderCommon(s *state.Snapshot) (Set, error) {
	flows := map[GroupID][]*openflow.FlowMod{{KindBase, 0}: baseFlows(s)}
	own := GroupID{KindOwn, 0}
	for _, g := range s.Gateways {
		flows[own] = append(flows[own], ownFlows(Cookie(KindOwn, 0, 0), g.Addr())...)
	}
	// A VIP is answered for while at least one of its services is served.
	served := map[netip.Addr]bool{}
	var vips []netip.Addr
	for i := range s.Services {
		service := &s.Services[i]
		id := GroupID{KindService, service.PoolID}
		flows[id] = append(flows[id], serviceFlows(s, service)...)
		pool := s.Pool(service.Pool)
		for _, addr := range service.Addresses {
			if _, seen := served[addr]; !seen {
				vips = append(vips, addr)
			}
			served[addr] = served[addr] || pool != nil && pool.Serves()
		}
	}
	for _, addr := range vips {
		flows[GroupID{KindBase, 0}] = append(flows[GroupID{KindBase, 0}], vipRest(Cookie(KindBase, 0, 0), addr))
		if served[addr] {
			flows[own] = append(flows[own], ownFlows(Cookie(KindOwn, 0, 0), addr)...)
		}
	}
	reply := GroupID{KindReply, 0}
	replying := map[netip.AddrPort]bool{}
	for i := range s.Pools {
		for j := range s.Pools[i].Members {
			if addr := s.Pools[i].Members[j].Address; !replying[addr] {
				replying[addr] = true
				flows[reply] = append(flows[reply], replyFlow(s, addr))
			}
		}
	}
	return groups(flows)
}

func groups(flows map[GroupID][]*openflow.FlowMod) (Set, error) {
	set := Set{}
	for id, list := range flows {
		if len(list) == 0 {
			continue
		}
		g, err := newGroup(list)
		if err != nil {
			return nil, err
		}
		set[id] = g
	}
	return set, nil
}
