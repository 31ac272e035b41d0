package inventory

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"brlb/controller/state"
	"brlb/maglev"
	"brlb/ovsdb"
	"brlb/ovsdb/vswitch"
)

// Update is what OVSDB says of the bridge now.
type Update struct {
	Connected bool
	Reason    string // why it is not connected
	Lock      ovsdb.LockState

	Bridge     bool     // the bridge exists
	BridgeUUID string   // its row
	Userspace  bool     // its datapath is ovs-vswitchd itself
	VLANs      []uint16 // that its ports name, in order
	Declared   []state.Declared
	Overrides  map[state.MemberID]state.Override
	Numbers    string                     // stored member numbers
	Clocks     string                     // stored times of rules
	Anchors    map[string][]maglev.Member // stored anchors, by pool
	BFD        map[uint32]BFDSession      // by OpenFlow port number
	Problems   []string                   // rows that say something else than they should
	// ZoneClash says that the brlb of another bridge uses a conntrack zone that this
	// one wants, and ZonesHeld that this one has noted all that it wants nevertheless.
	ZoneClash string
	ZonesHeld bool
}

// Options say which database and bridge.
type Options struct {
	Endpoint string // unix:PATH or tcp:HOST:PORT
	Bridge   string
	// Target is what the switch must dial; empty in service mode, in which
	// OVSDB is not told about brlb.
	Target string
	Zones  []uint16 // of conntrack, that this brlb uses; see WantZones
	Logger *slog.Logger
}

// Inventory follows the database. Create it with Start.
type Inventory struct {
	opts    Options
	client  *ovsdb.Client
	replica *ovsdb.Replica
	lock    *ovsdb.Lock
	wake    chan struct{} // mailbox of one: other BFD, tunnels or timeouts are wanted

	mu       sync.Mutex
	latest   Update
	changed  chan struct{}
	bfd      BFDWants
	tunnels  TunnelWants
	timeouts TimeoutWants
}

// ErrNotHeld is returned by writes while another brlb holds the lock.
var ErrNotHeld = errors.New("another brlb holds the OVSDB lock of this bridge; nothing was written")

// attachRetry is how long to wait after an attempt to set the Controller row
// has failed.
const attachRetry = time.Second

// Start begins to follow the database; Run does the work.
func Start(opts Options) (*Inventory, error) {
	client, err := ovsdb.Start(ovsdb.Config{Endpoints: []string{opts.Endpoint}, Database: "Open_vSwitch", Logger: opts.Logger})
	if err != nil {
		return nil, fmt.Errorf("ovsdb %s: %w", opts.Endpoint, err)
	}
	lock, err := client.Lock(LockName(opts.Bridge))
	if err != nil {
		client.Close()
		return nil, fmt.Errorf("ovsdb lock: %w", err)
	}
	return &Inventory{opts: opts, client: client, lock: lock, wake: make(chan struct{}, 1), changed: make(chan struct{})}, nil
}

// LockName is the OVSDB lock whose holder writes to a bridge. A lock's name is
// an identifier (RFC 7047 section 3.1): other octets of the bridge's name are
// written as _ and two hex digits.
func LockName(bridge string) string {
	name := []byte("brlb_")
	for _, c := range []byte(bridge) {
		switch {
		case '0' <= c && c <= '9', 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z':
			name = append(name, c)
		default:
			name = fmt.Appendf(name, "_%02x", c)
		}
	}
	return string(name)
}

// Latest returns what is known now, and a channel that is closed when there is
// something newer.
func (i *Inventory) Latest() (Update, <-chan struct{}) {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.latest, i.changed
}

// Run follows the database until ctx ends. It returns ctx's error.
func (i *Inventory) Run(ctx context.Context) error {
	defer i.client.Close()
	i.publish(i.read(nil))
	for ctx.Err() == nil {
		replica, err := i.client.Monitor(ctx, vswitch.Monitor())
		if err == nil {
			i.mu.Lock()
			i.replica = replica
			i.mu.Unlock()
			return i.follow(ctx, replica)
		}
		if ctx.Err() == nil {
			i.opts.Logger.Warn("OVSDB monitor failed", "endpoint", i.opts.Endpoint, "err", err)
			i.publish(i.read(nil))
			pause(ctx, attachRetry)
		}
	}
	return ctx.Err()
}

