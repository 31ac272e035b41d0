package controller

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"brlb/controller/bridge"
	"brlb/controller/config"
	"brlb/controller/conntrack"
	"brlb/controller/pipeline"
	"brlb/controller/state"
	"brlb/openflow"
	"brlb/ovsdb/unixctl"
)

// How often the switch's connection table is read. Writing it down holds up the
// switch's main thread, so the time between two readings grows with what one
// takes: a fiftieth of the time is spent on it at most, or a tenth while
// connections must end again and again.
const (
	readEvery   = 2 * time.Second
	readShare   = 50
	urgentShare = 10
	readLatest  = time.Minute // after a reading that took very long, or was given up
	readSoon    = time.Second // after entries were flushed, or could not be
)

// tracker reads the switch's connection table now and then, counts connections
// by member, and ends those that must end. It belongs to one goroutine.
type tracker struct {
	loop     *loop
	switchd  *unixctl.Conn
	config   *config.Config  // of which limits were set
	snapshot *state.Snapshot // of which standing is
	standing *standing
	cleaned  *standing // by which entries were last cleaned; nil: never
	blind    bool      // connections of members that leave were flushed once without the table
	again    time.Time // when an urgent cleaning is tried once more
	next     time.Time // when the table is read if nothing is urgent
	zones    []uint16  // that were read last
}

// trackConnections runs a tracker until ctx ends.
func (l *loop) trackConnections(ctx context.Context) {
	t := &tracker{loop: l, switchd: unixctl.Daemon(l.view.Load().config.RunDir, "ovs-vswitchd")}
	defer t.switchd.Close()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for ctx.Err() == nil {
		changed := l.Changed()
		v := l.view.Load()
		if v.config != t.config && v.sw.session != 0 {
			// The next reading may be a minute away.
			t.config = v.config
			t.limit(ctx, v)
		}
		due, urgent := t.due(v)
		if v.sw.session == 0 {
			due = time.Now().Add(readEvery)
		}
		if wait := time.Until(due); wait > 0 {
			timer.Reset(wait)
			select {
			case <-ctx.Done():
			case <-changed:
			case <-timer.C:
			}
			continue
		}
		t.look(ctx, v, urgent)
	}
}

// due says when the table is to be read. It is urgent if connections must end
// that might go on before.
func (t *tracker) due(v *view) (at time.Time, urgent bool) {
	if v.snapshot != t.snapshot {
		t.snapshot, t.standing = v.snapshot, standingOf(v.snapshot, v.served)
	}
	if v.mayClean() && t.standing.lessThan(t.cleaned) {
		return t.again, true
	}
	return t.next, false
}

// mayClean says whether the switch forwards by the snapshot, so that no entry is
// made any more for a member that it does not name, and whether it is this
// brlb that decides.
func (v *view) mayClean() bool {
	return v.writer && v.inSync && v.sw.session != 0 && allSettled(v.snapshot)
}

// look reads the table, and flushes what must go.
func (t *tracker) look(ctx context.Context, v *view, urgent bool) {
	if urgent {
		// What the datapath has cached still makes entries of members that the
		// tables no longer name.
		t.loop.settle(ctx)
	}
	started := time.Now()
	r, err := t.read(ctx, v)
	cost := time.Since(started)
	t.next = started.Add(min(max(readEvery, readShare*cost), readLatest))
	t.again = started.Add(min(urgentShare*cost, readLatest))
	t.loop.setConnections(r.connections(started, err))
	if ctx.Err() != nil || !v.mayClean() {
		return
	}
	judged := t.standing
	switch {
	case err == nil && t.clean(ctx, v, r), err != nil && urgent && t.flushBlindly(ctx, v):
		t.cleaned, t.blind = judged, false
	case urgent:
		t.again = started.Add(min(max(readSoon, urgentShare*cost), readLatest))
	}
}

// clean flushes the entries that must go. It reports whether none is left.
func (t *tracker) clean(ctx context.Context, v *view, r *reading) bool {
	condemned, err := t.condemned(ctx, v, r.suspects)
	if err == nil && len(condemned) > 0 {
		err = t.forget(ctx, condemned)
		t.next = time.Now().Add(readSoon)
	}
	if err != nil {
		t.loop.opts.Logger.Warn("connections that must end do not; trying again", "entries", len(condemned), "err", err)
		return false
	}
	t.tell(condemned)
	return !r.more
}

// verdict is an entry that must go, and why.
type verdict struct {
	conntrack.Entry
	member place
}

// condemned returns those of the suspects that must go, by what holds now as
// well: while the table was read, a member may have come back.
func (t *tracker) condemned(ctx context.Context, v *view, suspects []conntrack.Entry) ([]verdict, error) {
	if len(suspects) == 0 {
		return nil, nil
	}
	now := t.loop.view.Load()
	if !now.writer || !allSettled(now.snapshot) {
		return nil, errors.New("brlb does not know enough at the moment")
	}
	st := standingOf(now.snapshot, now.served)
	gone, err := t.whoWere(ctx, st, suspects)
	if err != nil {
		return nil, err
	}
	var condemned []verdict
	for i := range suspects {
		e := &suspects[i]
		_, number := pipeline.MarkParts(e.Mark)
		switch st.fate(e) {
		case goes:
			member := st.members[number]
			switch {
			case member.cut:
			case member.zone != e.Zone:
				member.why = fmt.Sprintf("they were in conntrack zone %d, and those of the pool are in %d now", e.Zone, member.zone)
			default:
				member.why = fmt.Sprintf("%s is served no longer", netip.AddrPortFrom(e.Orig.Dst, e.Orig.DstPort))
			}
			condemned = append(condemned, verdict{*e, member})
		case unknown:
			if member, known := gone[number]; known && member.addr == e.Reply.Src {
				condemned = append(condemned, verdict{*e, member})
			}
		}
	}
	return condemned, nil
}

