package controller

import (
	"fmt"
	"time"

	"brlb/controller/pipeline"
	"brlb/controller/state"
	"brlb/openflow/session"
)

// How brlb behaves when the switch refuses a bundle, and when somebody keeps
// changing its flows.
const (
	retryFirst   = time.Second
	retryMost    = 30 * time.Second
	driftWindow  = 10 * time.Second
	driftRepairs = 5 // within driftWindow; then brlb raises an alarm and waits
)

// reconciler decides what to send to the switch. It is a pure state machine:
// time and outcomes come in, plans go out, one at a time.
type reconciler struct {
	renderer  *pipeline.Renderer
	rendered  *state.Snapshot // what desired and held were rendered from
	desired   pipeline.Set
	held      func(pipeline.GroupID) bool
	session   uint64       // 0: none
	installed pipeline.Set // as confirmed or read; nil: not known
	inFlight  *plan
	unsure    bool // flows were read while a plan was in flight

	holding   *state.Snapshot // the newest snapshot that the switch holds
	confirmed *state.Snapshot // the last one that takeConfirmed told of

	problem  string // why the last plan failed
	failures int
	retryAt  time.Time
	repairs  []time.Time // of drift, within driftWindow
	alarm    bool
}

// plan is one bundle: what makes the switch hold a snapshot.
type plan struct {
	session  uint64
	snapshot *state.Snapshot
	diff     pipeline.Plan
}

func newReconciler() *reconciler { return &reconciler{renderer: pipeline.NewRenderer()} }

// connected notes a new session and what the switch holds.
func (r *reconciler) connected(number uint64, installed pipeline.Set) {
	r.session, r.installed, r.holding = number, installed, nil
	r.inFlight, r.unsure = nil, false
	r.failures, r.retryAt = 0, time.Time{}
}

// lost notes that the session has ended.
func (r *reconciler) lost() {
	r.session, r.installed, r.holding = 0, nil, nil
	r.inFlight, r.problem = nil, ""
}

// doubt forgets what the switch holds: it must be read before anything is sent.
func (r *reconciler) doubt() { r.installed, r.holding = nil, nil }

// read takes what the switch holds now. It returns how many flows somebody
// else has changed.
func (r *reconciler) read(number uint64, installed pipeline.Set, now time.Time) (wrong int) {
	if number != r.session {
		return 0
	}
	if r.inFlight != nil {
		r.unsure = true
		return 0
	}
	if r.installed != nil {
		wrong = len(pipeline.Diff(installed, r.installed, func(pipeline.GroupID) bool { return false }).Mods)
	}
	if wrong == 0 && r.installed != nil {
		return 0
	}
	// What is changed further while a repair waits makes it no later.
	repair := wrong > 0 && r.holding != nil
	r.installed, r.holding = installed, nil
	if repair {
		r.repairs = append(r.repairs, now)
		r.forgetRepairs(now)
		if len(r.repairs) >= driftRepairs {
			r.alarm = true
			r.retryAt = now.Add(driftWindow)
		}
	}
	return wrong
}

func (r *reconciler) forgetRepairs(now time.Time) {
	for len(r.repairs) > 0 && now.Sub(r.repairs[0]) > driftWindow {
		r.repairs = r.repairs[1:]
	}
	if len(r.repairs) == 0 {
		r.alarm = false
	}
}

// plan returns what to send now, or nil if the switch holds the snapshot, or
// if nothing may be sent.
func (r *reconciler) plan(s *state.Snapshot, now time.Time) (*plan, error) {
	r.forgetRepairs(now)
	if s != r.rendered {
		desired, held, err := r.renderer.Render(s)
		if err != nil {
			return nil, err
		}
		// Another picture may fare better than the one that was refused, and a
		// member's failure must not wait for a quarrel about flows to end.
		r.retryAt = time.Time{}
		r.rendered, r.desired, r.held = s, desired, held
	}
	if r.session == 0 || r.installed == nil || r.inFlight != nil || r.holding == s || now.Before(r.retryAt) {
		return nil, nil
	}
	diff := pipeline.Diff(r.installed, r.desired, r.held)
	if len(diff.Mods) == 0 {
		r.installed, r.holding = diff.Result, s
		r.problem, r.failures = "", 0
		return nil, nil
	}
	diff.Mods = append(diff.Mods, pipeline.Forget(s, r.installed)...)
	r.inFlight = &plan{session: r.session, snapshot: s, diff: diff}
	return r.inFlight, nil
}

// finished takes the outcome of a plan. It reports whether the switch must be
// read before anything else is sent.
func (r *reconciler) finished(p *plan, result session.BundleResult, now time.Time) (reread bool) {
	if p != r.inFlight {
		return false // of a session that is gone
	}
	r.inFlight = nil
	reread, r.unsure = r.unsure, false
	switch result.Outcome {
	case session.Applied:
		r.installed, r.holding = p.diff.Result, p.snapshot
		r.problem, r.failures, r.retryAt = "", 0, time.Time{}
	case session.Rejected:
		r.problem = fmt.Sprintf("a change could not be made, and the switch keeps what it holds: %v", result.Err)
		if len(result.Errors) > 0 {
			r.problem = "the switch refuses a change and keeps what it holds: " + describeRejection(p, result)
		}
		r.failures++
		r.retryAt = now.Add(min(retryFirst<<min(r.failures-1, 5), retryMost))
	default:
		r.installed, r.holding = nil, nil
		reread = true
	}
	return reread
}

// inSync says whether the switch holds the snapshot.
func (r *reconciler) inSync(s *state.Snapshot) bool { return r.holding == s && s != nil }

// takeConfirmed returns, once per snapshot, what the switch held before and
// what it holds now.
func (r *reconciler) takeConfirmed() (before, after *state.Snapshot, ok bool) {
	if r.holding == nil || r.holding == r.confirmed {
		return nil, nil, false
	}
	before, r.confirmed = r.confirmed, r.holding
	return before, r.confirmed, true
}

// describeRejection names the flow that the switch refused first.
func describeRejection(p *plan, result session.BundleResult) string {
	first := result.Errors[0]
	if first.Index < 0 || first.Index >= len(p.diff.Mods) {
		return first.Error()
	}
	return fmt.Sprintf("%v: %v", first, p.diff.Mods[first.Index])
}
