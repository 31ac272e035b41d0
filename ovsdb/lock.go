package ovsdb

import (
	"context"
	"fmt"
	"sync"
)

// LockReason says why a lock is held or not.
type LockReason uint8

// LockWaiting: somebody else holds it, or it has not been asked for yet on this
// connection.
// LockLost: the connection, and the lock with it, is gone. LockStolen: another
// client took it by force. LockReleased: [Lock.Release] was called.
const (
	LockWaiting LockReason = iota
	LockAcquired
	LockLost
	LockStolen
	LockReleased
)

func (r LockReason) String() string {
	switch r {
	case LockWaiting:
		return "waiting"
	case LockAcquired:
		return "acquired"
	case LockLost:
		return "lost with the connection"
	case LockStolen:
		return "stolen"
	}
	return "released"
}

// LockState is how a lock stands.
type LockState struct {
	Held   bool
	Reason LockReason
	// Acquired counts how often the lock was acquired. If it has not changed,
	// nobody else had the lock in between.
	Acquired uint64
}

// Lock is a named lock of the server (RFC 7047 §4.1.8), which one client at a
// time holds. It is asked for again on each new connection, before anything is
// written there.
//
// A state that is read may be out of date when it is used. What must not happen
// without the lock belongs into a transaction with [Lock.Assert].
type Lock struct {
	client *Client
	name   string
	op     sync.Mutex // one request at a time

	// Guarded by client.mu.
	session *session // where it was asked for
	state   LockState
	changed chan struct{}
}

// Lock asks for a lock, and keeps asking on each connection until it is
// released. Names beginning with a letter or _ and of letters, digits and _ are
// valid; a client can ask once for each.
func (c *Client) Lock(name string) (*Lock, error) {
	if err := checkRowName(name); err != nil {
		return nil, fmt.Errorf("ovsdb: lock %s: %w", quoteCut(name), err)
	}
	l := &Lock{client: c, name: name, changed: make(chan struct{})}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ctx.Err() != nil {
		return nil, ErrClosed
	}
	if _, dup := c.locks[name]; dup {
		return nil, fmt.Errorf("ovsdb: lock %s: this client has asked for it already", name)
	}
	c.locks[name] = l
	c.poke()
	return l, nil
}

// Name returns the lock's name.
func (l *Lock) Name() string { return l.name }

// State returns how the lock stands, and a channel that is closed at the next
// change.
func (l *Lock) State() (LockState, <-chan struct{}) {
	l.client.mu.Lock()
	defer l.client.mu.Unlock()
	return l.state, l.changed
}

// Assert returns the operation that makes a transaction fail with [ErrNotOwner]
// unless this client holds the lock.
func (l *Lock) Assert() Op { return Assert{Lock: l.name} }

// set records a change; client.mu is held.
func (l *Lock) set(reason LockReason) {
	held := reason == LockAcquired
	if !held && reason == LockLost && !l.state.Held {
		reason = LockWaiting
	}
	if l.state.Reason == reason {
		return
	}
	if held {
		l.state.Acquired++
	}
	l.state.Held, l.state.Reason = held, reason
	close(l.changed)
	l.changed = make(chan struct{})
}

// requestLock asks for l on a new connection. An error ends the session.
func (s *session) requestLock(l *Lock) error {
	l.op.Lock()
	defer l.op.Unlock()
	s.client.mu.Lock()
	wanted := s.client.locks[l.name] == l && l.session != s
	l.session = s // a notification may be faster than what follows
	s.client.mu.Unlock()
	if !wanted {
		return nil
	}
	return s.call("lock", appendStrings(nil, l.name), func(r *reader) error { return s.lockResult(r, l) })
}

// lockResult decodes {"locked": boolean}.
func (s *session) lockResult(r *reader, l *Lock) error {
	if _, err := r.enter('{'); err != nil {
		return err
	}
	for {
		more, err := r.more()
		if err != nil || !more {
			return err
		}
		name, err := r.text()
		if err != nil {
			return err
		}
		if string(name) != "locked" {
			if err := r.dec.SkipValue(); err != nil {
				return err
			}
			continue
		}
		locked, err := r.boolean()
		if err != nil {
			return err
		}
		reason := LockWaiting
		if locked {
			reason = LockAcquired
		}
		s.setLock(l, reason)
	}
}

