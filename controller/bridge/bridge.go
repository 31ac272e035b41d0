package bridge

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"brlb/controller/packet"
	"brlb/controller/pipeline"
	"brlb/controller/state"
	"brlb/openflow"
	"brlb/openflow/session"
)

// Options say which bridge and how to reach it.
type Options struct {
	Bridge  string
	Listen  string // unix:PATH or tcp:ADDRESS:PORT: the switch dials; empty: brlb dials Dial
	Dial    string // unix:PATH or tcp:HOST:PORT
	Refresh time.Duration
	Logger  *slog.Logger
	Emit    func(Event) // called from Bridge's goroutines, in order; may block
}

// Bridge holds at most one session at a time. Create it with New, then Open
// and Run it.
type Bridge struct {
	opts     Options
	listener *switchListener
	wanted   chan struct{} // the wish has changed

	// exchange is held while a bundle is applied, and while flows are read and
	// told of: what is told was never true before a bundle that ended earlier.
	exchange sync.Mutex
	metered  *session.Session // has the meters that rows name; guarded by exchange

	// seat is held by the session that leads, from its inventory to its end.
	seat sync.Mutex

	leads atomic.Bool // the session that stands is the one that writes
	// noMeters is true while rows name no meters, since the switch has none.
	noMeters atomic.Bool
	picture  atomic.Pointer[state.Snapshot] // by which packets that come up find members
	heard    atomic.Int64                   // when the switch last answered a pulse, in Unix nanoseconds

	mu       sync.Mutex
	leave    context.CancelCauseFunc // ends the session that has the seat, or waits for it
	number   uint64                  // of the newest session
	current  *session.Session
	wants    Wants            // newest wish of the owner
	counters session.Counters // of past sessions
	resent   uint64
	answered uint64
}

// Wants is what the owner wants of the sessions, of this one and later ones.
type Wants struct {
	// Lead is true while the owner is the one that writes to the bridge. Only
	// then is the master's role taken, unless the switch is dialled, and only
	// then are packets put back.
	Lead bool
	// Hops are the addresses whose MAC and port must be found, and Refresh how
	// often those found are asked for again.
	Hops    []netip.Addr
	Refresh time.Duration
	// MAC and Gateways are brlb's own addresses.
	MAC      openflow.MAC
	Gateways []netip.Prefix
	// Listens are IPv6 addresses for which brlb answers: their groups are joined.
	Listens []netip.Addr
	VLANs   []uint16 // in which to ask, and to join groups, beside the bridge's own network
	Zone    uint16   // of conntrack, but for pools with one of their own
}

// Equal says whether two wishes are the same.
func (w *Wants) Equal(other *Wants) bool {
	return w.Lead == other.Lead && w.Refresh == other.Refresh && w.MAC == other.MAC && w.Zone == other.Zone &&
		slices.Equal(w.Hops, other.Hops) && slices.Equal(w.Gateways, other.Gateways) && slices.Equal(w.VLANs, other.VLANs) &&
		slices.Equal(w.Listens, other.Listens)
}

// routes says whether others use an address of brlb's as a gateway. The one from
// which it asks for IPv6 neighbours counts: members answer by way of it.
func (w *Wants) routes(addr netip.Addr) bool {
	return addr == packet.LinkLocal(w.MAC) ||
		slices.ContainsFunc(w.Gateways, func(g netip.Prefix) bool { return g.Addr() == addr })
}

// ErrNotConnected is returned when there is no session, or not the one that a
// plan was made for. Nothing was sent.
var ErrNotConnected = errors.New("no OpenFlow session with the switch; nothing was sent")

const (
	handshakeTimeout = 10 * time.Second
	silence          = 2 * time.Second // echo after that, give up after as long again
	requestTimeout   = 5 * time.Second
	readTimeout      = 30 * time.Second       // of all flows: a switch may hold very many
	rowTime          = 100 * time.Microsecond // more for each row of a bundle
)

// New returns a bridge that is not connected yet; Run connects it.
func New(opts Options) *Bridge {
	return &Bridge{opts: opts, wanted: make(chan struct{}, 1), wants: Wants{Refresh: opts.Refresh}}
}

// Open begins to listen for the switch, if it is the switch that dials.
func (b *Bridge) Open() (err error) {
	if b.opts.Listen != "" {
		b.listener, err = listenSocket(b.opts.Listen)
	}
	return err
}

// Run keeps a session until ctx ends. It is called after Open, and fails only
// if it cannot go on listening.
func (b *Bridge) Run(ctx context.Context) error {
	if b.opts.Listen != "" {
		return b.listen(ctx)
	}
	return b.dial(ctx)
}

// maxConnections bounds how many peers may be connected at a time: the switch,
// and whoever else tries.
const maxConnections = 8

