package ovsdb

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/go-json-experiment/json/jsontext"
)

// session is one connection with what the client has set up on it. The client's
// run goroutine owns it; notification and stray are called by the connection's
// reader.
type session struct {
	client *Client
	conn   *conn
	schema *Schema
	server string // whose methods are remembered in client.formats

	// Guarded by client.mu.
	monitors    map[uint64]*Replica
	lastMonitor uint64
	cancel      []uint64 // monitors to cancel
}

// runSession connects to e, and returns why the connection ended or could not
// be set up.
func (c *Client) runSession(e endpoint) error {
	ctx, cancel := context.WithTimeout(c.ctx, c.config.DialTimeout)
	nc, err := e.dial(ctx, c.config.Dial, c.config.TLS)
	cancel()
	if err != nil {
		return fmt.Errorf("ovsdb: connect to %s: %w", e.name, err)
	}
	s := &session{client: c, monitors: make(map[uint64]*Replica)}
	s.conn = newConn(nc, s, c.config.ProbeInterval, c.config.MaxMessage)
	stop := context.AfterFunc(c.ctx, func() { s.conn.fail(ErrClosed) })
	defer c.detach(s)
	defer s.conn.done.Wait()
	defer stop()

	err = s.handshake()
	if err == nil {
		c.log.Info("connected to ovsdb-server", "endpoint", e.name, "schema", s.schema.Version)
		c.setState(s, e.name, nil)
		err = s.serve()
	}
	s.conn.fail(err)
	return s.conn.reason()
}

// handshake sets up all that must be in place before anything is written.
func (s *session) handshake() error {
	if err := s.readSchema(); err != nil {
		return err
	}
	return s.reconcile()
}

func (s *session) readSchema() error {
	db := s.client.config.Database
	var text jsontext.Value
	err := s.call("get_schema", appendStrings(nil, db), func(r *reader) (err error) {
		text, err = r.keep()
		return err
	})
	if err != nil {
		return err
	}
	if s.schema, err = ParseSchema(text); err != nil {
		return err
	}
	return nil
}

// serve keeps locks and monitors as the client wants them until the connection
// ends.
func (s *session) serve() error {
	for {
		select {
		case <-s.conn.dead:
			return s.conn.reason()
		case <-s.client.wake:
			if err := s.reconcile(); err != nil {
				return err
			}
		}
	}
}

// reconcile makes the server's locks and monitors match the client's.
func (s *session) reconcile() error {
	c := s.client
	c.mu.Lock()
	cancel := s.cancel
	s.cancel = nil
	var locks []*Lock
	for _, l := range c.locks {
		if l.session != s {
			locks = append(locks, l)
		}
	}
	var replicas []*Replica
	for _, r := range c.replicas {
		if r.monitor.session != s {
			replicas = append(replicas, r)
		}
	}
	c.mu.Unlock()

	for _, id := range cancel {
		params := append(strconv.AppendUint([]byte("["), id, 10), ']')
		if _, err := s.conn.start("monitor_cancel", params, &call{result: skipResult, done: func(error) {}}); err != nil {
			return err
		}
	}
	for _, l := range locks {
		if err := s.requestLock(l); err != nil {
			return err
		}
	}
	for _, r := range replicas {
		if err := s.startMonitor(r); err != nil {
			return err
		}
	}
	return nil
}

// call sends a request and waits for its response, at most DialTimeout.
func (s *session) call(method string, params []byte, result func(*reader) error) error {
	timer := time.NewTimer(s.client.config.DialTimeout)
	defer timer.Stop()
	done := make(chan error, 1)
	id, err := s.conn.start(method, params, &call{result: result, done: func(err error) { done <- err }})
	if err != nil {
		return err
	}
	select {
	case err := <-done:
		return err
	case <-timer.C:
		s.conn.forget(id)
		return fmt.Errorf("ovsdb: %s: no answer within %v", method, s.client.config.DialTimeout)
	}
}

