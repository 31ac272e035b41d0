package health

import (
	"container/heap"
	"context"
	"net/netip"
	"time"
)

// compiledCheck is a check with what all its targets share.
type compiledCheck struct {
	Check
	probe probe
	users int // watches that refer to it
}

// watch is one target under watch. The prober's lock guards it.
type watch struct {
	address netip.AddrPort
	check   *compiledCheck
	hash    uint64

	verdict      Verdict
	inconclusive int      // inconclusive results in a row
	agent        Agent    // what the endpoint last said of itself
	history      []Result // ring once it is full
	oldest       int      // index of the oldest result in history

	due     time.Time          // of the next attempt, or of the one under way
	index   int                // place in the timetable; notQueued if it has none
	cancel  context.CancelFunc // of the attempt under way; nil if there is none
	removed bool
	news    *news // not yet handed out; nil if there is none
}

// news is a transition, with what the endpoint said of itself before it.
type news struct {
	Transition
	before Agent
}

// empty reports whether everything came back to what it was.
func (n *news) empty() bool { return n.From == n.To && n.before == n.Result.Agent }

func (w *watch) target() Target { return Target{w.address, w.check.Check} }

// suspect reports whether the next attempt may well use up its whole timeout.
func (w *watch) suspect() bool { return w.verdict.Fails > 0 }

// remember adds r to the history, which keeps the last n.
func (w *watch) remember(r Result, n int) {
	if len(w.history) < n {
		w.history = append(w.history, r)
		return
	}
	w.history[w.oldest] = r
	w.oldest = (w.oldest + 1) % n
}

// results returns a copy of the history, oldest first.
func (w *watch) results() []Result {
	out := make([]Result, 0, len(w.history))
	out = append(out, w.history[w.oldest:]...)
	return append(out, w.history[:w.oldest]...)
}

// last returns the newest result; its code is INI if there is none.
func (w *watch) last() Result {
	if len(w.history) == 0 {
		return Result{}
	}
	return w.history[(w.oldest+len(w.history)-1)%len(w.history)]
}

const notQueued = -1

// timetable orders watches by their due time.
type timetable struct{ items watchHeap }

func (t *timetable) add(w *watch) { heap.Push(&t.items, w) }

// remove takes w out if it is in.
func (t *timetable) remove(w *watch) {
	if w.index != notQueued {
		heap.Remove(&t.items, w.index)
	}
}

// first returns the watch that is due next, or nil.
func (t *timetable) first() *watch {
	if len(t.items) == 0 {
		return nil
	}
	return t.items[0]
}

// watchHeap implements heap.Interface.
type watchHeap []*watch

func (h watchHeap) Len() int           { return len(h) }
func (h watchHeap) Less(i, j int) bool { return h[i].due.Before(h[j].due) }
func (h watchHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = i, j
}

func (h *watchHeap) Push(x any) {
	w := x.(*watch)
	w.index = len(*h)
	*h = append(*h, w)
}

func (h *watchHeap) Pop() any {
	old := *h
	w := old[len(old)-1]
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	w.index = notQueued
	return w
}
