package pipeline

import (
	"net/netip"
	"testing"

	"brlb/controller/state"
	"brlb/openflow"
	"brlb/openflow/oftest"
)

// life is a switch that executes the pipeline and tracks connections.
type life struct {
	t           *testing.T
	sw          *oftest.Switch
	connections *oftest.Connections
	facts       *state.State
	installed   Set
}

func newLife(t *testing.T) *life {
	l := &life{t: t, facts: serving(t, small), connections: &oftest.Connections{}, installed: Set{}}
	l.sw = oftest.NewSwitch(oftest.SwitchOptions{Ports: []openflow.Port{oftest.NewPort(1, "p1"), oftest.NewPort(2, "p2")}})
	t.Cleanup(l.sw.Close)
	l.sw.SetTracker(l.connections)
	for _, meter := range Meters() {
		if err := l.sw.Apply(meter); err != nil {
			t.Fatal(err)
		}
	}
	l.converge()
	return l
}

// converge makes the switch hold what the facts say.
func (l *life) converge() {
	l.t.Helper()
	plan := Diff(l.installed, render(l.t, l.facts.Snapshot()), nothingHeld)
	if err := l.sw.Apply(plan.Mods...); err != nil {
		l.t.Fatal(err)
	}
	l.installed = plan.Result
}

// send sends a TCP packet into a port, and demands that it leaves by another,
// as it should look there.
func (l *life) send(in openflow.PortNo, mac openflow.MAC, src, dst netip.AddrPort, flags uint16, out openflow.PortNo) *oftest.Packet {
	l.t.Helper()
	p := oftest.TCPPacket(in, src, dst, flags).With(openflow.EthSrc.MAC(mac), openflow.EthDst.MAC(openflow.MAC{2, 0, 0x5e, 0, 1, 2}))
	trace, err := l.sw.Trace(p)
	return l.delivered(trace, err, out)
}

// nowhere stands for no port: the packet is dropped.
const nowhere = openflow.PortAny

func (l *life) delivered(trace *oftest.Trace, err error, out openflow.PortNo) *oftest.Packet {
	l.t.Helper()
	if err != nil {
		l.t.Fatal(err)
	}
	if out == nowhere {
		if len(trace.Deliveries) != 0 {
			l.t.Fatalf("not dropped:\n%v", trace)
		}
		return nil
	}
	if len(trace.Deliveries) != 1 || trace.Deliveries[0].Port != out {
		l.t.Fatalf("want one delivery to %v:\n%v", out, trace)
	}
	return trace.Deliveries[0].Packet
}

func (l *life) demand(p *oftest.Packet, src, dst netip.AddrPort, ethDst openflow.MAC) {
	l.t.Helper()
	if p.Source() != src || p.Destination() != dst || p.OXM(openflow.EthDst).MAC() != ethDst ||
		p.OXM(openflow.EthSrc).MAC() != (openflow.MAC{2, 0, 0x5e, 0, 1, 2}) || p.Uint64(openflow.IPTTL) != 63 {
		l.t.Fatalf("got %v; want %v to %v, for %v", p, src, dst, ethDst)
	}
}

const (
	flagSYN    = 2
	flagACK    = 0x10
	flagSYNACK = 0x12
)

// The life of a connection, and of the next one from the same port.
func TestLifeOfAConnection(t *testing.T) {
	l := newLife(t)
	client, vip, router := addrPort("10.20.0.10:40000"), addrPort("10.20.0.100:80"), openflow.MAC{2, 0, 0, 0, 0, 0xaa}
	web := l.facts.Snapshot().Pool("web")
	_, slot := Slot(web, Tuple{Proto: protoTCP, Src: client, Dst: vip})
	owner := web.Owner(slot)

	l.demand(l.send(1, router, client, vip, flagSYN, 2), client, owner.Address, owner.Next.MAC)
	if len(l.connections.List) != 1 || l.connections.List[0].Mark != Mark(web.ID, owner.Number) || l.connections.List[0].Zone != 5 {
		t.Fatalf("%+v", l.connections.List)
	}
	// A SYN that is sent again before the member has answered.
	l.demand(l.send(1, router, client, vip, flagSYN, 2), client, owner.Address, owner.Next.MAC)
	l.demand(l.send(2, owner.Next.MAC, owner.Address, client, flagSYNACK, 1), vip, client, router)
	l.demand(l.send(1, router, client, vip, flagACK, 2), client, owner.Address, owner.Next.MAC)

	// The port is used again while the member is active: conntrack knows better.
	l.demand(l.send(1, router, client, vip, flagSYN, 2), client, owner.Address, owner.Next.MAC)

	// The member drains: the connection goes on, both ways.
	l.facts.SetOverride(owner.ID, state.Override{State: state.Draining, At: start})
	l.converge()
	l.demand(l.send(1, router, client, vip, flagACK, 2), client, owner.Address, owner.Next.MAC)
	l.demand(l.send(2, owner.Next.MAC, owner.Address, client, flagACK, 1), vip, client, router)

	// A new connection from that port must not reach it: the controller flushes
	// the entry and sends the packet again.
	handed := l.send(1, router, client, vip, flagSYN, openflow.PortController)
	handed.Set(openflow.IPv4Dst.Addr(vip.Addr()))
	handed.Set(openflow.TCPDst.Exact(uint64(vip.Port())))
	again := oftest.TCPPacket(1, client, vip, flagSYN).With(openflow.EthSrc.MAC(router))
	trace, err := l.sw.Execute(again, Resend()...)
	l.delivered(trace, err, nowhere) // not flushed: no second round, and not to the member
	l.connections.List = nil
	next := l.facts.Snapshot().Pool("web").Owner(slot)
	if next.Key() == owner.Key() {
		t.Fatal("a member that drains still owns the slot")
	}
	trace, err = l.sw.Execute(again, Resend()...)
	l.demand(l.delivered(trace, err, 2), client, next.Address, next.Next.MAC)
}

func TestNoActiveMember(t *testing.T) {
	l := newLife(t)
	client, vip, router := addrPort("10.20.0.10:40000"), addrPort("10.20.0.100:80"), openflow.MAC{2, 0, 0, 0, 0, 0xaa}
	judge(l.facts, state.Down, l.facts.Probes()...)
	l.converge()
	l.send(1, router, client, vip, flagSYN, nowhere)
	judge(l.facts, state.Up, byTCP("10.30.0.12:8080"))
	l.converge()
	be2 := l.facts.Snapshot().Pool("web").Member("10.30.0.12:8080")
	l.demand(l.send(1, router, client, vip, flagSYN, 2), client, be2.Address, be2.Next.MAC)
}

// A member that is gone from the configuration gets nothing any more, not even
// of connections that it had.
func TestRemovedMember(t *testing.T) {
	l := newLife(t)
	client, vip, router := addrPort("10.20.0.10:40000"), addrPort("10.20.0.100:443"), openflow.MAC{2, 0, 0, 0, 0, 0xaa}
	was := l.facts.Snapshot().Pool("tls").Members[0]
	l.send(1, router, client, vip, flagSYN, 2)
	l.send(2, was.Next.MAC, was.Address, client, flagSYNACK, 1)
	l.facts.SetConfig(parse(t, `
mac: 02:00:5e:00:01:02
zone: 5
pools:
  tls: {id: 2, slots: 64, members: {be9: 10.30.0.19:8443}}
services:
  tls: {address: 10.20.0.100, ports: [443/tcp], pool: tls}
`), start)
	l.converge()
	l.send(1, router, client, vip, flagACK, nowhere)
	l.send(1, router, client, vip, flagSYN, openflow.PortController)
}
