package ovsdb

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"sync"
	"time"

	"github.com/go-json-experiment/json/jsontext"
)

const (
	// writeTimeout bounds how long the server may take to accept writeChunk
	// bytes.
	writeTimeout = 10 * time.Second
	writeChunk   = 64 << 10
	readBuffer   = 32 << 10
	// maxBacklog bounds what waits for a server that does not read.
	maxBacklog = 16 << 20
)

// errNotReading is what callers get while maxBacklog is exceeded.
var errNotReading = fmt.Errorf("ovsdb: the server does not read: %d MB wait to be sent", maxBacklog>>20)

// conn is one connection: JSON-RPC 1.0 as ovsdb-server speaks it (RFC 7047 §4).
//
// One goroutine reads, one writes. The reader never waits: not for the writer,
// whose queue is bounded by maxBacklog, and not for whoever gets the results,
// which are decoded in the reader and handed over complete. So order is kept:
// whatever the server sent before a response has been dealt with when the
// response's caller wakes.
type conn struct {
	nc    net.Conn
	in    *reader
	peer  peer
	probe time.Duration

	mu      sync.Mutex
	out     []byte // waits for the writer
	pending map[uint64]*call
	lastID  uint64
	err     error // why the connection ended

	wake chan struct{} // tells the writer that out is not empty
	dead chan struct{} // closed when err is set
	done sync.WaitGroup
}

// peer is told what the server sends on its own. Its methods run in the reader
// goroutine and must not wait.
type peer interface {
	// notification handles a message with no answer; r is before its params.
	// A contentError leaves the connection as it is, any other error ends it.
	notification(method string, r *reader) error
	// stray is called for a response that nobody waits for.
	stray()
}

// call is a request whose response is awaited.
type call struct {
	method string
	// result decodes the response's result in the reader goroutine.
	result func(r *reader) error
	// done is called once, in the reader goroutine, with the outcome: nil, a
	// *RPCError, a contentError of result, or why the connection ended.
	done func(error)
}

// RPCError is a request that the server answered with an error.
type RPCError struct {
	Method string
	Code   string // "unknown database"
	// Details is the server's explanation, "" if it gave none.
	Details string
}

func (e *RPCError) Error() string {
	if e.Details == "" {
		return fmt.Sprintf("ovsdb: %s: the server says %s", e.Method, quoteCut(e.Code))
	}
	return fmt.Sprintf("ovsdb: %s: the server says %s: %s", e.Method, quoteCut(e.Code), quoteCut(e.Details))
}

var errUnknownMethod = errors.New("unknown method")

// Is makes errors.Is tell a server that does not know a method.
func (e *RPCError) Is(target error) bool {
	return target == errUnknownMethod && e.Code == "unknown method"
}

func newConn(nc net.Conn, p peer, probe time.Duration, maxMessage int64) *conn {
	c := &conn{
		nc: nc, peer: p, probe: probe,
		pending: make(map[uint64]*call),
		wake:    make(chan struct{}, 1),
		dead:    make(chan struct{}),
	}
	c.in = newReader(bufio.NewReaderSize(&probedInput{c: c}, readBuffer), maxMessage)
	c.done.Go(c.read)
	c.done.Go(c.write)
	return c
}

// fail ends the connection; the first reason stays.
func (c *conn) fail(reason error) {
	c.mu.Lock()
	first := c.err == nil
	if first {
		c.err = reason
		close(c.dead)
	}
	c.mu.Unlock()
	if first {
		// Not under the lock: the end of TLS may wait for the peer. The error
		// says nothing that reason does not.
		c.nc.Close()
	}
}

// reason is why the connection ended.
func (c *conn) reason() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

// start sends a request. If it returns an error, nothing was or will be sent,
// and k.done is not called. The id is for forget and for cancel.
func (c *conn) start(method string, params []byte, k *call) (id uint64, err error) {
	k.method = method
	c.mu.Lock()
	defer c.mu.Unlock()
	id = c.lastID + 1
	msg := appendMessage(nil, method, params, strconv.AppendUint(nil, id, 10))
	if err := c.enqueue(msg); err != nil {
		return 0, err
	}
	c.lastID = id
	c.pending[id] = k
	return id, nil
}

// notify sends a message that has no answer.
func (c *conn) notify(method string, params []byte) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.enqueue(appendMessage(nil, method, params, []byte("null")))
}

