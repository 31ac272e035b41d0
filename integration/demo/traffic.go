package demo

import (
	"time"

	"brlb/integration/lab"
)

// traffic is the load during the demo: requests with a connection each, and
// requests on connections that are held.
type traffic struct {
	fresh, held *lab.Load
	since       time.Time
	before      int // requests until the mark
}

// mark begins a new count of requests and failures.
func (t *traffic) mark() {
	t.since = time.Now()
	t.before = t.fresh.Report().Requests + t.held.Report().Requests
}

// requests counts those answered since the mark.
func (t *traffic) requests() int {
	return t.fresh.Report().Requests + t.held.Report().Requests - t.before
}

// perServer counts the new connections that a server has had so far.
func (t *traffic) perServer(name string) int { return t.fresh.Report().PerServer[name] }

// failures returns the requests that failed since the mark.
func (t *traffic) failures() []lab.Failure {
	var list []lab.Failure
	for _, load := range []*lab.Load{t.fresh, t.held} {
		for _, f := range load.Report().Failures {
			if f.At.After(t.since) {
				list = append(list, f)
			}
		}
	}
	return list
}

// checkNone tells whether any request has failed since the mark.
func (t *traffic) checkNone(d *show) {
	failed := t.failures()
	d.check(len(failed) == 0, "failed requests: %d of %d", len(failed), t.requests())
	for i, f := range failed {
		if i == 5 {
			break
		}
		d.say("         %v", f)
	}
	t.mark()
}
