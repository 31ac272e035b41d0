package session

import (
	"context"
	"fmt"
	"slices"

	"brlb/openflow"
)

// overhead is what a queued message costs beyond its octets.
const overhead = 128

// inbox collects the replies to a range of transaction ids until the call that
// sent the requests takes them.
type inbox struct {
	s            *Session
	first, count uint32        // the transaction ids, fixed when the requests are queued
	ready        chan struct{} // one token: there may be something in queue

	// Session.mu guards these.
	queue [][]byte
	taken int // octets received so far, with overhead
}

func (s *Session) newInbox() *inbox {
	return &inbox{s: s, ready: make(chan struct{}, 1)}
}

// ownerLocked returns the inbox that waits for xid, or nil.
func (s *Session) ownerLocked(xid uint32) *inbox {
	for _, in := range s.inboxes {
		if xid-in.first < in.count {
			return in
		}
	}
	return nil
}

// deliverLocked takes a message in. It is false if that is more than one call
// may be answered with.
func (in *inbox) deliverLocked(frame []byte) bool {
	in.taken += len(frame) + overhead
	if in.taken > in.s.opts.MaxReply {
		return false
	}
	in.queue = append(in.queue, frame)
	select {
	case in.ready <- struct{}{}:
	default:
	}
	return true
}

// next returns the next reply and the place of its transaction id in the range.
// Replies that came before the session ended are returned before its error. A
// malformed reply ends the session.
func (in *inbox) next(ctx context.Context) (place int, m openflow.Message, err error) {
	s := in.s
	for {
		s.mu.Lock()
		var frame []byte
		if len(in.queue) > 0 {
			frame, in.queue[0] = in.queue[0], nil
			in.queue = in.queue[1:]
		}
		err := s.errLocked()
		s.mu.Unlock()

		if frame != nil {
			h, m, err := openflow.Parse(frame)
			if err != nil {
				return 0, nil, s.fail(ErrMalformed, fmt.Errorf("%w in %s", err, quote(frame)))
			}
			return int(h.Xid - in.first), m, nil
		}
		if err != nil {
			return 0, nil, err
		}
		select {
		case <-in.ready:
		case <-s.done:
		case <-ctx.Done():
			return 0, nil, fmt.Errorf("openflow session with %s: no reply: %w", s.opts.Peer, context.Cause(ctx))
		}
	}
}

// close forgets the requests. Their replies are unknown from now on.
func (in *inbox) close() {
	s := in.s
	s.mu.Lock()
	defer s.mu.Unlock()
	s.inboxes = slices.DeleteFunc(s.inboxes, func(other *inbox) bool { return other == in })
	s.counters.c.UnknownReplies += uint64(len(in.queue))
	in.queue = nil
}

// send queues one more message with the transaction id of a place that was
// reserved when the first were queued.
func (in *inbox) send(ctx context.Context, place int, m openflow.Message) error {
	if err := in.s.lockWithSpace(ctx); err != nil {
		return err
	}
	defer in.s.mu.Unlock()
	return in.s.appendLocked(in.first+uint32(place), 1, func(int) openflow.Message { return m })
}

// sendAll queues n messages with the transaction ids of the places from place on.
// It takes a piece at a time, so that what a large bundle says neither has to be
// in memory at once nor keeps answers to echo requests waiting behind all of it.
func (in *inbox) sendAll(ctx context.Context, place, n int, message func(i int) openflow.Message) error {
	s := in.s
	for i := 0; i < n; {
		if err := s.lockWithSpace(ctx); err != nil {
			return err
		}
		var err error
		i, err = s.appendSomeLocked(in.first+uint32(place), i, n, piece, message)
		s.mu.Unlock()
		if err != nil {
			return err
		}
	}
	return nil
}

// sendNow is send for a message that must not wait for room in the queue.
func (in *inbox) sendNow(place int, m openflow.Message) error {
	if err := in.s.lockToSend(); err != nil {
		return err
	}
	defer in.s.mu.Unlock()
	return in.s.appendLocked(in.first+uint32(place), 1, func(int) openflow.Message { return m })
}
