package controller

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"brlb/controller/bridge"
	"brlb/controller/config"
	"brlb/controller/inventory"
	"brlb/controller/pipeline"
	"brlb/controller/resolve"
	"brlb/controller/state"
	"brlb/health"
	"brlb/openflow"
	"brlb/openflow/session"
)

// loop owns the state of one bridge. The first group of fields belongs to the
// goroutine of run alone; the second may be used from any.
type loop struct {
	state          *state.State
	snapshot       *state.Snapshot // of the newest facts
	inventory      inventory.Update
	writer         bool // this brlb holds the lock, or did when OVSDB went away, and may serve
	reconcile      *reconciler
	phase          phase
	phaseAt        time.Time
	readopt        bool // what another writer did is to be taken over
	adopted        bool // what the switch held at the start has been taken over
	loaded         bool // stored member numbers have been loaded
	storing        bool
	storingClocks  bool
	storingAnchors bool
	targets        map[state.ProbeID]health.Target
	probing        probing // what targets were made from
	probeProblem   string  // why they cannot be changed
	refused        error   // why the newest reload was
	wanted         bridge.Wants
	asked          resolve.Wants
	bfdFrom        *state.Snapshot // and bfdConfig: from which BFD was asked for
	bfdConfig      *config.Config
	tunnels        []config.TunnelType // for which ports were asked for, if tunnelsAsked
	tunnelsAsked   bool
	timeoutsFrom   *config.Config // of which conntrack timeouts were asked for
	zonesFrom      *config.Config // of which zones were asked for
	sw             switchInfo
	changedAt      time.Time // of the first change that the switch has not confirmed
	confirmedAt    time.Time // of the newest snapshot that it has confirmed
	announcer      announcer
	announcedFor   [2]*state.Snapshot  // held by the switch, and wanted
	everServed     map[netip.Addr]bool // VIPs of all configurations so far, and those found on the switch; replaced, never changed

	opts    loopOptions
	inv     *inventory.Inventory
	bridge  *bridge.Bridge
	prober  *health.Prober
	names   *resolve.Resolver
	probes  *probeStats
	path    *probePath
	stats   *stats
	rebases *rebaseCosts
	events  *eventLog
	posts   chan any
	done    chan struct{}
	view    atomic.Pointer[view]

	connections atomic.Pointer[connections] // nil: not read yet

	reloading sync.Mutex
	changing  sync.Mutex
	changedMu sync.Mutex
	changed   chan struct{}
}

// switchInfo is what is known of the OpenFlow peer.
type switchInfo struct {
	session     uint64 // 0: none
	since       time.Time
	description string
	datapathID  uint64
	lastError   string
	conntrack   string // what is wrong with its conntrack
	handshaking bool

	userspace        bool // its datapath
	keepsReplyTuples bool // see bridge.Connected
	tracksNoSCTP     bool // likewise
}

var errStopping = errors.New("brlb is stopping")

func newLoop(cfg *config.Config, opts loopOptions, inv *inventory.Inventory) *loop {
	now := time.Now()
	l := &loop{
		state: state.New(cfg, now), reconcile: newReconciler(),
		phase: phaseDisconnected, phaseAt: now, targets: map[state.ProbeID]health.Target{},
		opts: opts, inv: inv, probes: newProbeStats(), stats: newStats(now), rebases: newRebaseCosts(), events: newEventLog(),
		posts: make(chan any, 1024), done: make(chan struct{}), changed: make(chan struct{}),
	}
	l.names = resolve.New(func(r resolve.Result) { l.post(r) })
	l.snapshot = l.state.Snapshot()
	l.serve(servedBy(l.snapshot))
	l.publish()
	return l
}

// post sends something to the loop: a bridge.Event, a resolve.Result, a bundleDone or a call. It
// waits while the loop's queue is full and gives up when the loop has ended.
func (l *loop) post(event any) bool {
	select {
	case l.posts <- event:
		return true
	case <-l.done:
		return false
	}
}

// call asks the loop to run f; ran is closed when the consequences are
// published.
type call struct {
	f   func()
	ran chan struct{}
}

// do runs f in the loop and waits until its consequences are published.
func (l *loop) do(ctx context.Context, f func()) error {
	c := call{f: f, ran: make(chan struct{})}
	if !l.post(c) {
		return errStopping
	}
	select {
	case <-c.ran:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-l.done:
		return errStopping
	}
}

