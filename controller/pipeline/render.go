package pipeline

import (
	"cmp"
	"maps"
	"net/netip"
	"slices"

	"brlb/controller/config"
	"brlb/controller/packet"
	"brlb/controller/state"
	"brlb/openflow"
)

// Renderer turns snapshots into flow sets. It keeps what it has rendered, so
// that a change costs what has changed: the rows of slots that keep their owner
// and of members that stay as they are are those of the last time, and so are the
// groups of other pools.
type Renderer struct {
	frame    frame
	pools    map[uint16]rendered
	set      Set // all that was rendered last
	shared   sharedInput
	sharedBy Set // rendered from shared
}

// frame is what every pool's rows depend on.
type frame struct {
	mac         openflow.MAC
	zone        uint16
	flushReused bool
	kernel      bool
	noMeters    bool
}

func frameOf(s *state.Snapshot) frame {
	return frame{mac: s.MAC, zone: s.Zone, flushReused: s.FlushReused, kernel: s.Kernel, noMeters: s.NoMeters}
}

type rendered struct {
	pool   state.Pool
	behind behind
	groups Set
	owners []uint16 // member number by slot
}

// NewRenderer returns a renderer that has rendered nothing yet.
func NewRenderer() *Renderer { return &Renderer{pools: map[uint16]rendered{}, set: Set{}} }

// Render returns the flows that the switch must hold, and says of which groups
// not everything is known yet. See Diff for what becomes of those.
func (r *Renderer) Render(s *state.Snapshot) (Set, func(GroupID) bool, error) {
	if err := r.update(s); err != nil {
		*r = *NewRenderer() // half of it may be of this snapshot
		return nil, nil, err
	}
	held := map[uint16]bool{}
	for i := range s.Pools {
		if p := &s.Pools[i]; !p.Settled {
			held[p.ID] = true
			held[0] = true
		}
	}
	hold := func(id GroupID) bool {
		switch id.Kind {
		case KindBase, KindService:
			return false
		}
		return held[id.Pool]
	}
	return r.set, hold, nil
}

// update renders what is not as it was.
func (r *Renderer) update(s *state.Snapshot) error {
	if now := frameOf(s); now != r.frame {
		*r = *NewRenderer()
		r.frame = now
	}
	set := maps.Clone(r.set)
	others := r.sharedBy == nil || len(r.pools) != len(s.Pools) // pools, for what is shared
	replace := func(was, now Set) {
		for id := range was {
			delete(set, id)
		}
		maps.Copy(set, now)
	}
	for i := range s.Pools {
		p := &s.Pools[i]
		before := r.pools[p.ID]
		if before.groups != nil && before.pool.Equal(p) {
			continue
		}
		now, err := r.frame.renderPool(p, before)
		if err != nil {
			return err
		}
		replace(before.groups, now.groups)
		r.pools[p.ID] = now
		others = others || !sharesAlike(&before.pool, p)
	}
	if len(r.pools) > len(s.Pools) {
		others = true
		r.drop(s, replace)
	}
	if setting := settingOf(s); others || !setting.equal(&r.shared.setting) {
		input := sharedInputOf(setting, s)
		groups, err := input.render()
		if err != nil {
			return err
		}
		replace(r.sharedBy, groups)
		r.shared, r.sharedBy = input, groups
	}
	r.set = set
	return nil
}

// sharesAlike says whether two pictures of a pool make the same of the rows that
// are not of one pool alone.
func sharesAlike(a, b *state.Pool) bool {
	return a.Stateless() == b.Stateless() && a.Zone == b.Zone && answers(a) == answers(b) &&
		slices.EqualFunc(a.Members, b.Members, func(m, n state.Member) bool { return m.Address == n.Address && m.Via == n.Via && m.Rival == n.Rival })
}

// answers says whether connections find members, or are refused.
func answers(p *state.Pool) bool { return p.Serves() || p.Rejects }

// drop forgets pools that are gone.
func (r *Renderer) drop(s *state.Snapshot, replace func(was, now Set)) {
	for id, gone := range r.pools {
		if !slices.ContainsFunc(s.Pools, func(p state.Pool) bool { return p.ID == id }) {
			replace(gone.groups, nil)
			delete(r.pools, id)
		}
	}
}

