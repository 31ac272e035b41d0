package health

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// fakeNet is a network without sockets: it answers dials by rule and records
// when each address was dialed. Its time is that of the synctest bubble.
type fakeNet struct {
	mu    sync.Mutex
	rule  func(ctx context.Context, address string) error
	dials map[string][]time.Duration // since the start of the bubble
	start time.Time
	now   int // dials under way
	peak  int // most dials under way at once
}

func newFakeNet(rule func(context.Context, string) error) *fakeNet {
	return &fakeNet{rule: rule, dials: make(map[string][]time.Duration), start: time.Now()}
}

func (n *fakeNet) setRule(rule func(context.Context, string) error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.rule = rule
}

func (n *fakeNet) dial(ctx context.Context, _, address string) (net.Conn, error) {
	n.mu.Lock()
	n.dials[address] = append(n.dials[address], time.Since(n.start))
	n.now++
	n.peak = max(n.peak, n.now)
	rule := n.rule
	n.mu.Unlock()
	err := rule(ctx, address)
	n.mu.Lock()
	n.now--
	n.mu.Unlock()
	if err != nil {
		return nil, err
	}
	c, _ := net.Pipe()
	return c, nil
}

// Rules of the fake network.
func open(context.Context, string) error       { return nil }
func refuse(context.Context, string) error     { return syscall.ECONNREFUSED }
func noPort(context.Context, string) error     { return syscall.EADDRNOTAVAIL }
func hang(ctx context.Context, _ string) error { <-ctx.Done(); return ctx.Err() }

func testTarget(i int, c Check) Target {
	ip := netip.AddrFrom4([4]byte{10, byte(i >> 16), byte(i >> 8), byte(i)})
	return Target{netip.AddrPortFrom(ip, 80), c.WithDefaults()}
}

func testTargets(n int, c Check) []Target {
	targets := make([]Target, n)
	for i := range targets {
		targets[i] = testTarget(i, c)
	}
	return targets
}

// runProber runs p on targets until the test's function returns.
func runProber(t *testing.T, p *Prober, targets []Target) {
	t.Helper()
	if err := p.Set(targets); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); p.Run(ctx) }()
	t.Cleanup(func() { cancel(); <-done })
}

func stateOf(t *testing.T, p *Prober, target Target) State {
	t.Helper()
	s, ok := p.Snapshot(target)
	if !ok {
		t.Fatalf("%v is not under watch", target.Address)
	}
	return s.State
}

// gaps returns the times between the dials of address from time from on.
func (n *fakeNet) gaps(address string, from time.Duration) []time.Duration {
	n.mu.Lock()
	defer n.mu.Unlock()
	var gaps []time.Duration
	last := time.Duration(-1)
	for _, at := range n.dials[address] {
		if at < from {
			continue
		}
		if last >= 0 {
			gaps = append(gaps, at-last)
		}
		last = at
	}
	return gaps
}

func TestIntervals(t *testing.T) {
	check := Check{Interval: time.Second, Fast: 200 * time.Millisecond, Down: 5 * time.Second, Timeout: 100 * time.Millisecond}
	for _, tc := range []struct {
		name string
		rule func(context.Context, string) error
		want time.Duration
	}{
		{"up: interval", open, time.Second},
		{"down: down interval", refuse, 5 * time.Second},
		{"down by silence: down interval", hang, 5 * time.Second},
		{"unknown for local reasons: interval", noPort, time.Second},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := newFakeNet(tc.rule)
				p := New(Options{Dial: n.dial})
				target := testTarget(1, check)
				runProber(t, p, []Target{target})
				time.Sleep(time.Minute)
				synctest.Wait()
				for _, gap := range n.gaps(target.Address.String(), 10*time.Second) {
					if gap != tc.want {
						t.Fatalf("time between attempts is %v, want %v", gap, tc.want)
					}
				}
			})
		})
	}
}

