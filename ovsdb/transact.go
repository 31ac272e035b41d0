package ovsdb

import (
	"context"
	"errors"
	"fmt"
	"strconv"
)

// ErrOutcomeUnknown is returned by Transact when the request was sent, or may
// have been, and no answer came: the transaction may have been committed or
// not. The database must be read before it is tried again.
var ErrOutcomeUnknown = errors.New("ovsdb: the outcome of the transaction is unknown")

// The refusals that callers decide on, for errors.Is with a [TransactError].
var (
	ErrNotOwner   = errors.New("not owner") // an Assert on a lock that is not held
	ErrTimedOut   = errors.New("timed out") // a Wait that did not come true
	ErrConstraint = errors.New("constraint violation")
	ErrReferences = errors.New("referential integrity violation")
)

// TransactError is a transaction that the server refused. Nothing of it was
// done.
type TransactError struct {
	// Index is the operation that failed, from 0, or -1 if the transaction
	// failed as a whole when it was to be committed.
	Index   int
	Op      string // the operation's name, "" if Index is -1
	Table   string // its table, "" if it has none
	Code    string // "constraint violation", see RFC 7047 §3.1
	Details string // the server's explanation
}

func (e *TransactError) Error() string {
	where := "at commit"
	if e.Index >= 0 {
		where = fmt.Sprintf("operation %d (%s", e.Index, e.Op)
		if e.Table != "" {
			where += " " + e.Table
		}
		where += ")"
	}
	s := fmt.Sprintf("ovsdb: transaction refused: %s: %s", where, cut(e.Code))
	if e.Details != "" {
		s += ": " + quoteCut(e.Details)
	}
	return s
}

// Is makes errors.Is match the refusals above by their code.
func (e *TransactError) Is(target error) bool {
	switch target {
	case ErrNotOwner, ErrTimedOut, ErrConstraint, ErrReferences:
		return target.Error() == e.Code
	}
	return false
}

// Outcome is what became of a transaction.
type Outcome uint8

// NotSent: nothing was sent. Committed: everything was done. Refused: nothing
// was. Unknown: see [ErrOutcomeUnknown].
const (
	NotSent Outcome = iota
	Committed
	Refused
	Unknown
)

func (o Outcome) String() string {
	return [...]string{"not sent", "committed", "refused", "unknown"}[o&3]
}

// OutcomeOf tells by the error of Transact what became of the transaction.
func OutcomeOf(err error) Outcome {
	switch {
	case err == nil:
		return Committed
	case errors.Is(err, ErrOutcomeUnknown):
		return Unknown
	case errors.As(err, new(*TransactError)), errors.As(err, new(*RPCError)):
		return Refused
	}
	return NotSent
}

// Result is the result of one operation.
type Result struct {
	UUID  UUID   // of the row that an Insert made
	Count int64  // rows that an Update, Mutate or Delete selected
	Rows  []*Row // of a Select
}

// Transact has the server do all of the operations or none. There is one Result
// for each. When it returns without an error, every replica of this client
// shows what the transaction did, as far as its monitor covers it.
//
// What the operations name is checked against the schema before anything is
// sent. So is that no inserted row would vanish for want of a reference.
//
// [OutcomeOf] tells what an error means. When ctx ends while the answer is
// outstanding, the server is told to cancel the transaction, and the outcome is
// unknown. Nothing is ever tried twice.
func (c *Client) Transact(ctx context.Context, ops ...Op) ([]Result, error) {
	if err := ctx.Err(); err != nil {
		return nil, context.Cause(ctx)
	}
	s, err := c.connected()
	if err != nil {
		return nil, err
	}
	schema := s.schema.Load()
	params, err := appendTransaction(nil, schema, ops)
	if err != nil {
		return nil, err
	}
	var results []Result
	var refused error
	done := make(chan error, 1)
	id, err := s.conn.start("transact", params, &call{
		result: func(r *reader) (err error) {
			results, refused, err = r.results(schema, ops)
			return err
		},
		done: func(err error) { done <- err },
	})
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNotConnected, err)
	}
	select {
	case err = <-done:
	case <-ctx.Done():
		// The answer to a cancelled transaction may come, or may not.
		s.conn.forget(id)
		_ = s.conn.notify("cancel", append(strconv.AppendUint([]byte{'['}, id, 10), ']'))
		return nil, fmt.Errorf("%w: %w", ErrOutcomeUnknown, context.Cause(ctx))
	}
	switch {
	case err == nil && refused == nil:
		return results, nil
	case err == nil:
		return nil, refused
	case errors.As(err, new(*RPCError)):
		return nil, err
	}
	return nil, fmt.Errorf("%w: %w", ErrOutcomeUnknown, err)
}