// renderPool renders the rows of one pool. Rows of slots and members are taken from
// before, an earlier rendering of the same pool, where they are still right.
func (f frame) renderPool(p *state.Pool, before rendered) (rendered, error) {
	behind := behind{frame: f, pool: p.ID, own: cmp.Or(p.Zone, f.zone), checked: f.mayLackRoom(p), ipv6: p.IPv6, mode: p.Mode, tunnel: p.Tunnel}
	members, err := behind.members(p.Members, before)
	if err != nil {
		return rendered{}, err
	}
	hash := hashFlows(p)
	if p.Rejects {
		hash = append(hash, refuseNew(p.ID))
	}
	groups, err := f.newGroups(map[GroupID][]*openflow.FlowMod{{KindHash, p.ID}: hash})
	if err != nil {
		return rendered{}, err
	}
	if len(members) > 0 {
		groups[GroupID{KindMember, p.ID}] = &Group{Rows: members}
	}
	slots := GroupID{KindSlot, p.ID}
	owners := slotOwners(p)
	moving, err := movingGroup(p, owners)
	if err != nil {
		return rendered{}, err
	}
	if moving != nil {
		groups[GroupID{KindMoving, p.ID}] = moving
	}
	if len(owners) > 0 {
		var old []Row
		if g := before.groups[slots]; g != nil {
			old = g.Rows
		}
		rows, err := slotRows(p.ID, owners, old, before.owners)
		if err != nil {
			return rendered{}, err
		}
		groups[slots] = &Group{Rows: rows}
	}
	return rendered{pool: *p, behind: behind, groups: groups, owners: owners}, nil
}

// movingGroup renders the rows of slots that move, and gives these slots, in
// owners, to the members before. It is nil if none move.
func movingGroup(p *state.Pool, owners []uint16) (*Group, error) {
	if p.Moving == nil {
		return nil, nil
	}
	var flows []*openflow.FlowMod
	for slot, leaving := range p.Moving.From {
		m := p.Member(leaving.Key)
		if m == nil || slot >= len(owners) {
			continue
		}
		heir := owners[slot]
		if !leaving.Open {
			heir = m.Number
		}
		flows = append(flows, movingFlow(p, slot, m.Number, heir))
		owners[slot] = m.Number
	}
	if len(flows) == 0 {
		return nil, nil
	}
	return newGroup(flows)
}

// slotOwners returns the member number of each slot's owner.
func slotOwners(p *state.Pool) []uint16 {
	if p.Table == nil {
		return nil
	}
	numbers := make([]uint16, len(p.Table.Members))
	for i := range p.Table.Members {
		if m := p.MemberNear(i, p.Table.Members[i].Key); m != nil {
			numbers[i] = m.Number
		}
	}
	owners := make([]uint16, len(p.Table.Owner))
	for slot, owner := range p.Table.Owner {
		owners[slot] = numbers[owner]
	}
	return owners
}

// slotRows returns the slot table, one row a slot, which is also the order of
// their keys.
func slotRows(pool uint16, owners []uint16, old []Row, oldOwners []uint16) ([]Row, error) {
	rows := make([]Row, len(owners))
	loads := map[uint16]openflow.Instructions{} // the same for all slots of a member
	var e encoder
	for slot, number := range owners {
		if slot < len(oldOwners) && oldOwners[slot] == number {
			rows[slot] = old[slot]
			continue
		}
		load, ok := loads[number]
		if !ok {
			load = loadMember(number)
			loads[number] = load
		}
		var flow *openflow.FlowMod
		if slot < len(old) { // of the same match
			changed := *old[slot].Mod
			changed.Instructions = load
			flow = &changed
		} else {
			flow = slotFlow(pool, slot, load)
		}
		row, err := e.row(flow)
		if err != nil {
			return nil, err
		}
		rows[slot] = row
	}
	return rows, nil
}

