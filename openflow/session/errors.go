package session

import (
	"fmt"
	"strings"

	"brlb/openflow"
)

// Reason is why a session ended. Reasons are errors themselves, for errors.Is.
type Reason string

// The reasons.
const (
	// ErrClosed: Close was called.
	ErrClosed Reason = "closed by this side"
	// ErrHangup: the connection broke, or the peer closed it.
	ErrHangup Reason = "the connection was lost"
	// ErrSilent: no octet came for twice Options.Idle.
	ErrSilent Reason = "the peer fell silent"
	// ErrStalled: the peer took no octet for Options.WriteStall.
	ErrStalled Reason = "the peer stopped reading"
	// ErrHandshake: the handshake was not finished in time. Open vSwitch
	// answers nothing while its database server is down, and a unix socket
	// accepts connections that nobody will ever serve.
	ErrHandshake Reason = "handshake not finished"
	// ErrNotOpenFlow: what the peer sent first is no OpenFlow HELLO.
	ErrNotOpenFlow Reason = "the peer does not speak OpenFlow"
	// ErrVersion: the peer does not speak OpenFlow 1.4.
	ErrVersion Reason = "the peer does not speak OpenFlow 1.4"
	// ErrMalformed: the peer sent octets that are no message.
	ErrMalformed Reason = "the peer sent a malformed message"
	// ErrLimit: a reply exceeded Options.MaxReply.
	ErrLimit Reason = "the peer sent more than a reply may hold"
)

// Error returns the reason as text.
func (r Reason) Error() string { return string(r) }

// ClosedError is the error of every call on a session that has ended or could
// not be opened.
type ClosedError struct {
	// Peer names the other end.
	Peer string
	// Reason is why the session ended.
	Reason Reason
	// Err says more, if there is more to say.
	Err error
}

// Error says which session ended, why, and the details.
func (e *ClosedError) Error() string {
	s := fmt.Sprintf("openflow session with %s: %s", e.Peer, string(e.Reason))
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	return s
}

// Unwrap returns the reason and the details.
func (e *ClosedError) Unwrap() []error {
	if e.Err == nil {
		return []error{e.Reason}
	}
	return []error{e.Reason, e.Err}
}

// MessageError is a message that the switch refused.
type MessageError struct {
	// Index is the message's place among those given to the call. It is -1 if
	// the switch refused what the session sent around them: the barrier, or
	// the opening or the commit of a bundle.
	Index int
	Err   *openflow.Error
}

// Error names the message and the switch's reason.
func (e *MessageError) Error() string {
	if e.Index < 0 {
		return e.Err.Error()
	}
	return fmt.Sprintf("message %d: %v", e.Index, e.Err)
}

// Unwrap returns the switch's error.
func (e *MessageError) Unwrap() error { return e.Err }

// RejectedError is all that the switch refused, in the order in which it said
// so: the first is the cause.
type RejectedError []*MessageError

// Error names the first few refusals and counts the rest.
func (e RejectedError) Error() string {
	const shown = 3
	var b strings.Builder
	b.WriteString("the switch refused ")
	for i, m := range e[:min(len(e), shown)] {
		if i > 0 {
			b.WriteString("; ")
		}
		b.WriteString(m.Error())
	}
	if more := len(e) - shown; more > 0 {
		fmt.Fprintf(&b, "; and %d more", more)
	}
	return b.String()
}

// Unwrap returns the refusals.
func (e RejectedError) Unwrap() []error {
	errs := make([]error, len(e))
	for i, m := range e {
		errs[i] = m
	}
	return errs
}

// quote returns octets of a peer fit for an error text.
func quote(b []byte) string {
	const shown = 32
	if len(b) > shown {
		return fmt.Sprintf("%q...", b[:shown])
	}
	return fmt.Sprintf("%q", b)
}
