package health

import (
	"runtime"
	"sync"
	"time"
)

// stallTick is how often the stall clock looks at the time: the shortest stall
// that it can see.
const stallTick = 20 * time.Millisecond

// stallClock measures for how long this process was kept from running: stopped,
// throttled, or waiting for a processor. It expects to be woken every
// stallTick and adds up how late it was. An attempt during which the sum grew
// by much had less time than its timeout says.
//
// It runs while attempts are under way, and wakes nobody if these are shorter
// than a tick: an idle process stays asleep.
type stallClock struct {
	every   time.Duration
	running sync.WaitGroup // the next look at the time

	mu       sync.Mutex
	attempts int
	timer    *time.Timer
	due      time.Time // when the timer should fire
	total    time.Duration
}

// begin says that an attempt begins at now. It returns what end wants.
func (c *stallClock) begin(now time.Time) (before time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.attempts++; c.attempts == 1 {
		c.wind(now)
	}
	return c.total + c.overdue(now)
}

// end says that an attempt ends at now, and tells how long the process stood
// still since it began.
func (c *stallClock) end(now time.Time, before time.Duration) time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	stalled := c.total + c.overdue(now) - before
	if c.attempts--; c.attempts == 0 && c.timer.Stop() {
		c.running.Done()
	}
	return stalled
}

// wind sets the timer. The caller holds the lock.
func (c *stallClock) wind(now time.Time) {
	c.due = now.Add(c.every)
	switch {
	case c.timer == nil:
		c.running.Add(1)
		c.timer = time.AfterFunc(c.every, c.fire)
	case !c.timer.Reset(c.every):
		c.running.Add(1)
	}
}

// fire runs when the timer does. A goroutine that a timer wakes goes to the front
// of the run queue: it queues up again at the end before it looks at the time, so
// that it also sees how long the goroutines of attempts wait their turn.
func (c *stallClock) fire() {
	defer c.running.Done()
	runtime.Gosched()
	c.tick(time.Now())
}

func (c *stallClock) tick(now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.attempts == 0 {
		return
	}
	c.total += c.overdue(now)
	c.wind(now)
}

// overdue is how long ago the timer should have fired. The caller holds the lock.
func (c *stallClock) overdue(now time.Time) time.Duration { return max(0, now.Sub(c.due)) }
