package api

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/go-json-experiment/json"
)

const (
	// heartbeat is how often a quiet event stream says that it lives.
	heartbeat = 15 * time.Second
	// breath is the least time between two looks at the backend by one stream:
	// what happens in between is sent in one go.
	breath = 50 * time.Millisecond
)

// events answers with the remembered events, or follows them as server-sent
// events (WHATWG HTML, section 9.2): the id is the event's number, the data its
// JSON. A browser that reconnects says in Last-Event-ID where it was.
func (s *Server) events(w http.ResponseWriter, r *http.Request) {
	q, err := query(r, "after", "follow")
	if err != nil {
		s.fail(w, r, err)
		return
	}
	after, follow := q.number("after", 64), q.flag("follow")
	if id := r.Header.Get("Last-Event-ID"); id != "" && follow {
		q.Set("Last-Event-ID", id)
		after = q.number("Last-Event-ID", 64)
	}
	switch {
	case q.err != nil:
		s.fail(w, r, q.err)
	case follow:
		s.follow(w, r, after)
	default:
		s.send(w, r, http.StatusOK, s.backend.Events(after))
	}
}

func (s *Server) follow(w http.ResponseWriter, r *http.Request, after uint64) {
	select {
	case s.followers <- struct{}{}:
		defer func() { <-s.followers }()
	default:
		w.Header().Set("Retry-After", "10")
		s.send(w, r, http.StatusServiceUnavailable,
			Error{fmt.Sprintf("%d clients follow the events already: try again later", maxFollowers)})
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	out := &stream{w: w, control: http.NewResponseController(w)}
	out.control.SetReadDeadline(time.Time{})
	after = s.rewind(after)
	for {
		changed := s.backend.Changed()
		for _, event := range s.backend.Events(after).Events {
			out.event(event)
			after = event.Seq
		}
		out.flush()
		if !out.wait(r.Context(), changed) {
			return
		}
	}
}

// rewind starts over a client that has seen more than there is: it talked to an
// earlier run of brlb, whose numbers say nothing here.
func (s *Server) rewind(after uint64) uint64 {
	known := s.backend.Events(0).Events
	if len(known) == 0 || after > known[len(known)-1].Seq {
		return 0
	}
	return after
}

// stream collects what is sent in one go and remembers the first error.
type stream struct {
	w       http.ResponseWriter
	control *http.ResponseController
	buf     bytes.Buffer
	err     error
}

func (s *stream) event(e Event) {
	data, err := json.Marshal(e)
	if err != nil {
		s.err = err
		return
	}
	fmt.Fprintf(&s.buf, "id: %d\ndata: %s\n\n", e.Seq, data)
}

// flush sends at least a comment, so that the client's side knows that the
// stream is open. A client that doesn't read is given up.
func (s *stream) flush() {
	if s.buf.Len() == 0 {
		s.buf.WriteString(":\n\n")
	}
	if s.err == nil {
		s.control.SetWriteDeadline(time.Now().Add(ioTime))
		_, s.err = s.w.Write(s.buf.Bytes())
	}
	if s.err == nil {
		s.err = s.control.Flush()
	}
	s.buf.Reset()
}

// wait returns true when it is time to look again.
func (s *stream) wait(ctx context.Context, changed <-chan struct{}) bool {
	if s.err != nil || !sleep(ctx, breath, nil) {
		return false
	}
	return sleep(ctx, heartbeat, changed)
}

// sleep waits for the time to pass or the signal to come; false means that the
// context is done.
func sleep(ctx context.Context, d time.Duration, signal <-chan struct{}) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
	case <-signal:
	}
	return true
}
