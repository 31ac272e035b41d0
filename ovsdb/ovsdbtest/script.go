package ovsdbtest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Patience bounds how long a Script waits for what its test expects.
const Patience = 20 * time.Second

// Script is a server whose every byte the test decides. Clients reach it by
// Dial, which needs no socket and so works in a testing/synctest bubble, or on
// the unix socket that Listen opens. Its methods are for the test's goroutine,
// except Dial.
type Script struct {
	t     testing.TB
	conns chan net.Conn
}

// NewScript returns a server that nobody is connected to.
func NewScript(t testing.TB) *Script {
	return &Script{t: t, conns: make(chan net.Conn)}
}

// Dial connects to the script, whatever the address. It waits until the script
// accepts, as long as ctx allows.
func (s *Script) Dial(ctx context.Context, _, _ string) (net.Conn, error) {
	client, server := net.Pipe()
	select {
	case s.conns <- server:
		return client, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Listen makes the script reachable on a unix socket until the test ends, and
// returns the endpoint.
func (s *Script) Listen() string {
	s.t.Helper()
	path := filepath.Join(shortDir(s.t), "db.sock")
	ln, err := net.Listen("unix", path)
	if err != nil {
		s.t.Fatal(err)
	}
	ended, done := make(chan struct{}), make(chan struct{})
	s.t.Cleanup(func() {
		close(ended)
		ln.Close()
		<-done
	})
	go func() {
		defer close(done)
		for {
			nc, err := ln.Accept()
			if err != nil {
				return
			}
			select {
			case s.conns <- nc:
			case <-ended:
				nc.Close()
				return
			}
		}
	}()
	return "unix:" + path
}

// Accept waits for the next client.
func (s *Script) Accept() *Peer {
	s.t.Helper()
	select {
	case nc := <-s.conns:
		p := &Peer{t: s.t, nc: nc, dec: jsontext.NewDecoder(nc)}
		s.t.Cleanup(p.Cut)
		return p
	case <-time.After(Patience):
		s.t.Fatal("no client connects")
		return nil
	}
}

// Peer is one client that is connected to a Script.
type Peer struct {
	t   testing.TB
	nc  net.Conn
	dec *jsontext.Decoder
}

// Request is a message from a client.
type Request struct {
	Method string         `json:"method"`
	Params jsontext.Value `json:"params"`
	ID     jsontext.Value `json:"id"`
}

// NextRaw reads the client's next message as it is.
func (p *Peer) NextRaw() (string, error) {
	if err := p.nc.SetReadDeadline(time.Now().Add(Patience)); err != nil {
		return "", err
	}
	v, err := p.dec.ReadValue()
	return string(v), err
}

// Next reads the client's next message, whatever it is. It fails with an error
// when the client is gone.
func (p *Peer) Next() (Request, error) {
	text, err := p.NextRaw()
	if err != nil {
		return Request{}, err
	}
	var r Request
	err = json.Unmarshal([]byte(text), &r)
	return r, err
}

// Expect reads the client's next message, which must be of the method.
func (p *Peer) Expect(method string) Request {
	p.t.Helper()
	r, err := p.Next()
	if err != nil {
		p.t.Fatalf("waiting for %s: %v", method, err)
	}
	if r.Method != method {
		p.t.Fatalf("got %s %s, want %s", r.Method, r.Params, method)
	}
	return r
}

// ExpectGone waits for the client to end the connection, and ignores what it
// sends before.
func (p *Peer) ExpectGone() {
	p.t.Helper()
	for {
		if _, err := p.Next(); errors.Is(err, os.ErrDeadlineExceeded) {
			p.t.Fatal("the client stays")
		} else if err != nil {
			return
		}
	}
}

// Send sends text as it is, and may wait for the client to read it.
func (p *Peer) Send(text string) {
	p.t.Helper()
	if err := p.TrySend(text); err != nil {
		p.t.Fatalf("send: %v", err)
	}
}

// TrySend is Send to a client that may be gone.
func (p *Peer) TrySend(text string) error {
	if err := p.nc.SetWriteDeadline(time.Now().Add(Patience)); err != nil {
		return err
	}
	_, err := p.nc.Write([]byte(text))
	return err
}

// Reply answers a request with a result, in JSON.
func (p *Peer) Reply(r Request, result string) {
	p.t.Helper()
	p.Send(fmt.Sprintf(`{"id":%s,"result":%s,"error":null}`, r.ID, result))
}

// Fail answers a request with an error, in JSON: a string or an object.
func (p *Peer) Fail(r Request, failure string) {
	p.t.Helper()
	p.Send(fmt.Sprintf(`{"id":%s,"error":%s}`, r.ID, failure))
}

// Notify sends a notification with parameters in JSON.
func (p *Peer) Notify(method, params string) {
	p.t.Helper()
	p.Send(fmt.Sprintf(`{"id":null,"method":%q,"params":%s}`, method, params))
}

// Cut ends the connection. It may be called again.
func (p *Peer) Cut() { p.nc.Close() }

// Handshake answers what a client of package ovsdb asks first, as a server with
// one database and without the database _Server does. The schema is in JSON.
func (p *Peer) Handshake(schema string) {
	p.t.Helper()
	var s struct {
		Name string `json:"name"`
	}
	if err := json.UnmarshalRead(strings.NewReader(schema), &s); err != nil {
		p.t.Fatal(err)
	}
	p.Reply(p.Expect("list_dbs"), fmt.Sprintf("[%q]", s.Name))
	p.Fail(p.Expect("get_server_id"), `"unknown method"`)
	p.Reply(p.Expect("get_schema"), schema)
}
