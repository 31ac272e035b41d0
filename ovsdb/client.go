package ovsdb

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

var (
	// ErrClosed is returned after Close.
	ErrClosed = errors.New("ovsdb: closed")
	// ErrNotConnected is returned while there is no connection. Nothing was
	// sent.
	ErrNotConnected = errors.New("ovsdb: not connected")
)

// Config says which database a client is for, and how to reach it.
type Config struct {
	// Endpoints are tried in turn: unix:PATH, tcp:HOST:PORT or ssl:HOST:PORT.
	Endpoints []string
	// Database is the database's name, "Open_vSwitch" if "".
	Database string
	// LeaderOnly refuses servers that are not the leader of their cluster.
	// Servers without a connection to their cluster's majority, and relays
	// without one to their source, are always refused.
	LeaderOnly bool
	// TLS is for ssl endpoints. The server's name is taken from the endpoint if
	// it has none.
	TLS *tls.Config
	// Dial opens connections; nil means a net.Dialer.
	Dial DialFunc
	// DialTimeout bounds connecting and each answer of the handshake; 5 s if 0.
	DialTimeout time.Duration
	// ProbeInterval is how long the server may be silent before it is asked for
	// a sign of life, and then again before it is given up; 10 s if 0.
	ProbeInterval time.Duration
	// MinBackoff and MaxBackoff bound the wait between attempts to connect,
	// which doubles from one to the next; 100 ms and 8 s if 0. It starts anew
	// after a connection that lasted MaxBackoff.
	MinBackoff, MaxBackoff time.Duration
	// MaxMessage is the longest message accepted, in bytes; 64 MiB if 0.
	MaxMessage int64
	// Logger gets one line per connection and loss; nil means none.
	Logger *slog.Logger
}

func (c *Config) setDefaults() {
	if c.Database == "" {
		c.Database = "Open_vSwitch"
	}
	if c.Dial == nil {
		var d net.Dialer
		c.Dial = d.DialContext
	}
	if c.TLS == nil {
		c.TLS = &tls.Config{}
	}
	setDefault(&c.DialTimeout, 5*time.Second)
	setDefault(&c.ProbeInterval, 10*time.Second)
	setDefault(&c.MinBackoff, 100*time.Millisecond)
	setDefault(&c.MaxBackoff, max(c.MinBackoff, 8*time.Second))
	setDefault(&c.MaxMessage, 64<<20)
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
}

// check says what is wrong with the limits.
func (c *Config) check() error {
	for _, d := range []struct {
		name  string
		value time.Duration
	}{{"DialTimeout", c.DialTimeout}, {"ProbeInterval", c.ProbeInterval}, {"MinBackoff", c.MinBackoff}, {"MaxBackoff", c.MaxBackoff}} {
		if d.value < 0 {
			return fmt.Errorf("ovsdb: %s is %v: it must not be negative", d.name, d.value)
		}
	}
	if c.MaxBackoff < c.MinBackoff {
		return fmt.Errorf("ovsdb: MaxBackoff %v is less than MinBackoff %v", c.MaxBackoff, c.MinBackoff)
	}
	if c.MaxMessage < 0 {
		return fmt.Errorf("ovsdb: MaxMessage is %d: it must not be negative", c.MaxMessage)
	}
	return nil
}

func setDefault[T comparable](p *T, v T) {
	if *p == *new(T) {
		*p = v
	}
}

// State is how a client stands with its server.
type State struct {
	// Connected: the schema is known, locks are requested, monitors are
	// running, and transactions are accepted.
	Connected bool
	// Endpoint is the server, or the one that was tried last.
	Endpoint string
	// Server is the server's id; zero without a connection, and for servers
	// that do not say.
	Server UUID
	// Since is when Connected last changed.
	Since time.Time
	// Reason is why there is no connection; nil while there is one and before
	// the first attempt.
	Reason error
	// Sessions counts the connections so far.
	Sessions uint64
}

