package ovsdb

import (
	"context"
	"fmt"
	"slices"
	"sync"
)

// Replica is a copy of a part of the database that follows it. It keeps what it
// holds while the connection is down; [Client.State] tells.
//
// Each replica has a monitor of its own on the server, so none sees the rows of
// another's conditions or columns.
type Replica struct {
	client   *Client
	database string
	spec     MonitorSpec
	first    chan error // holds the outcome of the first copy

	mu       sync.Mutex
	snapshot *Snapshot
	changed  chan struct{} // closed when snapshot is replaced
	copies   int           // how often a first copy has come
	subs     map[*Subscription]struct{}

	// request holds a token while no request about the monitor is outstanding.
	request chan struct{}

	closed    chan struct{}
	closeOnce sync.Once

	// monitor is what the server does for this replica. It is guarded by
	// client.mu.
	monitor monitor
}

// monitor is the state of a replica's monitor on the server.
type monitor struct {
	session *session // that id belongs to; nil: there is none
	id      uint64
	dropped bool    // the replica was closed
	misfit  error   // an update that could not be applied in this session
	schema  *Schema // that it was asked for with last
	// lastTxn is the position that monitor_cond_since can go on from.
	lastTxn UUID
	// where has the conditions of tables that were changed since the start. It
	// is replaced, not changed.
	where map[string][]Condition
	// moving tells that the server has not confirmed where yet: until it does,
	// or sends a first copy, what the replica holds has no position.
	moving bool
}

func newReplica(c *Client, database string, spec MonitorSpec) *Replica {
	r := &Replica{
		client: c, database: database, spec: spec,
		first:    make(chan error, 1),
		request:  make(chan struct{}, 1),
		snapshot: newSnapshot(&contents{byName: make(map[string]int)}),
		changed:  make(chan struct{}),
		subs:     make(map[*Subscription]struct{}),
		closed:   make(chan struct{}),
	}
	r.request <- struct{}{}
	return r
}

// Snapshot returns what the replica holds now. It is empty until the first copy
// has come.
func (r *Replica) Snapshot() *Snapshot {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.snapshot
}

// nextChange returns a channel that is closed when the snapshot is replaced.
func (r *Replica) nextChange() <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.changed
}

// Wait returns when the replica has its first copy and holds is true of its
// snapshot; at once if it is already. It returns [ErrClosed] after Close of the
// replica or the client, and ctx's error when ctx ends. holds is called again
// for each update.
func (r *Replica) Wait(ctx context.Context, holds func(*Snapshot) bool) error {
	for {
		r.mu.Lock()
		snap, changed, ready := r.snapshot, r.changed, r.copies > 0
		r.mu.Unlock()
		select {
		case <-r.closed:
			return ErrClosed // what it holds is not followed any more
		default:
		}
		if ready && holds(snap) {
			return nil
		}
		select {
		case <-changed:
		case <-r.closed:
			return ErrClosed
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// Close ends the replica, its monitor on the server, and its subscriptions. Its
// last snapshot stays readable.
func (r *Replica) Close() {
	r.closeOnce.Do(func() { close(r.closed) })
	r.client.drop(r)
}

// publish makes d the replica's snapshot. first tells that it is a first copy,
// or what was missed since the last one: the subscribers get the difference.
func (r *Replica) publish(d *draft, first bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	resync := first && r.copies > 0
	if first {
		r.copies++
		if !d.record {
			d.changes = Diff(r.snapshot, d.next)
		}
	}
	if len(d.changes) > 0 || first {
		r.snapshot = d.next
		close(r.changed)
		r.changed = make(chan struct{})
	}
	if len(d.changes) == 0 {
		return
	}
	b := Batch{Changes: d.changes, Snapshot: d.next, Resync: resync}
	for s := range r.subs {
		s.offer(b)
	}
}

// SetConditions replaces the conditions of one of the replica's tables: rows
// for which any of where holds stay or come, all others go; without any, every
// row comes. When it returns without an error the snapshot is accordingly.
//
// The conditions hold on every later connection, also if there is none now or
// it is lost meanwhile. After Close the error is [ErrClosed].
func (r *Replica) SetConditions(ctx context.Context, table string, where ...Condition) error {
	if !slices.ContainsFunc(r.spec.Tables, func(t TableSpec) bool { return t.Table == table }) {
		return fmt.Errorf("ovsdb: %v does not have table %s", r, quoteCut(table))
	}
	select {
	case <-r.closed:
		return ErrClosed
	default:
	}
	select {
	case <-r.request:
		defer func() { r.request <- struct{}{} }()
	case <-r.closed:
		return ErrClosed
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return r.client.setConditions(ctx, r, table, where)
}

// hasCopy tells whether a first copy has come.
func (r *Replica) hasCopy() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.copies > 0
}

// settle reports the outcome of the first attempt to copy.
func (r *Replica) settle(err error) {
	select {
	case r.first <- err:
	default:
	}
}

func (r *Replica) String() string {
	tables := ""
	for i := range r.spec.Tables {
		if i > 0 {
			tables += ", "
		}
		tables += r.spec.Tables[i].Table
	}
	return fmt.Sprintf("monitor of %s", tables)
}
