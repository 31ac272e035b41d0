// Package apitest holds a Backend that stands for a running brlb in tests of the
// server, the client and the commands.
//
// Its world is the one of the documentation: the service web on 10.20.0.100 and
// the pool web of four members with 1,024 slots. Slots go to the active members
// in turn, which is no layout, but easy to predict.
package apitest

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"brlb/controller/api"
)

// Slots is the size of the slot table.
const Slots = 1024

// Backend is the made-up controller.
type Backend struct {
	mu      sync.Mutex
	now     time.Time
	status  api.Status
	events  []api.Event
	changed chan struct{}
	// answers that tests replace
	verify api.Verify
	trace  *api.SwitchTrace
	stuck  bool
}

// New returns a brlb that has run for three days at the given time: be1 to be3
// up, be4 down for 12 s.
func New(now time.Time) *Backend {
	b := &Backend{now: now, changed: make(chan struct{})}
	since := now.Add(-(3*24*time.Hour + 2*time.Hour + 7*time.Minute))
	up := api.Check{Name: "web", Code: "L7OK", Detail: "200", DurationSeconds: 0.0012, At: now, Consecutive: 9, Needed: 2}
	pool := api.Pool{Name: "web", ID: 1, Mode: "nat", Layout: "v1", Version: "v1", Slots: Slots}
	for i, open := range []int{1204, 1187, 1190, 0} {
		pool.Members = append(pool.Members, api.Member{
			Name: fmt.Sprintf("be%d", i+1), Address: fmt.Sprintf("10.30.0.1%d:8080", i+1), Number: uint16(i + 1),
			State: "up", Active: true, Since: since, Admin: "enabled", Health: "up", Check: up, Configured: 1, Weight: 1, Percent: 100,
			Connections: &open, MAC: fmt.Sprintf("02:00:00:00:02:1%d", i+1), Port: "p2",
		})
	}
	be4 := &pool.Members[3]
	be4.State, be4.Health, be4.Active, be4.Since = "down", "down", false, now.Add(-12*time.Second)
	be4.Reason = "down: L4TOUT no answer within 500ms"
	be4.Check = api.Check{Name: "web", Code: "L4TOUT", Detail: "no answer", DurationSeconds: 0.5, At: now, Consecutive: 14, Needed: 3}
	b.status = api.Status{
		Version: "0.1.0", Bridge: "br-lb", Phase: "steady", Since: since, Revision: 12, Confirmed: 12, InSync: true,
		Switch: api.Switch{
			Connected: true, Since: since, Description: "Open vSwitch 3.1.0", DatapathID: "00004a2f6d7c5e41", OwnFlows: 1052,
			Ports: []api.Port{{Number: 1, Name: "p1", Live: true}, {Number: 2, Name: "p2", Live: true}},
		},
		OVSDB: api.OVSDB{Connected: true, Endpoint: "unix:/var/run/openvswitch/db.sock", Lock: "held"},
		Conntrack: api.Conntrack{
			At: now, Zone: api.ZoneUsage{Number: 18200, TableUsage: api.TableUsage{Entries: 3702, Limit: 200_000}}, Datapath: api.TableUsage{Entries: 4100, Limit: 3_000_000},
		},
		Services: []api.Service{{Name: "web", Addresses: []string{"10.20.0.100"}, Ports: []string{"80/tcp"}, Pool: "web", Primary: "web"}},
		Pools:    []api.Pool{pool},
	}
	b.verify = api.Verify{OK: true, Checks: []api.VerifyCheck{
		{Name: "pool web: slot rows", OK: true, Detail: "1024 rows and the floor"},
		{Name: "pool web: multipath", OK: true, Detail: "1024 links, basis 1"},
	}}
	b.share(&b.status.Pools[0])
	b.record("web", "be4", "down: L4TOUT no answer within 500ms", now.Add(-12*time.Second))
	return b
}

