package cli

import (
	"bytes"
	"strings"
	"sync"
	"testing"
)

// gate is a writer that nobody reads until it is opened.
type gate struct {
	open chan struct{}
	mu   sync.Mutex
	buf  bytes.Buffer
}

func (g *gate) Write(p []byte) (int, error) {
	<-g.open
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.buf.Write(p)
}

// TestLogNeverBlocks: a log that nobody reads loses lines and says how many.
func TestLogNeverBlocks(t *testing.T) {
	out := &gate{open: make(chan struct{})}
	logger, flush, err := newLogger(out, "info", "text")
	if err != nil {
		t.Fatal(err)
	}
	const lines = logLines + 100
	for i := range lines {
		logger.Info("line", "n", i) // returns at once
	}
	close(out.open)
	flush()
	out.mu.Lock()
	defer out.mu.Unlock()
	written := strings.Count(out.buf.String(), "msg=line")
	// One line more than the queue holds may be in the writer's hands.
	if written != logLines && written != logLines+1 {
		t.Errorf("%d lines were written", written)
	}
	if !strings.Contains(out.buf.String(), "log lines were dropped") {
		t.Error("nothing says that lines were dropped")
	}
}

func TestLogAfterTheEnd(t *testing.T) {
	var out bytes.Buffer
	logger, flush, err := newLogger(&out, "warn", "json")
	if err != nil {
		t.Fatal(err)
	}
	logger.Info("too unimportant")
	logger.Warn("last words")
	flush()
	logger.Warn("too late")
	if got := out.String(); !strings.Contains(got, "last words") || strings.Contains(got, "too") {
		t.Errorf("the log is %q", got)
	}
}
