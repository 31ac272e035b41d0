package bridge

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"time"

	"brlb/controller/packet"
	"brlb/controller/pipeline"
	"brlb/controller/state"
	"brlb/openflow"
	"brlb/openflow/session"
)

// How brlb notices changes that others make to its flows. A switch from 3.0 on
// tells; the look now and then is for what it may not have told, and for older
// switches. Telling what it holds keeps a switch from other work, so that takes
// a fiftieth of its time at most.
const (
	settleDrift   = 10 * time.Millisecond // several changes at once are read once
	auditWatched  = 60 * time.Second
	auditOnlyLook = 2 * time.Second
	auditShare    = 50
)

// missSendLen makes the switch send packets whole; non-zero, it also makes a
// service connection receive asynchronous messages at all.
const missSendLen = openflow.MaxLenAll

// serving is one session in the hands of its goroutine.
type serving struct {
	bridge     *Bridge
	session    *session.Session
	number     uint64
	wants      Wants
	neighbours *Neighbours
	asking     *time.Timer // when next hops are asked for again
	ports      map[openflow.PortNo]state.Port
	watched    bool
	retake     *time.Timer
	rejoin     *time.Timer // when groups are joined anew
	joining    bool        // soon
}

// serve runs one session from handshake to end. It returns why it ended. Until
// the peer has shown that it is the bridge, a session that stands goes on.
func (b *Bridge) serve(ctx context.Context, conn net.Conn) error {
	ctx, leave := context.WithCancelCause(ctx)
	defer leave(nil)
	b.opts.Emit(Connecting{Peer: conn.RemoteAddr().String()})
	hctx, cancel := context.WithTimeout(ctx, handshakeTimeout)
	defer cancel()
	s, err := session.Open(hctx, conn, session.Options{Idle: silence})
	if err != nil {
		b.opts.Emit(Refused{Err: err})
		return err
	}
	defer s.Close()
	v := &serving{bridge: b, session: s, neighbours: NewNeighbours(b.opts.Refresh), ports: map[openflow.PortNo]state.Port{}}
	if err = v.checkBridge(hctx); err == nil {
		err = b.takeSeat(ctx, leave)
	}
	if err != nil {
		b.opts.Emit(Refused{Err: err})
		return err
	}
	defer b.seat.Unlock()
	defer s.Close() // before the seat is free
	ictx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	connected, err := v.inventory(ictx)
	if err != nil {
		b.opts.Emit(Refused{Err: err})
		return err
	}
	b.mu.Lock()
	b.number++
	b.current = s
	b.leads.Store(false)
	v.number = b.number
	b.mu.Unlock()
	connected.Session = v.number
	b.opts.Emit(connected)
	pulse := make(chan struct{})
	go func() { defer close(pulse); v.pulse() }()
	err = v.loop(ctx)
	s.Close()
	<-pulse
	b.mu.Lock()
	b.current = nil
	b.counters = addCounters(b.counters, s.Counters())
	b.mu.Unlock()
	b.opts.Emit(Disconnected{Err: err})
	return err
}

// Pulse is how often the switch is asked for a sign of life, so that probes
// which time out can be told from probes that the switch has lost.
const Pulse = 250 * time.Millisecond

// pulse notes the switch's signs of life until the session ends.
func (v *serving) pulse() {
	ticker := time.NewTicker(Pulse)
	defer ticker.Stop()
	for {
		if _, err := v.session.Ping(context.Background()); err == nil {
			v.bridge.heard.Store(time.Now().UnixNano())
		}
		select {
		case <-v.session.Done():
			return
		case <-ticker.C:
		}
	}
}

// checkBridge reads the ports, and finds out whether the peer is the bridge.
func (v *serving) checkBridge(ctx context.Context) error {
	if err := v.readPorts(ctx); err != nil {
		return err
	}
	if local := v.ports[openflow.PortLocal]; local.Name != v.bridge.opts.Bridge {
		return fmt.Errorf("the switch that connected is bridge %.40q, not %q: check which bridge names brlb as its controller", local.Name, v.bridge.opts.Bridge)
	}
	return nil
}

// inventory reads what the switch holds; it changes no flow.
func (v *serving) inventory(ctx context.Context) (Connected, error) {
	s := v.session
	c := Connected{DatapathID: s.Features().DatapathID}
	desc := s.Desc()
	c.Description = fmt.Sprintf("%s %s", desc.Hardware, desc.Software)
	major, minor, ok := s.SoftwareVersion()
	c.KeepsReplyTuples = ok && major == 3 && minor <= 2
	c.TracksNoSCTP = ok && (major < 3 || major == 3 && minor < 2)
	if err := s.Send(ctx, &openflow.SetConfig{SwitchConfig: openflow.SwitchConfig{MissSendLen: missSendLen}}); err != nil {
		return c, fmt.Errorf("set config: %w", err)
	}
	if err := s.Send(ctx, &openflow.SetControllerID{ID: pipeline.ControllerID}); err != nil {
		return c, fmt.Errorf("set controller id: %w", err)
	}
	// Watch before reading, so that no change falls between the two. A switch
	// that brlb dials tells of ports from SET_CONFIG on.
	if err := v.watch(ctx); err != nil {
		return c, err
	}
	if err := v.readPorts(ctx); err != nil {
		return c, err
	}
	var err error
	if c.NoMeters, err = lacksMeters(ctx, s); err != nil {
		return c, err
	}
	v.bridge.noMeters.Store(c.NoMeters)
	c.Flows, err = readFlows(ctx, s, false)
	c.Ports, c.Watched = v.portList(), v.watched
	return c, err
}

