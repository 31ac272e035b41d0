package controller

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	"brlb/controller/api"
	"brlb/controller/pipeline"
	"brlb/controller/state"
	"brlb/health"
)

// findOne finds the member that a person means.
func findOne(s *state.Snapshot, what string) (*state.Member, error) {
	found := s.Find(what)
	switch len(found) {
	case 0:
		return nil, badRequest(http.StatusNotFound, "no member is called %.60q; there is %s", what, memberNames(s))
	case 1:
		return found[0], nil
	}
	var names []string
	for _, m := range found {
		names = append(names, m.ID.Pool+"/"+m.Name)
	}
	return nil, badRequest(http.StatusBadRequest, "%.60q may be one of %s: name the pool too", what, strings.Join(names, ", "))
}

// History implements api.Backend.
func (l *loop) History(member string) (*api.History, error) {
	v := l.view.Load()
	m, err := findOne(v.snapshot, member)
	if err != nil {
		return nil, err
	}
	doc := &api.History{
		Pool: m.ID.Pool, Member: m.Name, Address: m.ID.Key, Check: m.Check,
		Health: string(m.Health.Health), Since: m.Health.Since,
	}
	if target, ok := v.targets[state.ProbeID{Address: m.Address, Check: m.Check}]; ok {
		doc.Probed = target.Address.String()
		probe, _ := l.prober.Snapshot(target)
		doc.Results = probeResults(probe.History)
	}
	return doc, nil
}

func probeResults(results []health.Result) []api.ProbeResult {
	list := make([]api.ProbeResult, len(results))
	for i, r := range results {
		list[i] = api.ProbeResult{
			At: r.Start, Code: r.Code.String(), Outcome: outcomeWord(r.Code.Outcome()), Text: r.Detail,
			DurationSeconds: r.Duration.Seconds(), Agent: r.Agent.String(),
		}
	}
	return list
}

func outcomeWord(o health.Outcome) string {
	switch o {
	case health.Pass:
		return "pass"
	case health.Fail:
		return "fail"
	}
	return "inconclusive"
}

// Explain implements api.Backend: why a member has the slots that it has.
func (l *loop) Explain(ctx context.Context, member string) (*api.Explanation, error) {
	v := l.view.Load()
	m, err := findOne(v.snapshot, member)
	if err != nil {
		return nil, err
	}
	p := v.snapshot.Pool(m.ID.Pool)
	doc := &api.Explanation{
		Pool: p.Name, Member: l.memberDocument(v, p, m),
		Weight: api.WeightStory{Configured: m.Configured, Effective: float64(m.Weight) * float64(m.Percent) / 100},
		Slots:  api.SlotsStory{Wanted: m.Slots, InSync: v.inSync},
	}
	err = l.do(ctx, func() {
		doc.Slots.Known = l.reconcile.installed != nil
		for _, held := range pipeline.Members(l.reconcile.installed) {
			if held.PoolID == p.ID && held.Number == m.Number {
				doc.Slots.Installed = len(held.Slots)
			}
		}
	})
	if err != nil {
		return nil, err
	}
	s := story{view: v, pool: p, member: m}
	if s.target, s.probed = v.targets[state.ProbeID{Address: m.Address, Check: m.Check}]; s.probed {
		s.probe, s.probed = l.prober.Snapshot(s.target)
		doc.Results = probeResults(s.probe.History)
	}
	s.tell()
	doc.Facts, doc.Remedies = s.facts, s.remedies
	return doc, nil
}

// story collects what has a say in a member's slots, and what would change it.
type story struct {
	view   *view
	pool   *state.Pool
	member *state.Member
	target health.Target
	probe  health.Snapshot // of target, if probed
	probed bool

	facts    []api.Fact
	remedies []string
}

func (s *story) say(name string, ok bool, format string, args ...any) {
	s.facts = append(s.facts, api.Fact{Name: name, OK: ok, Text: fmt.Sprintf(format, args...)})
}

func (s *story) wouldHelp(format string, args ...any) {
	s.remedies = append(s.remedies, fmt.Sprintf(format, args...))
}

// tell asks in the order in which package state does.
func (s *story) tell() {
	s.number()
	s.admin()
	s.check()
	s.nextHop()
	s.weight()
	s.table()
	if !s.member.Active && len(s.remedies) == 0 {
		s.wouldHelp("an end of this: %s", s.member.Reason) // an address that is brlb's own, say
	}
}

func (s *story) number() {
	if s.member.Number != 0 {
		return // the rule, and nobody's concern
	}
	s.say("number", false, "it has no member number: %s", s.member.Reason)
	s.wouldHelp("OVSDB, which keeps the member numbers: see brlb status")
}

