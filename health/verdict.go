package health

import "time"

// State is what is known about an endpoint.
type State uint8

// The states of an endpoint.
const (
	Unknown State = iota // no verdict yet
	Up
	Down
)

// String returns "unknown", "up" or "down".
func (s State) String() string {
	switch s {
	case Up:
		return "up"
	case Down:
		return "down"
	default:
		return "unknown"
	}
}

// Verdict is the state machine that turns outcomes into a state. It is pure:
// the zero value is an endpoint of which nothing is known, [Verdict.Step]
// feeds it, and time is an argument.
//
// The rules:
//
//   - Up goes down after fall failures in a row.
//   - Down comes up after rise passes in a row.
//   - Unknown comes up at the first pass, so that a cold start is quick, and
//     goes down after fall failures in a row.
//   - An inconclusive outcome changes nothing and interrupts no row.
type Verdict struct {
	State State
	Since time.Time // when State was reached; zero while nothing is known

	// Passes and Fails count the conclusive outcomes in a row up to now; one
	// of them is always 0.
	Passes, Fails int
}

// Step takes one outcome seen at now under rise and fall (both at least 1) and
// reports whether State changed.
func (v *Verdict) Step(o Outcome, rise, fall int, now time.Time) (changed bool) {
	next := v.State
	switch o {
	case Pass:
		v.Passes, v.Fails = v.Passes+1, 0
		if v.State == Unknown || v.Passes >= rise {
			next = Up
		}
	case Fail:
		v.Passes, v.Fails = 0, v.Fails+1
		if v.Fails >= fall {
			next = Down
		}
	case Inconclusive:
		return false
	}
	if next == v.State {
		return false
	}
	v.State, v.Since = next, now
	return true
}

// Changing reports whether another outcome may soon change State: nothing is
// known yet, or the last conclusive outcome contradicts State.
func (v Verdict) Changing() bool {
	switch v.State {
	case Up:
		return v.Fails > 0
	case Down:
		return v.Passes > 0
	default:
		return true
	}
}
