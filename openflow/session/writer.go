package session

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"time"

	"brlb/openflow"
)

// maxEchoes bounds the octets of echo replies that wait for the writer. A peer
// that asks and reads nothing gets no more of them.
const maxEchoes = 256 << 10

// piece is how much is written at once. It is more than a unix socket holds: who
// has taken a piece has read.
const piece = 256 << 10

// reuse is the greatest buffer that the writer keeps for the next batch.
const reuse = 1 << 20

// enqueue queues n messages, message(0) to message(n-1), in one piece, with the
// transaction ids first, first+1, ... that it reserves: xids of them, at least
// n. If in is not nil, replies to them go there. message may return the same
// pointer each time: what it holds is encoded before the next call.
func (s *Session) enqueue(ctx context.Context, in *inbox, xids, n int, message func(i int) openflow.Message) error {
	if err := s.lockWithSpace(ctx); err != nil {
		return err
	}
	defer s.mu.Unlock()
	first := s.reserve(uint32(xids))
	if err := s.appendLocked(first, n, message); err != nil {
		return err
	}
	if in != nil {
		in.first, in.count = first, uint32(xids)
		s.inboxes = append(s.inboxes, in)
	}
	return nil
}

// reserve takes n consecutive transaction ids. 0 is never among them: the switch
// uses it for what nobody asked for.
func (s *Session) reserve(n uint32) (first uint32) {
	first = s.xid + 1
	if first == 0 || first+n-1 < first {
		first = 1
	}
	s.xid = first + n - 1
	return first
}

// appendLocked encodes messages for the writer: all, or none.
func (s *Session) appendLocked(first uint32, n int, message func(i int) openflow.Message) error {
	_, err := s.appendSomeLocked(first, 0, n, math.MaxInt, message)
	return err
}

// appendSomeLocked encodes messages for the writer, from the i-th of n on, until
// they have so many octets. It returns which is next. After an error nothing is
// appended.
func (s *Session) appendSomeLocked(first uint32, i, n, octets int, message func(i int) openflow.Message) (next int, err error) {
	out := s.out
	for ; i < n && len(out)-len(s.out) < octets; i++ {
		if out, err = openflow.Append(out, first+uint32(i), message(i)); err != nil {
			return i, fmt.Errorf("openflow session with %s: message %d of %d not sent: %w", s.opts.Peer, i+1, n, err)
		}
	}
	s.queuedLocked(out)
	return i, nil
}

// lockToSend returns with s.mu held if something can be sent, or an error and
// s.mu not held.
func (s *Session) lockToSend() error {
	s.mu.Lock()
	switch {
	case s.err != nil:
		defer s.mu.Unlock()
		return s.err
	case s.broken != nil:
		defer s.mu.Unlock()
		return &ClosedError{Peer: s.opts.Peer, Reason: ErrHangup, Err: s.broken}
	}
	return nil
}

// lockWithSpace returns with s.mu held and room in the queue, or an error and
// s.mu not held.
func (s *Session) lockWithSpace(ctx context.Context) error {
	for {
		if err := s.lockToSend(); err != nil {
			return err
		}
		if s.unsent < s.opts.MaxQueued {
			return nil
		}
		written := s.written
		s.mu.Unlock()
		select {
		case <-written:
		case <-s.done:
		case <-ctx.Done():
			return fmt.Errorf("openflow session with %s: not sent, the peer reads too slowly: %w", s.opts.Peer, context.Cause(ctx))
		}
	}
}

// flush waits until all that is queued has been written, or cannot be.
func (s *Session) flush(ctx context.Context) {
	for {
		s.mu.Lock()
		over, written := s.unsent == 0 || s.broken != nil, s.written
		s.mu.Unlock()
		if over {
			return
		}
		select {
		case <-written:
		case <-s.done:
			return
		case <-ctx.Done():
			return
		}
	}
}

// answerEcho queues the reply to an echo request: the request itself with
// another type. The reader calls it, so it never waits.
func (s *Session) answerEcho(request []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.echoes+len(request) > maxEchoes {
		s.counters.c.EchoesIgnored++
		return
	}
	s.echoes += len(request)
	out := append(s.out, request...)
	out[len(s.out)+1] = byte(openflow.TypeEchoReply)
	s.queuedLocked(out)
}

// queuedLocked takes over out, which is s.out with more messages, and tells the
// writer.
func (s *Session) queuedLocked(out []byte) {
	added := out[len(s.out):]
	s.counters.sent(added)
	s.unsent += len(added)
	s.out = out
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// writeLoop writes what is queued, as much at a time as there is, until the
// session ends or nothing can be written any more. In that case the reader is
// still to read what the peer said before it went: the answer to a commit, or
// why it hung up. The end of the stream, or silence, then ends the session.
func (s *Session) writeLoop() {
	defer s.loops.Done()
	var batch []byte
	for {
		select {
		case <-s.wake:
		case <-s.done:
			return
		}
		if cap(batch) > reuse {
			batch = nil
		}
		s.mu.Lock()
		batch, s.out = s.out, batch[:0]
		s.echoes = 0
		s.mu.Unlock()
		err := s.write(batch)
		s.mu.Lock()
		s.unsent -= len(batch)
		s.broken = err
		close(s.written)
		s.written = make(chan struct{})
		s.mu.Unlock()
		if err != nil {
			return
		}
	}
}

// write writes b. The peer may be slow as long as it takes something: only a
// time without any progress ends the session. The pieces are for TLS, where a
// write that runs out of time cannot be continued.
func (s *Session) write(b []byte) error {
	for len(b) > 0 {
		err := s.conn.SetWriteDeadline(time.Now().Add(s.opts.WriteStall))
		n := 0
		if err == nil {
			n, err = s.conn.Write(b[:min(len(b), piece)])
		}
		b = b[n:]
		if n == piece {
			s.pieces.Add(1)
		}
		stalled := errors.Is(err, os.ErrDeadlineExceeded)
		switch {
		case stalled && n > 0:
		case stalled:
			s.end(ErrStalled, fmt.Errorf("it took nothing for %v while %d octets waited for it", s.opts.WriteStall, len(b)))
			return err
		case err != nil:
			return err
		}
	}
	return nil
}
