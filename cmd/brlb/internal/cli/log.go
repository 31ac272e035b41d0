package cli

import (
	"io"
	"log/slog"
	"sync"
	"time"
)

const (
	// logLines bounds the lines that wait to be written.
	logLines = 1024
	// logFlushTime is how long the last lines may take.
	logFlushTime = time.Second
)

// newLogger returns a logger that writes to out without ever waiting for it, and
// a function that ends it.
func newLogger(out io.Writer, level, form string) (logger *slog.Logger, flush func(), err error) {
	levels := map[string]slog.Level{"debug": slog.LevelDebug, "info": slog.LevelInfo, "warn": slog.LevelWarn, "error": slog.LevelError}
	least, ok := levels[level]
	if !ok {
		return nil, nil, usageErrorf("--log-level is %q: it must be debug, info, warn or error", level)
	}
	options := &slog.HandlerOptions{Level: least}
	var to func(io.Writer) *slog.Logger
	switch form {
	case "text":
		to = func(w io.Writer) *slog.Logger { return slog.New(slog.NewTextHandler(w, options)) }
	case "json":
		to = func(w io.Writer) *slog.Logger { return slog.New(slog.NewJSONHandler(w, options)) }
	default:
		return nil, nil, usageErrorf("--log-format is %q: it must be text or json", form)
	}
	queue := newLogQueue(out, to(out))
	return to(queue), queue.Close, nil
}

// logQueue keeps a log that nobody reads, a stopped pipe say, from stopping
// those who write to it: lines wait in a bounded queue, and what doesn't fit is
// dropped and counted.
type logQueue struct {
	out    io.Writer
	direct *slog.Logger  // writes to out
	done   chan struct{} // closed when every line is written

	mu      sync.Mutex
	lines   chan []byte
	dropped int
	closed  bool
}

func newLogQueue(out io.Writer, direct *slog.Logger) *logQueue {
	q := &logQueue{out: out, direct: direct, done: make(chan struct{}), lines: make(chan []byte, logLines)}
	go q.write()
	return q
}

// Write queues one line. It never waits and never fails.
func (q *logQueue) Write(line []byte) (int, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return len(line), nil
	}
	select {
	case q.lines <- append([]byte(nil), line...): // the caller reuses its buffer
	default:
		q.dropped++
	}
	return len(line), nil
}

func (q *logQueue) write() {
	defer close(q.done)
	for line := range q.lines {
		q.out.Write(line) // there is nowhere to tell of an error
		if n := q.takeDropped(); n > 0 {
			q.direct.Error("log lines were dropped: they came faster than they could be written", "lines", n)
		}
	}
}

func (q *logQueue) takeDropped() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	n := q.dropped
	q.dropped = 0
	return n
}

// Close writes what waits, but doesn't wait long for it.
func (q *logQueue) Close() {
	q.mu.Lock()
	q.closed = true
	close(q.lines)
	q.mu.Unlock()
	select {
	case <-q.done:
	case <-time.After(logFlushTime):
	}
}