func (s *session) setLock(l *Lock, reason LockReason) {
	s.client.mu.Lock()
	defer s.client.mu.Unlock()
	if l.session == s {
		l.set(reason)
	}
}

// lockEvent handles locked and stolen notifications.
func (s *session) lockEvent(r *reader, reason LockReason) error {
	if _, err := r.enter('['); err != nil {
		return err
	}
	name, err := r.text()
	if err != nil {
		return err
	}
	s.client.mu.Lock()
	l := s.client.locks[string(name)]
	s.client.mu.Unlock()
	if l == nil {
		return nil // released a moment ago
	}
	s.setLock(l, reason)
	return nil
}

// Steal takes the lock from whoever holds it (RFC 7047 §4.1.8). The former
// holder is told, and waits for the lock again. When ctx ends before the server
// has answered, the lock may be stolen all the same: State tells.
func (l *Lock) Steal(ctx context.Context) error {
	l.op.Lock()
	defer l.op.Unlock()
	s, err := l.client.connected()
	if err != nil {
		return fmt.Errorf("ovsdb: steal lock %s: %w", l.name, err)
	}
	l.client.mu.Lock()
	if l.client.locks[l.name] != l {
		l.client.mu.Unlock()
		return fmt.Errorf("ovsdb: steal lock %s: it was released: %w", l.name, ErrClosed)
	}
	held, asked := l.state.Held, l.session == s
	l.session = s
	l.client.mu.Unlock()
	if held && asked {
		return nil
	}
	params := appendStrings(nil, l.name)
	if asked {
		// The server refuses to steal for a client that waits in the queue.
		// Both requests go out at once: there is no leaving in between.
		left := func(r *reader) error {
			s.setLock(l, LockWaiting)
			return skipResult(r)
		}
		if _, err := s.conn.start("unlock", params, &call{result: left, done: func(error) {}}); err != nil {
			return fmt.Errorf("ovsdb: steal lock %s: %w", l.name, err)
		}
	}
	answer := make(chan error, 1)
	done := func(err error) {
		if err != nil {
			s.askAgain(l)
		}
		answer <- err
	}
	steal := &call{result: func(r *reader) error { return s.lockResult(r, l) }, done: done}
	if _, err := s.conn.start("steal", params, steal); err != nil {
		done(err)
	}
	select {
	case err = <-answer:
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	if err != nil {
		return fmt.Errorf("ovsdb: steal lock %s: %w", l.name, err)
	}
	return nil
}

// askAgain has l requested as if the connection were new.
func (s *session) askAgain(l *Lock) {
	s.client.mu.Lock()
	defer s.client.mu.Unlock()
	if l.session == s {
		l.session = nil
		s.client.poke()
	}
}

// Release gives the lock up, or stops waiting for it. Without a connection
// there is nothing to give up. When ctx ends before the server has answered, the
// lock is released all the same. The Lock is of no use afterwards.
func (l *Lock) Release(ctx context.Context) error {
	l.op.Lock()
	defer l.op.Unlock()
	l.client.mu.Lock()
	s := l.session
	if l.client.locks[l.name] == l {
		delete(l.client.locks, l.name)
	}
	l.set(LockReleased)
	l.session = nil
	if s == nil {
		l.client.mu.Unlock()
		return nil
	}
	// It is on its way before anyone can ask for the name again.
	answer := make(chan error, 1)
	_, err := s.conn.start("unlock", appendStrings(nil, l.name), &call{result: skipResult, done: func(err error) { answer <- err }})
	l.client.mu.Unlock()
	if err == nil {
		select {
		case err = <-answer:
		case <-ctx.Done():
			err = context.Cause(ctx)
		}
	}
	if err == nil || s.conn.reason() != nil {
		return nil // the lock is gone, with the connection perhaps
	}
	return fmt.Errorf("ovsdb: release lock %s: %w", l.name, err)
}