// run is the loop. Events that have come meanwhile are taken together, so that
// one plan covers them all.
func (l *loop) run(ctx context.Context) {
	defer close(l.done)
	ticker := time.NewTicker(tick)
	defer ticker.Stop()
	var known <-chan struct{} // closed when there is newer news than what was taken
	for {
		update, news := l.inv.Latest()
		if news != known {
			l.takeInventory(ctx, update)
			known = news
		}
		l.turn(ctx, time.Now())
		var ran []chan struct{}
		select {
		case <-ctx.Done():
			return
		case <-news:
			continue
		case now := <-ticker.C:
			l.state.Tick(now)
		case t := <-l.prober.Transitions():
			l.takeTransition(t)
		case event := <-l.posts:
			ran = l.take(ctx, event, ran)
		}
		for more := true; more; {
			select {
			case t := <-l.prober.Transitions():
				l.takeTransition(t)
			case event := <-l.posts:
				ran = l.take(ctx, event, ran)
			default:
				more = false
			}
		}
		if len(ran) > 0 {
			l.turn(ctx, time.Now())
		}
		for _, c := range ran {
			close(c)
		}
	}
}

// take applies one posted event to the facts.
func (l *loop) take(ctx context.Context, event any, ran []chan struct{}) []chan struct{} {
	now := time.Now()
	switch e := event.(type) {
	case call:
		e.f()
		return append(ran, e.ran)
	case bridge.Connecting:
		l.sw.handshaking = l.sw.session == 0
	case bridge.Refused:
		if l.sw.session == 0 { // else it was a stranger beside the switch
			l.sw.handshaking = false
			l.sw.lastError = e.Err.Error()
		}
	case bridge.Connected:
		l.takeConnected(ctx, e, now)
	case bridge.Disconnected:
		l.sw.session, l.sw.handshaking, l.sw.since = 0, false, now
		if e.Err != nil {
			l.sw.lastError = e.Err.Error()
		}
		l.reconcile.lost()
		l.forgetAnnouncements()
		l.path.interrupted()
		l.note(state.Event{Time: now, Text: "the switch is disconnected: " + l.sw.lastError})
	case bridge.PortsChanged:
		l.state.SetPorts(e.Ports, now)
	case bridge.NextHopFound:
		l.state.SetNextHop(e.Addr, e.Hop, now)
	case bridge.FlowsRead:
		l.takeFlows(e, now)
	case resolve.Result:
		l.state.SetResolved(e.Name, e.Answer, now)
	case bundleDone:
		l.takeBundle(ctx, e, now)
	}
	return ran
}

func (l *loop) takeConnected(ctx context.Context, e bridge.Connected, now time.Time) {
	l.sw = switchInfo{
		session: e.Session, since: now, description: e.Description, datapathID: e.DatapathID,
		userspace: l.sw.userspace, keepsReplyTuples: e.KeepsReplyTuples, tracksNoSCTP: e.TracksNoSCTP,
	}
	l.judgeDatapath()
	l.state.SetNoMeters(e.NoMeters)
	l.state.SetPorts(e.Ports, now)
	if !l.changedAt.IsZero() {
		l.changedAt = now // the time without a switch is not brlb's to shorten
	}
	installed, err := pipeline.FromSwitch(e.Flows)
	if err != nil {
		// Nothing is sent before the next look at the switch has made sense.
		l.reconcile.connected(e.Session, nil)
		l.reconcile.problem = "what the switch holds makes no sense: " + err.Error()
		return
	}
	if !l.adopted {
		l.adopted = true
		l.adopt(installed, now)
	}
	l.reconcile.connected(e.Session, installed)
	l.note(state.Event{Time: now, Text: fmt.Sprintf("the switch is connected: %s, %d own flows", e.Description, installed.Len())})
	go l.relaxConntrack(ctx)
}

// judgeDatapath has the pipeline do for the datapath what that cannot.
func (l *loop) judgeDatapath() {
	l.state.SetFlushReused(l.sw.userspace && l.sw.keepsReplyTuples)
	l.state.SetKernel(!l.sw.userspace)
}

// adopt takes over what the switch holds.
func (l *loop) adopt(installed pipeline.Set, now time.Time) {
	l.state.Adopt(pipeline.Members(installed), now)
	fronts := pipeline.Fronts(installed)
	l.state.AdoptFronts(fronts)
	found := make([]netip.Addr, len(fronts))
	for i := range fronts {
		found[i] = fronts[i].Address
	}
	l.serve(found)
}