// share gives the slots to the active members in turn.
func (b *Backend) share(p *api.Pool) {
	owner := owners(p)
	p.Active = 0
	for i := range p.Members {
		m := &p.Members[i]
		m.Slots = 0
		for _, o := range owner {
			if o == i {
				m.Slots++
			}
		}
		m.Share = float64(m.Slots) / Slots
		if m.Active {
			p.Active++
		}
	}
	p.Digest = ""
	if p.Active > 0 {
		p.Digest = fmt.Sprintf("%016x", hash(owner))
	}
}

func owners(p *api.Pool) []int {
	var active []int
	for i := range p.Members {
		if p.Members[i].Active {
			active = append(active, i)
		}
	}
	owner := make([]int, Slots)
	for slot := range owner {
		owner[slot] = -1
		if len(active) > 0 {
			owner[slot] = active[slot%len(active)]
		}
	}
	return owner
}

func hash(owner []int) uint64 {
	h := uint64(14695981039346656037)
	for _, o := range owner {
		h = (h ^ uint64(o+1)) * 1099511628211
	}
	return h
}

func (b *Backend) record(pool, member, text string, at time.Time) {
	b.events = append(b.events, api.Event{Seq: uint64(len(b.events) + 1), Time: at, Pool: pool, Member: member, Text: text})
	close(b.changed)
	b.changed = make(chan struct{})
}

// Record adds an event.
func (b *Backend) Record(pool, member, text string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.record(pool, member, text, b.now)
}

// Adjust lets a test change the status.
func (b *Backend) Adjust(change func(*api.Status)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	change(&b.status)
	for i := range b.status.Pools {
		b.share(&b.status.Pools[i])
	}
	close(b.changed)
	b.changed = make(chan struct{})
}

// Stick makes changes go unconfirmed.
func (b *Backend) Stick() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.stuck = true
}

// Fail makes the last check of Verify fail.
func (b *Backend) Fail(detail string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	last := &b.verify.Checks[len(b.verify.Checks)-1]
	last.OK, last.Detail, b.verify.OK = false, detail, false
}

// Disagree makes the switch trace every packet to the member.
func (b *Backend) Disagree(member string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.trace = &api.SwitchTrace{Slot: 0, Number: 1, Member: member, Actions: "drop"}
}

// Status implements [api.Backend].
func (b *Backend) Status() *api.Status {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := b.status
	s.Pools = slices.Clone(s.Pools)
	for i := range s.Pools {
		s.Pools[i].Members = slices.Clone(s.Pools[i].Members)
	}
	return &s
}

// Slots implements [api.Backend].
func (b *Backend) Slots(pool string) (*api.Slots, error) {
	s := b.Status()
	i := slices.IndexFunc(s.Pools, func(p api.Pool) bool { return p.Name == pool || pool == "" })
	if i < 0 {
		return nil, &api.RequestError{Status: http.StatusNotFound, Message: fmt.Sprintf("there is no pool %q", pool)}
	}
	p := &s.Pools[i]
	doc := &api.Slots{Pool: p.Name, ID: p.ID, Slots: p.Slots, Layout: p.Layout, Version: p.Version, Digest: p.Digest, Owner: owners(p)}
	if p.Anchor != nil {
		anchor := *p.Anchor
		for i, m := range p.Members {
			anchor.Members = append(anchor.Members, api.AnchorMember{Name: m.Name, Address: m.Address, Weight: uint32(1 + i%2)})
		}
		anchor.Members = append(anchor.Members, api.AnchorMember{Address: "10.30.0.19:8080", Weight: 1})
		doc.Anchor = &anchor
	}
	for _, m := range p.Members {
		doc.Members, doc.Keys = append(doc.Members, m.Name), append(doc.Keys, m.Address)
	}
	return doc, nil
}

// Events implements [api.Backend].
func (b *Backend) Events(after uint64) *api.Events {
	b.mu.Lock()
	defer b.mu.Unlock()
	return &api.Events{Events: slices.Clone(b.events[min(after, uint64(len(b.events))):])}
}

// Changed implements [api.Backend].
func (b *Backend) Changed() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.changed
}

// Ready implements [api.Backend].
func (b *Backend) Ready() api.Readiness {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.status.Switch.Connected {
		return api.Readiness{Ready: true}
	}
	return api.Readiness{Missing: []string{"the switch br-lb is not connected"}}
}