func (i *Inventory) follow(ctx context.Context, replica *ovsdb.Replica) error {
	rows := make(chan struct{}, 1)
	subscription := replica.Subscribe(0)
	defer subscription.Close()
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			if _, err := subscription.Next(ctx); err != nil {
				return
			}
			select {
			case rows <- struct{}{}:
			default:
			}
		}
	}()
	defer func() { <-done }()

	retry := time.NewTimer(0)
	defer retry.Stop()
	for ctx.Err() == nil {
		_, connection := i.client.State()
		_, lock := i.lock.State()
		update := i.read(replica)
		zones, attach, bfd, tunnels, timeouts := i.claimZones(ctx, update), i.attach(ctx, update), i.setBFD(ctx, update), i.setTunnels(ctx, update), i.setTimeouts(ctx, update)
		if zones || attach || bfd || tunnels || timeouts {
			retry.Reset(attachRetry)
		}
		i.publish(update)
		select {
		case <-ctx.Done():
		case <-rows:
		case <-connection:
		case <-lock:
		case <-i.wake:
		case <-retry.C:
		}
	}
	return ctx.Err()
}

// read takes everything that is of interest from the replica.
func (i *Inventory) read(replica *ovsdb.Replica) Update {
	connection, _ := i.client.State()
	lock, _ := i.lock.State()
	update := Update{Connected: connection.Connected && replica != nil, Lock: lock}
	if connection.Reason != nil {
		update.Reason = connection.Reason.Error()
	}
	if replica == nil {
		return update
	}
	view := vswitch.View{Snapshot: replica.Snapshot()}
	bridge, ok := view.Bridge(i.opts.Bridge)
	if !ok {
		return update
	}
	update.Bridge = true
	update.BridgeUUID = bridge.UUID.String()
	update.Userspace = bridge.DatapathType == "netdev"
	update.Numbers = bridge.ExternalIDs[keyNumbers]
	update.Clocks = bridge.ExternalIDs[keyClocks]
	zones := i.zonesWanted()
	update.ZoneClash = zoneClash(view, bridge, zones)
	update.ZonesHeld = bridge.ExternalIDs[keyZones] == zonesText(zones)
	interfaces := view.BridgeInterfaces(bridge)
	update.Declared, update.Problems = declared(interfaces)
	update.BFD = bfdSessions(interfaces)
	var problems []string
	update.Overrides, problems = overrides(bridge.ExternalIDs)
	update.Problems = append(update.Problems, problems...)
	update.VLANs, problems = vlans(view.Ports(bridge))
	update.Problems = append(update.Problems, problems...)
	update.Problems = append(update.Problems, tunnelProblems(view, bridge, i.tunnelsWanted())...)
	update.Problems = append(update.Problems, timeoutProblems(view, bridge, i.timeoutsWanted())...)
	update.Anchors, problems = anchors(bridge.ExternalIDs)
	update.Problems = append(update.Problems, problems...)
	return update
}

// controller is the row that makes the switch dial brlb, and dial again soon
// after brlb was away.
func (i *Inventory) controller() vswitch.ControllerConfig {
	return vswitch.ControllerConfig{Target: i.opts.Target, InactivityProbe: 5 * time.Second, MaxBackoff: time.Second}
}

// attach makes the switch dial brlb, if it is this brlb's turn to write and
// the database says otherwise. It reports whether to try again later.
func (i *Inventory) attach(ctx context.Context, update Update) (again bool) {
	if i.opts.Target == "" || !update.Connected || !update.Bridge || !update.MayServe() {
		return false
	}
	view := vswitch.View{Snapshot: i.replica.Snapshot()}
	plan, err := view.SetController(i.opts.Bridge, i.controller())
	if err == nil && plan.Empty() {
		return false
	}
	if !update.Lock.Held {
		return false
	}
	if err == nil {
		err = plan.Apply(ctx, i.client, i.lock.Assert())
	}
	if err != nil {
		if ctx.Err() == nil {
			i.opts.Logger.Warn("cannot attach to the bridge", "err", err)
		}
		return true
	}
	for _, change := range plan.Changes {
		i.opts.Logger.Info("changed in OVSDB", "change", change)
	}
	return false
}