// serve remembers VIPs that this brlb serves, or has served.
func (l *loop) serve(vips []netip.Addr) {
	if !slices.ContainsFunc(vips, func(vip netip.Addr) bool { return !l.everServed[vip] }) {
		return
	}
	all := maps.Clone(l.everServed)
	if all == nil {
		all = map[netip.Addr]bool{}
	}
	for _, vip := range vips {
		all[vip] = true
	}
	l.everServed = all
}

// takeFlows compares what the switch holds with what it should, after somebody
// else may have changed it.
func (l *loop) takeFlows(e bridge.FlowsRead, now time.Time) {
	installed, err := pipeline.FromSwitch(e.Flows)
	if err != nil {
		l.sw.lastError = err.Error()
		return
	}
	if l.readopt && e.Session == l.sw.session {
		l.readopt = false
		l.adopt(installed, now)
	}
	if wrong := l.reconcile.read(e.Session, installed, now); wrong > 0 {
		l.stats.drift()
		then := "repairing"
		if l.reconcile.alarm {
			then = "the repair waits, since it goes on and on"
		}
		l.note(state.Event{Time: now, Text: fmt.Sprintf("somebody else has changed %d of brlb's flows: %s", wrong, then)})
	}
}

func (l *loop) takeTransition(t health.Transition) {
	v := state.Verdict{
		Health: state.Health(t.To.String()), Since: t.At, Code: t.Result.Code.String(), Detail: t.Result.Sentence(),
		Says: statement(t.Result.Agent),
	}
	for id, target := range l.targets {
		if target == t.Target {
			l.state.SetVerdict(id, v, t.At)
		}
	}
}

func (l *loop) takeInventory(ctx context.Context, u inventory.Update) {
	now := time.Now()
	if u.ZoneClash != "" && u.ZoneClash != l.inventory.ZoneClash {
		l.note(state.Event{Time: now, Text: u.ZoneClash})
	}
	l.inventory = u
	wasWriter := l.writer
	if u.Connected {
		l.writer = u.Lock.Held && u.MayServe()
	}
	if !u.Bridge {
		return
	}
	if !l.loaded || u.Connected && !wasWriter {
		// The brlb that writes gives the numbers; one that stands by follows.
		if l.loaded {
			l.state.ForgetNumbers()
		}
		l.loaded = true
		l.state.LoadAnchors(u.Anchors)
		if err := l.state.LoadClocks(u.Clocks); err != nil {
			l.opts.Logger.Warn("slow start, hold-down and return_after begin anew", "bridge", l.state.Config().Bridge, "err", err)
		}
		if err := l.state.LoadNumbers(u.Numbers); err != nil {
			l.opts.Logger.Warn("stored member numbers", "err", err)
		}
	}
	if l.writer && !wasWriter {
		l.forgetAnnouncements()
		l.takeOver(ctx)
	}
	l.state.SetMAC(derivedMAC(u.BridgeUUID))
	l.sw.userspace = u.Userspace
	l.judgeDatapath()
	l.state.SetDeclared(u.Declared, now)
	l.state.SetOverrides(u.Overrides, now)
}

// takeOver begins to write to the bridge. What another brlb may have written
// until now is read first.
func (l *loop) takeOver(ctx context.Context) {
	if l.sw.session == 0 {
		return
	}
	l.reconcile.doubt()
	l.readopt = true
	go l.bridge.Reread(ctx)
}

// derivedMAC makes the MAC address of VIPs and gateways from the bridge's row
// in OVSDB: unlike the bridge's own MAC, it stays when ports come and go. The
// bit that says "locally administered" is set.
func derivedMAC(uuid string) openflow.MAC {
	sum := sha256.Sum256([]byte("brlb mac " + uuid))
	mac := openflow.MAC(sum[:6])
	mac[0] = mac[0]&^0x01 | 0x02
	return mac
}

// turn brings everything in line with the facts: the snapshot, the probes, the
// next hops, the switch, what is stored, and what is published.
func (l *loop) turn(ctx context.Context, now time.Time) {
	snapshot := l.state.Snapshot()
	if snapshot != l.snapshot {
		for _, e := range state.Events(l.snapshot, snapshot, now) {
			l.note(e)
		}
		if l.changedAt.IsZero() {
			l.changedAt = now
		}
		if !state.SameServices(l.snapshot.Services, snapshot.Services) {
			l.serve(servedBy(snapshot))
		}
		l.snapshot = snapshot
		l.bridge.Show(snapshot)
	}
	l.want()
	l.wantNames()
	l.wantBFD()
	l.wantTunnels()
	l.wantTimeouts()
	l.wantZones()
	l.setProbes()
	l.converge(ctx, now)
	l.announce(ctx, now)
	l.storeNumbers(ctx)
	l.storeClocks(ctx)
	l.storeAnchors(ctx)
	l.setPhase(now)
	l.publish()
}

