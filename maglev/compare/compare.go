package compare

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"

	"brlb/maglev"
)

// Event is what happens to a pool.
type Event string

// The events. In all of them the members at the start are the anchor.
const (
	Leave   Event = "leave"   // one member leaves
	Join    Event = "join"    // a new member comes
	Weight  Event = "weight"  // one member gets another weight
	Rolling Event = "rolling" // each member in turn leaves and comes back
	Half    Event = "half"    // half of the members leave, one after the other
)

// Events lists all events.
func Events() []Event { return []Event{Leave, Join, Weight, Rolling, Half} }

// Options say what to compare.
type Options struct {
	// Layouts are names that [maglev.ByName] knows.
	Layouts []string

	// Events are what to let happen.
	Events []Event

	// Members and Slots are N and M of each pool. Rolling and Half need two
	// members at least, and Join room for one more.
	Members, Slots int

	// MinWeight and MaxWeight bound the members' random weights. If they are
	// equal, the event Weight doubles a weight.
	MinWeight, MaxWeight uint32

	// Slack is maglev's [maglev.Input.Slack].
	Slack uint8

	// Pools is the number of random pools. Each layout gets the same ones.
	Pools int

	// Seed makes another set of pools.
	Seed uint64

	// Clock, if not nil, returns nanoseconds that pass evenly. Without one,
	// build times are 0.
	Clock func() int64

	// Progress, if not nil, is called after each pool. When it returns false,
	// Run ends with [ErrStopped].
	Progress func(done, total int) bool
}

// ErrStopped means that Progress has ended a comparison.
var ErrStopped = errors.New("the comparison was stopped")

// Limits of a comparison.
const (
	MaxPools = 1_000_000
	// maxPoolMembers bounds what one pool's layouts have to chew.
	maxPoolMembers = 10_000
)

// check refuses what cannot be compared.
func (o *Options) check() error {
	if err := maglev.CheckSlots(1, o.Slots); err != nil {
		return err
	}
	room := min(o.Slots, maxPoolMembers)
	if slices.Contains(o.Events, Join) {
		room--
	}
	least := 1
	for _, e := range o.Events {
		if !slices.Contains(Events(), e) {
			return fmt.Errorf("unknown event %.40q: choose some of %v", e, Events())
		}
		if e == Leave || e == Rolling || e == Half {
			least = 2
		}
	}
	switch {
	case o.Members < least || o.Members > room:
		return fmt.Errorf("%d members on %d slots: these events take %d to %d", o.Members, o.Slots, least, room)
	case o.Pools < 1 || o.Pools > MaxPools:
		return fmt.Errorf("%d pools: use 1 to %d", o.Pools, MaxPools)
	case o.MinWeight < 1 || o.MaxWeight < o.MinWeight:
		return fmt.Errorf("weights %d..%d: use two numbers from 1 that rise", o.MinWeight, o.MaxWeight)
	case len(o.Layouts) == 0 || len(o.Events) == 0:
		return fmt.Errorf("%d layouts and %d events: name one of each at least", len(o.Layouts), len(o.Events))
	}
	return nil
}

// Result is how one layout coped with one event.
type Result struct {
	Layout  string `json:"layout"`
	Version string `json:"version"`
	Event   Event  `json:"event"`

	// Steps is how many changes from one table to the next were counted.
	Steps int `json:"steps"`

	// Moved and LowerBound are the mean numbers of slots that moved in a step
	// and that had to, given the counts before and after. Needed and
	// Collateral are the two parts of Moved.
	Moved      float64 `json:"moved"`
	LowerBound float64 `json:"lower_bound"`
	Needed     float64 `json:"needed"`
	Collateral Spread  `json:"collateral"`

	// ExactBound is what LowerBound is for a layout that divides slots
	// exactly (v2's), whatever this layout's counts are.
	ExactBound float64 `json:"exact_bound"`

	// MaxShare and MinShare are the means over tables of the largest and the
	// least share of a member, relative to what its weight entitles it to.
	MaxShare float64 `json:"max_share"`
	MinShare float64 `json:"min_share"`

	// BuildNanos is the mean time of a build.
	BuildNanos float64 `json:"build_ns"`

	// Error says why the layout was left out, if it was.
	Error string `json:"error,omitempty"`
}