// forget gives up waiting for a response.
func (c *conn) forget(id uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.pending, id)
}

// enqueue hands msg to the writer; c.mu is held.
func (c *conn) enqueue(msg []byte) error {
	if c.err != nil {
		return c.err
	}
	if len(c.out) > 0 && len(c.out)+len(msg) > maxBacklog {
		return errNotReading
	}
	c.out = append(c.out, msg...)
	select {
	case c.wake <- struct{}{}:
	default:
	}
	return nil
}

func appendMessage(b []byte, method string, params, id []byte) []byte {
	b = append(b, `{"method":`...)
	b = strconv.AppendQuote(b, method) // method names are plain ASCII
	b = append(b, `,"params":`...)
	b = append(b, params...)
	b = append(b, `,"id":`...)
	b = append(b, id...)
	return append(b, '}')
}

func (c *conn) write() {
	var buf []byte
	for {
		select {
		case <-c.dead:
			return
		case <-c.wake:
		}
		c.mu.Lock()
		buf, c.out = c.out, buf[:0]
		c.mu.Unlock()
		for rest := buf; len(rest) > 0; {
			n := min(len(rest), writeChunk)
			if err := c.nc.SetWriteDeadline(time.Now().Add(writeTimeout)); err != nil {
				c.fail(fmt.Errorf("ovsdb: write: %w", err))
				return
			}
			if _, err := c.nc.Write(rest[:n]); err != nil {
				c.fail(fmt.Errorf("ovsdb: write: %w", err))
				return
			}
			rest = rest[n:]
		}
		if cap(buf) > maxBacklog/4 {
			buf = nil // a rare big message need not stay in memory
		}
	}
}

// probedInput reads from the connection, and asks for a sign of life when
// nothing has come for a while.
type probedInput struct {
	c     *conn
	asked bool
}

func (p *probedInput) Read(b []byte) (int, error) {
	for {
		if err := p.c.nc.SetReadDeadline(time.Now().Add(p.c.probe)); err != nil {
			return 0, err
		}
		n, err := p.c.nc.Read(b)
		if n > 0 || !errors.Is(err, os.ErrDeadlineExceeded) {
			p.asked = false
			return n, err
		}
		if p.asked {
			return 0, fmt.Errorf("the server was silent for %v and did not answer an echo for as long", p.c.probe)
		}
		p.asked = true
		if _, err := p.c.start("echo", []byte("[]"), &call{result: skipResult, done: func(error) {}}); err != nil {
			return 0, err
		}
	}
}

func skipResult(r *reader) error { return r.dec.SkipValue() }

func (c *conn) read() {
	for {
		c.in.nextMessage()
		if err := c.readMessage(); err != nil {
			if errors.Is(err, io.EOF) {
				err = errors.New("the server closed the connection")
			}
			c.fail(fmt.Errorf("ovsdb: read: %w", err))
			break
		}
	}
	c.mu.Lock()
	pending, err := c.pending, c.err
	c.pending = nil
	c.mu.Unlock()
	for _, k := range pending {
		k.done(err)
	}
}

// message is what readMessage has seen of a message so far. Members come in any
// order; params and result are decoded on the way if what they belong to is
// known, and else kept until it is.
type message struct {
	method         string
	id             []byte // as sent; nil if absent or null
	params, result jsontext.Value
	failure        jsontext.Value // nil if absent or null
	handled        bool           // params or result were decoded on the way
	call           *call
	number         uint64 // of call
	err            error  // contentError of decoding params or result
}

func (c *conn) readMessage() error {
	r := c.in
	if _, err := r.enter('{'); err != nil {
		return err
	}
	var m message
	for {
		more, err := r.more()
		if err != nil {
			return err
		}
		if !more {
			return c.dispatch(&m)
		}
		name, err := r.text()
		if err != nil {
			return err
		}
		switch string(name) {
		case "method":
			text, err := r.text()
			if err != nil {
				return err
			}
			m.method = string(text)
		case "id":
			err = c.readID(&m)
		case "params":
			if m.method != "" && m.method != "echo" {
				m.handled = true
				m.err, err = r.guard(func() error { return c.peer.notification(m.method, r) })
			} else {
				m.params, err = r.keep()
			}
		case "result":
			if m.call != nil && r.dec.PeekKind() != 'n' {
				m.handled = true
				m.err, err = r.guard(func() error { return m.call.result(r) })
			} else {
				m.result, err = r.keep()
			}
		case "error":
			m.failure, err = r.keep()
		default:
			err = r.dec.SkipValue()
		}
		if err != nil {
			return err
		}
	}
}

