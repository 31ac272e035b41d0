package controller

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"brlb/controller/config"
	"brlb/controller/pipeline"
	"brlb/controller/state"
	"brlb/openflow"
	"brlb/openflow/session"
)

var reconcileStart = time.Date(2024, 5, 1, 12, 0, 0, 0, time.UTC)

// reconcileScript drives a reconciler as the loop does. Each method is a step;
// what a step demands is among its arguments.
type reconcileScript struct {
	t     *testing.T
	r     *reconciler
	facts *state.State
	snap  *state.Snapshot
	now   time.Time
	plan  *plan
}

func newReconcileScript(t *testing.T) *reconcileScript {
	cfg, err := config.Parse("test.yaml", []byte(`
mac: 02:00:5e:00:01:02
pools:
  web: {id: 1, slots: 64, members: {be1: 10.30.0.11:80, be2: 10.30.0.12:80, be3: 10.30.0.13:80}}
services:
  web: {address: 10.20.0.100, ports: [80/tcp], pool: web}
`))
	if err != nil {
		t.Fatal(err)
	}
	s := &reconcileScript{t: t, r: newReconciler(), facts: state.New(cfg, reconcileStart), now: reconcileStart}
	if err := s.facts.LoadNumbers(""); err != nil {
		t.Fatal(err)
	}
	s.facts.SetPorts([]state.Port{{Number: 1, Name: "p1", Live: true}}, s.now)
	for i, addr := range s.facts.NextHops() {
		s.facts.SetNextHop(addr, state.NextHop{MAC: openflow.MAC{2, 0, 0, 0, 0, byte(i)}, Port: 1}, s.now)
	}
	for _, id := range s.facts.Probes() {
		s.facts.SetVerdict(id, state.Verdict{Health: state.Up}, s.now)
	}
	s.snap = s.facts.Snapshot()
	return s
}

// member gives be1 a verdict, which makes a new snapshot.
func (s *reconcileScript) member(h state.Health) {
	s.facts.SetVerdict(state.ProbeID{Address: netip.MustParseAddrPort("10.30.0.11:80"), Check: "tcp"}, state.Verdict{Health: h}, s.now)
	s.snap = s.facts.Snapshot()
}

// full is all that the switch should hold of the snapshot.
func (s *reconcileScript) full() pipeline.Set {
	set, _, err := pipeline.NewRenderer().Render(s.snap)
	if err != nil {
		s.t.Fatal(err)
	}
	return set
}

// without is what the switch should hold, less some groups.
func (s *reconcileScript) without(kinds ...pipeline.Kind) pipeline.Set {
	set := s.full()
	for id := range set {
		for _, kind := range kinds {
			if id.Kind == kind {
				delete(set, id)
			}
		}
	}
	return set
}

func (s *reconcileScript) after(d time.Duration) { s.now = s.now.Add(d) }

// sends demands that there is a plan, which is then in flight.
func (s *reconcileScript) sends() {
	s.t.Helper()
	p, err := s.r.plan(s.snap, s.now)
	if err != nil {
		s.t.Fatal(err)
	}
	if p == nil {
		s.t.Fatal("no plan")
	}
	if again, _ := s.r.plan(s.snap, s.now); again != nil {
		s.t.Fatal("a second plan while one is in flight")
	}
	s.plan = p
}

func (s *reconcileScript) sendsNothing() {
	s.t.Helper()
	p, err := s.r.plan(s.snap, s.now)
	if err != nil {
		s.t.Fatal(err)
	}
	if p != nil {
		s.t.Fatalf("a plan of %d messages, the first is %v", len(p.diff.Mods), p.diff.Mods[0])
	}
}

// ends gives the plan in flight an outcome.
func (s *reconcileScript) ends(o session.Outcome, reread bool) {
	s.t.Helper()
	result := session.BundleResult{Outcome: o}
	switch o {
	case session.Rejected:
		result.Errors = session.RejectedError{{Index: -1, Err: &openflow.Error{Code: openflow.FlowModFailedTableFull}}}
		result.Err = result.Errors
	case session.Unknown:
		result.Err = errors.New("the connection was lost")
	}
	if got := s.r.finished(s.plan, result, s.now); got != reread {
		s.t.Fatalf("%v: reread %v", o, got)
	}
}

