package session

import (
	"net"
	"sync"
	"sync/atomic"
	"time"

	"brlb/openflow"
)

// Options are the bounds of a session. The zero value works.
type Options struct {
	// Peer names the other end in errors; empty means the connection's
	// remote address.
	Peer string
	// Handshake bounds Open as a whole; 0 means 5 s.
	Handshake time.Duration
	// Idle is the silence after which the peer is sent an echo request. After
	// as long again without any octet from it the session ends. 0 means 2 s.
	Idle time.Duration
	// WriteStall is how long the peer may take no octet at all while some
	// wait for it; 0 means 5 s.
	WriteStall time.Duration
	// Request bounds a call whose context has no deadline; 0 means 30 s.
	Request time.Duration
	// MaxReply bounds, in octets, all that may answer one call: the parts of
	// a multipart reply, or the errors of a bundle. Each message counts 128
	// octets on top of its length. 0 means 64 MiB.
	MaxReply int
	// MaxQueued is how many octets may wait to be written before calls wait
	// too; the messages of one call are not split over it, except for those of
	// a bundle. 0 means 1 MiB.
	MaxQueued int
	// Events is how many asynchronous messages are kept for the consumer; 0
	// means 512.
	Events int
}

func (o Options) withDefaults(conn net.Conn) Options {
	o.Handshake = orDefault(o.Handshake, 5*time.Second)
	o.Idle = orDefault(o.Idle, 2*time.Second)
	o.WriteStall = orDefault(o.WriteStall, 5*time.Second)
	o.Request = orDefault(o.Request, 30*time.Second)
	if o.MaxReply <= 0 {
		o.MaxReply = 64 << 20
	}
	if o.MaxQueued <= 0 {
		o.MaxQueued = 1 << 20
	}
	if o.Events <= 0 {
		o.Events = 512
	}
	if o.Peer == "" {
		o.Peer = connName(conn)
	}
	return o
}

// connName names a connection by its remote address, or by the local one where
// the remote has none, as on the accepting side of a unix socket.
func connName(conn net.Conn) string {
	for _, a := range []net.Addr{conn.RemoteAddr(), conn.LocalAddr()} {
		if a != nil && a.String() != "" && a.String() != "@" {
			return a.Network() + ":" + a.String()
		}
	}
	return "the peer"
}

// Session is one OpenFlow 1.4 connection. Its methods may be called from any
// goroutine.
type Session struct {
	conn net.Conn
	opts Options

	// Set by Open before anyone else sees the session.
	features *openflow.FeaturesReply
	desc     openflow.Desc

	events chan Event
	done   chan struct{}
	loops  sync.WaitGroup
	wake   chan struct{} // tells the writer that out has octets
	pieces atomic.Uint64 // that were written

	mu       sync.Mutex
	err      *ClosedError  // nil while the session lives
	broken   error         // why nothing can be written any more
	xid      uint32        // the last one used
	probe    uint32        // xid of the last liveness echo
	bundle   uint32        // the last bundle id used
	out      []byte        // encoded messages that the writer has not taken yet
	echoes   int           // octets of out that are echo replies
	unsent   int           // octets of out and of what is being written
	written  chan struct{} // closed and replaced when unsent has got less
	inboxes  []*inbox
	monitors map[uint32]bool
	counters counters
}

// Features is what the switch said of itself in the handshake (OF1.4 section
// 7.3.1). The value is shared and must not be changed.
func (s *Session) Features() *openflow.FeaturesReply { return s.features }

// Desc is the switch's description from the handshake (OF1.4 section 7.3.5.1).
func (s *Session) Desc() openflow.Desc { return s.desc }

// Done is closed when the session has ended.
func (s *Session) Done() <-chan struct{} { return s.done }

// Err is nil while the session lives, then a *ClosedError that says why it
// ended.
func (s *Session) Err() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.errLocked()
}

func (s *Session) errLocked() error {
	if s.err == nil {
		return nil
	}
	return s.err
}

// Close ends the session, wakes all waiters, and returns when the session's
// goroutines have ended. Messages that were queued and not yet written are lost;
// who needs them on the switch waits for a Barrier first. It may be called more
// than once.
func (s *Session) Close() {
	s.end(ErrClosed, nil)
	s.loops.Wait()
}

// end ends the session for a reason; only the first reason counts.
func (s *Session) end(reason Reason, err error) {
	s.mu.Lock()
	first := s.err == nil
	if first {
		s.err = &ClosedError{Peer: s.opts.Peer, Reason: reason, Err: err}
		close(s.done)
	}
	s.mu.Unlock()
	if first {
		s.conn.Close() // wakes the reader and the writer
	}
}

// fail ends the session and returns why it ended.
func (s *Session) fail(reason Reason, err error) error {
	s.end(reason, err)
	return s.Err()
}