// newTextReader decodes a value that keep returned.
func newTextReader(v jsontext.Value) *reader {
	if v == nil {
		v = jsontext.Value("null")
	}
	return newReader(bytes.NewReader(v), int64(len(v))+1) // and its end
}

// keep reads a value as it is; nil for null.
func (r *reader) keep() (jsontext.Value, error) {
	v, err := r.dec.ReadValue()
	if err != nil || v.Kind() == 'n' {
		return nil, err
	}
	return v.Clone(), nil
}

// guard decodes one value by f, and skips what is left of it if f finds wrong
// content. Any other error is returned as fatal.
func (r *reader) guard(f func() error) (content, fatal error) {
	depth := r.dec.StackDepth()
	_, before := r.dec.StackIndex(depth)
	if content = f(); content != nil && !isContentError(content) {
		return nil, content
	}
	if err := r.leave(depth + 1); err != nil {
		return nil, err
	}
	if _, after := r.dec.StackIndex(depth); after == before {
		return content, r.dec.SkipValue()
	}
	return content, nil
}

func (c *conn) readID(m *message) error {
	id, err := c.in.keep()
	if err != nil || id == nil {
		return err
	}
	m.id = id
	if n, err := strconv.ParseUint(string(id), 10, 64); err == nil && m.method == "" {
		c.mu.Lock()
		m.call, m.number = c.pending[n], n
		c.mu.Unlock()
	}
	return nil
}

// dispatch finishes a message that has been read to its end.
func (c *conn) dispatch(m *message) error {
	switch {
	case m.method == "echo":
		return c.answerEcho(m)
	case m.method != "":
		if !m.handled {
			if err := c.peer.notification(m.method, newTextReader(m.params)); err != nil && !isContentError(err) {
				return err
			}
		}
		return nil
	case m.call == nil:
		c.peer.stray()
		return nil
	}
	c.forget(m.number)
	switch {
	case m.failure != nil:
		m.err = newRPCError(m.call.method, m.failure)
	case !m.handled:
		m.err = m.call.result(newTextReader(m.result))
	}
	m.call.done(m.err)
	return nil
}

func (c *conn) answerEcho(m *message) error {
	params, id := m.params, m.id
	if params == nil {
		params = jsontext.Value("[]")
	}
	if id == nil {
		return nil // a notification wants no answer
	}
	var b []byte
	b = append(b, `{"id":`...)
	b = append(b, id...)
	b = append(b, `,"result":`...)
	b = append(b, params...)
	b = append(b, `,"error":null}`...)
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.enqueue(b)
}

// newRPCError reads an <error>, which ovsdb-server writes as an object or as a
// bare string.
func newRPCError(method string, text jsontext.Value) *RPCError {
	e := &RPCError{Method: method}
	r := newTextReader(text)
	if text.Kind() == '"' {
		code, _ := r.text()
		e.Code = string(code)
		return e
	}
	code, details, err := r.errorObject()
	if err != nil {
		code = string(text)
	}
	e.Code, e.Details = code, details
	return e
}

// errorObject reads an <error> object (RFC 7047 §3.1). An object without the
// member "error" is a contentError.
func (r *reader) errorObject() (code, details string, err error) {
	if _, err := r.enter('{'); err != nil {
		return "", "", err
	}
	for {
		more, err := r.more()
		if err != nil {
			return "", "", err
		}
		if !more {
			break
		}
		name, err := r.text()
		if err != nil {
			return "", "", err
		}
		into := (*string)(nil)
		switch string(name) {
		case "error":
			into = &code
		case "details":
			into = &details
		}
		if into == nil || r.dec.PeekKind() != '"' {
			if err := r.dec.SkipValue(); err != nil {
				return "", "", err
			}
			continue
		}
		text, err := r.text()
		if err != nil {
			return "", "", err
		}
		*into = string(text)
	}
	if code == "" {
		return "", "", contentErrorf("an error without a name")
	}
	return code, details, nil
}
