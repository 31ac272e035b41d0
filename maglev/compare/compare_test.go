package compare

import (
	"errors"
	"math"
	"strings"
	"testing"

	"brlb/maglev"

	"github.com/google/go-cmp/cmp"
)

func options() Options {
	return Options{Layouts: maglev.Names(), Events: Events(), Members: 8, Slots: 256, MinWeight: 1, MaxWeight: 1, Pools: 10, Seed: 1}
}

func TestRun(t *testing.T) {
	o := options()
	ticks := int64(0)
	o.Clock = func() int64 { ticks += 500; return ticks }
	calls := 0
	o.Progress = func(done, total int) bool {
		if calls++; done != calls || total != o.Pools {
			t.Errorf("progress %d/%d at call %d", done, total, calls)
		}
		return true
	}
	results, err := Run(o)
	if err != nil {
		t.Fatal(err)
	}
	if calls != o.Pools || len(results) != len(o.Layouts)*len(o.Events) {
		t.Fatalf("%d results, %d calls", len(results), calls)
	}
	steps := map[Event]int{Leave: 10, Join: 10, Weight: 10, Rolling: 160, Half: 40}
	for i, r := range results {
		if want := o.Events[i%len(o.Events)]; r.Layout != o.Layouts[i/len(o.Events)] || r.Event != want || r.Steps != steps[want] {
			t.Errorf("result %d is of %s, %s, %d steps", i, r.Layout, r.Event, r.Steps)
		}
		if r.Error != "" || r.BuildNanos != 500 || math.Abs(r.Moved-r.Needed-r.Collateral.Mean) > 1e-9 || r.MaxShare < 1 || r.MinShare > 1 || r.Moved < r.LowerBound {
			t.Errorf("%+v", r)
		}
		exact := r.Layout == "v1" || r.Layout == "v2" || r.Layout == "sticky"
		if exact && r.MaxShare > 1.04 {
			t.Errorf("%s, %s: largest share %v", r.Layout, r.Event, r.MaxShare)
		}
		atBound := r.Layout == "sticky" || r.Layout == "v2" && r.Event != Half
		if atBound && r.Ratio() != 1 {
			t.Errorf("%s, %s: moves %v for each that has to", r.Layout, r.Event, r.Ratio())
		}
	}
}

func TestRunIsRepeatable(t *testing.T) {
	o := options()
	o.MaxWeight, o.Pools = 10, 3
	first, err := Run(o)
	if err != nil {
		t.Fatal(err)
	}
	again, err := Run(o)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(first, again); diff != "" {
		t.Errorf("the same seed gives other results:\n%s", diff)
	}
	o.Seed = 2
	if again, err = Run(o); err != nil || cmp.Equal(first, again) {
		t.Errorf("another seed gives the same results, %v", err)
	}
}

func TestRunReportsLayoutsThatRefuse(t *testing.T) {
	o := options()
	o.Layouts, o.MinWeight, o.MaxWeight = []string{"chash", "v2"}, 1000, 2000
	results, err := Run(o)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range results {
		if refused := strings.Contains(r.Error, "weights out of range"); refused != (r.Layout == "chash") {
			t.Errorf("%s: %q", r.Layout, r.Error)
		}
	}
}

func TestRunRefuses(t *testing.T) {
	for name, spoil := range map[string]func(*Options){
		"layout":         func(o *Options) { o.Layouts = []string{"v9"} },
		"no layout":      func(o *Options) { o.Layouts = nil },
		"event":          func(o *Options) { o.Events = []Event{"quake"} },
		"no event":       func(o *Options) { o.Events = nil },
		"slots":          func(o *Options) { o.Slots = 1000 },
		"no room":        func(o *Options) { o.Members = 256 },
		"one member":     func(o *Options) { o.Members = 1 },
		"no pool":        func(o *Options) { o.Pools = 0 },
		"too many pools": func(o *Options) { o.Pools = MaxPools + 1 },
		"weight 0":       func(o *Options) { o.MinWeight = 0 },
		"weights fall":   func(o *Options) { o.MinWeight, o.MaxWeight = 5, 4 },
	} {
		o := options()
		spoil(&o)
		if _, err := Run(o); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	o := options()
	o.Members, o.Events = 1, []Event{Join, Weight}
	if _, err := Run(o); err != nil {
		t.Error(err)
	}
}

func TestSpread(t *testing.T) {
	values := make([]int, 101)
	for i := range values {
		values[i] = 100 - i
	}
	if got, want := spreadOf(values), (Spread{50, 50, 95, 99, 100}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	if got := spreadOf(nil); got != (Spread{}) {
		t.Errorf("%+v", got)
	}
}

func TestExample(t *testing.T) {
	o := options()
	for _, event := range Events() {
		before, after, err := Example(o, "v2", event)
		if err != nil {
			t.Fatal(err)
		}
		if c := maglev.Compare(before, after); c.Moved == 0 || c.Moved != c.LowerBound {
			t.Errorf("%s: %d moved, lower bound %d", event, c.Moved, c.LowerBound)
		}
	}
	if _, _, err := Example(o, "v9", Leave); err == nil {
		t.Error("an unknown layout is accepted")
	}
	o.MinWeight, o.MaxWeight = 300, 300
	if _, _, err := Example(o, "chash", Leave); err == nil {
		t.Error("weights that chash refuses are accepted")
	}
}

func TestStopped(t *testing.T) {
	o := options()
	o.Progress = func(done, _ int) bool { return done < 2 }
	if results, err := Run(o); !errors.Is(err, ErrStopped) || results != nil {
		t.Errorf("got %v, %v", results, err)
	}
}