// whoWere finds the members that have left, by the numbers that entries carry.
func (t *tracker) whoWere(ctx context.Context, st *standing, entries []conntrack.Entry) (map[uint16]place, error) {
	gone := map[uint16]place{}
	for i := range entries {
		if st.fate(&entries[i]) == unknown {
			_, number := pipeline.MarkParts(entries[i].Mark)
			gone[number] = place{}
		}
	}
	if len(gone) == 0 {
		return gone, nil
	}
	err := t.loop.do(ctx, func() {
		for number := range gone {
			id, known := t.loop.state.MemberNumbered(number)
			at, err := netip.ParseAddrPort(id.Key)
			if !known || err != nil || asks(t.loop.snapshot.Pool(id.Pool)) {
				delete(gone, number)
				continue
			}
			gone[number] = place{addr: at.Addr(), port: at.Port(), pool: id.Pool, name: id.Key, why: "it has left the configuration"}
		}
	})
	return gone, err
}

// asks says whether names of a pool are not known yet: until they are, nobody
// knows who has left it.
func asks(p *state.Pool) bool {
	return p != nil && slices.ContainsFunc(p.Names, func(n state.Name) bool {
		return n.State == state.NameAsking || n.State == state.NameUnresolved
	})
}

// tell notes whose connections have ended, and why.
func (t *tracker) tell(ended []verdict) {
	open := map[place]int{}
	for i := range ended {
		open[ended[i].member]++
	}
	for member, n := range open {
		t.loop.note(state.Event{Time: time.Now(), Pool: member.pool, Member: member.name, Text: fmt.Sprintf("%d open connections ended: %s", n, member.why)})
	}
}

// forget makes the switch forget entries, each by its whole tuple.
func (t *tracker) forget(ctx context.Context, entries []verdict) error {
	flushes := make([]openflow.CTFlush, len(entries))
	for i := range entries {
		flushes[i] = *exactly(&entries[i].Entry)
	}
	err := t.loop.bridge.Forget(ctx, flushes)
	if !errors.Is(err, bridge.ErrNoFlush) {
		return err
	}
	for i := range flushes {
		if _, err := t.switchd.Call(ctx, "dpctl/flush-conntrack", fmt.Sprintf("zone=%d", flushes[i].Zone), tupleText(&flushes[i])); err != nil {
			return err
		}
	}
	return nil
}

// exactly flushes one entry.
func exactly(e *conntrack.Entry) *openflow.CTFlush {
	return &openflow.CTFlush{
		Proto: e.Proto, HasZone: true, Zone: e.Zone,
		Orig: openflow.CTTuple{Src: e.Orig.Src, Dst: e.Orig.Dst, SrcPort: e.Orig.SrcPort, DstPort: e.Orig.DstPort},
	}
}

// allOf flushes whatever is answered from a place.
func (st *standing) allOf(at *place) []openflow.CTFlush {
	flushes := make([]openflow.CTFlush, len(st.flushable))
	for i, proto := range st.flushable {
		flushes[i] = openflow.CTFlush{
			Proto: proto, HasZone: true, Zone: at.zone,
			Reply: openflow.CTTuple{Src: at.addr, SrcPort: at.port},
		}
	}
	return flushes
}

// tupleText is a tuple as dpctl/flush-conntrack reads it.
func tupleText(f *openflow.CTFlush) string {
	family := "nw"
	if f.Orig.Src.Is6() {
		family = "ipv6"
	}
	return fmt.Sprintf("ct_%s_src=%s,ct_%s_dst=%s,ct_nw_proto=%d,ct_tp_src=%d,ct_tp_dst=%d",
		family, f.Orig.Src, family, f.Orig.Dst, f.Proto, f.Orig.SrcPort, f.Orig.DstPort)
}

// flushBlindly ends the connections of members that leave where the table cannot
// be read: whatever answers from their addresses and ports, unless another member
// has the same ones. It is done twice, for what the datapath's caches make
// meanwhile, and then reports true.
func (t *tracker) flushBlindly(ctx context.Context, v *view) bool {
	var flushes []openflow.CTFlush
	for _, number := range t.standing.leaving(t.cleaned) {
		member, there := t.standing.members[number]
		if !there {
			member = t.cleaned.members[number]
		}
		if t.standing.shares(number, member) {
			t.loop.opts.Logger.Warn("connections end by themselves: the connection table cannot be read, and another member has the same address",
				"pool", member.pool, "member", member.name)
			continue
		}
		flushes = append(flushes, t.standing.allOf(&member)...)
	}
	err := t.loop.bridge.Forget(ctx, flushes)
	switch {
	case errors.Is(err, bridge.ErrNoFlush):
		t.loop.opts.Logger.Warn("connections of members that leave end by themselves", "err", err)
	case err != nil:
		t.loop.opts.Logger.Warn("connections that must end do not; trying again", "err", err)
		return false
	case !t.blind:
		t.blind = true
		return false
	}
	return true
}

// setConnections publishes what was read, and tells when the table gets full.
func (l *loop) setConnections(c *connections) {
	old := l.connections.Swap(c)
	if old == nil {
		old = &connections{}
	}
	for i := range c.zones {
		z := &c.zones[i]
		was := slices.ContainsFunc(old.zones, func(o zoneUse) bool { return o.Number == z.Number && o.nearFull() })
		if z.nearFull() && !was {
			l.note(state.Event{Time: time.Now(), Text: z.describe()})
		}
	}
	if c.datapath.nearFull() && !old.datapath.nearFull() {
		l.note(state.Event{Time: time.Now(), Text: c.datapath.describe(datapathLimit)})
	}
}
