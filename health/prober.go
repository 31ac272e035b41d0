package health

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"sync"
	"syscall"
	"time"
)

// Options configure a Prober. The zero value works.
type Options struct {
	// Dial opens the connections of all attempts. Default: a zero [Dialer].
	Dial DialFunc
	// Connect is for attempts that only want to know whether a connection opens.
	// Default: Dial and, where that has its default, [Dialer.Connect].
	Connect ConnectFunc
	// Netns is the path of the network namespace in which exec checks run their
	// programs; empty is that of this process. See also [Dialer.Netns].
	Netns string
	// MaxInFlight caps the attempts under way at once. Attempts beyond it wait;
	// targets that are failing may hold no more than half of it, so that they
	// delay nobody else. Default 16384, or half of the process's limit of open
	// files if that is less.
	MaxInFlight int
	// History is how many results [Prober.Snapshot] keeps of each target.
	// Default 10.
	History int
	// Allow are the prefixes that targets may be in; empty allows all.
	Allow []netip.Prefix
	// AllowExec permits checks of the type exec, which start programs.
	AllowExec bool
	// OnResult is called after each attempt, from many goroutines at once. It
	// must return quickly and must not call the Prober.
	OnResult func(Target, Result)
	// Excuse is asked about each attempt that failed. If the caller knows that
	// the failure may be its own, because the path of its probes was interrupted
	// between start and end, it says why, and the attempt is inconclusive. It
	// must return quickly and must not call the Prober.
	Excuse func(start, end time.Time, code Code) (why string)
}

const (
	defaultMaxInFlight = 16384
	defaultHistory     = 10
)

// Transition says that the state of a target changed, or what the endpoint says
// of itself (then From and To may be equal).
type Transition struct {
	Target   Target
	From, To State
	At       time.Time
	Result   Result // the attempt that decided, with Result.Agent
}

// Snapshot is what is known of a target at one moment.
type Snapshot struct {
	Verdict
	Last         Result    // the newest result; its code is INI before the first
	Inconclusive int       // inconclusive results in a row: above 0, something is wrong on our side
	Agent        Agent     // what the endpoint last said of itself; zero if it never did
	Next         time.Time // when the next attempt is due; zero while one is under way
	History      []Result  // the last results, oldest first
}

// Stats counts what a Prober does at one moment.
type Stats struct {
	Targets  int // under watch
	InFlight int // attempts under way
	Waiting  int // attempts that are due and wait because of MaxInFlight
	// Blind is how many targets nothing is known of any more: their last
	// blindAfter attempts or more were inconclusive. Why is what became of the
	// newest of them.
	Blind int
	Why   string
}

// blindAfter is how many inconclusive attempts in a row are no accident.
const blindAfter = 3

// Prober probes a set of targets. All methods may be called at any time, from
// any goroutine.
type Prober struct {
	opts        Options
	epoch       time.Time
	stall       stallClock
	transitions chan Transition
	wake        chan struct{} // mailbox of one: the loop has something to do earlier than it thinks
	attempts    sync.WaitGroup

	mu        sync.Mutex
	run       context.Context // nil before Run
	checks    map[Check]*compiledCheck
	watches   map[watchKey]*watch
	timetable timetable
	lanes     lanes
	news      fifo // watches whose transition was not handed out yet, in order
	blind     int  // see Stats
	blindWhy  string
}

// watchKey identifies a target without comparing whole checks.
type watchKey struct {
	address netip.AddrPort
	check   *compiledCheck
}

// New returns a Prober that watches nothing yet.
func New(opts Options) *Prober {
	if opts.Dial == nil {
		opts.Dial, opts.Connect = new(Dialer).DialContext, new(Dialer).Connect
	}
	if opts.Connect == nil {
		opts.Connect = opts.Dial.connect
	}
	setDefault(&opts.History, defaultHistory)
	setDefault(&opts.MaxInFlight, maxInFlight())
	return &Prober{
		opts:        opts,
		epoch:       time.Now(),
		stall:       stallClock{every: stallTick},
		transitions: make(chan Transition),
		wake:        make(chan struct{}, 1),
		checks:      make(map[Check]*compiledCheck),
		watches:     make(map[watchKey]*watch),
		lanes:       lanes{max: max(2, opts.MaxInFlight)},
	}
}

// maxInFlight leaves half of the file descriptors to the rest of the process.
func maxInFlight() int {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return defaultMaxInFlight
	}
	return int(min(defaultMaxInFlight, limit.Cur/2))
}

// Transitions returns the channel of state changes, in the order in which they
// happened. A consumer that is slow or absent delays nothing: of the changes
// of one target that it has not taken yet only the sum remains, and none if the
// state came back to what it was. A change of a target that was just removed
// may still arrive. The channel is never closed.
func (p *Prober) Transitions() <-chan Transition { return p.transitions }

