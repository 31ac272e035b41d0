package pipeline

import (
	"strings"
	"testing"

	"brlb/controller/state"
)

// The associations of a member whose connections are to end are ended by the
// controller, where the switch cannot forget them; so are those of members that
// are gone.
func TestAbort(t *testing.T) {
	rows := func(s *state.State) (members, rest int) {
		for _, f := range render(t, s.Snapshot()).Flows() {
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
	s.SetKernel(false)
	expect("in userspace, with a member down", 0, 0)
}
