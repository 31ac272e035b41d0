package ovsdb

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync/atomic"

	"github.com/go-json-experiment/json/jsontext"
)

// session is one connection with what the client has set up on it. The client's
// run goroutine owns it; notification and stray are called by the connection's
// reader.
type session struct {
	client   *Client
	endpoint string
	conn     *conn
	schema   atomic.Pointer[Schema]
	id       UUID     // of the server; zero if it does not say
	status   *Replica // of the server's databases; nil if it does not say

	// Guarded by client.mu.
	monitors    map[uint64]*Replica
	lastMonitor uint64
	cancel      []uint64 // monitors to cancel
	converted   bool     // the schema must be read again
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
	s := &session{client: c, endpoint: e.name, monitors: make(map[uint64]*Replica)}
	s.conn = newConn(nc, s, c.config.ProbeInterval, c.config.MaxMessage)
	stop := context.AfterFunc(c.ctx, func() { s.conn.fail(ErrClosed) })
	defer c.detach(s)
	defer s.conn.done.Wait()
	defer stop()

	err = s.handshake()
	if err == nil {
		c.log.Info("connected to ovsdb-server", "endpoint", e.name, "schema", s.schema.Load().Version)
		c.setState(s, e.name, nil)
		err = s.serve()
	}
	s.conn.fail(err)
	return s.conn.reason()
}

// handshake sets up all that must be in place before anything is written.
func (s *session) handshake() error {
	if err := s.identify(); err != nil {
		return err
	}
	schema, err := s.readSchema(s.client.config.Database)
	if err != nil {
		return err
	}
	s.schema.Store(schema)
	return s.reconcile()
}

func (s *session) readSchema(database string) (*Schema, error) {
	var text jsontext.Value
	err := s.call("get_schema", appendStrings(nil, database), func(r *reader) (err error) {
		text, err = r.keep()
		return err
	})
	if err != nil {
		return nil, err
	}
	return ParseSchema(text)
}

// serve keeps locks and monitors as the client wants them until the connection
// ends.
func (s *session) serve() error {
	for {
		var status <-chan struct{}
		if s.status != nil {
			status = s.status.nextChange()
			if err := s.checkStatus(); err != nil {
				return err
			}
		}
		select {
		case <-s.conn.dead:
			return s.conn.reason()
		case <-status:
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
	cancel, converted := s.cancel, s.converted
	s.cancel, s.converted = nil, false
	var locks []*Lock
	for _, l := range c.locks {
		if l.session != s {
			locks = append(locks, l)
		}
	}
	var replicas []*Replica
	var misfits []error
	for _, r := range c.replicas {
		if r.monitor.session != s || converted && r.monitor.id == 0 {
			replicas = append(replicas, r)
			misfits = append(misfits, r.monitor.misfit)
		}
	}
	c.mu.Unlock()

	for _, id := range cancel {
		params := append(strconv.AppendUint([]byte("["), id, 10), ']')
		if _, err := s.conn.start("monitor_cancel", params, &call{result: skipResult, done: func(error) {}}); err != nil {
			return err
		}
	}
	if converted {
		schema, err := s.readSchema(c.config.Database)
		if err != nil {
			return err
		}
		s.schema.Store(schema)
		c.log.Info("the database was converted", "schema", schema.Version)
	}
	for _, l := range locks {
		if err := s.requestLock(l); err != nil {
			return err
		}
	}
	for i, r := range replicas {
		if misfits[i] != nil {
			c.log.Warn("an update does not fit, copying the tables anew", "monitor", r.String(), "err", misfits[i])
		}
		if err := s.startMonitor(r, s.schema.Load()); err != nil {
			return err
		}
	}
	return nil
}

// call sends a request and waits for its response, at most DialTimeout.
func (s *session) call(method string, params []byte, result func(*reader) error) error {
	limit := s.client.config.DialTimeout
	ctx, cancel := context.WithTimeoutCause(s.client.ctx, limit, fmt.Errorf("%v have passed", limit))
	defer cancel()
	return s.callContext(ctx, method, params, result)
}

// callContext sends a request and waits for its response until ctx ends.
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
			r.monitor.session, r.monitor.misfit = nil, nil
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
	err := s.notified(method, r)
	if isContentError(err) {
		s.client.strayUpdates.Add(1)
	}
	return err
}

func (s *session) notified(method string, r *reader) error {
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
	case "monitor_canceled":
		return s.monitorCanceled(r)
	}
	s.client.strayUpdates.Add(1)
	return r.dec.SkipValue()
}

// update applies one update notification to its replica.
func (s *session) update(r *reader, f format) error {
	if _, err := r.enter('['); err != nil {
		return err
	}
	replica, _, err := s.monitored(r)
	if err != nil || replica == nil {
		return err
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
	if m := &replica.monitor; !m.moving {
		m.lastTxn = txn
	}
	s.client.mu.Unlock()
	replica.publish(d, false)
	return nil
}

// monitored reads a monitor's id and returns its replica, or nil if it is
// unknown or was cancelled a moment ago.
func (s *session) monitored(r *reader) (*Replica, uint64, error) {
	raw, err := r.dec.ReadValue()
	if err != nil {
		return nil, 0, err
	}
	id, err := strconv.ParseUint(string(raw), 10, 64)
	s.client.mu.Lock()
	defer s.client.mu.Unlock()
	if err != nil || id == 0 || id > s.lastMonitor {
		s.client.strayUpdates.Add(1)
		return nil, 0, nil
	}
	return s.monitors[id], id, nil
}

// monitorCanceled has a monitor set up again that the server gave up, because
// the database's schema is another one now.
func (s *session) monitorCanceled(r *reader) error {
	if _, err := r.enter('['); err != nil {
		return err
	}
	replica, id, err := s.monitored(r)
	if err != nil || replica == nil {
		return err
	}
	if replica == s.status {
		return errors.New("the server does not say any more how its databases are")
	}
	c := s.client
	c.mu.Lock()
	defer c.mu.Unlock()
	if m := &replica.monitor; m.session == s && m.id == id {
		c.monitorRestarts.Add(1)
		delete(s.monitors, id)
		m.session, m.lastTxn = nil, UUID{}
		s.converted = true
		c.poke()
	}
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
	if m.misfit != nil || r == s.status {
		return fmt.Errorf("ovsdb: %v: an update does not fit, and copying the tables anew has not helped: %v", r, err)
	}
	c.resyncs.Add(1)
	delete(s.monitors, m.id)
	s.cancel = append(s.cancel, m.id)
	m.session, m.misfit, m.lastTxn = nil, err, UUID{}
	c.poke()
	return nil
}
