package health

import (
	"context"
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
// A goroutine that a timer wakes goes to the front of the run queue. The clock
// queues up again at the end before it looks at the time, so it also sees how
// long the goroutines of attempts wait their turn.
type stallClock struct {
	mu    sync.Mutex
	due   time.Time // when the next tick should come; zero before the first
	total time.Duration
}

// run ticks until ctx ends.
func (c *stallClock) run(ctx context.Context) {
	ticker := time.NewTicker(stallTick)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			runtime.Gosched()
			c.tick(time.Now())
		}
	}
}

func (c *stallClock) tick(now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.total += c.overdue(now)
	c.due = now.Add(stallTick)
}

// stalled returns the sum of all stalls up to now, with one that has not ended yet.
func (c *stallClock) stalled(now time.Time) time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.total + c.overdue(now)
}

func (c *stallClock) overdue(now time.Time) time.Duration {
	if c.due.IsZero() {
		return 0
	}
	return max(0, now.Sub(c.due))
}
