package controller

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"brlb/controller/api"
	"brlb/controller/pipeline"
	"brlb/controller/state"
	"brlb/health"
	"brlb/openflow"
)

var _ api.Backend = (*loop)(nil)

// Changed implements api.Backend.
func (l *loop) Changed() <-chan struct{} {
	l.changedMu.Lock()
	defer l.changedMu.Unlock()
	return l.changed
}

// Events implements api.Backend.
func (l *loop) Events(after uint64) *api.Events { return &api.Events{Events: l.events.after(after)} }

// Ready implements api.Backend.
func (l *loop) Ready() api.Readiness {
	missing := l.view.Load().missing
	return api.Readiness{Ready: len(missing) == 0, Missing: missing}
}

// Status implements api.Backend.
func (l *loop) Status() *api.Status {
	v := l.view.Load()
	s := &api.Status{
		Version: l.opts.Version, Bridge: v.snapshot.Bridge, Phase: string(v.phase), Since: v.phaseAt,
		Degraded: v.degraded, Revision: v.snapshot.Revision, Confirmed: v.confirmed, ConfirmedAt: v.confirmedAt, InSync: v.inSync,
		Switch: api.Switch{
			Connected: v.sw.session != 0, Since: v.sw.since, Description: v.sw.description,
			LastError: v.sw.lastError, OwnFlows: v.ownFlows,
		},
		OVSDB: api.OVSDB{
			Connected: v.inventory.Connected, Endpoint: v.config.OVSDB, LastError: v.inventory.Reason, Lock: lockWord(v),
		},
	}
	if c := l.connections.Load(); c != nil {
		s.Conntrack = c.document()
	}
	if v.sw.session != 0 {
		s.Switch.DatapathID = fmt.Sprintf("%016x", v.sw.datapathID)
	}
	for _, p := range v.snapshot.Ports {
		s.Switch.Ports = append(s.Switch.Ports, api.Port{Number: p.Number, Name: p.Name, Live: p.Live})
	}
	for _, service := range v.snapshot.Services {
		doc := api.Service{Name: service.Name, Pool: service.Pool, Primary: service.Primary}
		if c, known := v.config.Service(service.Name); known {
			doc.Backup = c.Backup
		}
		for _, a := range service.Addresses {
			doc.Addresses = append(doc.Addresses, a.String())
		}
		for _, p := range service.Ports {
			doc.Ports = append(doc.Ports, p.String())
		}
		s.Services = append(s.Services, doc)
	}
	for i := range v.snapshot.Pools {
		s.Pools = append(s.Pools, l.poolDocument(v, &v.snapshot.Pools[i]))
	}
	return s
}

func lockWord(v *view) string {
	switch {
	case !v.inventory.Connected:
		return "none"
	case v.inventory.Lock.Held:
		return "held"
	}
	return "waiting"
}

func (l *loop) poolDocument(v *view, p *state.Pool) api.Pool {
	doc := api.Pool{
		Name: p.Name, ID: p.ID, Mode: p.Mode, Layout: p.Layout, Version: p.Version, Slots: p.Slots, Digest: p.Digest,
		Anchor: l.anchorDocument(p), Active: p.Active, Waiting: !p.Settled, Problem: p.Problem, Emergency: string(p.Emergency), Alarm: p.Alarm,
		Around: v.snapshot.Around(p.Name), Moving: p.Moving.Len(),
	}
	if p.Moving != nil {
		doc.MovingUntil, doc.MovingSoon = p.Moving.Until, p.Moving.Soon()
	}
	for i := range p.Members {
		doc.Members = append(doc.Members, l.memberDocument(v, p, &p.Members[i]))
	}
	slices.SortFunc(doc.Members, func(a, b api.Member) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Address, b.Address))
	})
	for _, n := range p.Names {
		doc.Names = append(doc.Names, api.Name{
			Name: n.Name, Host: n.Host, Port: n.Port, Addresses: n.Addresses, State: string(n.State), Since: n.Since, Problem: n.Problem,
		})
	}
	return doc
}