// Set makes targets the set under watch. Targets that were watched before keep
// their verdict, history and schedule; new ones begin as unknown; those missing
// are forgotten. Equal targets are one. If a target is not valid, Set says
// which and changes nothing.
func (p *Prober) Set(targets []Target) error {
	if err := p.validate(targets); err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	added, err := p.compileAll(targets)
	if err != nil {
		return err
	}
	for c, compiled := range added {
		p.checks[c] = compiled
	}
	now := time.Now()
	wanted := make(map[watchKey]bool, len(targets))
	for _, t := range targets {
		key := watchKey{t.Address, p.checks[t.Check]}
		wanted[key] = true
		if p.watches[key] == nil {
			p.add(key, t, now)
		}
	}
	for key, w := range p.watches {
		if !wanted[key] {
			p.remove(key, w)
		}
	}
	p.news.dropRemoved()
	p.lanes.waiting[trusted].dropRemoved()
	p.lanes.waiting[suspect].dropRemoved()
	p.poke()
	return nil
}

func (p *Prober) validate(targets []Target) error {
	valid := make(map[Check]bool)
	for _, t := range targets {
		if !t.Address.IsValid() || t.Address.Port() == 0 {
			return fmt.Errorf("health: target address %v is not valid; want an IP address and a port", t.Address)
		}
		if !p.allows(t.Address.Addr()) {
			return fmt.Errorf("health: target address %v is in none of the prefixes that may be probed", t.Address)
		}
		if t.Check.Type == Exec && !p.opts.AllowExec {
			return fmt.Errorf("health: check of target %v: type exec starts programs and is off; allow_exec turns it on", t.Address)
		}
		if valid[t.Check] {
			continue
		}
		if err := t.Check.Validate(); err != nil {
			return fmt.Errorf("health: check of target %v: %w", t.Address, err)
		}
		valid[t.Check] = true
	}
	return nil
}

func (p *Prober) allows(address netip.Addr) bool {
	inside := func(prefix netip.Prefix) bool { return prefix.Contains(address.Unmap().WithZone("")) }
	return len(p.opts.Allow) == 0 || slices.ContainsFunc(p.opts.Allow, inside)
}

// compileAll compiles the checks that are not in use yet.
func (p *Prober) compileAll(targets []Target) (map[Check]*compiledCheck, error) {
	added := make(map[Check]*compiledCheck)
	for _, t := range targets {
		if p.checks[t.Check] != nil || added[t.Check] != nil {
			continue
		}
		probe, err := kinds[t.Check.Type].compile(t.Check, way{p.opts.Dial, p.opts.Connect, p.opts.Netns})
		if err != nil {
			return nil, fmt.Errorf("health: check of target %v: %w", t.Address, err)
		}
		added[t.Check] = &compiledCheck{Check: t.Check, probe: probe}
	}
	return added, nil
}

// add begins to watch t. The caller holds the lock.
func (p *Prober) add(key watchKey, t Target, now time.Time) {
	w := &watch{address: t.Address, check: key.check, hash: spreadHash(t)}
	w.due = firstDue(t.Check, w.hash, now)
	w.check.users++
	p.watches[key] = w
	p.timetable.add(w)
}

// remove forgets w and ends its attempt. The caller holds the lock.
func (p *Prober) remove(key watchKey, w *watch) {
	w.removed, w.news = true, nil
	if w.inconclusive >= blindAfter {
		p.blind--
	}
	p.timetable.remove(w)
	if w.cancel != nil {
		w.cancel()
	}
	delete(p.watches, key)
	if w.check.users--; w.check.users == 0 {
		delete(p.checks, w.check.Check)
	}
}

// Snapshot returns what is known of t, and false if t is not under watch.
func (p *Prober) Snapshot(t Target) (Snapshot, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	w := p.watches[watchKey{t.Address, p.checks[t.Check]}]
	if w == nil {
		return Snapshot{}, false
	}
	s := Snapshot{Verdict: w.verdict, Last: w.last(), Inconclusive: w.inconclusive, Agent: w.agent, History: w.results()}
	if w.cancel == nil {
		s.Next = w.due
	}
	return s, true
}

// Stats returns what the prober does right now.
func (p *Prober) Stats() Stats {
	p.mu.Lock()
	defer p.mu.Unlock()
	return Stats{
		Targets:  len(p.watches),
		InFlight: p.lanes.running[trusted] + p.lanes.running[suspect],
		Waiting:  p.lanes.waiting[trusted].len() + p.lanes.waiting[suspect].len(),
		Blind:    p.blind,
		Why:      p.blindWhy,
	}
}