// listen serves the connections that the switch makes.
func (b *Bridge) listen(ctx context.Context) error {
	listener := b.listener
	defer func() { listener.Close() }()
	var serving sync.WaitGroup
	defer serving.Wait()
	room := make(chan struct{}, maxConnections)
	for {
		conn, err := listener.accept(ctx)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.Is(err, errSocketGone):
			b.opts.Logger.Warn("somebody removed the socket for the switch; it is made anew", "listen", b.opts.Listen)
			listener.Close()
			if listener, err = listenSocket(b.opts.Listen); err != nil {
				return err
			}
			continue
		case err != nil:
			b.opts.Logger.Warn("accept failed", "listen", b.opts.Listen, "err", err)
			if !sleep(ctx, time.Second) {
				return ctx.Err()
			}
			continue
		}
		select {
		case room <- struct{}{}:
		default:
			conn.Close()
			b.opts.Emit(Refused{Err: fmt.Errorf("%d peers are connected to %s already; is it open to strangers?", maxConnections, b.opts.Listen)})
			continue
		}
		serving.Go(func() {
			defer func() { <-room }()
			if err := b.serve(ctx, conn); err != nil && ctx.Err() == nil {
				b.opts.Logger.Warn("OpenFlow session ended", "err", err)
			}
		})
	}
}

// takeSeat ends the session that leads, if there is one, and lets this one,
// which leave ends, lead. A switch that connects anew has given the old session
// up. The caller unlocks the seat.
func (b *Bridge) takeSeat(ctx context.Context, leave context.CancelCauseFunc) error {
	b.mu.Lock()
	last := b.leave
	b.leave = leave
	b.mu.Unlock()
	if last != nil {
		last(errReplaced)
	}
	b.seat.Lock()
	if ctx.Err() != nil {
		b.seat.Unlock()
		return context.Cause(ctx)
	}
	return nil
}

var errReplaced = errors.New("a newer connection of the switch has taken its place")

// dial makes connections to the switch, with backoff.
func (b *Bridge) dial(ctx context.Context) error {
	backoff := session.Backoff{Min: 100 * time.Millisecond, Max: 8 * time.Second, Healthy: 30 * time.Second}
	network, address := splitTarget(b.opts.Dial)
	for {
		start := time.Now()
		conn, err := (&net.Dialer{Timeout: handshakeTimeout}).DialContext(ctx, network, address)
		if err != nil {
			b.opts.Emit(Refused{Err: err})
		} else {
			err = b.serve(ctx, conn)
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		b.opts.Logger.Warn("OpenFlow session ended", "switch", b.opts.Dial, "err", err)
		if !sleep(ctx, backoff.Next(time.Since(start), rand.Float64())) {
			return ctx.Err()
		}
	}
}

// Apply sends the messages of a plan in one bundle, if the session that the
// plan was made for still stands.
func (b *Bridge) Apply(ctx context.Context, number uint64, mods []openflow.Message) session.BundleResult {
	s := b.session(number)
	if s == nil {
		return session.BundleResult{Outcome: session.Unknown, Err: ErrNotConnected}
	}
	b.exchange.Lock()
	defer b.exchange.Unlock()
	ctx, cancel := context.WithTimeout(ctx, requestTimeout+time.Duration(len(mods))*rowTime)
	defer cancel()
	if b.metered != s && !b.noMeters.Load() {
		if err := setMeters(ctx, s); err != nil {
			return session.BundleResult{Outcome: session.Rejected, Err: err}
		}
		b.metered = s
	}
	result := s.Bundle(ctx, mods)
	if result.Outcome != session.Applied {
		b.metered = nil // somebody may have deleted it
	}
	return result
}

// Reread reads brlb's own flows and tells the owner (FlowsRead).
func (b *Bridge) Reread(ctx context.Context) error {
	b.mu.Lock()
	s, number := b.current, b.number
	b.mu.Unlock()
	if s == nil {
		return ErrNotConnected
	}
	_, err := b.reread(ctx, s, number)
	if err != nil {
		s.Close() // the next session begins with what the switch holds
	}
	return err
}

// reread reads brlb's own flows and tells the owner. It returns how long the switch
// took.
func (b *Bridge) reread(ctx context.Context, s *session.Session, number uint64) (took time.Duration, err error) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	b.exchange.Lock()
	defer b.exchange.Unlock()
	started := time.Now()
	flows, err := readFlows(ctx, s, false)
	if err != nil {
		return 0, err
	}
	took = time.Since(started)
	b.opts.Emit(FlowsRead{Session: number, Flows: flows})
	return took, nil
}

// Flows reads brlb's own flows, or all flows, from the switch.
func (b *Bridge) Flows(ctx context.Context, all bool) ([]openflow.FlowStats, error) {
	s := b.session(0)
	if s == nil {
		return nil, ErrNotConnected
	}
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	return readFlows(ctx, s, all)
}

