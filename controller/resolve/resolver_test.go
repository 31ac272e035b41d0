package resolve

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// start runs a resolver with what answers, and collects what it tells.
func start(t *testing.T, answers asker) (*Resolver, func() []string) {
	var mu sync.Mutex
	var told []string
	began := time.Now()
	r := newResolver(answers, func(r Result) {
		mu.Lock()
		defer mu.Unlock()
		told = append(told, fmt.Sprintf("%g:%s", time.Since(began).Seconds(), r.Name.Host))
	})
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { r.Run(ctx) })
	t.Cleanup(func() { cancel(); running.Wait() })
	return r, func() []string {
		synctest.Wait()
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(told)
	}
}

func TestResolver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, told := start(t, func(ctx context.Context, _ []netip.AddrPort, name Name) Answer {
			if name.Host == "slow" {
				time.Sleep(7 * time.Second)
			}
			return good(10 * time.Second)
		})
		r.Want(Wants{Names: []Name{host("a"), host("slow")}, MinTTL: time.Second})
		time.Sleep(25 * time.Second)
		// Nobody waits for a slow answer but who asked for it.
		if got, want := fmt.Sprint(told()), "[0:a 7:slow 10:a 20:a 24:slow]"; got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
		r.Want(Wants{})
		time.Sleep(time.Hour)
		if got := len(told()); got != 5 {
			t.Errorf("told %d times, of names that nobody wants", got)
		}
	})
}

// Many names do not make many questions at once, and none is forgotten.
func TestResolverAsksAFewAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var now, most atomic.Int32
		r, told := start(t, func(context.Context, []netip.AddrPort, Name) Answer {
			n := now.Add(1)
			defer now.Add(-1)
			if n > most.Load() {
				most.Store(n)
			}
			time.Sleep(time.Second)
			return good(time.Hour)
		})
		var names []Name
		for i := range 100 {
			names = append(names, host(fmt.Sprintf("h%03d", i)))
		}
		r.Want(Wants{Names: names, MinTTL: time.Second})
		time.Sleep(time.Minute)
		if got := told(); len(got) != 100 || most.Load() != maxAsking {
			t.Errorf("%d answers, %d questions at once", len(got), most.Load())
		}
	})
}

func TestResolverStopsWhileItAsks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, told := start(t, func(ctx context.Context, _ []netip.AddrPort, _ Name) Answer {
			<-ctx.Done()
			return Answer{Problem: ctx.Err().Error()}
		})
		r.Want(Wants{Names: []Name{host("a"), host("b")}, MinTTL: time.Second})
		if got := told(); len(got) != 0 {
			t.Errorf("told %v", got)
		}
	})
}
