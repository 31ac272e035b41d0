package controller

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"brlb/controller/config"
	"brlb/controller/inventory"
	"brlb/controller/state"
	"brlb/health"
)

// phase says how far the loop has come.
type phase string

// The phases, in the order in which a start goes through them.
const (
	phaseDisconnected phase = "disconnected" // no OpenFlow session
	phaseHandshake    phase = "handshake"    // a peer has connected
	phaseInventory    phase = "inventory"    // reading what the switch holds; nothing is changed
	phaseStandby      phase = "standby"      // another brlb holds the lock, or serves another bridge in the same zones
	phaseWaiting      phase = "waiting"      // for OVSDB, or for first verdicts
	phaseConverging   phase = "converging"   // a bundle is under way, or due
	phaseSteady       phase = "steady"       // the switch holds what it should
)

// view is what the loop publishes; immutable.
type view struct {
	snapshot    *state.Snapshot
	confirmed   uint64 // newest revision that the switch held
	confirmedAt time.Time
	inSync      bool
	phase       phase
	phaseAt     time.Time
	degraded    []string
	missing     []string // what readiness waits for
	sw          switchInfo
	ownFlows    int
	inventory   inventory.Update
	writer      bool
	config      *config.Config
	targets     map[state.ProbeID]health.Target
	served      map[netip.Addr]bool // VIPs that brlb serves, or has served
}

func (l *loop) currentPhase() phase {
	_, waiting := l.state.Waiting()
	switch {
	case l.sw.handshaking && l.sw.session == 0:
		return phaseHandshake
	case l.sw.session == 0:
		return phaseDisconnected
	case !l.writer && l.loaded:
		return phaseStandby
	case !l.loaded:
		return phaseWaiting
	case l.reconcile.installed == nil && l.reconcile.inFlight == nil:
		return phaseInventory
	case !l.reconcile.inSync(l.snapshot):
		return phaseConverging
	case waiting:
		return phaseWaiting
	}
	return phaseSteady
}

func (l *loop) setPhase(now time.Time) {
	if p := l.currentPhase(); p != l.phase {
		l.opts.Logger.Debug("phase", "from", l.phase, "to", p)
		l.phase, l.phaseAt = p, now
	}
}

// degraded says what is wrong, in sentences.
func (l *loop) degraded() []string {
	cfg := l.state.Config()
	var wrong []string
	say := func(format string, args ...any) { wrong = append(wrong, fmt.Sprintf(format, args...)) }
	switch u := &l.inventory; {
	case !u.Connected && u.Reason != "":
		say("OVSDB at %s is not connected: %s", cfg.OVSDB, u.Reason)
	case !u.Connected:
		say("OVSDB at %s is not connected yet", cfg.OVSDB)
	case !u.Bridge:
		say("bridge %s does not exist: create it (ovs-vsctl add-br %s); brlb waits for it", cfg.Bridge, cfg.Bridge)
	case !u.Lock.Held:
		say("standby: another brlb holds the OVSDB lock %s", inventory.LockName(cfg.Bridge))
	case !u.MayServe():
		say("brlb does not serve: %s", u.ZoneClash)
	case u.ZoneClash != "":
		wrong = append(wrong, u.ZoneClash)
	}
	wrong = append(wrong, l.inventory.Problems...)
	if l.sw.session == 0 && l.inventory.MayServe() {
		text := "the switch is not connected"
		switch target := switchTarget(cfg); {
		case l.sw.lastError != "":
			text += ": " + l.sw.lastError
		case target != "" && l.inventory.Bridge:
			text += fmt.Sprintf(": it was told to dial %s; Open vSwitch dials sockets only within its own run directory as it spells it, and its log says if it refuses", target)
		}
		wrong = append(wrong, text)
	}
	if l.sw.session != 0 && l.snapshot.NoMeters {
		say("this switch has no meters, which bound how much comes up to brlb (the kernel's datapath has them since Linux 4.15): clients that are refused, whose packets are too long for a tunnel, or whose time to live ends at brlb, are told nothing")
	}
	if l.sw.conntrack != "" {
		wrong = append(wrong, l.sw.conntrack)
	}
	if l.probeProblem != "" {
		say("probes are not as they should be: %s", l.probeProblem)
	}
	if l.sw.session != 0 { // else they are blind for that reason
		if probes := l.prober.Stats(); probes.Blind > 0 {
			say("%d of %d probes find out nothing, so verdicts stay as they are: %s", probes.Blind, probes.Targets, probes.Why)
		}
	}
	if l.refused != nil {
		text, _, _ := strings.Cut(l.refused.Error(), "\n") // brlb check shows the rest
		say("the newest reload was refused: %s", text)
	}
	if l.reconcile.problem != "" {
		wrong = append(wrong, l.reconcile.problem)
	}
	if l.reconcile.alarm {
		say("somebody else keeps changing brlb's flows: %d repairs in %v, the next one waits", len(l.reconcile.repairs), driftWindow)
	}
	if c := l.connections.Load(); c != nil {
		wrong = append(wrong, c.wrong()...)
	}
	for i := range l.snapshot.Pools {
		p := &l.snapshot.Pools[i]
		for j := range p.Names {
			if n := &p.Names[j]; n.Problem != "" {
				say("pool %s: %s is %s: %s", p.Name, n.Host, n.State, n.Problem)
			}
		}
		switch {
		case p.Problem != "":
			say("pool %s: %s", p.Name, p.Problem)
		case p.Alarm != "":
			say("pool %s: %s", p.Name, p.Alarm)
		case p.Settled && p.Table == nil:
			if around := l.snapshot.Around(p.Name); len(around) > 0 {
				say("pool %s: no member owns a slot; it has no share of pool %s", p.Name, strings.Join(around, ", "))
			} else {
				say("pool %s: no member owns a slot; it serves nobody", p.Name)
			}
		}
	}
	for i := range l.snapshot.Services {
		service := &l.snapshot.Services[i]
		if service.Pool != service.Primary {
			say("service %s: backup pool %s serves in place of %s", service.Name, service.Pool, service.Primary)
		}
		if l.sw.confusesAssociations(service) {
			say("service %s: this switch, in userspace, does not know SCTP's ports (Open vSwitch 3.2 does): all associations of a client go to one member, to the port they came for, drained or not", service.Name)
		}
	}
	return wrong
}