// Ratio is how many slots moved for each that an exact layout has to move; 1 is
// the best that is possible with an exact division.
func (r *Result) Ratio() float64 {
	if r.ExactBound == 0 {
		return 1
	}
	return r.Moved / r.ExactBound
}

// Spread describes how a number is distributed.
type Spread struct {
	Mean float64 `json:"mean"`
	P50  int     `json:"p50"`
	P95  int     `json:"p95"`
	P99  int     `json:"p99"`
	Max  int     `json:"max"`
}

func spreadOf(values []int) Spread {
	if len(values) == 0 {
		return Spread{}
	}
	slices.Sort(values)
	sum := 0
	for _, v := range values {
		sum += v
	}
	at := func(percent int) int { return values[(len(values)-1)*percent/100] }
	return Spread{Mean: float64(sum) / float64(len(values)), P50: at(50), P95: at(95), P99: at(99), Max: values[len(values)-1]}
}

// Run compares and returns one result for each layout and event, the events of
// a layout together.
func Run(o Options) ([]Result, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	tight := o
	tight.Slack = 0
	exact, err := newTrial("v2", Leave, &tight)
	if err != nil {
		return nil, err
	}
	var trials []*trial
	for _, layout := range o.Layouts {
		for _, event := range o.Events {
			t, err := newTrial(layout, event, &o)
			if err != nil {
				return nil, err
			}
			trials = append(trials, t)
		}
	}
	for i := range o.Pools {
		members := o.Pool(uint64(i))
		bounds := make(map[Event]int)
		for _, event := range o.Events {
			exact.event, exact.bound, exact.collateral = event, 0, exact.collateral[:0]
			exact.run(uint64(i), members)
			bounds[event] = exact.bound
		}
		for _, t := range trials {
			t.exactBound += bounds[t.event]
			t.run(uint64(i), members)
		}
		if o.Progress != nil && !o.Progress(i+1, o.Pools) {
			return nil, ErrStopped
		}
	}
	results := make([]Result, len(trials))
	for i, t := range trials {
		results[i] = t.result()
	}
	return results, nil
}

// Example returns the tables of one layout before and after the first step of
// one event in the first pool, for a drawing.
func Example(o Options, layout string, event Event) (before, after *maglev.Table, err error) {
	o.Layouts, o.Events, o.Pools = []string{layout}, []Event{event}, 1
	if err := o.check(); err != nil {
		return nil, nil, err
	}
	t, err := newTrial(layout, event, &o)
	if err != nil {
		return nil, nil, err
	}
	members := o.Pool(0)
	in := t.input(0, members)
	if !t.build(in, &t.before) {
		return nil, nil, t.err
	}
	for in.Members = range t.steps(o.random(0, 1), members) {
		break
	}
	in.Previous = &t.before
	if !t.build(in, &t.after) {
		return nil, nil, t.err
	}
	return &t.before, &t.after, nil
}

// random returns a source of numbers for one purpose and pool.
func (o *Options) random(pool uint64, purpose uint64) *rand.Rand {
	return rand.New(rand.NewPCG(o.Seed, pool<<8|purpose))
}

// Pool returns the members of the i-th random pool.
func (o *Options) Pool(i uint64) []maglev.Member {
	rng := o.random(i, 0)
	taken := make(map[string]bool, o.Members)
	members := make([]maglev.Member, o.Members)
	for j := range members {
		members[j] = maglev.Member{Key: newKey(rng, taken), Weight: o.weight(rng)}
	}
	return members
}

func newKey(rng *rand.Rand, taken map[string]bool) string {
	for {
		key := fmt.Sprintf("10.%d.%d.%d:%d", rng.IntN(256), rng.IntN(256), 1+rng.IntN(254), 80+8000*rng.IntN(2))
		if !taken[key] {
			taken[key] = true
			return key
		}
	}
}

func (o *Options) weight(rng *rand.Rand) uint32 {
	return o.MinWeight + rng.Uint32N(o.MaxWeight-o.MinWeight+1)
}
