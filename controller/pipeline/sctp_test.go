package pipeline

import (
	"strings"
	"testing"
	"time"

	"brlb/controller/state"
)

// The associations of a member whose connections are to end are ended by the
// controller, where the switch cannot forget them; so are those of members that
// are gone.
func TestAbort(t *testing.T) {
	r := NewRenderer()
	rows := func(s *state.State) (members, rest int) {
		set, _, err := r.Render(s.Snapshot())
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range set.Flows() {
			text := f.String()
			if !strings.Contains(text, "load:0x1->NXM_NX_REG9[1]") {
				continue
			}
			if f.Table != TableToMember || !strings.Contains(text, "sctp") || !strings.Contains(text, "meter:46875,") {
				t.Errorf("%s", text)
			}
			switch f.Priority {
			case prioAbort:
				members++
			case prioAbortRest:
				rest++
			}
		}
		return members, rest
	}
	s := serving(t, small)
	expect := func(when string, members, rest int) {
		t.Helper()
		if m, r := rows(s); m != members || r != rest {
			t.Errorf("%s: rows of %d members and %d of the rest, want %d and %d", when, m, r, members, rest)
		}
	}
	expect("in userspace", 0, 0)
	s.SetKernel(true)
	expect("on the kernel's datapath", 0, 2)
	judge(s, state.Down, s.Probes()[0])
	expect("with a member down", 1, 2)
	judge(s, state.Up, s.Probes()[0])
	drained := s.Snapshot().Pools[0].Members[0].ID
	s.SetOverride(drained, state.Override{State: state.Draining, Until: start.Add(time.Minute), At: start})
	expect("with a member that drains", 0, 2)
	s.Tick(start.Add(time.Minute))
	expect("after the drain's deadline", 1, 2)
	s.SetOverride(drained, state.Override{State: state.Enabled, At: start})
	judge(s, state.Down, s.Probes()[0])
	s.SetKernel(false)
	expect("in userspace, with a member down", 0, 0)
}
