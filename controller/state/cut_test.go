package state

import (
	"testing"
	"time"
)

// TestCut: whose connections are to end, be1 being the one to whom it happens.
func TestCut(t *testing.T) {
	down := func(s *State) { judge(s, Down, byTCP(be1)) }
	draining := func(until time.Time) func(*State) {
		return func(s *State) { s.SetOverride(inWeb(be1), Override{State: Draining, Until: until, At: start}) }
	}
	for _, c := range []struct {
		name, rules string
		happens     func(*State)
		cut         bool
	}{
		{"nothing", "on_down: reset", func(*State) {}, false},
		{"down", "min_active: 1", down, true},
		{"down", "on_down: reset", down, true},
		{"down", "on_down: keep", down, false},
		{"draining", "on_down: reset", draining(time.Time{}), false},
		{"draining until later", "on_down: reset", draining(after(time.Minute)), false},
		{"draining until before", "on_down: keep", draining(after(-time.Minute)), true},
		{"disabled", "on_down: reset", func(s *State) { s.SetOverride(inWeb(be1), Override{State: Disabled, At: start}) }, false},
		{"down while it drains", "on_down: reset", func(s *State) { draining(after(time.Minute))(s); down(s) }, true},
		{"down and up again", "on_down: reset", func(s *State) { down(s); judge(s, Up, byTCP(be1)) }, false},
		{"all down, kept", "on_all_down: keep", func(s *State) { judge(s, Down, byTCP(be2), byTCP(be3)); down(s) }, false},
		{"panic", "panic_below: 99%", down, false},
		{"too few", "min_active: 3", func(s *State) { judge(s, Down, byTCP(be2)) }, false},
	} {
		s := serving(t, ruled(c.rules))
		c.happens(s)
		if m := s.Snapshot().Pool("web").Member(be1.String()); m.Cut != c.cut {
			t.Errorf("%s with %s: cut %v", c.name, c.rules, m.Cut)
		}
	}
}

// TestCutAtTheDeadline: time alone ends a drain's patience, and enabling takes
// it back.
func TestCutAtTheDeadline(t *testing.T) {
	s := serving(t, onePool)
	s.SetOverride(inWeb(be1), Override{State: Draining, Until: after(time.Minute), At: start})
	be1Cut := func() bool { return s.Snapshot().Pool("web").Member(be1.String()).Cut }
	if s.Tick(after(59 * time.Second)); be1Cut() {
		t.Error("cut before the deadline")
	}
	if s.Tick(after(60 * time.Second)); !be1Cut() {
		t.Error("not cut at the deadline")
	}
	if s.SetOverride(inWeb(be1), Override{State: Enabled, At: after(61 * time.Second)}); be1Cut() {
		t.Error("cut while enabled")
	}
}

// TestMemberNumbered: numbers of members that have left are still known.
func TestMemberNumbered(t *testing.T) {
	s := serving(t, onePool)
	number := s.Snapshot().Pool("web").Member(be1.String()).Number
	s.SetConfig(parse(t, `pools: {web: {id: 1, slots: 64, members: {be2: 10.30.0.12:80}}}`), start)
	s.Snapshot()
	if id, ok := s.MemberNumbered(number); !ok || id != inWeb(be1) {
		t.Errorf("number %d: %v %v", number, id, ok)
	}
	if id, ok := s.MemberNumbered(60000); ok {
		t.Errorf("a number that was never given: %v", id)
	}
}
