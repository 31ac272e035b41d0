package state

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Admin is what an operator has decided about a member.
type Admin string

// The admin states. Draining: no new connections, the old ones finish.
// Disabled: the same, and the member isn't probed either.
const (
	Enabled  Admin = "enabled"
	Draining Admin = "draining"
	Disabled Admin = "disabled"
)

// Override is what operators have decided about a member, and what the
// configuration does not know: its admin state, with who set it, when and why,
// and its weight, likewise.
type Override struct {
	State Admin     `json:"state"`
	Until time.Time `json:"until,omitzero"` // ends a drain: from then on the member is disabled
	Who   string    `json:"who,omitempty"`
	Why   string    `json:"why,omitempty"`
	At    time.Time `json:"at"`

	Weighting Weighting `json:"weighting,omitzero"`
}

// Weighting is the weight that an operator has given a member.
type Weighting struct {
	To  Weight    `json:"to"`
	Who string    `json:"who,omitempty"`
	Why string    `json:"why,omitempty"`
	At  time.Time `json:"at"`
}

// IsNothing says whether o leaves the member as the configuration has it.
func (o Override) IsNothing() bool {
	return (o.State == Enabled || o.State == "") && o.Weighting.To == ""
}

// at returns o as it is at a time: a drain whose deadline has passed has
// disabled the member.
func (o Override) at(now time.Time) Override {
	if o.State == Draining && !o.Until.IsZero() && !now.Before(o.Until) {
		o.State = Disabled
	}
	return o
}

// Weight is a weight in words: "3" in place of the configured one, "50%" of
// it, or "" for the configured one itself.
type Weight string

// The greatest weights.
const (
	MaxWeight  = 65535
	MaxPercent = 1000
)

// ParseWeight reads a weight as a person writes it.
func ParseWeight(text string) (Weight, error) {
	number, isPercent := strings.CutSuffix(text, "%")
	n, err := strconv.ParseUint(number, 10, 32)
	if err != nil || isPercent && n > MaxPercent || n > MaxWeight {
		return "", fmt.Errorf("%.20q is not a weight: write a number from 0 to %d, or a percentage of the configured weight from 0%% to %d%%", text, MaxWeight, MaxPercent)
	}
	canonical := strconv.FormatUint(n, 10)
	if isPercent {
		canonical += "%"
	}
	return Weight(canonical), nil
}

// of returns what w makes of a configured weight: a weight, and a percentage
// of it.
func (w Weight) of(configured uint32) (weight, percent uint32) {
	number, isPercent := strings.CutSuffix(string(w), "%")
	n, err := strconv.ParseUint(number, 10, 32)
	switch {
	case err != nil:
		return configured, 100
	case isPercent:
		return configured, uint32(n)
	}
	return uint32(n), 100
}

func describeOverride(o Override) string {
	text := string(o.State)
	switch {
	case o.Until.IsZero():
	case o.State == Disabled:
		text += ", for its drain has ended,"
	default:
		text += " until " + o.Until.UTC().Format(time.RFC3339)
	}
	if o.Who != "" {
		text += " by " + o.Who
	}
	if o.Why != "" {
		text += ": " + o.Why
	}
	return strings.TrimSuffix(text, ",")
}

// Overrides returns what operators have decided, also about members that the
// configuration does not know any more.
func (s *State) Overrides() map[MemberID]Override { return cloneMap(s.admin) }

// SetOverrides replaces all of it by what is stored in OVSDB.
func (s *State) SetOverrides(overrides map[MemberID]Override, now time.Time) {
	s.now = now
	s.admin = cloneMap(overrides)
	s.overridden()
}

// Override returns what operators have decided about one member.
func (s *State) Override(id MemberID) Override {
	if o, ok := s.admin[id]; ok {
		return o
	}
	return Override{State: Enabled}
}

// SetOverride replaces what operators have decided about one member. It is
// the newest event if it says when the admin state was set.
func (s *State) SetOverride(id MemberID, o Override) {
	if !o.At.IsZero() {
		s.now = o.At
	}
	if o.IsNothing() {
		delete(s.admin, id)
	} else {
		s.admin[id] = o
	}
	s.overridden()
}

func (s *State) overridden() {
	s.forget()
	s.outdate()
	s.drainEnd = time.Time{}
	for _, o := range s.admin {
		if o.State == Draining && o.Until.After(s.now) && (s.drainEnd.IsZero() || o.Until.Before(s.drainEnd)) {
			s.drainEnd = o.Until
		}
	}
}

// adminOf is the override of a member as it is now.
func (s *State) adminOf(id MemberID) Override { return s.Override(id).at(s.now) }