func (l *loop) memberDocument(v *view, p *state.Pool, m *state.Member) api.Member {
	doc := api.Member{
		Name: m.Name, Address: m.ID.Key, Number: m.Number, Active: m.Active, Reason: m.Reason,
		State: string(m.Health.Health), Since: m.Health.Since,
		Admin: string(m.Admin.State), AdminWho: m.Admin.Who, AdminWhy: m.Admin.Why,
		Health: string(m.Health.Health), Configured: m.Configured, Weight: m.Weight, Percent: m.Percent, Ramp: m.Ramp, Despite: m.Despite, Slots: m.Slots, Share: float64(m.Slots) / float64(p.Slots),
		Check: api.Check{Name: m.Check},
	}
	if m.Origin != (state.MemberID{}) {
		doc.Origin = m.Name
	}
	if m.Admin.State == state.Draining {
		doc.AdminUntil = m.Admin.Until
	}
	if w := m.Admin.Weighting; w.To != "" {
		doc.WeightBy = &api.WeightOverride{To: string(w.To), Who: w.Who, Why: w.Why, At: w.At}
	}
	if m.Admin.State != state.Enabled {
		doc.State, doc.Since = string(m.Admin.State), m.Admin.At
	}
	if n, ok := l.connections.Load().of(m.Number); ok && !p.Stateless() {
		doc.Connections = &n.Open
	}
	if m.HasNext {
		doc.MAC = m.Next.MAC.String()
		for _, port := range v.snapshot.Ports {
			if port.Number == m.Next.Port {
				doc.Port = port.Name
			}
		}
	}
	if m.Via.IsValid() {
		doc.Via = m.Via.String()
	}
	target, ok := v.targets[state.ProbeID{Address: m.Address, Check: m.Check}]
	if !ok {
		doc.Check.Code, doc.Check.Detail, doc.Check.At = m.Health.Code, m.Health.Detail, m.Health.Since
		return doc
	}
	if probe, ok := l.prober.Snapshot(target); ok {
		doc.Check.Code, doc.Check.Detail = probe.Last.Code.String(), probe.Last.Detail
		doc.Check.DurationSeconds, doc.Check.At = probe.Last.Duration.Seconds(), probe.Last.Start
		doc.Check.Consecutive, doc.Check.Needed = probe.Passes, target.Check.Rise
		if probe.Last.Code.Outcome() == health.Fail {
			doc.Check.Consecutive, doc.Check.Needed = probe.Fails, target.Check.Fall
		}
	}
	return doc
}

// onePool finds a pool by name; "" means the only one.
func onePool(s *state.Snapshot, name string) (*state.Pool, error) {
	if name == "" && len(s.Pools) == 1 {
		return &s.Pools[0], nil
	}
	names := make([]string, len(s.Pools))
	for i := range s.Pools {
		names[i] = s.Pools[i].Name
	}
	slices.Sort(names)
	if name == "" {
		return nil, badRequest(http.StatusBadRequest, "there are %d pools: name one of %s", len(names), strings.Join(names, ", "))
	}
	if p := s.Pool(name); p != nil {
		return p, nil
	}
	return nil, badRequest(http.StatusNotFound, "no pool is called %.60q; there is %s", name, strings.Join(names, ", "))
}

func badRequest(status int, format string, args ...any) error {
	return &api.RequestError{Status: status, Message: fmt.Sprintf(format, args...)}
}

// Slots implements api.Backend.
func (l *loop) Slots(name string) (*api.Slots, error) {
	p, err := onePool(l.view.Load().snapshot, name)
	if err != nil {
		return nil, err
	}
	doc := &api.Slots{Pool: p.Name, ID: p.ID, Slots: p.Slots, Layout: p.Layout, Version: p.Version, Digest: p.Digest, Anchor: l.anchorDocument(p)}
	if doc.Anchor != nil {
		doc.Anchor.Members = anchorMembers(p)
	}
	index := map[string]int{}
	for i := range p.Members {
		index[p.Members[i].ID.Key] = i
		doc.Members = append(doc.Members, p.Members[i].Name)
		doc.Keys = append(doc.Keys, p.Members[i].ID.Key)
	}
	doc.Owner = make([]int, p.Slots)
	for slot := range doc.Owner {
		doc.Owner[slot] = -1
		if p.Table != nil {
			if i, ok := index[p.Table.Key(slot)]; ok {
				doc.Owner[slot] = i
			}
		}
	}
	return doc, nil
}