// reads tells what the switch holds, and demands how much of it is wrong.
func (s *reconcileScript) reads(number uint64, set pipeline.Set, wrong int) {
	s.t.Helper()
	if got := s.r.read(number, set, s.now); got != wrong {
		s.t.Fatalf("%d flows are said to be wrong, want %d", got, wrong)
	}
}

func (s *reconcileScript) inSync(want bool) {
	s.t.Helper()
	if got := s.r.inSync(s.snap); got != want {
		s.t.Fatalf("in sync: %v", got)
	}
}

// confirmed demands what takeConfirmed tells, once.
func (s *reconcileScript) confirmed(want string) {
	s.t.Helper()
	before, after, ok := s.r.takeConfirmed()
	got := "nothing"
	if ok {
		got = fmt.Sprintf("%s->%s", revision(before), revision(after))
	}
	if got != want {
		s.t.Fatalf("confirmed %s, want %s", got, want)
	}
	if _, _, again := s.r.takeConfirmed(); again {
		s.t.Fatal("confirmed twice")
	}
}

func revision(s *state.Snapshot) string {
	if s == nil {
		return "none"
	}
	return fmt.Sprint(s.Revision)
}

func TestReconcile(t *testing.T) {
	cases := []struct {
		name string
		do   func(s *reconcileScript)
	}{
		{"no session, no plan", func(s *reconcileScript) {
			s.sendsNothing()
			s.inSync(false)
			s.confirmed("nothing")
		}},
		{"an empty switch is filled once", func(s *reconcileScript) {
			s.r.connected(1, pipeline.Set{})
			s.sends()
			if s.plan.session != 1 || s.plan.diff.Added != s.full().Len() {
				s.t.Fatalf("session %d, %d added", s.plan.session, s.plan.diff.Added)
			}
			s.inSync(false)
			s.ends(session.Applied, false)
			s.inSync(true)
			s.sendsNothing()
			s.confirmed("none->1")
		}},
		{"a switch that holds all is adopted", func(s *reconcileScript) {
			s.r.connected(1, s.full())
			s.sendsNothing()
			s.inSync(true)
			s.confirmed("none->1")
			s.after(time.Hour)
			s.sendsNothing()
			s.confirmed("nothing")
		}},
		{"a new snapshot is sent, and only what has changed", func(s *reconcileScript) {
			s.r.connected(1, s.full())
			s.sendsNothing()
			s.confirmed("none->1")
			s.member(state.Down)
			s.inSync(false)
			s.sends()
			if n := len(s.plan.diff.Mods); n == 0 || n > 40 {
				s.t.Fatalf("%d messages", n)
			}
			s.ends(session.Applied, false)
			s.confirmed("1->2")
			s.member(state.Up)
			s.sends()
			s.ends(session.Applied, false)
			s.confirmed("2->3")
		}},
		{"changes during a flight go into the next plan", func(s *reconcileScript) {
			s.r.connected(1, s.full())
			s.sendsNothing()
			s.member(state.Down)
			s.sends()
			s.member(state.Up)
			s.sendsNothing()
			s.ends(session.Applied, false)
			s.inSync(false)
			s.confirmed("none->2")
			s.sends()
			s.ends(session.Applied, false)
			s.inSync(true)
		}},
		{"refused: tried again later, ever more slowly", func(s *reconcileScript) {
			s.r.connected(1, pipeline.Set{})
			for _, wait := range []time.Duration{1, 2, 4, 8, 16, 30, 30} {
				s.sends()
				s.ends(session.Rejected, false)
				if !strings.Contains(s.r.problem, "OFPFMFC_TABLE_FULL") {
					s.t.Fatalf("problem %q", s.r.problem)
				}
				s.after(wait*time.Second - 1)
				s.sendsNothing()
				s.after(1)
			}
			s.confirmed("nothing")
			s.sends()
			s.ends(session.Applied, false)
			s.inSync(true)
			if s.r.problem != "" || s.r.failures != 0 {
				s.t.Fatalf("problem %q, %d failures", s.r.problem, s.r.failures)
			}
		}},
		{"refused: a new snapshot is tried at once", func(s *reconcileScript) {
			s.r.connected(1, pipeline.Set{})
			s.sends()
			s.ends(session.Rejected, false)
			s.sendsNothing()
			s.member(state.Down)
			s.sends()
			s.ends(session.Rejected, false)
			s.after(2*time.Second - 1)
			s.sendsNothing()
			s.after(1)
			s.sends()
		}},
		{"refused, and then the switch connects anew", func(s *reconcileScript) {
			s.r.connected(1, pipeline.Set{})
			s.sends()
			s.ends(session.Rejected, false)
			s.r.lost()
			s.r.connected(2, pipeline.Set{})
			s.sends()
		}},
		{"unknown: nothing is sent before the switch has been read", func(s *reconcileScript) {
			s.r.connected(1, pipeline.Set{})
			s.sends()
			s.ends(session.Unknown, true)
			s.inSync(false)
			s.sendsNothing()
			s.member(state.Down)
			s.after(time.Hour)
			s.sendsNothing()
			s.reads(1, s.without(pipeline.KindSlot), 0)
			s.sends()
			if s.plan.diff.Added != 64 || s.plan.diff.Deleted != 0 {
				s.t.Fatalf("%d added, %d deleted", s.plan.diff.Added, s.plan.diff.Deleted)
			}
		}},
		{"unknown, but it was applied", func(s *reconcileScript) {
			s.r.connected(1, pipeline.Set{})
			s.sends()
			s.ends(session.Unknown, true)
			s.reads(1, s.full(), 0)
			s.sendsNothing()
			s.inSync(true)
			s.confirmed("none->1")
		}},
		{"somebody else's change is repaired", func(s *reconcileScript) {
			s.r.connected(1, s.full())
			s.sendsNothing()
			s.confirmed("none->1")
			s.reads(1, s.full(), 0)
			s.inSync(true)
			s.reads(1, s.without(pipeline.KindSlot), 64)
			s.inSync(false)
			s.sends()
			s.ends(session.Applied, false)
			s.inSync(true)
			s.confirmed("nothing")
			if s.r.alarm {
				s.t.Fatal("an alarm after one repair")
			}
		}},
		{"five repairs in ten seconds: alarm, and the next one waits", func(s *reconcileScript) {
			s.r.connected(1, s.full())
			s.sendsNothing()
			for range 4 {
				s.reads(1, s.without(pipeline.KindHash), 2)
				s.sends()
				s.ends(session.Applied, false)
				s.after(2 * time.Second)
			}
			s.reads(1, s.without(pipeline.KindHash), 2)
			if !s.r.alarm {
				s.t.Fatal("no alarm")
			}
			s.sendsNothing()
			s.after(10*time.Second - 1)
			s.sendsNothing()
			s.after(1)
			s.sends()
			s.ends(session.Applied, false)
			s.after(time.Second)
			s.sendsNothing()
			if s.r.alarm || len(s.r.repairs) != 0 {
				s.t.Fatalf("alarm %v, %d repairs remembered", s.r.alarm, len(s.r.repairs))
			}
		}},
		{"who goes on changing flows does not put the repair off", func(s *reconcileScript) {
			s.r.connected(1, s.full())
			s.sendsNothing()
			for !s.r.alarm {
				s.reads(1, s.without(pipeline.KindHash), 2)
				if !s.r.alarm {
					s.sends()
					s.ends(session.Applied, false)
				}
			}
			for i := range 10 {
				s.sendsNothing()
				s.after(time.Second)
				if i%2 == 0 {
					s.reads(1, s.without(pipeline.KindHash, pipeline.KindSlot), 64)
				} else {
					s.reads(1, s.without(pipeline.KindHash), 64)
				}
			}
			if len(s.r.repairs) != driftRepairs {
				s.t.Fatalf("%d repairs are counted", len(s.r.repairs))
			}
			s.sends()
			s.ends(session.Applied, false)
			s.inSync(true)
		}},
		{"a member's failure does not wait for the quarrel to end", func(s *reconcileScript) {
			s.r.connected(1, s.full())
			s.sendsNothing()
			for range 5 {
				s.reads(1, s.without(pipeline.KindHash), 2)
				if !s.r.alarm {
					s.sends()
					s.ends(session.Applied, false)
				}
			}
			s.sendsNothing()
			s.member(state.Down)
			s.sends()
		}},
		{"repairs far apart are no quarrel", func(s *reconcileScript) {
			s.r.connected(1, s.full())
			s.sendsNothing()
			for range 20 {
				s.reads(1, s.without(pipeline.KindHash), 2)
				s.sends()
				s.ends(session.Applied, false)
				s.after(3 * time.Second)
			}
			if s.r.alarm {
				s.t.Fatal("alarm")
			}
		}},
		{"read during a flight: not believed, read again", func(s *reconcileScript) {
			s.r.connected(1, s.full())
			s.sendsNothing()
			s.member(state.Down)
			s.sends()
			s.reads(1, pipeline.Set{}, 0)
			s.ends(session.Applied, true)
			s.inSync(true)
			s.reads(1, s.full(), 0)
			s.inSync(true)
			s.sendsNothing()
		}},
		{"the session is lost during a flight", func(s *reconcileScript) {
			s.r.connected(1, pipeline.Set{})
			s.sends()
			old := s.plan
			s.r.lost()
			s.sendsNothing()
			s.r.connected(2, s.without(pipeline.KindSlot))
			s.sends()
			if s.r.finished(old, session.BundleResult{Outcome: session.Unknown, Err: errors.New("the connection was lost")}, s.now) {
				s.t.Fatal("a result of an old session asks for a read")
			}
			if s.r.inFlight != s.plan {
				s.t.Fatal("a result of an old session ended the plan of the new one")
			}
			s.reads(1, pipeline.Set{}, 0)
			s.ends(session.Applied, false)
			s.inSync(true)
			s.confirmed("none->1")
		}},
		{"flows read in an old session are ignored", func(s *reconcileScript) {
			s.r.connected(2, s.full())
			s.sendsNothing()
			s.reads(1, pipeline.Set{}, 0)
			s.inSync(true)
			s.r.lost()
			s.reads(2, pipeline.Set{}, 0)
			s.inSync(false)
			s.sendsNothing()
		}},
		{"a switch that was restarted is filled again", func(s *reconcileScript) {
			s.r.connected(1, s.full())
			s.sendsNothing()
			s.confirmed("none->1")
			s.r.lost()
			s.inSync(false)
			s.r.connected(2, pipeline.Set{})
			s.sends()
			if s.plan.diff.Added != s.full().Len() {
				s.t.Fatalf("%d added", s.plan.diff.Added)
			}
			s.ends(session.Applied, false)
			s.confirmed("nothing")
		}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) { c.do(newReconcileScript(t)) })
	}
}

// A refusal is told with the flow that was refused.
func TestDescribeRejection(t *testing.T) {
	s := newReconcileScript(t)
	s.r.connected(1, pipeline.Set{})
	s.sends()
	refusal := func(index int) session.BundleResult {
		e := session.RejectedError{{Index: index, Err: &openflow.Error{Code: openflow.FlowModFailedTableFull}}}
		return session.BundleResult{Outcome: session.Rejected, Errors: e, Err: e}
	}
	named := fmt.Sprint(s.plan.diff.Mods[3])
	for index, want := range map[int]bool{3: true, -1: false, len(s.plan.diff.Mods): false} {
		text := describeRejection(s.plan, refusal(index))
		if strings.Contains(text, named) != want || !strings.Contains(text, openflow.FlowModFailedTableFull.String()) {
			t.Errorf("message %d: %s", index, text)
		}
	}
}
