package controller

import (
	"context"
	"time"
)

// storeRetry is how long to wait after something could not be stored.
const storeRetry = time.Second

// mayStore says whether it is this brlb that keeps things in OVSDB, and whether
// OVSDB can be reached.
func (l *loop) mayStore() bool {
	return l.loaded && l.writer && l.inventory.Connected && l.inventory.Bridge
}

// keep stores something in OVSDB beside the loop, which sees by storing that this
// is under way.
func (l *loop) keep(ctx context.Context, storing *bool, failed string, write func() error) {
	*storing = true
	go func() {
		if err := write(); err != nil {
			l.opts.Logger.Warn(failed, "err", err)
			sleep(ctx, storeRetry)
		}
		l.do(ctx, func() { *storing = false })
	}()
}

// storeNumbers keeps member numbers in OVSDB when they have changed.
func (l *loop) storeNumbers(ctx context.Context) {
	numbers := l.state.Numbers()
	if l.storing || !l.mayStore() || numbers == l.inventory.Numbers {
		return
	}
	l.keep(ctx, &l.storing, "member numbers are not stored", func() error { return l.inv.StoreNumbers(ctx, numbers) })
}

// storeClocks keeps the times from which rules count in OVSDB when they have
// changed.
func (l *loop) storeClocks(ctx context.Context) {
	clocks := l.state.Clocks()
	if l.storingClocks || !l.mayStore() || clocks == l.inventory.Clocks {
		return
	}
	l.keep(ctx, &l.storingClocks, "times of slow start, hold-down and return_after are not stored", func() error { return l.inv.StoreClocks(ctx, clocks) })
}
