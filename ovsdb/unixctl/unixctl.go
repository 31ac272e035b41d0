// Package unixctl calls commands of a running Open vSwitch daemon through its
// control socket, as ovs-appctl(8) does: JSON-RPC 1.0 over a unix socket, with
// strings for parameters and a string for an answer.
//
// Commands run in the daemon's main thread. A long one, dpctl/dump-flows of a
// busy switch for instance, holds up OpenFlow: nothing here belongs on a hot
// path.
package unixctl

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

const (
	// DefaultTimeout bounds a command whose context has no deadline.
	DefaultTimeout = 10 * time.Second
	// MaxReply bounds an answer, in bytes as sent.
	MaxReply = 64 << 20

	maxPidFile = 64
	maxQuoted  = 400
)

// ErrClosed is returned by Call after Close.
var ErrClosed = errors.New("unixctl: closed")

// Error is a command that the daemon refused.
type Error struct {
	Method string
	Text   string // the daemon's explanation, without the newline at its end
}

func (e *Error) Error() string {
	return fmt.Sprintf("unixctl: %s: the daemon says %s", e.Method, quoteCut(e.Text))
}

// Find returns the control socket of a daemon, "ovs-vswitchd" or
// "ovsdb-server", by the pid file that it keeps in the run directory
// (/run/openvswitch on most systems).
func Find(rundir, daemon string) (string, error) {
	pid, err := PID(rundir, daemon)
	if err != nil {
		return "", err
	}
	path := filepath.Join(rundir, fmt.Sprintf("%s.%d.ctl", daemon, pid))
	if _, err := os.Stat(path); err != nil {
		return "", fmt.Errorf("unixctl: %s: the control socket of pid %d is missing: %w", daemon, pid, err)
	}
	return path, nil
}

// PID returns a daemon's process id as its pid file has it. In a container that
// is another one than outside.
func PID(rundir, daemon string) (int, error) {
	pidFile := filepath.Join(rundir, daemon+".pid")
	f, err := os.Open(pidFile)
	if err != nil {
		return 0, fmt.Errorf("unixctl: %s does not seem to run: %w", daemon, err)
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxPidFile))
	if err != nil {
		return 0, fmt.Errorf("unixctl: %s: %w", pidFile, err)
	}
	pid, err := strconv.ParseUint(strings.TrimSpace(string(text)), 10, 31)
	if err != nil || pid == 0 {
		return 0, fmt.Errorf("unixctl: %s holds %s instead of a process id", pidFile, quoteCut(string(text)))
	}
	return int(pid), nil
}

// Conn is a connection to a daemon's control socket. The daemon runs one
// command of a connection at a time, and so does Conn: calls from several
// goroutines wait for each other.
//
// After a call that did not end in an answer, because its context ended or the
// connection was lost, the next one connects anew.
type Conn struct {
	locate func() (path string, err error)
	turn   chan struct{} // holds a token while nobody calls

	mu     sync.Mutex
	nc     net.Conn // nil: to be connected
	closed bool
	lastID uint64
}

// Daemon returns a Conn to the daemon that keeps its pid file in rundir. Nothing
// is connected before the first call. Each time it has to connect it finds the
// socket by [Find], so it survives restarts of the daemon.
func Daemon(rundir, daemon string) *Conn {
	return newConn(func() (string, error) { return Find(rundir, daemon) })
}

// Dial connects to the control socket at path.
func Dial(ctx context.Context, path string) (*Conn, error) {
	c := newConn(func() (string, error) { return path, nil })
	nc, err := c.connect(ctx)
	if err != nil {
		return nil, err
	}
	c.nc = nc
	return c, nil
}

func newConn(locate func() (string, error)) *Conn {
	c := &Conn{locate: locate, turn: make(chan struct{}, 1)}
	c.turn <- struct{}{}
	return c
}

func (c *Conn) connect(ctx context.Context) (net.Conn, error) {
	path, err := c.locate()
	if err != nil {
		return nil, err
	}
	var d net.Dialer
	nc, err := d.DialContext(ctx, "unix", path)
	if err != nil {
		return nil, fmt.Errorf("unixctl: connect to %s: %w", path, err)
	}
	return nc, nil
}

// Close ends the connection, and a call that waits for an answer with it.
func (c *Conn) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil
	}
	c.closed = true
	return c.drop()
}

// drop closes the connection; c.mu is held.
func (c *Conn) drop() error {
	if c.nc == nil {
		return nil
	}
	err := c.nc.Close()
	c.nc = nil
	return err
}

// Call runs a command and returns its output. "list-commands" shows what there
// is. The answer must come within ctx's deadline, or DefaultTimeout if it has
// none. A command that the daemon refuses is an [Error]; after any other error
// the command may have been run or not.
func (c *Conn) Call(ctx context.Context, method string, params ...string) (string, error) {
	var text string
	err := c.run(ctx, method, params, func(r io.Reader, id uint64) (err error) {
		text, err = readReply(r, id, method)
		return err
	})
	return text, err
}

