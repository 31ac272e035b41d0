package ovsdb

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
)

// startMonitor asks the server to monitor what r is a replica of, with the best
// method that it knows, and waits for the first copy. Errors that concern r
// alone are reported to r; an error returned ends the session.
func (s *session) startMonitor(r *Replica, schema *Schema) error {
	<-r.request // its holder is waiting for this session at most
	defer func() { r.request <- struct{}{} }()
	c := s.client
	held := r.Snapshot()
	c.mu.Lock()
	r.monitor.schema = schema
	since, where := r.monitor.lastTxn, r.monitor.where
	f := formatSince
	if known, ok := c.formats[s.endpoint]; ok && known.server == s.id {
		f = known.format
	}
	c.mu.Unlock()
	want, err := newContents(schema, &r.spec, where)
	if err != nil {
		return s.refuse(r, err)
	}
	if since.IsZero() || !held.contents.sameRows(want) {
		since = UUID{}
	}

	for {
		id, wanted := s.register(r)
		if !wanted {
			return nil
		}
		params, err := monitorParams(id, r, want, f, since)
		if err != nil {
			return s.refuse(r, err)
		}
		// The copy may take long; a silent server is noticed by the connection.
		err = s.callContext(c.ctx, f.method(), params, func(in *reader) error { return s.firstCopy(in, r, want, f) })
		switch {
		case err == nil:
			// It has none if an update that does not fit overtook it.
			if r.hasCopy() {
				r.settle(nil)
			}
			return nil
		case errors.Is(err, errUnknownMethod) && f > formatRFC:
			f--
			c.mu.Lock()
			c.formats[s.endpoint] = serverFormat{s.id, f}
			c.mu.Unlock()
		case errors.As(err, new(*RPCError)):
			return s.refuse(r, err)
		default:
			return fmt.Errorf("ovsdb: %v: first copy: %w", r, err)
		}
	}
}

// refuse leaves r without a monitor for the rest of the session, and its Monitor
// call fails. A replica that has been followed before must not stand still
// unnoticed: the session ends, and the client's state says why.
func (s *session) refuse(r *Replica, err error) error {
	if r.hasCopy() {
		return fmt.Errorf("ovsdb: %v: %w", r, err)
	}
	s.client.log.Warn("cannot monitor", "monitor", r.String(), "err", err)
	s.client.mu.Lock()
	delete(s.monitors, r.monitor.id)
	r.monitor.session, r.monitor.id = s, 0
	s.client.mu.Unlock()
	r.settle(err)
	return nil
}

// serverFormat is the best monitor method that a server knows.
type serverFormat struct {
	server UUID
	format format
}

func (f format) method() string {
	switch f {
	case formatRFC:
		return "monitor"
	case formatCond:
		return "monitor_cond"
	}
	return "monitor_cond_since"
}

// register gives r a new monitor id in this session, unless r was closed.
func (s *session) register(r *Replica) (id uint64, wanted bool) {
	s.client.mu.Lock()
	defer s.client.mu.Unlock()
	if r.monitor.dropped {
		return 0, false
	}
	delete(s.monitors, r.monitor.id)
	s.lastMonitor++
	s.monitors[s.lastMonitor] = r
	r.monitor.session, r.monitor.id = s, s.lastMonitor
	return s.lastMonitor, true
}

// monitorParams writes the parameters of the request for a monitor.
func monitorParams(id uint64, r *Replica, want *contents, f format, since UUID) ([]byte, error) {
	b := appendQuoted([]byte{'['}, r.database)
	b = append(b, ',')
	b = strconv.AppendUint(b, id, 10)
	b = append(b, ",{"...)
	for i := range want.tables {
		t := &want.tables[i]
		if i > 0 {
			b = append(b, ',')
		}
		b = appendQuoted(b, t.table)
		b = append(b, `:[{"columns":[`...)
		for j, c := range t.columns {
			if j > 0 {
				b = append(b, ',')
			}
			b = appendQuoted(b, c.Name)
		}
		b = append(b, ']')
		if len(t.where) > 0 {
			if f == formatRFC {
				return nil, fmt.Errorf("ovsdb: %v: the server does not know monitor_cond, so it cannot select rows", r)
			}
			b = append(b, `,"where":`...)
			var err error
			if b, err = appendWhere(b, t.where); err != nil {
				return nil, err
			}
		}
		b = append(b, "}]"...)
	}
	b = append(b, '}')
	if f == formatSince {
		b = append(b, ',')
		b = appendQuoted(b, since.String())
	}
	return append(b, ']'), nil
}

// firstCopy decodes what the server answers to the request for a monitor. With
// monitor_cond_since that may be what has changed since the replica's position.
func (s *session) firstCopy(in *reader, r *Replica, want *contents, f format) error {
	d := newDraft(newSnapshot(want), false)
	var txn UUID
	if f == formatSince {
		if _, err := in.enter('['); err != nil {
			return err
		}
		found, err := in.boolean()
		if err != nil {
			return err
		}
		if found {
			d = newDraft(r.Snapshot(), true)
		}
		if txn, err = in.uuid(); err != nil {
			return err
		}
	}
	if err := in.tableUpdates(d, f); err != nil {
		return err
	}
	if f == formatSince {
		if err := in.end(); err != nil {
			return err
		}
	}
	s.client.mu.Lock()
	current := r.monitor.session == s
	if current {
		r.monitor.lastTxn, r.monitor.moving = txn, false
	}
	s.client.mu.Unlock()
	if current {
		r.publish(d, true)
	}
	return nil
}

func (r *reader) boolean() (bool, error) {
	switch r.dec.PeekKind() {
	case 't', 'f':
		t, err := r.dec.ReadToken()
		return t.Kind() == 't', err
	}
	return false, r.skipOne()
}

// setConditions has the server change the conditions of a table; the caller
// holds r.request. What could never be sent is not remembered either.
func (c *Client) setConditions(ctx context.Context, r *Replica, table string, where []Condition) error {
	text, err := appendWhere(nil, where)
	if err != nil {
		return fmt.Errorf("ovsdb: monitor of table %s: %w", table, err)
	}
	c.mu.Lock()
	m := &r.monitor
	if m.dropped {
		c.mu.Unlock()
		return ErrClosed
	}
	s, id, before := m.session, m.id, m.where
	changed := maps.Clone(before)
	if changed == nil {
		changed = make(map[string][]Condition)
	}
	changed[table] = slices.Clone(where)
	if _, err := newContents(m.schema, &r.spec, changed); err != nil {
		c.mu.Unlock()
		return err
	}
	// The position is that of the old conditions.
	m.where, m.lastTxn, m.moving = changed, UUID{}, true
	c.mu.Unlock()
	if s == nil || id == 0 {
		return nil
	}

	b := strconv.AppendUint([]byte{'['}, id, 10)
	b = append(b, ',')
	b = strconv.AppendUint(b, id, 10)
	b = append(b, ",{"...)
	b = appendQuoted(b, table)
	b = append(b, `:[{"where":`...)
	b = append(b, text...)
	settle := func(where map[string][]Condition) {
		c.mu.Lock()
		defer c.mu.Unlock()
		if m.session == s && m.id == id {
			m.where, m.moving = where, false
		}
	}
	err = s.callContext(ctx, "monitor_cond_change", append(b, "}]}]"...), func(r *reader) error {
		settle(changed)
		return r.dec.SkipValue()
	})
	if errors.As(err, new(*RPCError)) {
		settle(before) // refused: nothing has changed
	}
	return err
}