// watch asks the switch to tell of changes to the tables that brlb uses.
func (v *serving) watch(ctx context.Context) error {
	if major, _, ok := v.session.SoftwareVersion(); !ok || major < 3 {
		return nil
	}
	var request openflow.FlowMonitorRequest
	for i, table := range pipeline.Tables() {
		request = append(request, openflow.FlowMonitor{
			ID: uint32(i + 1), OutPort: openflow.PortAny, OutGroup: openflow.GroupAny, Table: table,
			Flags: openflow.MonitorAdd | openflow.MonitorRemoved | openflow.MonitorModify,
		})
	}
	if err := v.session.Monitor(ctx, request, func(openflow.FlowMonitorReply) error { return nil }); err != nil {
		return fmt.Errorf("watch flows: %w", err)
	}
	v.watched = true
	return nil
}

func (v *serving) readPorts(ctx context.Context) error {
	ports := map[openflow.PortNo]state.Port{}
	err := v.session.Multipart(ctx, openflow.PortDescRequest{}, func(part openflow.MultipartReplyBody) error {
		list, _ := part.(openflow.PortDescReply)
		for i := range list {
			ports[list[i].No] = port(&list[i])
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("read ports: %w", err)
	}
	v.ports = ports
	return nil
}

func port(p *openflow.Port) state.Port {
	return state.Port{
		Number: uint32(p.No), Name: p.Name, MAC: p.HWAddr,
		Live: p.IsLive() && p.Config&openflow.PortDown == 0,
	}
}

func (v *serving) portList() []state.Port {
	list := make([]state.Port, 0, len(v.ports))
	for _, p := range v.ports {
		list = append(list, p)
	}
	slices.SortFunc(list, func(a, b state.Port) int { return int(int64(a.Number) - int64(b.Number)) })
	return list
}

// loop handles what the switch says and what time brings until the session
// ends.
func (v *serving) loop(ctx context.Context) error {
	audit := auditWatched
	if !v.watched {
		audit = auditOnlyLook
	}
	settling := false // the next look is soon
	look := time.NewTimer(audit)
	defer look.Stop()
	v.asking = time.NewTimer(0)
	defer v.asking.Stop()
	v.rejoin = time.NewTimer(rejoinAfter)
	defer v.rejoin.Stop()
	v.retake = time.NewTimer(retakeRole)
	defer v.retake.Stop()
	if err := v.takeWants(ctx); err != nil {
		return err
	}
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-v.session.Done():
			return v.session.Err()
		case <-v.bridge.wanted:
			if err := v.takeWants(ctx); err != nil {
				return err
			}
		case <-v.retake.C:
			if err := v.lead(ctx); err != nil {
				return err
			}
		case <-v.rejoin.C:
			v.joining = false
			v.rejoin.Reset(rejoinAfter)
			if err := v.join(ctx); err != nil {
				return err
			}
		case now := <-v.asking.C:
			due, next := v.neighbours.Due(now)
			if err := v.ask(ctx, due); err != nil {
				return err
			}
			if !next.IsZero() {
				v.asking.Reset(time.Until(next))
			}
		case <-look.C:
			settling = false
			took, err := v.bridge.reread(ctx, v.session, v.number)
			if err != nil {
				return err
			}
			if err := v.keepMeters(ctx); err != nil {
				return err
			}
			look.Reset(untilLook(audit, took))
		case event, ok := <-v.session.Events():
			if !ok {
				return v.session.Err()
			}
			changed, err := v.handle(ctx, event)
			if err != nil {
				return err
			}
			if changed && !settling {
				settling = true
				look.Reset(settleDrift)
			}
		}
	}
}

// untilLook is how long to wait after a look at all flows that took the switch so
// long.
func untilLook(audit, took time.Duration) time.Duration { return max(audit, auditShare*took) }

// takeWants takes over what the owner wants by now.
func (v *serving) takeWants(ctx context.Context) error {
	v.bridge.mu.Lock()
	v.wants = v.bridge.wants
	v.bridge.mu.Unlock()
	v.neighbours.SetRefresh(v.wants.Refresh)
	v.neighbours.Want(v.wants.Hops, time.Now())
	v.asking.Reset(0)
	if err := v.lead(ctx); err != nil {
		return err
	}
	return v.join(ctx)
}

