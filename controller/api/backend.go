package api

import "context"

// Backend is the running controller as the server sees it. Its methods may be
// called from any goroutine. Errors of type *RequestError are the caller's
// fault; any other error is the controller's.
type Backend interface {
	Status() *Status
	// Slots answers for the pool of that name; "" means the only one.
	Slots(pool string) (*Slots, error)
	// History tells of a member's last probes.
	History(member string) (*History, error)
	// Explain says why a member has the slots that it has.
	Explain(ctx context.Context, member string) (*Explanation, error)
	// Events returns what is remembered with a Seq above after, oldest first.
	// The first event is number 1.
	Events(after uint64) *Events
	// Changed returns a channel that is closed when Status or Events have
	// something new.
	Changed() <-chan struct{}
	Ready() Readiness
	Metrics() *Metrics

	// Change carries out drain, enable, disable or weight.
	Change(ctx context.Context, operation string, req ChangeRequest) (*Change, error)
	// Overrides lists what was changed so, and Clear takes it back, for members
	// that have left the configuration too.
	Overrides(ctx context.Context) (*Overrides, error)
	Clear(ctx context.Context, req ChangeRequest) (*Change, error)
	// Plan says what a change would move.
	Plan(ctx context.Context, req PlanRequest) (*Change, error)
	// Rebase makes a pool's members its anchor.
	Rebase(ctx context.Context, req RebaseRequest) (*Change, error)
	// Reload reads the configuration file again.
	Reload(ctx context.Context, req ReloadRequest) (*ReloadResult, error)
	Reapply(ctx context.Context) (*ReapplyResult, error)
	// Flows answers for the set desired, actual or diff.
	Flows(ctx context.Context, set string) (*Flows, error)
	Trace(ctx context.Context, req TraceRequest) (*Trace, error)
	Verify(ctx context.Context) (*Verify, error)
}

// RequestError is an error that the caller can mend: an unknown member, a
// change that needs --force.
type RequestError struct {
	Status  int // HTTP status, 400..499
	Message string
}

func (e *RequestError) Error() string { return e.Message }