func appendTransaction(b []byte, schema *Schema, ops []Op) ([]byte, error) {
	if err := checkVanishing(schema, ops); err != nil {
		return nil, err
	}
	b = append(b, '[')
	b = appendQuoted(b, schema.Name)
	for i, op := range ops {
		var err error
		switch op.(type) {
		case Insert, Select, Update, Mutate, Delete, Wait, Comment, Assert, Abort:
		default:
			return nil, fmt.Errorf("ovsdb: operation %d not sent: it is a %T; pass the operation itself, not a pointer to it", i, op)
		}
		b = append(b, ',')
		if b, err = op.appendTo(b, schema); err != nil {
			name, table := op.what()
			return nil, fmt.Errorf("ovsdb: operation %d (%s %s) not sent: %w", i, name, table, err)
		}
	}
	return append(b, ']'), nil
}

// results decodes the array of results. The server writes one for each
// operation; null for those behind one that failed; and one more if the
// transaction failed when it was to be committed.
func (r *reader) results(schema *Schema, ops []Op) (out []Result, refused, err error) {
	if _, err := r.enter('['); err != nil {
		return nil, nil, err
	}
	out = make([]Result, 0, len(ops))
	for i := 0; ; i++ {
		more, err := r.more()
		if err != nil {
			return nil, nil, err
		}
		if !more {
			break
		}
		if i > len(ops) {
			return nil, nil, contentErrorf("more results than operations, of which there are %d", len(ops))
		}
		if r.dec.PeekKind() == 'n' {
			if err := r.dec.SkipValue(); err != nil {
				return nil, nil, err
			}
			continue
		}
		res, failure, err := r.result(schema, ops, i)
		if err != nil {
			return nil, nil, err
		}
		if failure != nil && refused == nil {
			refused = failure
		}
		out = append(out, res)
	}
	if refused != nil {
		return nil, refused, nil
	}
	if len(out) != len(ops) {
		return nil, nil, contentErrorf("%d results for %d operations", len(out), len(ops))
	}
	return out, nil, nil
}

// result decodes one <operation-result>; refused is its error, if it is one.
func (r *reader) result(schema *Schema, ops []Op, i int) (res Result, refused error, err error) {
	if _, err := r.enter('{'); err != nil {
		return Result{}, nil, err
	}
	failure := TransactError{Index: -1}
	if op := opAt(ops, i); op != nil {
		failure.Index = i
		failure.Op, failure.Table = op.what()
	}
	for {
		more, err := r.more()
		if err != nil {
			return Result{}, nil, err
		}
		if !more {
			break
		}
		name, err := r.text()
		if err != nil {
			return Result{}, nil, err
		}
		switch string(name) {
		case "error":
			failure.Code, err = r.ownText()
		case "details":
			failure.Details, err = r.ownText()
		case "uuid":
			r.values.buf = r.values.buf[:0]
			r.values.begin(UUIDKind, NoKind)
			if err = r.atom(UUIDKind); err == nil {
				copy(res.UUID[:], r.values.buf[valueHeader:])
			}
		case "count":
			var raw []byte
			if raw, err = r.dec.ReadValue(); err == nil {
				res.Count, err = parseInteger(raw)
			}
		case "rows":
			sel, ok := opAt(ops, i).(Select)
			if !ok {
				return Result{}, nil, contentErrorf("result %d has rows, but it is not that of a select", i)
			}
			res.Rows, err = r.rows(schema, sel)
		default:
			err = r.dec.SkipValue()
		}
		if err != nil {
			return Result{}, nil, err
		}
	}
	if failure.Code != "" {
		return Result{}, &failure, nil
	}
	return res, nil, nil
}

func opAt(ops []Op, i int) Op {
	if i < len(ops) {
		return ops[i]
	}
	return nil
}

func (r *reader) rows(schema *Schema, o Select) ([]*Row, error) {
	lay, err := o.layout(schema)
	if err != nil {
		return nil, err
	}
	if _, err := r.enter('['); err != nil {
		return nil, err
	}
	var rows []*Row
	for {
		more, err := r.more()
		if err != nil || !more {
			return rows, err
		}
		row, err := r.row(lay, UUID{}, nil, false)
		if err != nil {
			return nil, err
		}
		// So a row cannot be much larger in memory than it was on the wire.
		if len(r.spans) < len(lay.columns) {
			return nil, contentErrorf("a row of table %s has %d of the %d columns that were asked for", lay.table, len(r.spans), len(lay.columns))
		}
		rows = append(rows, row)
	}
}