// Stats counts what should not happen, or rarely.
type Stats struct {
	StrayResponses  uint64 // responses that nobody waited for, or no longer
	StrayUpdates    uint64 // notifications of unknown methods or monitors, or without sense
	Resyncs         uint64 // replicas copied anew because an update did not fit
	MonitorRestarts uint64 // monitors that the server cancelled, for a new schema
}

// Client is a client of one database on one server or cluster. It connects by
// itself, and again whenever the connection is lost, until it is closed. All
// methods may be called from any goroutine.
type Client struct {
	config    Config
	endpoints []endpoint
	log       *slog.Logger

	ctx    context.Context // ends with Close
	cancel context.CancelFunc
	done   chan struct{} // run has returned
	wake   chan struct{} // replicas or locks have something to do

	mu       sync.Mutex
	state    State
	changed  chan struct{} // closed when state is replaced
	session  *session      // nil while not connected
	replicas []*Replica
	locks    map[string]*Lock
	formats  map[string]serverFormat // by endpoint; absent: not known to be limited

	// The newest state of the cluster that was seen; only run uses it.
	cluster      UUID
	clusterIndex int64

	strayResponses, strayUpdates, resyncs, monitorRestarts atomic.Uint64
}

// Start returns a client that begins to connect. It fails only if the
// configuration is wrong.
func Start(config Config) (*Client, error) {
	config.setDefaults()
	c := &Client{
		config:  config,
		log:     config.Logger.With("database", config.Database),
		done:    make(chan struct{}),
		wake:    make(chan struct{}, 1),
		changed: make(chan struct{}),
		locks:   make(map[string]*Lock),
		formats: make(map[string]serverFormat),
	}
	if len(config.Endpoints) == 0 {
		return nil, errors.New("ovsdb: no endpoints: name at least one, unix:/run/openvswitch/db.sock for example")
	}
	if err := config.check(); err != nil {
		return nil, err
	}
	for _, s := range config.Endpoints {
		e, err := parseEndpoint(s)
		if err != nil {
			return nil, err
		}
		c.endpoints = append(c.endpoints, e)
	}
	c.ctx, c.cancel = context.WithCancel(context.Background())
	c.state.Since = time.Now()
	go c.run()
	return c, nil
}

// Dial is [Start], and waits for the first connection. It fails when ctx ends
// before that, with the reason why there is no connection.
func Dial(ctx context.Context, config Config) (*Client, error) {
	c, err := Start(config)
	if err != nil {
		return nil, err
	}
	if err := c.Ready(ctx); err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

// Ready waits until the client is connected. When ctx ends before that, the
// error is ctx's and says why it is not; after Close it is [ErrClosed].
func (c *Client) Ready(ctx context.Context) error {
	for {
		st, changed := c.State()
		if st.Connected {
			return nil
		}
		select {
		case <-changed:
		case <-c.ctx.Done():
			return ErrClosed
		case <-ctx.Done():
			if st.Reason != nil {
				return fmt.Errorf("%w: %w", context.Cause(ctx), st.Reason)
			}
			return context.Cause(ctx)
		}
	}
}

// State returns how the client stands with its server, and a channel that is
// closed at the next change.
func (c *Client) State() (State, <-chan struct{}) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.state, c.changed
}

// Stats returns the counters.
func (c *Client) Stats() Stats {
	return Stats{
		StrayResponses:  c.strayResponses.Load(),
		StrayUpdates:    c.strayUpdates.Load(),
		Resyncs:         c.resyncs.Load(),
		MonitorRestarts: c.monitorRestarts.Load(),
	}
}

// Schema returns the schema of the present connection, or nil without one.
func (c *Client) Schema() *Schema {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.session == nil {
		return nil
	}
	return c.session.schema.Load()
}

// Close ends the connection, the replicas and whatever waits. It may be called
// again.
func (c *Client) Close() {
	c.cancel()
	<-c.done
}

