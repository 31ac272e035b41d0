package session

import "time"

// Backoff says how long to wait before the next attempt to connect: Min, then
// twice as long each time up to Max. It is a pure state machine: it reads no
// clock and draws no random number. The zero value works, with the defaults
// below; it is not safe for concurrent use.
type Backoff struct {
	// Min is the first wait; 0 means 100 ms.
	Min time.Duration
	// Max bounds every wait; 0 means 5 s.
	Max time.Duration
	// Healthy is how long a session must have lived for the waits to start
	// again from Min; 0 means 10 s. A peer that accepts and hangs up at once
	// is thus not hammered.
	Healthy time.Duration

	// base is the last wait before jitter; 0 before the first.
	base time.Duration
}

// Next returns the wait before the next attempt. lived is how long the session
// that just ended was established, 0 if the attempt failed. jitter, from 0 to 1,
// spreads peers that failed together: it shortens the wait to between half and
// all of the nominal one.
func (b *Backoff) Next(lived time.Duration, jitter float64) time.Duration {
	least := orDefault(b.Min, 100*time.Millisecond)
	most := max(orDefault(b.Max, 5*time.Second), least)
	switch {
	case b.base == 0 || lived >= orDefault(b.Healthy, 10*time.Second):
		b.base = least
	case b.base > most/2:
		b.base = most
	default:
		b.base *= 2
	}
	half := b.base / 2
	return b.base - half + time.Duration(min(max(jitter, 0), 1)*float64(half))
}

func orDefault(d, otherwise time.Duration) time.Duration {
	if d <= 0 {
		return otherwise
	}
	return d
}