// TestFastWhileChanging follows one death and one return attempt by attempt.
func TestFastWhileChanging(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		check := Check{Interval: 10 * time.Second, Fast: time.Second, Down: 20 * time.Second, Timeout: 500 * time.Millisecond}
		n := newFakeNet(open)
		p := New(Options{Dial: n.dial})
		target := testTarget(1, check)
		runProber(t, p, []Target{target})
		up := <-p.Transitions()
		if up.From != Unknown || up.To != Up || up.Result.Code != L4OK {
			t.Fatalf("first transition is %+v, want unknown to up", up)
		}
		time.Sleep(30 * time.Second)

		n.setRule(refuse)
		died := time.Now()
		down := <-p.Transitions()
		if down.From != Up || down.To != Down || down.Result.Code != L4CON || down.Target != target {
			t.Fatalf("second transition is %+v, want up to down", down)
		}
		if took := down.At.Sub(died); took > 12*time.Second {
			t.Errorf("down after %v, want at most interval + 2*fast", took)
		}
		time.Sleep(time.Minute)

		n.setRule(open)
		back := time.Now()
		again := <-p.Transitions()
		if again.From != Down || again.To != Up {
			t.Fatalf("third transition is %+v, want down to up", again)
		}
		if took := again.At.Sub(back); took > 21*time.Second {
			t.Errorf("up after %v, want at most down + fast", took)
		}
		if s, _ := p.Snapshot(target); s.Passes != 2 || s.Since != again.At || s.Last.Code != L4OK || s.Next.Before(time.Now()) {
			t.Errorf("snapshot is %+v", s)
		}
	})
}

// TestDetectionBound kills an endpoint in every way at random moments.
func TestDetectionBound(t *testing.T) {
	checks := []Check{
		{},
		{Interval: 2 * time.Second, Fast: 100 * time.Millisecond, Timeout: 2 * time.Second, Fall: 5},
		{Interval: 300 * time.Millisecond, Fast: 300 * time.Millisecond, Timeout: 20 * time.Millisecond, Fall: 1},
	}
	for i, check := range checks {
		for name, rule := range map[string]func(context.Context, string) error{"refuse": refuse, "hang": hang} {
			t.Run(fmt.Sprint(i, name), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					n := newFakeNet(open)
					p := New(Options{Dial: n.dial})
					target := testTarget(7, check)
					runProber(t, p, []Target{target})
					random := rand.New(rand.NewPCG(1, 2))
					for range 50 {
						<-p.Transitions() // up
						time.Sleep(time.Duration(random.Int64N(int64(10 * time.Second))))
						n.setRule(rule)
						died := time.Now()
						down := <-p.Transitions()
						if took := down.At.Sub(died); took > target.Check.DetectionBound() {
							t.Fatalf("down after %v, bound is %v", took, target.Check.DetectionBound())
						}
						n.setRule(open)
					}
				})
			})
		}
	}
}

func TestColdStartIsQuick(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newFakeNet(open)
		p := New(Options{Dial: n.dial})
		targets := testTargets(100, Check{Interval: time.Minute})
		runProber(t, p, targets)
		time.Sleep(coldStartSpread)
		synctest.Wait()
		for _, target := range targets {
			if s := stateOf(t, p, target); s != Up {
				t.Fatalf("%v is %v after %v", target.Address, s, coldStartSpread)
			}
		}
	})
}

// TestPhasesAreSpread demands that attempts never bunch.
func TestPhasesAreSpread(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newFakeNet(open)
		p := New(Options{Dial: n.dial})
		runProber(t, p, testTargets(10000, Check{}))
		time.Sleep(10 * time.Second)
		synctest.Wait()
		var perStep [100]int // dials in each 10ms of one second
		for _, dials := range n.dials {
			for _, at := range dials {
				if at >= 5*time.Second && at < 6*time.Second {
					perStep[at%time.Second/(10*time.Millisecond)]++
				}
			}
		}
		for i, count := range perStep {
			if count < 50 || count > 160 {
				t.Errorf("%d attempts in the 10ms from %d, want about 100", count, 10*i)
			}
		}
	})
}