// Metrics implements [api.Backend].
func (b *Backend) Metrics() *api.Metrics { return &api.Metrics{Status: b.Status()} }

// Plan implements [api.Backend]. What is not drain, enable or disable moves what
// draining be1 would.
func (b *Backend) Plan(ctx context.Context, req api.PlanRequest) (*api.Change, error) {
	operation, member := req.Operation, req.Member
	if !slices.Contains([]string{"drain", "enable", "disable"}, operation) {
		operation, member = "drain", "be1"
	}
	change, err := b.Change(ctx, operation, api.ChangeRequest{Member: member, DryRun: true})
	if err != nil {
		return nil, err
	}
	if operation == "drain" && member != req.Member || req.Operation == "weight" || req.Operation == "add" {
		change.Text = strings.TrimSpace(fmt.Sprintf("%s %s %s %d %s", req.Operation, req.Member, req.Address, req.Weight, req.Layout))
	}
	if req.Compare {
		change.Compare = []api.LayoutChange{
			{Layout: "v2", Version: "v2", Moves: api.Moves{Slots: Slots, Moved: 342, Needed: 342, LowerBound: 342}, MaxShare: 1, MinShare: 1},
			{Layout: "v1", Version: "v1", Moves: change.Moves, MaxShare: 1, MinShare: 1},
			{Layout: "chash", Version: "chash-1", Error: "weights out of range"},
		}
	}
	return change, nil
}

// Rebase implements [api.Backend].
func (b *Backend) Rebase(ctx context.Context, req api.RebaseRequest) (*api.Change, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	anchor := b.status.Pools[0].Anchor
	if anchor == nil {
		return nil, &api.RequestError{Status: http.StatusConflict, Message: "pool web has layout v1: only layout v2 has an anchor"}
	}
	change := &api.Change{
		Pool: "web", Text: "the anchor of pool web is its members as they are now", Connections: connections,
		Moves: api.Moves{Slots: Slots, Moved: anchor.RebaseMoves, Collateral: anchor.RebaseMoves}, Revision: b.status.Revision,
	}
	if !req.DryRun {
		b.status.Revision++
		change.Revision, change.Confirmed = b.status.Revision, req.WaitSeconds > 0 && !b.stuck
		b.status.Pools[0].Anchor = &api.Anchor{Digest: anchor.Digest}
		b.record("web", "", "rebased", b.now)
	}
	return change, nil
}

// connections is what all changes mean for those that are open.
const connections = "none that is open moves: they are tracked, and only new ones go by the new table"

// Change implements [api.Backend].
func (b *Backend) Change(_ context.Context, operation string, req api.ChangeRequest) (*api.Change, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	pool := &b.status.Pools[0]
	next := *pool
	next.Members = slices.Clone(pool.Members)
	changed, reason := 0, ""
	for i := range next.Members {
		m := &next.Members[i]
		if req.Member == m.Name || req.Member == pool.Name+"/"+m.Name || req.Member == m.Address || req.Member == "" && req.Pool == pool.Name {
			b.override(m, operation, req)
			changed, reason = changed+1, m.Reason
		}
	}
	if changed == 0 {
		return nil, &api.RequestError{Status: http.StatusNotFound, Message: fmt.Sprintf("there is no member %q: it is one of be1, be2, be3, be4", req.Member)}
	}
	b.share(&next)
	name := strings.TrimPrefix(req.Member, pool.Name+"/")
	if next.Active == 0 && !req.Force && !req.DryRun {
		return nil, &api.RequestError{Status: http.StatusConflict, Message: fmt.Sprintf("%s is the last active member of pool %s: its clients would be refused; --force does it all the same", name, pool.Name)}
	}
	change := compare(pool, &next)
	change.Member, change.Text = name, fmt.Sprintf("%s/%s is %s", pool.Name, name, words[operation]+req.Weight)
	if req.Member == "" {
		change.Text = fmt.Sprintf("all %d members of pool %s are %s", changed, pool.Name, words[operation]+req.Weight)
	}
	change.Revision = b.status.Revision
	if req.DryRun {
		return change, nil
	}
	b.status.Revision++
	change.Revision = b.status.Revision
	change.Confirmed = req.WaitSeconds > 0 && !b.stuck
	*pool = next
	b.record(pool.Name, name, reason, b.now)
	return change, nil
}