// sharedInput is all that the rows depend on which are not of one pool alone:
// base rows, own addresses, services, replies.
type sharedInput struct {
	setting
	answers []bool       // by service: its pool does
	sources []source     // of all pools, sorted, without duplicates
	hops    []netip.Addr // likewise
}

// setting is the part of sharedInput that pools have no part in.
type setting struct {
	frame
	drop     bool
	host     openflow.MAC // of the bridge's own device
	tunnels  []uint32     // ports
	zones    []uint16     // of pools, sorted
	noRoom   bool         // there may be none in conntrack
	gateways []netip.Prefix
	services []state.Service
}

// source is what a member sends from as a service.
type source struct {
	addr netip.Addr
	port config.Port
	zone uint16
}

func settingOf(s *state.Snapshot) setting {
	now := setting{frame: frameOf(s), drop: s.Drop, tunnels: tunnelPorts(s), zones: ownZones(s), gateways: s.Gateways, services: s.Services}
	now.noRoom = slices.ContainsFunc(s.Pools, func(p state.Pool) bool { return now.mayLackRoom(&p) })
	for _, p := range s.Ports {
		if p.Number == uint32(openflow.PortLocal) {
			now.host = p.MAC
		}
	}
	return now
}

func sharedInputOf(setting setting, s *state.Snapshot) sharedInput {
	in := sharedInput{setting: setting, answers: make([]bool, len(s.Services))}
	pools := make(map[uint16]*state.Pool, len(s.Pools))
	for i := range s.Pools {
		pools[s.Pools[i].ID] = &s.Pools[i]
	}
	in.hops = nextHops(s)
	sources := map[source]bool{}
	add := func(p *state.Pool, m *state.Member, port config.Port) {
		if m.Rival == "" {
			sources[source{m.Address.Addr(), port, cmp.Or(p.Zone, setting.zone)}] = true
		}
	}
	for i := range s.Services {
		service := &s.Services[i]
		p := pools[service.PoolID]
		in.answers[i] = p != nil && answers(p)
	}
	for id, kept := range keptPorts(s) {
		if pools[id].Stateless() {
			continue
		}
		for j := range pools[id].Members {
			for _, port := range kept {
				add(pools[id], &pools[id].Members[j], port)
			}
		}
	}
	for _, proto := range ownPortProtos(s) {
		for i := range s.Pools {
			if s.Pools[i].Stateless() {
				continue
			}
			for j := range s.Pools[i].Members {
				m := &s.Pools[i].Members[j]
				add(&s.Pools[i], m, config.Port{First: m.Address.Port(), Last: m.Address.Port(), Proto: proto})
			}
		}
	}
	in.sources = slices.SortedFunc(maps.Keys(sources), func(a, b source) int {
		return cmp.Or(a.addr.Compare(b.addr), a.port.Compare(b.port))
	})
	return in
}

// keptPorts lists, by pool, the ports on which members get packets although they
// are not their own.
func keptPorts(s *state.Snapshot) map[uint16][]config.Port {
	found := map[uint16][]config.Port{}
	for i := range s.Services {
		for _, port := range s.Services[i].Ports {
			for _, id := range s.Services[i].PoolIDs {
				if port.Kept() {
					found[id] = append(found[id], port)
				}
			}
		}
	}
	return found
}

// ownPortProtos lists the protocols that members are sent on their own ports.
// Which service a member's connection came from doesn't matter: it outlasts a
// change of that.
func ownPortProtos(s *state.Snapshot) []config.Proto {
	var found []config.Proto
	for i := range s.Services {
		for _, port := range s.Services[i].Ports {
			if !port.Kept() && !slices.Contains(found, port.Proto) {
				found = append(found, port.Proto)
			}
		}
	}
	return found
}

func (s *setting) equal(o *setting) bool {
	return s.frame == o.frame && s.drop == o.drop && s.host == o.host && slices.Equal(s.tunnels, o.tunnels) && slices.Equal(s.zones, o.zones) && s.noRoom == o.noRoom && slices.Equal(s.gateways, o.gateways) &&
		state.SameServices(s.services, o.services)
}