// want tells the bridge what its sessions must do, if that has changed.
func (l *loop) want() {
	w := bridge.Wants{
		Lead: l.writer && l.loaded, Hops: l.state.NextHops(), Refresh: l.state.Config().NeighbourRefresh,
		MAC: l.snapshot.MAC, Gateways: l.snapshot.Gateways, VLANs: l.inventory.VLANs,
		Zone: l.snapshot.Zone, Listens: ownIPv6(l.snapshot),
	}
	if !w.Equal(&l.wanted) {
		l.wanted = w
		l.bridge.Want(w)
	}
}

// ownIPv6 lists the IPv6 addresses of VIPs and gateways, in order.
func ownIPv6(s *state.Snapshot) []netip.Addr {
	var addrs []netip.Addr
	add := func(addr netip.Addr) {
		if addr.Is6() {
			addrs = append(addrs, addr)
		}
	}
	for i := range s.Services {
		for _, addr := range s.Services[i].Addresses {
			add(addr)
		}
	}
	for _, gateway := range s.Gateways {
		add(gateway.Addr())
	}
	slices.SortFunc(addrs, netip.Addr.Compare)
	return slices.Compact(addrs)
}

// wantNames tells the resolver what it must ask for, if that has changed.
func (l *loop) wantNames() {
	dns := l.state.Config().DNS
	w := resolve.Wants{Names: l.state.Names(), Servers: dns.Servers, MinTTL: dns.MinTTL}
	if !w.Equal(&l.asked) {
		l.asked = w
		l.names.Want(w)
	}
}

// converge sends the switch what is missing, if it is this brlb's turn and
// nothing is under way.
func (l *loop) converge(ctx context.Context, now time.Time) {
	if !l.writer || !l.loaded {
		return
	}
	plan, err := l.reconcile.plan(l.snapshot, now)
	if err != nil {
		l.reconcile.problem = err.Error()
		return
	}
	if plan == nil {
		l.confirm(ctx, now)
		return
	}
	started := now
	go func() {
		result := l.bridge.Apply(ctx, plan.session, plan.diff.Mods)
		l.post(bundleDone{plan: plan, result: result, took: time.Since(started)})
	}()
}

// bundleDone says what became of a plan.
type bundleDone struct {
	plan   *plan
	result session.BundleResult
	took   time.Duration
}

func (l *loop) takeBundle(ctx context.Context, e bundleDone, now time.Time) {
	l.stats.bundle(e.result.Outcome, len(e.plan.diff.Mods), e.took)
	reread := l.reconcile.finished(e.plan, e.result, now)
	logger := l.opts.Logger.With("rev", e.plan.snapshot.Revision)
	switch e.result.Outcome {
	case session.Applied:
		logger.Info("converged", "added", e.plan.diff.Added, "deleted", e.plan.diff.Deleted, "ms", float64(e.took.Microseconds())/1000)
		l.confirm(ctx, now)
	case session.Rejected:
		if len(e.result.Errors) == 0 {
			logger.Warn("the bundle was not applied", "err", e.result.Err)
			break
		}
		logger.Error("the switch refused the bundle; it holds what it held before", "err", l.reconcile.problem)
		l.note(state.Event{Time: now, Text: l.reconcile.problem})
	default:
		logger.Warn("it is not known whether the bundle was applied; reading the switch", "err", e.result.Err)
	}
	if reread {
		go l.bridge.Reread(ctx)
	}
}

// confirm draws the consequences of the switch holding what it should.
func (l *loop) confirm(ctx context.Context, now time.Time) {
	if l.reconcile.holding != nil {
		l.path.restored(now)
	}
	before, after, ok := l.reconcile.takeConfirmed()
	if !ok {
		return
	}
	l.confirmedAt = now
	if !l.changedAt.IsZero() && after == l.snapshot {
		l.stats.converged(now.Sub(l.changedAt))
		l.changedAt = time.Time{}
	}
	l.stats.moved(before, after)
}

func sleep(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}

// note records an event for people.
func (l *loop) note(e state.Event) {
	l.events.add(e)
	l.opts.Logger.Info(e.Text, "pool", e.Pool, "member", e.Member)
}