var words = map[string]string{"drain": "draining", "enable": "enabled", "disable": "disabled", "weight": "of weight "}

// override changes a member as an operation does.
func (b *Backend) override(m *api.Member, operation string, req api.ChangeRequest) {
	if operation == "weight" {
		m.WeightBy = &api.WeightOverride{To: req.Weight, Who: req.Who, Why: req.Why, At: b.now}
		return
	}
	admin := words[operation]
	m.Admin, m.AdminWho, m.AdminWhy, m.Since = admin, req.Who, req.Why, b.now
	m.State, m.Active, m.Reason = admin, false, admin
	if req.DeadlineSeconds > 0 {
		m.AdminUntil = b.now.Add(time.Duration(req.DeadlineSeconds * float64(time.Second)))
	}
	if req.Who != "" {
		m.Reason += " by " + req.Who
	}
	if req.Why != "" {
		m.Reason += ": " + req.Why
	}
	if admin == "enabled" {
		m.State, m.Active, m.Reason, m.AdminUntil, m.WeightBy = m.Health, m.Health == "up", "", time.Time{}, nil
	}
}

// Overrides implements [api.Backend]: those of the members, and one of a member
// that is gone.
func (b *Backend) Overrides(context.Context) (*api.Overrides, error) {
	doc := &api.Overrides{}
	for _, p := range b.Status().Pools {
		for _, m := range p.Members {
			if m.Admin != "enabled" || m.WeightBy != nil {
				doc.Overrides = append(doc.Overrides, api.Override{
					Pool: p.Name, Member: m.Name, Address: m.Address, State: m.Admin, Until: m.AdminUntil,
					Who: m.AdminWho, Why: m.AdminWhy, At: m.Since, Weight: m.WeightBy,
				})
			}
		}
	}
	gone := api.Override{Pool: "web", Address: "10.30.0.19:8080", State: "disabled", Who: "bob", At: b.now.Add(-72 * time.Hour)}
	doc.Overrides = append(doc.Overrides, gone)
	return doc, nil
}

// Clear implements [api.Backend].
func (b *Backend) Clear(ctx context.Context, req api.ChangeRequest) (*api.Change, error) {
	if req.Member == "10.30.0.19:8080" {
		return &api.Change{Pool: "web", Member: req.Member, Text: "cleared", Connections: "none moves", Confirmed: true}, nil
	}
	return b.Change(ctx, "enable", req)
}

func compare(before, after *api.Pool) *api.Change {
	old, current := owners(before), owners(after)
	change := &api.Change{Pool: before.Name, Connections: connections, Moves: api.Moves{Slots: Slots, Before: before.Digest, After: after.Digest}}
	moves := make([]api.MemberMove, len(before.Members))
	for i := range moves {
		moves[i] = api.MemberMove{Name: before.Members[i].Name, Before: before.Members[i].Slots, After: after.Members[i].Slots,
			ShareBefore: before.Members[i].Share, ShareAfter: after.Members[i].Share}
	}
	for slot := range old {
		from, to := old[slot], current[slot]
		if from == to {
			continue
		}
		change.Moves.Moved++
		if from < 0 || !after.Members[from].Active || !before.Members[max(to, 0)].Active {
			change.Moves.Needed++
		}
		if from >= 0 {
			moves[from].Lost++
		}
		if to >= 0 {
			moves[to].Gained++
		}
	}
	change.Moves.Collateral = change.Moves.Moved - change.Moves.Needed
	change.Moves.LowerBound = change.Moves.Needed
	change.Members = moves
	return change
}