// TestLocalErrorsNeverCount is an hour in which our own side fails at random.
func TestLocalErrorsNeverCount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		random := rand.New(rand.NewPCG(3, 4))
		n := newFakeNet(open)
		p := New(Options{Dial: n.dial})
		targets := testTargets(20, Check{})
		runProber(t, p, targets)
		for range targets {
			<-p.Transitions()
		}
		n.setRule(func(ctx context.Context, _ string) error {
			mu.Lock()
			defer mu.Unlock()
			return []error{nil, syscall.EMFILE, syscall.EADDRNOTAVAIL, syscall.ENETUNREACH, syscall.ENOBUFS, syscall.EPERM}[random.IntN(6)]
		})
		select {
		case tr := <-p.Transitions():
			t.Fatalf("a local error changed a verdict: %+v", tr)
		case <-time.After(time.Hour):
		}
		n.setRule(noPort)
		time.Sleep(time.Minute)
		if s, _ := p.Snapshot(targets[0]); s.State != Up || s.Inconclusive < 59 || s.Last.Code != SOCKERR {
			t.Errorf("snapshot after a minute of local errors: %v, %d inconclusive, last %v", s.State, s.Inconclusive, s.Last)
		}
		if s := p.Stats(); s.Blind != len(targets) || !strings.Contains(s.Why, "local error: ") {
			t.Errorf("after a minute of local errors: %+v", s)
		}
		if err := p.Set(targets[1:]); err != nil {
			t.Fatal(err)
		}
		if s := p.Stats(); s.Blind != len(targets)-1 {
			t.Errorf("after a blind target has gone: %+v", s)
		}
		n.setRule(open)
		time.Sleep(time.Minute)
		if s := p.Stats(); s.Blind != 0 {
			t.Errorf("a minute later: %+v", s)
		}
	})
}

func TestSetKeepsWhatIsUnchanged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newFakeNet(open)
		p := New(Options{Dial: n.dial})
		a, b := testTarget(1, Check{}), testTarget(2, Check{})
		runProber(t, p, []Target{a, b, a})
		time.Sleep(10 * time.Second)
		before, _ := p.Snapshot(a)

		for range 1000 { // the same again costs nothing and restarts no probe
			if err := p.Set([]Target{b, a}); err != nil {
				t.Fatal(err)
			}
		}
		if after, _ := p.Snapshot(a); after.Since != before.Since || after.Next != before.Next || len(after.History) != len(before.History) {
			t.Errorf("Set with the same targets changed %+v to %+v", before, after)
		}

		changed := a
		changed.Check.Fall = 5
		n.setRule(refuse)
		if err := p.Set([]Target{b, changed}); err != nil {
			t.Fatal(err)
		}
		if _, ok := p.Snapshot(a); ok {
			t.Error("the target with the old check is still under watch")
		}
		if s := stateOf(t, p, changed); s != Unknown {
			t.Errorf("the target with the new check is %v, want unknown", s)
		}
		if s := stateOf(t, p, b); s != Up {
			t.Errorf("the other target is %v, want up", s)
		}

		bad := a
		bad.Check.Timeout = time.Hour
		if err := p.Set([]Target{a, bad}); err == nil {
			t.Error("Set took an invalid check")
		}
		if _, ok := p.Snapshot(a); ok {
			t.Error("a Set that failed changed the set")
		}
		if err := p.Set([]Target{{Check: a.Check}}); err == nil {
			t.Error("Set took a target without address")
		}
		if err := p.Set(nil); err != nil {
			t.Fatal(err)
		}
		if s := p.Stats(); s.Targets != 0 || len(p.checks) != 0 || len(p.timetable.items) != 0 {
			t.Errorf("after Set(nil): %+v, %d checks", s, len(p.checks))
		}
	})
}

// TestRemoveEndsAttempt removes a target whose attempt hangs.
func TestRemoveEndsAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newFakeNet(hang)
		results := make(chan Result, 100)
		p := New(Options{Dial: n.dial, OnResult: func(_ Target, r Result) { results <- r }})
		target := testTarget(1, Check{Interval: time.Minute, Timeout: time.Minute})
		runProber(t, p, []Target{target})
		time.Sleep(time.Second)
		if s := p.Stats(); s.InFlight != 1 {
			t.Fatalf("stats %+v, want one attempt under way", s)
		}
		if err := p.Set(nil); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if s := p.Stats(); s.InFlight != 0 || len(results) != 0 {
			t.Errorf("stats %+v and %d results after removal, want none", s, len(results))
		}
	})
}

// TestSingleFlight checks that slow attempts of one target never overlap.
func TestSingleFlight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newFakeNet(hang)
		p := New(Options{Dial: n.dial})
		runProber(t, p, []Target{testTarget(1, Check{Fast: 10 * time.Millisecond, Down: 10 * time.Millisecond})})
		time.Sleep(time.Minute)
		synctest.Wait()
		if n.peak != 1 {
			t.Errorf("%d attempts of one target at once", n.peak)
		}
	})
}

