package health

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

// TestVerdictRules walks the machine with rise 2 and fall 3 through strings of
// outcomes: p pass, f failure, i inconclusive. The state after each outcome is
// the letter below it: u unknown, U up, D down.
func TestVerdictRules(t *testing.T) {
	for _, tc := range []struct{ name, outcomes, states string }{
		{"one pass is enough at a cold start", "p", "U"},
		{"unknown needs fall failures to go down", "fff", "uuD"},
		{"a pass after failures at a cold start", "ffp", "uuU"},
		{"up survives fall-1 failures", "pffpff", "UUUUUU"},
		{"up goes down after fall failures in a row", "pfff", "UUUD"},
		{"down needs rise passes in a row", "fffpp", "uuDDU"},
		{"a failure restarts the rise", "fffpfpp", "uuDDDDU"},
		{"inconclusive interrupts no row of failures", "pfifif", "UUUUUD"},
		{"inconclusive interrupts no row of passes", "fffpip", "uuDDDU"},
		{"inconclusive alone is never a verdict", "iiiiii", "uuuuuu"},
		{"inconclusive never takes down", "piiiiii", "UUUUUUU"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var v Verdict
			var got []byte
			for i, o := range tc.outcomes {
				now := time.Unix(int64(i), 0)
				before := v.State
				changed := v.Step(map[rune]Outcome{'p': Pass, 'f': Fail, 'i': Inconclusive}[o], 2, 3, now)
				if changed != (v.State != before) {
					t.Errorf("outcome %d: changed = %v, state %v -> %v", i, changed, before, v.State)
				}
				if changed && !v.Since.Equal(now) {
					t.Errorf("outcome %d: since %v, want %v", i, v.Since, now)
				}
				got = append(got, "uUD"[v.State])
			}
			if string(got) != tc.states {
				t.Errorf("states %s, want %s", got, tc.states)
			}
		})
	}
}

// TestVerdictAgainstDefinition compares the machine with the definition of
// rise and fall, read off the whole list of outcomes each time.
func TestVerdictAgainstDefinition(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rise, fall := rapid.IntRange(1, 5).Draw(t, "rise"), rapid.IntRange(1, 5).Draw(t, "fall")
		outcomes := rapid.SliceOfN(rapid.SampledFrom([]Outcome{Inconclusive, Pass, Fail}), 0, 60).Draw(t, "outcomes")
		var v Verdict
		want := Unknown
		var conclusive []Outcome
		for i, o := range outcomes {
			v.Step(o, rise, fall, time.Unix(int64(i), 0))
			if o != Inconclusive {
				conclusive = append(conclusive, o)
			}
			passes, fails := trailing(conclusive, Pass), trailing(conclusive, Fail)
			switch {
			case want == Unknown && passes > 0, want == Down && passes >= rise:
				want = Up
			case want != Down && fails >= fall:
				want = Down
			}
			if v.State != want || v.Passes != passes || v.Fails != fails {
				t.Fatalf("after %v: %+v, want %v with %d passes and %d failures", outcomes[:i+1], v, want, passes, fails)
			}
			against := want == Up && fails > 0 || want == Down && passes > 0 || want == Unknown
			if v.Changing() != against {
				t.Fatalf("after %v: changing = %v, want %v", outcomes[:i+1], v.Changing(), against)
			}
		}
	})
}

// trailing counts how many outcomes at the end of list equal o.
func trailing(list []Outcome, o Outcome) int {
	n := 0
	for n < len(list) && list[len(list)-1-n] == o {
		n++
	}
	return n
}