// connected returns the present session.
func (c *Client) connected() (*session, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.ctx.Err() != nil:
		return nil, ErrClosed
	case c.session != nil:
		return c.session, nil
	case c.state.Reason != nil:
		return nil, fmt.Errorf("%w: %w", ErrNotConnected, c.state.Reason)
	}
	return nil, ErrNotConnected
}

// setState publishes the state; session is nil if it is a loss for reason.
func (c *Client) setState(s *session, endpoint string, reason error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if connected := s != nil; connected != c.state.Connected {
		c.state.Connected, c.state.Since = connected, time.Now()
		if connected {
			c.state.Sessions++
		}
	}
	c.session = s
	c.state.Endpoint, c.state.Reason, c.state.Server = endpoint, reason, UUID{}
	if s != nil {
		c.state.Server = s.id
	}
	close(c.changed)
	c.changed = make(chan struct{})
}

// poke makes the session look after replicas and locks.
func (c *Client) poke() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// run connects to one endpoint after the other until Close.
func (c *Client) run() {
	defer close(c.done)
	defer c.closeAll()
	backoff := c.config.MinBackoff
	for at, failures := 0, 0; ; {
		e := c.endpoints[at%len(c.endpoints)]
		began := time.Now()
		err := c.runSession(e)
		if c.ctx.Err() != nil {
			c.setState(nil, e.name, ErrClosed)
			return
		}
		c.logLoss(e, err)
		c.setState(nil, e.name, err)
		if time.Since(began) >= c.config.MaxBackoff {
			backoff, failures = c.config.MinBackoff, 0
		}
		at++
		// All endpoints get a try before anyone waits longer.
		if failures++; failures%len(c.endpoints) != 0 {
			continue
		}
		wait := backoff/2 + rand.N(backoff/2+1)
		select {
		case <-time.After(wait):
		case <-c.ctx.Done():
		}
		backoff = min(2*backoff, c.config.MaxBackoff)
	}
}

// logLoss says why there is no connection, loudly only if it is news.
func (c *Client) logLoss(e endpoint, err error) {
	st, _ := c.State()
	level := slog.LevelWarn
	if !st.Connected && st.Reason != nil && st.Reason.Error() == err.Error() {
		level = slog.LevelDebug
	}
	c.log.Log(c.ctx, level, "no connection to ovsdb-server", "endpoint", e.name, "err", err)
}

// closeAll ends what depends on the client.
func (c *Client) closeAll() {
	c.mu.Lock()
	replicas := slices.Clone(c.replicas)
	c.mu.Unlock()
	for _, r := range replicas {
		r.Close()
	}
}

// Monitor starts a replica and waits for its first copy; it must be closed if
// it is no longer needed. It fails with a [SchemaError] if the server's schema
// lacks what spec asks for, and with ctx's error when ctx ends first.
func (c *Client) Monitor(ctx context.Context, spec MonitorSpec) (*Replica, error) {
	r := newReplica(c, c.config.Database, spec)
	c.mu.Lock()
	if c.ctx.Err() != nil {
		c.mu.Unlock()
		return nil, ErrClosed
	}
	c.replicas = append(c.replicas, r)
	c.mu.Unlock()
	c.poke()

	select {
	case err := <-r.first:
		if err != nil {
			r.Close()
			return nil, err
		}
		return r, nil
	case <-ctx.Done():
		r.Close()
		if _, err := c.connected(); err != nil {
			return nil, fmt.Errorf("%w: %w", context.Cause(ctx), err)
		}
		return nil, context.Cause(ctx)
	case <-c.done:
		return nil, ErrClosed
	}
}

// drop forgets a closed replica, and has its monitor cancelled.
func (c *Client) drop(r *Replica) {
	c.mu.Lock()
	c.replicas = slices.DeleteFunc(c.replicas, func(x *Replica) bool { return x == r })
	if s := r.monitor.session; s != nil && r.monitor.id != 0 {
		s.cancel = append(s.cancel, r.monitor.id)
		delete(s.monitors, r.monitor.id)
	}
	r.monitor = monitor{dropped: true}
	c.mu.Unlock()
	c.poke()
}