// confusesAssociations says whether a service has SCTP ports that the switch's
// conntrack does not tell apart.
func (sw *switchInfo) confusesAssociations(s *state.Service) bool {
	return sw.userspace && sw.tracksNoSCTP && !s.Stateless &&
		slices.ContainsFunc(s.Ports, func(p config.Port) bool { return p.Proto == config.ProtoSCTP })
}

// missing says what must still come before brlb is ready.
func (l *loop) missing() []string {
	var missing []string
	if !l.loaded {
		missing = append(missing, "OVSDB: bridge "+l.state.Config().Bridge+" has not been read yet")
	}
	if l.sw.session == 0 {
		missing = append(missing, "the switch is not connected")
	}
	if deadline, waiting := l.state.Waiting(); waiting {
		missing = append(missing, fmt.Sprintf("first verdicts of some members, at most until %s", deadline.Format(time.TimeOnly)))
	}
	if l.writer && l.sw.session != 0 && !l.reconcile.inSync(l.snapshot) {
		missing = append(missing, "the switch has not confirmed the newest table")
	}
	switch {
	case !l.loaded || l.writer:
	case l.inventory.Lock.Held:
		missing = append(missing, "a conntrack zone that the brlb of no other bridge uses")
	default:
		missing = append(missing, "standby: another brlb holds the lock")
	}
	return missing
}

// publish hands the loop's view to everybody else.
func (l *loop) publish() {
	v := &view{
		snapshot: l.snapshot, inSync: l.reconcile.inSync(l.snapshot),
		phase: l.phase, phaseAt: l.phaseAt, degraded: l.degraded(), missing: l.missing(),
		sw: l.sw, ownFlows: l.reconcile.installed.Len(), inventory: l.inventory, writer: l.writer,
		config: l.state.Config(), targets: l.targets, served: l.everServed,
	}
	if held := l.reconcile.holding; held != nil {
		v.confirmed, v.confirmedAt = held.Revision, l.confirmedAt
	} else if old := l.view.Load(); old != nil {
		v.confirmed, v.confirmedAt = old.confirmed, old.confirmedAt
	}
	old := l.view.Swap(v)
	if old != nil && old.snapshot == v.snapshot && old.confirmed == v.confirmed && old.inSync == v.inSync &&
		old.phase == v.phase && old.sw == v.sw && slices.Equal(old.degraded, v.degraded) {
		return
	}
	l.changedMu.Lock()
	close(l.changed)
	l.changed = make(chan struct{})
	l.changedMu.Unlock()
}