func (in *sharedInput) render() (Set, error) {
	base, own, reply := GroupID{KindBase, 0}, GroupID{KindOwn, 0}, GroupID{KindReply, 0}
	flows := map[GroupID][]*openflow.FlowMod{base: append(in.baseFlows(in.drop, in.host, in.tunnels, in.zones), in.hairpinFlows(in.gateways, in.zones)...)}
	for _, g := range in.gateways {
		flows[own] = append(flows[own], ownFlows(g.Addr())...)
		if g.Addr().Is6() {
			flows[own] = append(flows[own], in.routerFlows(g.Addr())...)
		}
	}
	if in.asksIPv6() {
		self := packet.LinkLocal(in.mac)
		flows[own] = append(append(flows[own], ownFlows(self)...), in.routerFlows(self)...)
	}
	// A VIP is answered for while at least one of its services is.
	answered, refuses, datagrams, stateless := map[netip.Addr]bool{}, map[netip.Addr]bool{}, map[netip.Addr]bool{}, map[netip.Addr]bool{}
	zones := map[netip.Addr]uint16{}
	var vips []netip.Addr
	if in.noRoom {
		flows[base] = append(flows[base], noRoomFlows()...)
	}
	for i := range in.services {
		service := &in.services[i]
		id := GroupID{KindService, service.PoolID}
		flows[id] = append(flows[id], in.serviceFlows(service)...)
		for _, addr := range service.Addresses {
			if _, seen := answered[addr]; !seen {
				vips = append(vips, addr)
			}
			answered[addr] = answered[addr] || in.answers[i]
			zones[addr] = cmp.Or(zones[addr], service.Zone)
			refuses[addr] = service.OtherPorts == config.OtherPortsReject
			stateless[addr] = stateless[addr] || service.Stateless
			datagrams[addr] = datagrams[addr] || !service.Stateless && slices.ContainsFunc(service.Ports, func(p config.Port) bool { return p.Contains(config.ProtoUDP, p.First) })
		}
	}
	for _, addr := range vips {
		flows[base] = append(flows[base], vipRest(addr))
		if zones[addr] != 0 {
			flows[base] = append(flows[base], in.vipZoneFlows(addr, zones[addr])...)
		}
		if datagrams[addr] {
			flows[base] = append(flows[base], newFragments(addr)...)
		}
		if stateless[addr] {
			flows[base] = append(flows[base], quotingFlows(addr)...)
		}
		if service := in.soleBySource(addr); service != nil {
			flows[base] = append(flows[base], fragmentsBySource(addr, service.PoolID))
		}
		if !answered[addr] {
			continue
		}
		flows[own] = append(flows[own], ownFlows(addr)...)
		if refuses[addr] {
			flows[own] = append(flows[own], refuseRest(addr))
		}
	}
	for _, hop := range in.hops {
		flows[own] = append(flows[own], announcedFlow(hop, in.drop))
	}
	for _, from := range in.sources {
		flows[reply] = append(flows[reply], replyFlows(from)...)
	}
	return in.newGroups(flows)
}

// soleBySource returns a service of a VIP whose pool is stateless, serves all of
// the VIP and tells clients apart by their addresses alone; or nil.
func (s *setting) soleBySource(addr netip.Addr) *state.Service {
	var found *state.Service
	for i := range s.services {
		service := &s.services[i]
		if !slices.Contains(service.Addresses, addr) {
			continue
		}
		if !service.Stateless || service.Affinity != config.AffinitySource || found != nil && found.PoolID != service.PoolID {
			return nil
		}
		found = service
	}
	return found
}

// asksIPv6 says whether brlb asks for IPv6 neighbours: those may then look
// whether it is still there.
func (in *sharedInput) asksIPv6() bool {
	return slices.ContainsFunc(in.sources, func(s source) bool { return s.addr.Is6() })
}

func (fr frame) newGroups(flows map[GroupID][]*openflow.FlowMod) (Set, error) {
	set := Set{}
	for id, list := range flows {
		if len(list) == 0 {
			continue
		}
		fr.fitMeters(list)
		g, err := newGroup(list)
		if err != nil {
			return nil, err
		}
		set[id] = g
	}
	return set, nil
}