// rejoinAfter is how often groups are joined anew. Snooping switches forget a
// group after 260 s (RFC 3810 section 9.4), and a frame may be lost.
const rejoinAfter = time.Minute

// joinSoon is how long after a port has come up groups are joined anew: behind it
// there may be a switch that has heard of none.
const joinSoon = time.Second

// join has neighbour solicitations for brlb's addresses reach the switch.
func (v *serving) join(ctx context.Context) error {
	if !v.wants.Lead || v.wants.MAC == (openflow.MAC{}) {
		return nil
	}
	listens := v.wants.Listens
	if slices.ContainsFunc(v.wants.Hops, netip.Addr.Is6) {
		listens = append(slices.Clone(listens), packet.LinkLocal(v.wants.MAC))
	}
	for _, frame := range packet.Join(v.wants.MAC, listens) {
		if err := v.session.Send(ctx, v.wants.everywhere(frame)...); err != nil {
			return err
		}
	}
	return nil
}

// retakeRole is how long brlb waits before it takes back the master's role from
// somebody who took it although brlb is the one that writes.
const retakeRole = 5 * time.Second

// lead takes the master's role if this brlb is the one that writes and has it
// not. The switch refuses what the brlb that wrote before still sends. Who dials
// the switch is a guest there: it stays equal, for the role may be that of the
// bridge's own controller.
func (v *serving) lead(ctx context.Context) error {
	if !v.wants.Lead {
		v.bridge.leads.Store(false)
		return nil
	}
	if v.bridge.leads.Load() {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	if v.bridge.opts.Dial == "" {
		if _, err := v.session.TakeRole(ctx, openflow.RoleMaster); err != nil {
			return fmt.Errorf("become master: %w", err)
		}
	}
	v.bridge.leads.Store(true)
	return nil
}

// askAgain asks for all next hops anew: a port has come, and anybody may have
// moved to it.
func (v *serving) askAgain() {
	v.neighbours.Reset(time.Now())
	v.asking.Reset(0)
}

// handle deals with one asynchronous message. It reports whether somebody else
// may have changed brlb's flows.
func (v *serving) handle(ctx context.Context, event session.Event) (changed bool, err error) {
	if event.Lost {
		if err := v.readPorts(ctx); err != nil {
			return false, err
		}
		v.bridge.opts.Emit(PortsChanged{Ports: v.portList()})
		v.askAgain()
		return true, nil
	}
	switch m := event.Message.(type) {
	case *openflow.PortStatus:
		switch m.Reason {
		case openflow.PortDeleted:
			delete(v.ports, m.Port.No)
			v.askAgain()
		case openflow.PortAdded:
			v.askAgain()
			fallthrough
		default:
			was, now := v.ports[m.Port.No], port(&m.Port)
			v.ports[m.Port.No] = now
			if now.Live && !was.Live && !v.joining {
				v.joining = true
				v.rejoin.Reset(joinSoon)
			}
		}
		v.bridge.opts.Emit(PortsChanged{Ports: v.portList()})
	case *openflow.PacketIn:
		return false, v.packetIn(ctx, m)
	case *openflow.RoleStatus:
		if v.bridge.leads.Load() && m.Role != openflow.RoleMaster {
			v.bridge.leads.Store(false)
			v.retake.Reset(retakeRole)
			v.bridge.opts.Logger.Warn("another controller has become the switch's master")
		}
	case *openflow.MultipartReply:
		return concerns(m), nil
	case *openflow.Error:
		v.bridge.opts.Logger.Warn("the switch refused a message", "xid", event.Xid, "err", m)
	}
	return false, nil
}

// concerns says whether a flow monitor's update may be about brlb's flows. What
// brlb changed itself comes abbreviated and doesn't count.
func concerns(m *openflow.MultipartReply) bool {
	updates, ok := m.Body.(openflow.FlowMonitorReply)
	if !ok {
		return false
	}
	for i := range updates {
		u := &updates[i]
		switch u.Event {
		case openflow.EventAdded, openflow.EventRemoved, openflow.EventModified:
			if pipeline.Concerns(u.Table, u.Priority, u.Cookie) {
				return true
			}
		case openflow.EventResumed:
			return true // what happened during the pause is not told in full
		}
	}
	return false
}

// ask sends a question for each address to all networks: which one it is in shows
// in the answer, and it may move.
func (v *serving) ask(ctx context.Context, addrs []netip.Addr) error {
	if v.wants.MAC == (openflow.MAC{}) {
		return nil // OVSDB has not been read yet
	}
	for _, addr := range addrs {
		var sender netip.Addr
		for _, g := range v.wants.Gateways {
			if g.Contains(addr) {
				sender = g.Addr()
			}
		}
		if err := v.session.Send(ctx, v.wants.everywhere(packet.Ask(v.wants.MAC, sender, addr))...); err != nil {
			return err
		}
	}
	return nil
}