// run sends one command and has its answer read.
func (c *Conn) run(ctx context.Context, method string, params []string, read func(r io.Reader, id uint64) error) error {
	if _, ok := ctx.Deadline(); !ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, DefaultTimeout)
		defer cancel()
	}
	select {
	case <-c.turn:
		defer func() { c.turn <- struct{}{} }()
	case <-ctx.Done():
		return fmt.Errorf("unixctl: %s: another command holds the connection: %w", method, context.Cause(ctx))
	}

	nc, id, err := c.acquire(ctx)
	if err != nil {
		return err
	}
	msg, err := appendRequest(nil, id, method, params)
	if err != nil {
		return fmt.Errorf("unixctl: %s: %w", method, err)
	}
	// The end of ctx is made a deadline in the past, which ends reads and
	// writes at once.
	stop := context.AfterFunc(ctx, func() { nc.SetDeadline(time.Unix(1, 0)) })
	_, err = nc.Write(msg)
	if err == nil {
		err = read(nc, id)
	}
	cancelled := !stop()
	var refused *Error
	if err == nil || errors.As(err, &refused) {
		if cancelled {
			c.abandon() // its deadline has passed or is about to
		}
		return err
	}
	c.abandon()
	switch {
	case c.isClosed():
		return ErrClosed
	case ctx.Err() != nil:
		return fmt.Errorf("unixctl: %s: no answer: %w", method, context.Cause(ctx))
	}
	return fmt.Errorf("unixctl: %s: %w", method, err)
}

// acquire returns the connection, made anew if need be, and the next id.
func (c *Conn) acquire(ctx context.Context) (net.Conn, uint64, error) {
	c.mu.Lock()
	nc, closed := c.nc, c.closed
	c.lastID++
	id := c.lastID
	c.mu.Unlock()
	if closed {
		return nil, 0, ErrClosed
	}
	if nc != nil {
		return nc, id, nil
	}
	nc, err := c.connect(ctx)
	if err != nil {
		return nil, 0, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		nc.Close()
		return nil, 0, ErrClosed
	}
	c.nc = nc
	return nc, id, nil
}

func (c *Conn) abandon() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.drop() // its error says nothing that the caller is not told
}

func (c *Conn) isClosed() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.closed
}

func appendRequest(b []byte, id uint64, method string, params []string) ([]byte, error) {
	b = append(b, `{"id":`...)
	b = strconv.AppendUint(b, id, 10)
	b = append(b, `,"method":`...)
	b, err := appendText(b, method)
	if err != nil {
		return nil, err
	}
	b = append(b, `,"params":[`...)
	for i, p := range params {
		if i > 0 {
			b = append(b, ',')
		}
		if b, err = appendText(b, p); err != nil {
			return nil, fmt.Errorf("parameter %d: %w", i+1, err)
		}
	}
	return append(b, "]}"...), nil
}

// appendText writes a JSON string that a C program can hold.
func appendText(b []byte, s string) ([]byte, error) {
	if strings.IndexByte(s, 0) >= 0 {
		return nil, fmt.Errorf("%s has a character U+0000", quoteCut(s))
	}
	if !utf8.ValidString(s) {
		return nil, fmt.Errorf("%s is not valid UTF-8", quoteCut(s))
	}
	return jsontext.AppendQuote(b, s)
}

// reply is a response as far as it matters: {"id":1,"result":"..."} with or
// without "error":null, or {"id":1,"error":"..."} with or without a result.
type reply struct{ id, result, failure jsontext.Value }

// readReply reads exactly one response. The daemon sends nothing behind it
// before the next request, so reading ahead loses nothing.
func readReply(r io.Reader, id uint64, method string) (string, error) {
	dec := jsontext.NewDecoder(io.LimitReader(r, MaxReply))
	msg, err := dec.ReadValue()
	switch {
	case err != nil && dec.InputOffset() == 0 && errors.Is(err, io.EOF):
		return "", errors.New("the daemon closed the connection")
	case err != nil:
		return "", fmt.Errorf("reading the answer: %w", err)
	}
	p, err := parseReply(msg)
	if err != nil {
		return "", err
	}
	if string(p.id) != strconv.FormatUint(id, 10) {
		return "", fmt.Errorf("the answer is for request %s, not %d", quoteCut(string(p.id)), id)
	}
	if p.failure != nil && p.failure.Kind() != 'n' {
		return "", &Error{Method: method, Text: strings.TrimSuffix(plain(p.failure), "\n")}
	}
	if p.result == nil {
		return "", fmt.Errorf("the answer %s has no result", quoteCut(string(msg)))
	}
	return plain(p.result), nil
}

func parseReply(msg jsontext.Value) (reply, error) {
	var p reply
	if msg.Kind() != '{' {
		return p, fmt.Errorf("the answer %s is not an object", quoteCut(string(msg)))
	}
	dec := jsontext.NewDecoder(bytes.NewReader(msg))
	if _, err := dec.ReadToken(); err != nil {
		return p, err
	}
	for dec.PeekKind() != '}' {
		name, err := dec.ReadToken()
		if err != nil {
			return p, err
		}
		member := name.String()
		v, err := dec.ReadValue()
		if err != nil {
			return p, err
		}
		switch member {
		case "id":
			p.id = v.Clone()
		case "result":
			p.result = v.Clone()
		case "error":
			p.failure = v.Clone()
		}
	}
	return p, nil
}

// plain returns the text of a JSON string, and other JSON as it is: newer
// daemons answer some commands with it if asked to (set-options --format json).
func plain(v jsontext.Value) string {
	if v.Kind() != '"' {
		return string(v)
	}
	b, err := jsontext.AppendUnquote(nil, v)
	if err != nil {
		return string(v)
	}
	return string(b)
}

// quoteCut quotes text that a peer controls, and cuts it.
func quoteCut(s string) string {
	if len(s) > maxQuoted {
		return strconv.Quote(s[:maxQuoted]) + "..."
	}
	return strconv.Quote(s)
}