// Announcement is an address that one network of the bridge is told of.
type Announcement struct {
	Addr netip.Addr
	VLAN uint16 // 0: the bridge's own network
}

// Frames is how many frames it takes.
func (a Announcement) Frames() int { return len(packet.Announce(openflow.MAC{}, a.Addr, false)) }

// Announce tells networks of the bridge that brlb has these addresses, by
// gratuitous ARP and unsolicited neighbour advertisements.
func (b *Bridge) Announce(ctx context.Context, mac openflow.MAC, list []Announcement) error {
	s := b.session(0)
	if s == nil {
		return ErrNotConnected
	}
	b.mu.Lock()
	wants := b.wants
	b.mu.Unlock()
	var messages []openflow.Message
	for _, a := range list {
		for _, frame := range packet.Announce(mac, a.Addr, wants.routes(a.Addr)) {
			messages = append(messages, packetOut(packet.Tag(frame, a.VLAN)))
		}
	}
	return s.Send(ctx, messages...)
}

// Want says what the sessions must do. It never blocks; the newest wish holds.
func (b *Bridge) Want(w Wants) {
	b.mu.Lock()
	b.wants = w
	b.mu.Unlock()
	select {
	case b.wanted <- struct{}{}:
	default:
	}
}

// Show hands over what should be now. It may be called from any goroutine.
func (b *Bridge) Show(s *state.Snapshot) { b.picture.Store(s) }

// LastHeard says when the switch last answered.
func (b *Bridge) LastHeard() time.Time { return time.Unix(0, b.heard.Load()) }

// Leads says whether the session that stands is the one that writes: it has the
// master's role, unless the switch is dialled.
func (b *Bridge) Leads() bool { return b.leads.Load() }

// Counters count over all sessions.
type Counters struct {
	session.Counters
	Sessions uint64
	Resent   uint64 // packets put back on their way
	Answered uint64 // packets answered instead of the switch
}

// Counters returns what was counted until now.
func (b *Bridge) Counters() Counters {
	b.mu.Lock()
	defer b.mu.Unlock()
	c := Counters{Counters: b.counters, Sessions: b.number, Resent: b.resent, Answered: b.answered}
	if b.current != nil {
		c.Counters = addCounters(c.Counters, b.current.Counters())
	}
	return c
}

func (b *Bridge) count(counter *uint64) {
	b.mu.Lock()
	*counter++
	b.mu.Unlock()
}

// session returns the session that stands, if its number is the one asked for
// (0: any).
func (b *Bridge) session(number uint64) *session.Session {
	b.mu.Lock()
	defer b.mu.Unlock()
	if number != 0 && number != b.number {
		return nil
	}
	return b.current
}

func readFlows(ctx context.Context, s *session.Session, all bool) ([]openflow.FlowStats, error) {
	request := openflow.AllFlows()
	if !all {
		request.Cookie, request.CookieMask = pipeline.Cookie(0, 0, 0), pipeline.CookieMask
	}
	flows, err := s.Flows(ctx, openflow.FlowStatsRequest(request))
	if err != nil {
		return nil, fmt.Errorf("read flows: %w", err)
	}
	return flows, nil
}

// everywhere has the switch send a frame to all its networks.
func (w *Wants) everywhere(frame []byte) []openflow.Message {
	messages := []openflow.Message{packetOut(frame)}
	for _, vlan := range w.VLANs {
		messages = append(messages, packetOut(packet.Tag(frame, vlan)))
	}
	return messages
}

func packetOut(frame []byte) *openflow.PacketOut {
	return &openflow.PacketOut{
		BufferID: openflow.NoBuffer, InPort: openflow.PortController,
		Actions: []openflow.Action{openflow.Output{Port: openflow.PortNormal}}, Data: frame,
	}
}

// splitTarget splits unix:PATH and tcp:HOST:PORT.
func splitTarget(target string) (network, address string) {
	network, address, _ = strings.Cut(target, ":")
	return network, address
}

func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

func addCounters(a, c session.Counters) session.Counters {
	a.Sent, a.Received = addByType(a.Sent, c.Sent), addByType(a.Received, c.Received)
	a.FlowModsSent += c.FlowModsSent
	a.OctetsSent += c.OctetsSent
	a.OctetsReceived += c.OctetsReceived
	a.EventsDropped += c.EventsDropped
	a.UnknownReplies += c.UnknownReplies
	return a
}

func addByType(a, b map[openflow.Type]uint64) map[openflow.Type]uint64 {
	sum := make(map[openflow.Type]uint64, len(a))
	for t, n := range a {
		sum[t] = n
	}
	for t, n := range b {
		sum[t] += n
	}
	return sum
}