// Attachment says what is wrong with the bridge's settings: what brlb would
// change so that the switch dials it and keeps its flows.
func (i *Inventory) Attachment() []string {
	i.mu.Lock()
	replica := i.replica
	i.mu.Unlock()
	switch {
	case replica == nil:
		return []string{"OVSDB is not connected"}
	case i.opts.Target == "":
		return nil
	}
	plan, err := vswitch.View{Snapshot: replica.Snapshot()}.SetController(i.opts.Bridge, i.controller())
	if err != nil {
		return []string{err.Error()}
	}
	return plan.Changes
}

func (i *Inventory) publish(update Update) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.latest = update
	close(i.changed)
	i.changed = make(chan struct{})
}

// StoreOverrides keeps operators' decisions in the bridge's external_ids, all or
// none of them; one that changes nothing removes what was kept. When it returns
// nil, they are stored and Latest tells of them.
func (i *Inventory) StoreOverrides(ctx context.Context, overrides map[state.MemberID]state.Override) error {
	set := map[string]string{}
	want := map[state.MemberID]state.Override{}
	var remove []string
	for id, o := range overrides {
		if o.IsNothing() {
			remove = append(remove, overrideKey(id))
			continue
		}
		text, err := json.Marshal(o)
		if err != nil {
			return fmt.Errorf("encode override: %w", err)
		}
		if want[id], err = parseOverride(string(text)); err != nil {
			return fmt.Errorf("store override: %w", err)
		}
		set[overrideKey(id)] = string(text)
	}
	slices.Sort(remove)
	if err := i.store(ctx, set, remove); err != nil {
		return err
	}
	for {
		update, changed := i.Latest()
		if tells(update.Overrides, overrides, want) {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return fmt.Errorf("stored, but OVSDB has not told of it: %w", ctx.Err())
		}
	}
}

// tells says whether of the members in changed, found has exactly what want has.
func tells(found, changed, want map[state.MemberID]state.Override) bool {
	for id := range changed {
		o, ok := found[id]
		if wanted, kept := want[id]; ok != kept || o != wanted {
			return false
		}
	}
	return true
}

// StoreNumbers keeps the member numbers in the bridge's external_ids.
func (i *Inventory) StoreNumbers(ctx context.Context, numbers string) error {
	return i.store(ctx, map[string]string{keyNumbers: numbers}, nil)
}

// StoreClocks keeps the times from which rules count in the bridge's
// external_ids; "" removes what was kept.
func (i *Inventory) StoreClocks(ctx context.Context, clocks string) error {
	if clocks == "" {
		return i.store(ctx, nil, []string{keyClocks})
	}
	return i.store(ctx, map[string]string{keyClocks: clocks}, nil)
}

// StoreAnchors keeps anchors, by pool, in the bridge's external_ids, and removes
// those of other pools.
func (i *Inventory) StoreAnchors(ctx context.Context, anchors map[string][]maglev.Member, remove []string) error {
	set := make(map[string]string, len(anchors))
	for pool, members := range anchors {
		set[anchorPrefix+pool] = anchorText(members)
	}
	keys := make([]string, len(remove))
	for n, pool := range remove {
		keys[n] = anchorPrefix + pool
	}
	return i.store(ctx, set, keys)
}

// storeAttempts bounds how often a write is planned anew because the row has
// changed meanwhile.
const storeAttempts = 5

func (i *Inventory) store(ctx context.Context, set map[string]string, remove []string) error {
	i.mu.Lock()
	replica := i.replica
	i.mu.Unlock()
	connection, _ := i.client.State()
	lock, _ := i.lock.State()
	switch {
	case replica == nil || !connection.Connected: // and the lock is gone with the connection
		return fmt.Errorf("OVSDB at %s is not connected; nothing was stored", i.opts.Endpoint)
	case !lock.Held:
		return ErrNotHeld
	}
	var err error
	for range storeAttempts {
		var plan vswitch.Plan
		plan, err = vswitch.View{Snapshot: replica.Snapshot()}.SetBridgeExternalIDs(i.opts.Bridge, set, remove)
		if err != nil || plan.Empty() {
			break
		}
		if err = plan.Apply(ctx, i.client, i.lock.Assert()); !errors.Is(err, vswitch.ErrChanged) {
			break
		}
	}
	if errors.Is(err, ovsdb.ErrNotOwner) {
		return ErrNotHeld
	}
	if err != nil {
		return fmt.Errorf("store in the external_ids of bridge %s: %w", i.opts.Bridge, err)
	}
	return nil
}

func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}