// Reload implements [api.Backend]. The file has not changed; a configuration to
// look at in its place removes three of four members.
func (b *Backend) Reload(_ context.Context, req api.ReloadRequest) (*api.ReloadResult, error) {
	result := &api.ReloadResult{Revision: b.Status().Revision}
	if req.Config == "" {
		return result, nil
	}
	b.mu.Lock()
	before := b.status.Pools[0]
	b.mu.Unlock()
	after := before
	after.Members = slices.Clone(before.Members)
	for i := range after.Members {
		after.Members[i].Active = i == 0
	}
	b.share(&after)
	change := compare(&before, &after)
	result.Changed = true
	result.Changes = []string{"pool web: 3 members removed"}
	result.Pools = []api.PoolMoves{{Pool: "web", Moves: change.Moves, Members: change.Members}}
	if !req.AllowShrink {
		result.Refused = "it removes 3 of 4 members"
	}
	return result, nil
}

// Reapply implements [api.Backend].
func (b *Backend) Reapply(context.Context) (*api.ReapplyResult, error) {
	return &api.ReapplyResult{OwnFlows: 1052, Text: "the switch holds what it should: no row had to be corrected"}, nil
}

// Flows implements [api.Backend].
func (b *Backend) Flows(_ context.Context, set string) (*api.Flows, error) {
	doc := &api.Flows{Set: set, Flows: []api.Flow{
		{Text: "table=10, priority=100,reg0=0x1 actions=multipath(symmetric_l4,1,modulo_n,1024,0,NXM_NX_REG1[]),goto_table:11", Explain: "pool web: hash to one of 1024 slots"},
		{Text: "table=11, priority=100,reg0=0x1,reg1=0x0 actions=set_field:0x1->reg2,goto_table:12", Explain: "pool web: slot -> member"},
		{Text: "table=11, priority=100,reg0=0x1,reg1=0x1 actions=set_field:0x2->reg2,goto_table:12", Explain: "pool web: slot -> member"},
	}}
	switch set {
	case "actual":
		doc.Flows[0].Packets, doc.Flows[0].Bytes = 1204, 98211
	case "diff":
		doc.Flows = []api.Flow{
			{Sign: "+", Text: doc.Flows[1].Text, Explain: doc.Flows[1].Explain},
			{Sign: "-", Text: "table=11, priority=100,reg0=0x1,reg1=0x7ff actions=drop", Explain: "unknown to brlb"},
		}
		if b.Status().InSync {
			doc.Flows = nil
		}
	}
	return doc, nil
}

// Trace implements [api.Backend]. The slot is the client's port modulo Slots.
func (b *Backend) Trace(_ context.Context, req api.TraceRequest) (*api.Trace, error) {
	slots, err := b.Slots("")
	if err != nil {
		return nil, err
	}
	dst, port := req.Dst, req.DstPort
	if dst == "" {
		dst = "10.20.0.100"
	}
	if port == 0 {
		port = 80
	}
	if dst != "10.20.0.100" || port != 80 {
		return nil, &api.RequestError{Status: http.StatusNotFound, Message: fmt.Sprintf("%s:%d/tcp is no service", dst, port)}
	}
	slot := int(req.SrcPort) % Slots
	doc := &api.Trace{
		Flow:    fmt.Sprintf("tcp %s:%d -> %s:%d", req.Src, req.SrcPort, dst, port),
		Service: "web", Pool: "web", PoolID: 1, Mode: "nat", Segment: req.InPort, Hash: fmt.Sprintf("0x%08x", uint32(req.SrcPort)), Slot: slot,
	}
	if o := slots.Owner[slot]; o >= 0 {
		doc.Member, doc.Address = slots.Members[o], slots.Keys[o]
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.trace != nil:
		doc.Switch = b.trace
	case req.InPort == "":
		doc.SwitchError = "name the port where the packet enters with --seg"
	default:
		doc.Switch = &api.SwitchTrace{
			Slot: slot, Number: slots.Owner[slot] + 1, Member: doc.Member, Agrees: true,
			Actions: "ct(commit,zone=18200,nat(dst=" + doc.Address + ")),recirc(0x1)", Text: "Flow: tcp\n\nbridge(\"br-lb\")\n",
		}
	}
	return doc, nil
}

// Verify implements [api.Backend].
func (b *Backend) Verify(context.Context) (*api.Verify, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	doc := b.verify
	doc.Checks = slices.Clone(doc.Checks)
	return &doc, nil
}