// TestHungTargetsDelayNobody fills the cap with targets that never answer.
func TestHungTargetsDelayNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hung := func(address string) bool { return address < "10.0.3" } // 10.0.0.* to 10.0.2.*
		n := newFakeNet(func(ctx context.Context, address string) error {
			if hung(address) {
				return hang(ctx, address)
			}
			return nil
		})
		var mu sync.Mutex
		var worst time.Duration
		p := New(Options{Dial: n.dial, MaxInFlight: 40, OnResult: func(target Target, r Result) {
			mu.Lock()
			defer mu.Unlock()
			if !hung(target.Address.String()) && r.Start.Sub(n.start) > time.Minute {
				worst = max(worst, r.Late)
			}
		}})
		runProber(t, p, testTargets(1024, Check{}))
		time.Sleep(3 * time.Minute)
		synctest.Wait()
		if n.peak > 40 {
			t.Errorf("%d attempts at once, cap is 40", n.peak)
		}
		if s := p.Stats(); s.Waiting == 0 {
			t.Errorf("stats %+v: the hung targets do not fill their half", s)
		}
		mu.Lock()
		defer mu.Unlock()
		if worst > 0 {
			t.Errorf("a healthy target was probed %v late", worst)
		}
	})
}

// TestSlowConsumer takes no transition for long and then asks what remains.
func TestSlowConsumer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newFakeNet(open)
		p := New(Options{Dial: n.dial})
		flapper, steady := testTarget(1, Check{}), testTarget(2, Check{})
		runProber(t, p, []Target{flapper, steady})
		first, second := <-p.Transitions(), <-p.Transitions()
		if first.To != Up || second.To != Up {
			t.Fatalf("transitions %+v, %+v", first, second)
		}
		for i := range 21 { // ends in refuse
			rule := map[bool]func(context.Context, string) error{true: refuse, false: open}[i%2 == 0]
			n.setRule(func(ctx context.Context, address string) error {
				if address == steady.Address.String() {
					return nil
				}
				return rule(ctx, address)
			})
			time.Sleep(10 * time.Second)
		}
		// The first change went to the loop's hand before the second came.
		var last Transition
		for range 2 {
			select {
			case last = <-p.Transitions():
			case <-time.After(time.Second):
			}
		}
		if last.Target != flapper || last.To != Down {
			t.Errorf("last transition is %+v, want the flapper down", last)
		}
		select {
		case extra := <-p.Transitions():
			t.Errorf("another transition: %+v", extra)
		case <-time.After(100 * time.Millisecond):
		}
	})
}

func TestHistory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newFakeNet(open)
		p := New(Options{Dial: n.dial, History: 3})
		target := testTarget(1, Check{})
		runProber(t, p, []Target{target})
		if s, _ := p.Snapshot(target); s.Last.Code != INI || s.Last.Sentence() != "not probed yet" || len(s.History) != 0 {
			t.Errorf("before the first attempt: %+v", s)
		}
		time.Sleep(10500 * time.Millisecond)
		s, _ := p.Snapshot(target)
		if len(s.History) != 3 {
			t.Fatalf("%d results, want 3", len(s.History))
		}
		for i := 1; i < 3; i++ {
			if gap := s.History[i].Start.Sub(s.History[i-1].Start); gap != time.Second {
				t.Errorf("results %d and %d are %v apart", i-1, i, gap)
			}
		}
		if s.Last != s.History[2] {
			t.Error("the last result is not the newest of the history")
		}
	})
}

// TestTargetsSetBeforeRun checks that waiting for Run is not lateness.
func TestTargetsSetBeforeRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newFakeNet(open)
		late := make(chan time.Duration, 1)
		p := New(Options{Dial: n.dial, OnResult: func(_ Target, r Result) { late <- r.Late }})
		if err := p.Set([]Target{testTarget(1, Check{Interval: time.Hour})}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Hour)
		runProber(t, p, []Target{testTarget(1, Check{Interval: time.Hour})})
		if got := <-late; got != 0 {
			t.Errorf("first attempt is %v late", got)
		}
	})
}
