package health

import (
	"hash/fnv"
	"time"
)

// The schedule is pure: who is probed when follows from the check, the
// verdict, and a hash of the target that spreads attempts over the interval.
// Due times are whole milliseconds after an epoch, so that one wake-up serves
// all attempts of a millisecond.

const scheduleStep = time.Millisecond

// coldStartSpread bounds the time over which first attempts are spread.
const coldStartSpread = time.Second

// spreadHash returns the number that places a target within its interval. It
// depends on the target alone, so a target keeps its phase whatever else is
// watched.
func spreadHash(t Target) uint64 {
	h := fnv.New64a()
	text, _ := t.Address.MarshalText()
	h.Write(text)
	h.Write([]byte(t.Check.Type))
	h.Write([]byte(t.Check.HTTP.Path))
	// FNV's low bits follow the last bytes closely, and addresses often differ
	// in little else: mix (the finaliser of MurmurHash3).
	x := h.Sum64()
	x = (x ^ x>>33) * 0xff51afd7ed558ccd
	x = (x ^ x>>33) * 0xc4ceb9fe1a85ec53
	return x ^ x>>33
}

// phase returns hash's place within period, in whole steps.
func phase(hash uint64, period time.Duration) time.Duration {
	return time.Duration(hash%uint64(period/scheduleStep)) * scheduleStep
}

// firstDue returns when a target that was added at now is first probed: soon,
// because it can serve nobody before, yet spread.
func firstDue(c Check, hash uint64, now time.Time) time.Time {
	return now.Add(phase(hash, min(c.Fast, coldStartSpread)))
}

// nextDue returns when the attempt after the one that began at started and
// ended at now with outcome last is due. While the verdict is changing that is
// Fast after the last start; else it is the target's next place on the grid
// that Interval, or Down, lays over time from epoch on. Places that were missed
// are skipped. An inconclusive outcome hastens nothing: when our own side is
// short of something, more attempts make it shorter.
func nextDue(c Check, hash uint64, v Verdict, last Outcome, epoch, started, now time.Time) time.Time {
	if v.Changing() && last != Inconclusive {
		due := started.Add(c.Fast)
		if due.Before(now) {
			return now
		}
		return due
	}
	period := c.Interval
	if v.State == Down {
		period = c.Down
	}
	offset := phase(hash, period)
	places := (now.Sub(epoch)-offset)/period + 1
	if now.Sub(epoch) < offset {
		places = 0
	}
	return epoch.Add(offset + places*period)
}