// callContext is call for a caller with a deadline of its own.
func (s *session) callContext(ctx context.Context, method string, params []byte, result func(*reader) error) error {
	done := make(chan error, 1)
	id, err := s.conn.start(method, params, &call{result: result, done: func(err error) { done <- err }})
	if err != nil {
		return err
	}
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		s.conn.forget(id)
		return fmt.Errorf("ovsdb: %s: no answer: %w", method, context.Cause(ctx))
	}
}

// detach forgets what a session had that has ended.
func (c *Client) detach(s *session) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.session == s {
		c.session = nil
	}
	for _, r := range c.replicas {
		if r.monitor.session == s {
			r.monitor.session, r.monitor.broken = nil, false
		}
	}
	for _, l := range c.locks {
		if l.session == s {
			l.session = nil
			l.set(LockLost)
		}
	}
}

// stray counts a response to nobody.
func (s *session) stray() { s.client.strayResponses.Add(1) }

// notification handles what the server says on its own.
func (s *session) notification(method string, r *reader) error {
	switch method {
	case "update":
		return s.update(r, formatRFC)
	case "update2":
		return s.update(r, formatCond)
	case "update3":
		return s.update(r, formatSince)
	case "locked":
		return s.lockEvent(r, LockAcquired)
	case "stolen":
		return s.lockEvent(r, LockStolen)
	}
	s.client.strayUpdates.Add(1)
	return r.dec.SkipValue()
}

// update applies one update notification to its replica.
func (s *session) update(r *reader, f format) error {
	if _, err := r.enter('['); err != nil {
		return err
	}
	raw, err := r.dec.ReadValue()
	if err != nil {
		return err
	}
	id, err := strconv.ParseUint(string(raw), 10, 64)
	s.client.mu.Lock()
	replica := s.monitors[id]
	if replica == nil && (err != nil || id == 0 || id > s.lastMonitor) {
		s.client.strayUpdates.Add(1)
	}
	s.client.mu.Unlock()
	if replica == nil {
		return nil // unknown, or cancelled a moment ago
	}
	var txn UUID
	if f == formatSince {
		if txn, err = r.uuid(); err != nil {
			return s.misfit(replica, err)
		}
	}
	d := newDraft(replica.Snapshot(), true)
	if err := r.tableUpdates(d, f); err != nil {
		return s.misfit(replica, err)
	}
	s.client.mu.Lock()
	replica.monitor.lastTxn = txn
	s.client.mu.Unlock()
	replica.publish(d, false)
	return nil
}

func (r *reader) uuid() (UUID, error) {
	text, err := r.text()
	if err != nil {
		return UUID{}, err
	}
	u, ok := parseUUID(text)
	if !ok {
		return UUID{}, contentErrorf("%s is not a uuid", quoteCut(string(text)))
	}
	return u, nil
}

// misfit has a replica copied anew because of an update that does not fit what
// it holds. A second one in one session ends the session, so that a server that
// keeps sending them is met with backoff.
func (s *session) misfit(r *Replica, err error) error {
	if !isContentError(err) {
		return err
	}
	c := s.client
	c.mu.Lock()
	defer c.mu.Unlock()
	m := &r.monitor
	if m.session != s {
		return nil
	}
	if m.broken {
		return fmt.Errorf("ovsdb: %v: again an update that does not fit: %v", r, err)
	}
	c.resyncs.Add(1)
	c.log.Warn("an update does not fit, copying the tables anew", "monitor", r.String(), "err", err)
	delete(s.monitors, m.id)
	s.cancel = append(s.cancel, m.id)
	m.session, m.broken, m.lastTxn = nil, true, UUID{}
	c.poke()
	return nil
}

var errUnknownMethod = errors.New("unknown method")

// Is makes errors.Is tell a server that does not know a method.
func (e *RPCError) Is(target error) bool {
	return target == errUnknownMethod && e.Code == "unknown method"
}