func (s *story) admin() {
	m := s.member
	if m.Admin.State == state.Enabled {
		s.say("admin", true, "enabled")
		return
	}
	s.say("admin", false, "%s since %s%s", describeAdmin(m.Admin), m.Admin.At.UTC().Format(time.RFC3339), by(m.Admin))
	s.wouldHelp("brlb enable %s", s.decidedOf(func(o state.Override) any { return o.State }))
}

// decidedOf is the member about which operators have decided something: where a
// pool inside another one lends a member, it may be the one in the former.
func (s *story) decidedOf(what func(state.Override) any) string {
	m := s.member
	if p := s.view.snapshot.Pool(m.Origin.Pool); p != nil {
		if origin := p.Member(m.Origin.Key); origin != nil && what(origin.Admin) == what(m.Admin) {
			return m.Name
		}
	}
	return m.ID.Pool + "/" + m.Name
}

func describeAdmin(o state.Override) string {
	switch {
	case o.Until.IsZero():
		return string(o.State)
	case o.State == state.Disabled:
		return "disabled, for its drain ended at " + o.Until.UTC().Format(time.RFC3339) + ", which was asked for"
	}
	return "draining until " + o.Until.UTC().Format(time.RFC3339) + ","
}

func (s *story) check() {
	m := s.member
	at := "check " + m.Check
	if check, _ := s.view.config.Check(m.Check); check.ByPort() {
		s.portCheck()
		return
	}
	if !s.probed {
		s.say("check", false, "%s does not run", at)
		return
	}
	c := s.target.Check
	at += fmt.Sprintf(" (%s %s)", c.Type, s.target.Address)
	since := ""
	if !m.Health.Since.IsZero() {
		since = " since " + m.Health.Since.UTC().Format(time.RFC3339)
	}
	switch m.Health.Health {
	case state.Up:
		s.say("check", true, "up%s: %s, %s", since, at, s.row())
	case state.Down:
		s.say("check", false, "down%s: %s, %s", since, at, s.row())
		s.wouldHelp("%s: %d passes in a row, of which it has %d; it is probed every %v", at, c.Rise, s.probe.Passes, s.gap())
	default:
		s.say("check", m.Adopted, "no verdict yet: %s, %s", at, s.row())
		if !m.Adopted {
			s.wouldHelp("%s: one pass; it is probed every %v", at, s.gap())
		}
	}
	s.heldDown()
	if m.Despite != "" {
		s.say("emergency", true, "it owns slots despite this: %s", m.Despite)
	}
	if leave := m.Health.Says.Leave; leave != "" {
		s.say("agent", false, "the member itself says %s", leave)
		s.wouldHelp("its agent saying ready")
	}
	if s.probe.Inconclusive > 0 {
		s.say("probes", true, "the last %d counted for nothing: %s", s.probe.Inconclusive, s.probe.Last.Sentence())
	}
}

func (s *story) heldDown() {
	if m := s.member; m.Health.Health == state.Up && strings.HasPrefix(m.Reason, "held down") {
		s.say("hold-down", false, "%s", m.Reason)
		s.wouldHelp("time: it is %s", m.Reason)
	}
}

// portCheck tells of a check without probes. What would help a port is told
// with the port.
func (s *story) portCheck() {
	m := s.member
	verdict := "no verdict yet"
	if m.Health.Health != state.Unknown {
		verdict = fmt.Sprintf("%s since %s: %s", m.Health.Health, m.Health.Since.UTC().Format(time.RFC3339), m.Health.Detail)
	}
	s.say("check", m.Health.Health == state.Up, "%s; check %s probes nothing, the port decides", verdict, m.Check)
	s.heldDown()
}

// row is how the newest probe ended, and how many before it ended alike.
func (s *story) row() string {
	alike := fmt.Sprintf("%d passes in a row", s.probe.Passes)
	if s.probe.Fails > 0 {
		alike = fmt.Sprintf("%d failures in a row, %d make it down", s.probe.Fails, s.target.Check.Fall)
	}
	return s.probe.Last.String() + ", " + alike
}

// gap is the time between two probes now.
func (s *story) gap() time.Duration {
	switch {
	case s.probe.Changing():
		return s.target.Check.Fast
	case s.probe.State == health.Down:
		return s.target.Check.Down
	}
	return s.target.Check.Interval
}

