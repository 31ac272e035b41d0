package health

import (
	"context"
	"fmt"
	"runtime"
	"time"
)

// Run probes until ctx ends. It returns after every goroutine that it started
// has ended, which takes no longer than it takes to close the attempts under
// way. It must be called once.
func (p *Prober) Run(ctx context.Context) {
	p.begin(ctx)
	defer p.stall.running.Wait()
	defer p.attempts.Wait()

	timer := time.NewTimer(0)
	defer timer.Stop()
	var inHand *Transition // taken from the queue, not yet handed out
	for {
		next, news := p.turn(time.Now(), inHand == nil)
		if news != nil {
			inHand = news
		}
		timer.Reset(next)
		runtime.Gosched()
		if inHand == nil {
			select {
			case <-ctx.Done():
				return
			case <-timer.C:
			case <-p.wake:
			}
			continue
		}
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		case <-p.wake:
		case p.transitions <- *inHand:
			inHand = nil
		}
	}
}

// begin lets the schedule start now, however long ago the targets were set.
func (p *Prober) begin(ctx context.Context) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.run = ctx
	now := time.Now()
	queued := p.timetable.items
	p.timetable.items = nil
	for _, w := range queued {
		w.due = firstDue(w.check.Check, w.hash, now)
		p.timetable.add(w)
	}
}

// batch bounds the attempts that one turn starts. The loop then queues up behind
// them, so that a process that is short of processor time starts no more
// attempts than it gets done: begun late they are still conclusive, begun in
// time and left waiting they are not.
const batch = 32

// idleWait is how long the loop sleeps when nothing is due.
const idleWait = time.Hour

// turn starts every attempt that is due at now and may run, and returns how
// long nothing else will be due, with the next transition to hand out if
// wanted.
func (p *Prober) turn(now time.Time, wantNews bool) (next time.Duration, news *Transition) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for w := p.timetable.first(); w != nil && !w.due.After(now); w = p.timetable.first() {
		p.timetable.remove(w)
		p.lanes.wait(laneOf(w), w)
	}
	started := 0
	for ; started < batch; started++ {
		w, l := p.lanes.admit()
		if w == nil {
			break
		}
		p.start(w, l)
	}
	if wantNews {
		news = p.takeNews()
	}
	switch w := p.timetable.first(); {
	case started == batch:
		return 0, news
	case w != nil:
		return w.due.Sub(now), news
	default:
		return idleWait, news
	}
}

// takeNews returns the oldest transition that still says something, or nil.
func (p *Prober) takeNews() *Transition {
	for p.news.len() > 0 {
		w := p.news.pop()
		n := w.news
		w.news = nil
		if !n.empty() {
			return &n.Transition
		}
	}
	return nil
}

// start begins an attempt on w in lane l. The caller holds the lock.
func (p *Prober) start(w *watch, l lane) {
	ctx, cancel := context.WithCancel(p.run)
	w.cancel = cancel
	due := w.due
	p.attempts.Go(func() {
		defer cancel()
		r, stated := p.attempt(ctx, w, due)
		p.finish(w, l, r, stated)
	})
}

// attempt makes one attempt and reports whether the endpoint said something of
// itself. It reads only what never changes in w. The timeout counts from here:
// this goroutine may have waited for a processor since it was started.
func (p *Prober) attempt(ctx context.Context, w *watch, due time.Time) (r Result, stated bool) {
	start := time.Now()
	ctx, cancel := context.WithTimeout(ctx, w.check.Timeout)
	defer cancel()
	before := p.stall.begin(start)
	rep := w.check.probe.probe(ctx, w.address)
	end := time.Now()
	took := end.Sub(start)
	rep = excuse(rep, took, p.stall.end(end, before), w.check.Timeout)
	if rep.code.Outcome() == Fail && p.opts.Excuse != nil {
		if why := p.opts.Excuse(start, end, rep.code); why != "" {
			rep = report{code: SOCKERR, detail: fmt.Sprintf("not counted: %s, but %s", rep.detail, why)}
		}
	}
	return Result{
		Start:    start,
		Late:     max(0, start.Sub(due)),
		Duration: took,
		Code:     rep.code,
		Detail:   rep.detail,
		Agent:    rep.agent,
	}, rep.stated
}

// excuse turns a failure into LATE if it may be our own: the attempt ended well
// after its timeout, or the endpoint is blamed for silence although this
// process did not run for more than a quarter of the time it was to wait.
func excuse(rep report, took, stalled, timeout time.Duration) report {
	if rep.code.Outcome() != Fail {
		return rep
	}
	tolerance := timeout / 4
	if took-timeout > stalled {
		stalled = took - timeout
	}
	if took > timeout+tolerance || rep.code.TimedOut() && stalled > tolerance {
		return report{code: LATE, detail: fmt.Sprintf("not counted: %s, but this process stood still for %v", rep.detail, roundDuration(stalled))}
	}
	return rep
}

// finish takes the result of an attempt on w into account and plans the next.
func (p *Prober) finish(w *watch, l lane, r Result, stated bool) {
	if !p.record(w, l, &r, stated) {
		return
	}
	if p.opts.OnResult != nil {
		p.opts.OnResult(w.target(), r)
	}
}

// record reports whether r counts: w is still watched and the prober runs.
func (p *Prober) record(w *watch, l lane, r *Result, stated bool) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.lanes.leave(l)
	w.cancel = nil
	if w.removed || p.run.Err() != nil {
		p.poke() // a place is free
		return false
	}
	outcome, end := r.Code.Outcome(), r.Start.Add(r.Duration)
	before, from := w.agent, w.verdict.State
	if stated {
		w.agent = r.Agent
	}
	r.Agent = w.agent
	p.countBlind(w, outcome, r.Detail)
	if w.verdict.Step(outcome, w.check.Rise, w.check.Fall, end) || before != w.agent {
		p.announce(w, from, before, *r)
	}
	w.remember(*r, p.opts.History)
	w.due = nextDue(w.check.Check, w.hash, w.verdict, outcome, p.epoch, r.Start, end)
	p.timetable.add(w)
	if p.timetable.first() == w || p.lanes.waiting[trusted].len()+p.lanes.waiting[suspect].len() > 0 {
		p.poke()
	}
	return true
}

// countBlind counts the inconclusive attempts on w, and the targets that have
// too many of them. The caller holds the lock.
func (p *Prober) countBlind(w *watch, outcome Outcome, why string) {
	if outcome != Inconclusive {
		if w.inconclusive >= blindAfter {
			p.blind--
		}
		w.inconclusive = 0
		return
	}
	w.inconclusive++
	if w.inconclusive == blindAfter {
		p.blind++
	}
	if w.inconclusive >= blindAfter {
		p.blindWhy = why
	}
}

// announce queues the change of w from what it was before r. The caller holds
// the lock.
func (p *Prober) announce(w *watch, from State, before Agent, r Result) {
	if w.news == nil {
		w.news = &news{Transition: Transition{Target: w.target(), From: from}, before: before}
		p.news.push(w)
	}
	w.news.To, w.news.At, w.news.Result = w.verdict.State, r.Start.Add(r.Duration), r
	p.poke()
}

// poke makes the loop look again. It never blocks.
func (p *Prober) poke() {
	select {
	case p.wake <- struct{}{}:
	default:
	}
}
