package ovsdb

import (
	"context"
	"sync"
)

// DefaultQueue is how many row changes a subscription queues for a consumer
// that is busy.
const DefaultQueue = 4096

// Batch is what one update changed: the rows that differ between the snapshot
// before and the one after.
type Batch struct {
	// Changes are in the order of the server. They are never
	// empty. Other subscriptions share the slice: it must not be changed.
	Changes []Change
	// Snapshot is what the replica held right after the changes.
	Snapshot *Snapshot
	// Resync tells that the changes are the difference of what was known before
	// a connection was lost and what is true now.
	Resync bool
	// Skipped tells that the consumer was too slow: the changes are the net
	// difference of several updates. Nothing that still holds is missing, but
	// what came and went in between is.
	Skipped bool
}

// Subscription is one consumer's view of a replica: an ordered stream of
// batches that leads from an empty replica to the present one. Its methods are
// for one goroutine, except Close.
type Subscription struct {
	replica *Replica
	limit   int

	// Guarded by replica.mu.
	queue   []Batch
	queued  int       // changes in queue
	behind  bool      // queue is dropped: the next batch is a difference
	skipped bool      // the difference spans updates that were queued once
	resync  bool      // the difference spans a resync
	started bool      // the consumer has seen a batch
	last    *Snapshot // what the consumer has seen

	wake   chan struct{}
	closed chan struct{}
	once   sync.Once
}

// Subscribe starts a stream of changes. Its first batch holds every row there
// is as an insertion. While the consumer is busy up to limit changes are queued
// for it (DefaultQueue if limit is 0); beyond that the stream skips to the
// present, see [Batch.Skipped].
func (r *Replica) Subscribe(limit int) *Subscription {
	if limit <= 0 {
		limit = DefaultQueue
	}
	s := &Subscription{
		replica: r, limit: limit,
		wake: make(chan struct{}, 1), closed: make(chan struct{}),
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	s.last = newSnapshot(r.snapshot.contents)
	s.behind = true
	r.subs[s] = struct{}{}
	s.signal()
	return s
}

// Close ends the stream; a Next that waits returns [ErrClosed].
func (s *Subscription) Close() {
	s.once.Do(func() { close(s.closed) })
	s.replica.mu.Lock()
	defer s.replica.mu.Unlock()
	delete(s.replica.subs, s)
}

// Next waits for the next batch. It returns [ErrClosed] after the subscription
// was closed, or the replica or the client and what was queued before is used
// up; and ctx's error when ctx ends while nothing is queued.
func (s *Subscription) Next(ctx context.Context) (Batch, error) {
	for {
		select {
		case <-s.closed:
			return Batch{}, ErrClosed
		default:
		}
		if b, ok := s.take(); ok {
			return b, nil
		}
		select {
		case <-s.wake:
		case <-s.closed:
			return Batch{}, ErrClosed
		case <-s.replica.closed:
			return Batch{}, ErrClosed
		case <-ctx.Done():
			return Batch{}, context.Cause(ctx)
		}
	}
}

func (s *Subscription) take() (Batch, bool) {
	s.replica.mu.Lock()
	defer s.replica.mu.Unlock()
	if s.behind {
		now := s.replica.snapshot
		b := Batch{Snapshot: now, Changes: Diff(s.last, now), Resync: s.resync, Skipped: s.skipped}
		s.last, s.behind, s.skipped, s.resync = now, false, false, false
		if len(b.Changes) == 0 {
			return Batch{}, false
		}
		s.started = true
		return b, true
	}
	if len(s.queue) == 0 {
		return Batch{}, false
	}
	b := s.queue[0]
	s.queue[0] = Batch{}
	s.queue = s.queue[1:]
	s.queued -= len(b.Changes)
	s.last = b.Snapshot
	return b, true
}

// offer queues b, or drops the queue if that would exceed the limit; replica.mu
// is held.
func (s *Subscription) offer(b Batch) {
	defer s.signal()
	switch {
	case s.behind:
		s.resync = s.resync || b.Resync && s.started
	case len(s.queue) > 0 && s.queued+len(b.Changes) > s.limit:
		s.skipped = true
		s.resync = b.Resync
		for _, q := range s.queue {
			s.resync = s.resync || q.Resync
		}
		s.behind, s.queue, s.queued = true, nil, 0
	default:
		s.queue = append(s.queue, b)
		s.queued += len(b.Changes)
	}
}

func (s *Subscription) signal() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}