func (s *story) nextHop() {
	m := s.member
	addr := m.Address.Addr()
	what := addr.String()
	if m.Via.IsValid() {
		addr, what = m.Via, fmt.Sprintf("router %s", m.Via)
	}
	kind := s.pool.Tunnel.Type
	switch {
	case kind != "" && !m.HasNext:
		s.say("tunnel", false, "port %s is not on the bridge", kind.Port())
		s.wouldHelp("port %s, which brlb has Open vSwitch make: status tells what keeps it from that", kind.Port())
		return
	case kind != "":
		s.say("tunnel", true, "%s to %s, where the device has MAC %s", kind, addr, m.Next.MAC)
	case !m.HasNext:
		s.say("next hop", false, "%s: nobody has answered %s", what, state.Question(addr))
		s.wouldHelp("an answer of %s to %s on the bridge", addr, state.Question(addr))
		return
	default:
		s.say("next hop", true, "%s is at %s (%s)", what, m.Next.MAC, m.Next.Source)
	}
	for _, port := range s.view.snapshot.Ports {
		if port.Number != m.Next.Port {
			continue
		}
		if port.Live {
			s.say("port", true, "%s (%d) lives", port.Name, port.Number)
		} else {
			s.say("port", false, "%s (%d) is down", port.Name, port.Number)
			s.wouldHelp("port %s coming up: carrier, and BFD, CFM or LACP where they are configured", port.Name)
		}
		s.bfd(port.Name)
		return
	}
	s.say("port", false, "%d is not on the bridge", m.Next.Port)
	s.wouldHelp("port %d coming back to the bridge, or %s being found behind another", m.Next.Port, addr)
}

// bfd tells of BFD at the port that leads to the member, if there is or should
// be any.
func (s *story) bfd(port string) {
	session, on := s.view.inventory.BFD[s.member.Next.Port]
	pool, _ := s.view.config.Pool(s.pool.Name)
	by := "not by brlb"
	if session.Own {
		by = "by brlb"
	}
	switch {
	case !on && pool.BFD.Mult > 0:
		s.say("bfd", false, "wanted on %s, and not turned on yet", port)
	case !on:
	case session.State == "":
		s.say("bfd", true, "turned on %s on %s; Open vSwitch does not tell its state", by, port)
	case session.Forwarding:
		s.say("bfd", true, "turned on %s on %s: %s, the other end says %s", by, port, session.State, session.Remote)
	default:
		s.say("bfd", false, "turned on %s on %s: %s (%s), the other end says %s", by, port, session.State, session.Diagnostic, session.Remote)
		s.wouldHelp("an answer to BFD from what is behind port %s", port)
	}
}

func (s *story) weight() {
	m := s.member
	text := fmt.Sprintf("%d configured", m.Configured)
	w := m.Admin.Weighting
	if w.To != "" {
		text += fmt.Sprintf("; %s set at %s%s", w.To, w.At.UTC().Format(time.RFC3339), by(state.Override{Who: w.Who, Why: w.Why}))
	}
	if says := m.Health.Says; says.HasWeight {
		text += fmt.Sprintf("; its agent says %d%%", says.Percent)
	}
	if m.Ramp > 0 {
		text += fmt.Sprintf("; slow start gives %d%%", m.Ramp)
	}
	if m.Origin != (state.MemberID{}) {
		text += fmt.Sprintf("; as a member of pool %s, which is inside, it has %.1f%% of this one", m.Origin.Pool, 100*s.part())
	}
	owns := m.Weight*m.Percent > 0
	if !owns {
		text += "; with 0 it is probed, and owns no slots"
		switch {
		case w.To != "":
			s.wouldHelp("brlb weight %s 100%%, or brlb enable", s.decidedOf(func(o state.Override) any { return o.Weighting }))
		case m.Configured == 0:
			s.wouldHelp("a weight above 0 in the configuration")
		case m.Origin != (state.MemberID{}) && !m.Health.Says.HasWeight:
			s.wouldHelp("a weight above 0 in the configuration, for the pool inside")
		default:
			s.wouldHelp("its agent saying another weight")
		}
	}
	s.say("weight", owns, "%s", text)
}

// part is the member's part of a pool that contains others.
func (s *story) part() float64 {
	total := 0.0
	for i := range s.pool.Members {
		total += float64(s.pool.Members[i].Part)
	}
	return float64(s.member.Part) / max(total, 1)
}

func (s *story) table() {
	p := s.pool
	switch {
	case !p.Settled:
		s.say("pool", false, "waits for first verdicts; the switch keeps what it holds of it")
	case p.Alarm != "":
		s.say("pool", p.Emergency != state.Short, "%s", p.Alarm)
	case p.Problem != "":
		s.say("pool", false, "has no table: %s", p.Problem)
	default:
		s.say("pool", true, "%d of %d members are active", p.Active, len(p.Members))
	}
	switch {
	case s.view.inSync:
		s.say("switch", true, "holds the newest table (revision %d)", s.view.snapshot.Revision)
	case len(s.view.degraded) > 0:
		s.say("switch", false, "has not confirmed the newest table (revision %d): %s", s.view.snapshot.Revision, s.view.degraded[0])
	default:
		s.say("switch", false, "has not confirmed the newest table (revision %d) yet", s.view.snapshot.Revision)
	}
}