// Metrics implements api.Backend.
func (l *loop) Metrics() *api.Metrics {
	v := l.view.Load()
	m := &api.Metrics{Status: l.Status(), Probes: map[api.ProbeKey]api.ProbeCounts{}}
	l.stats.fill(m)
	counters := l.bridge.Counters()
	m.MessagesSent, m.MessagesRecv = byName(counters.Sent), byName(counters.Received)
	m.EventsDropped, m.Sessions, m.Resent, m.Answered = counters.EventsDropped, counters.Sessions, counters.Resent, counters.Answered
	for i := range v.snapshot.Pools {
		p := &v.snapshot.Pools[i]
		for j := range p.Members {
			member := &p.Members[j]
			target, ok := v.targets[state.ProbeID{Address: member.Address, Check: member.Check}]
			if !ok {
				continue
			}
			if counts, ok := l.probes.read(target); ok {
				m.Probes[api.ProbeKey{Pool: p.Name, Member: member.Name, Check: member.Check}] = counts
			}
		}
	}
	return m
}

func byName(counts map[openflow.Type]uint64) map[string]uint64 {
	named := make(map[string]uint64, len(counts))
	for t, n := range counts {
		named[strings.ToLower(strings.TrimPrefix(t.String(), "OFPT_"))] += n
	}
	return named
}

// Flows implements api.Backend.
func (l *loop) Flows(ctx context.Context, which string) (*api.Flows, error) {
	v := l.view.Load()
	doc := &api.Flows{Set: which}
	desired, held, err := pipeline.NewRenderer().Render(v.snapshot)
	if err != nil {
		return nil, err
	}
	if which == "desired" {
		for _, f := range desired.Flows() {
			doc.Flows = append(doc.Flows, api.Flow{Text: flowText(f), Explain: pipeline.Explain(v.snapshot, f)})
		}
		return doc, nil
	}
	stats, err := l.bridge.Flows(ctx, false)
	if err != nil {
		return nil, err
	}
	actual, err := pipeline.FromSwitch(stats)
	if err != nil {
		return nil, err
	}
	if which == "actual" {
		counts := map[string]*openflow.FlowStats{}
		for i := range stats {
			counts[flowIdentity(stats[i].Table, stats[i].Priority, stats[i].Match)] = &stats[i]
		}
		for _, f := range actual.Flows() {
			flow := api.Flow{Text: flowText(f), Explain: pipeline.Explain(v.snapshot, f)}
			if c := counts[flowIdentity(f.Table, f.Priority, f.Match)]; c != nil {
				flow.Packets, flow.Bytes = c.PacketCount, c.ByteCount
			}
			doc.Flows = append(doc.Flows, flow)
		}
		return doc, nil
	}
	for _, message := range pipeline.Diff(actual, desired, held).Mods {
		f := message.(*openflow.FlowMod)
		flow := api.Flow{Sign: "+", Text: flowText(f), Explain: pipeline.Explain(v.snapshot, f)}
		if f.Command == openflow.FlowDeleteStrict {
			flow.Sign = "-"
		}
		doc.Flows = append(doc.Flows, flow)
	}
	return doc, nil
}

func flowIdentity(table uint8, priority uint16, match openflow.Match) string {
	return fmt.Sprintf("%d %d %s", table, priority, match)
}

// flowText is a flow in the form that ovs-ofctl dump-flows prints and add-flow
// reads.
func flowText(f *openflow.FlowMod) string {
	s := openflow.FlowStats{
		Cookie: f.Cookie, Table: f.Table, Priority: f.Priority, Flags: f.Flags, Importance: f.Importance,
		IdleTimeout: f.IdleTimeout, HardTimeout: f.HardTimeout, Match: f.Match, Instructions: f.Instructions,
	}
	return s.String()
}
