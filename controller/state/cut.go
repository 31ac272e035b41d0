package state

import "brlb/controller/config"

// cut says whether a member's open connections are to end: its drain has come
// to the deadline, or it is down in a pool that resets what goes on with such
// members. A member that an emergency keeps active keeps its connections too.
func cut(c *config.Pool, m *Member) bool {
	switch {
	case m.Active:
		return false
	case m.Admin.State == Disabled && !m.Admin.Until.IsZero():
		return true
	}
	return c.OnDown == config.OnDownReset && m.Health.Health == Down
}

// MemberNumbered returns the member that has a number, or had it before it left
// the configuration. ok is false if the number was never given, or is forgotten.
func (s *State) MemberNumbered(number uint16) (id MemberID, ok bool) {
	id, ok = s.numbers.used[number]
	return id, ok
}
