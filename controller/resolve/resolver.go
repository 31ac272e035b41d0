package resolve

import (
	"context"
	"net/netip"
	"slices"
	"sync"
	"time"
)

// maxAsking is how many questions are under way at once.
const maxAsking = 32

// Wants are what a resolver is to do.
type Wants struct {
	Names   []Name
	Servers []netip.AddrPort // none: those of /etc/resolv.conf
	MinTTL  time.Duration    // an answer holds at least so long
}

// Equal says whether two wants are the same.
func (w *Wants) Equal(o *Wants) bool {
	return w.MinTTL == o.MinTTL && slices.Equal(w.Names, o.Names) && slices.Equal(w.Servers, o.Servers)
}

// Result is the answer to the question for a name.
type Result struct {
	Name   Name
	Answer Answer
}

// Resolver asks for names again and again, as their TTLs demand.
type Resolver struct {
	ask  asker
	emit func(Result)

	mu    sync.Mutex
	wants Wants
	news  chan struct{} // holds one value when wants have changed
}

// asker asks servers for a name, and takes bounded time for it.
type asker func(ctx context.Context, servers []netip.AddrPort, name Name) Answer

// New returns a resolver that hands results to emit, one at a time.
func New(emit func(Result)) *Resolver { return newResolver(ask, emit) }

func newResolver(ask asker, emit func(Result)) *Resolver {
	return &Resolver{ask: ask, emit: emit, news: make(chan struct{}, 1)}
}

// Want replaces what the resolver is to do. It does not wait, and takes w.
func (r *Resolver) Want(w Wants) {
	r.mu.Lock()
	r.wants = w
	r.mu.Unlock()
	select {
	case r.news <- struct{}{}:
	default:
	}
}

// Run asks until ctx ends. It returns when no question is under way any more.
func (r *Resolver) Run(ctx context.Context) {
	var asking sync.WaitGroup
	defer asking.Wait()
	var wants Wants
	names := NewNames()
	results := make(chan Result)
	places := make(chan struct{}, maxAsking)
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-r.news:
			r.mu.Lock()
			wants = r.wants
			r.mu.Unlock()
			names.Want(wants.Names, wants.MinTTL, time.Now())
		case result := <-results:
			if names.Answered(result.Name, result.Answer, time.Now()) {
				r.emit(result)
			}
		case <-timer.C:
		}
		due, next := names.Due(time.Now())
		for _, name := range due {
			asking.Go(func() {
				select {
				case places <- struct{}{}:
				case <-ctx.Done():
					return
				}
				result := Result{Name: name, Answer: r.ask(ctx, wants.Servers, name)}
				<-places
				select {
				case results <- result:
				case <-ctx.Done():
				}
			})
		}
		if !next.IsZero() {
			timer.Reset(time.Until(next))
		}
	}
}
