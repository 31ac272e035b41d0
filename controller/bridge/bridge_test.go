package bridge

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"brlb/controller/packet"
	"brlb/controller/pipeline"
	"brlb/openflow"
	"brlb/openflow/oftest"
	"brlb/openflow/session"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience is for what a loaded machine may take its time over; nothing is
// measured by it.
const patience = 20 * time.Second

// stand is a Bridge with an in-memory switch.
type stand struct {
	sw     *oftest.Switch
	bridge *Bridge
	events chan Event
	socket string
}

func newSwitch(t *testing.T, service bool) *oftest.Switch {
	sw := oftest.NewSwitch(oftest.SwitchOptions{Service: service, Ports: []openflow.Port{
		oftest.NewPort(openflow.PortLocal, "br0"), oftest.NewPort(1, "p1"), oftest.NewPort(2, "p2"),
	}})
	t.Cleanup(sw.Close)
	return sw
}

// socketPath is short: unix sockets have few octets for it.
func socketPath(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "br")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return filepath.Join(dir, "s")
}

// run starts a Bridge for the length of the test.
func (st *stand) run(t *testing.T, opts Options) {
	st.events = make(chan Event, 100)
	opts.Bridge, opts.Refresh, opts.Logger = "br0", time.Hour, slog.New(slog.DiscardHandler)
	opts.Emit = func(e Event) { st.events <- e }
	st.bridge = New(opts)
	if err := st.bridge.Open(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ran := make(chan struct{})
	go func() {
		defer close(ran)
		if err := st.bridge.Run(ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("Run: %v", err)
		}
	}()
	t.Cleanup(func() {
		cancel()
		<-ran
	})
}

// newStand is a stand in service mode: the Bridge dials the switch.
func newStand(t *testing.T) *stand {
	t.Helper()
	return newStandWith(t, newSwitch(t, true))
}

func newStandWith(t *testing.T, sw *oftest.Switch) *stand {
	t.Helper()
	st := &stand{sw: sw, socket: socketPath(t)}
	listener, err := net.Listen("unix", st.socket)
	if err != nil {
		t.Fatal(err)
	}
	accepted := make(chan struct{})
	go func() {
		defer close(accepted)
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			st.sw.Go(conn)
		}
	}()
	t.Cleanup(func() {
		listener.Close()
		<-accepted
	})
	st.run(t, Options{Dial: "unix:" + st.socket})
	return st
}

// newListeningStand is a stand in controller mode: switches dial the Bridge.
func newListeningStand(t *testing.T) *stand {
	t.Helper()
	st := &stand{sw: newSwitch(t, false), socket: socketPath(t)}
	st.run(t, Options{Listen: "unix:" + st.socket})
	return st
}

// dial makes a connection to a Bridge that listens.
func (st *stand) dial(t *testing.T) net.Conn {
	t.Helper()
	for end := time.Now().Add(patience); ; time.Sleep(time.Millisecond) {
		conn, err := net.Dial("unix", st.socket)
		if err == nil {
			return conn
		}
		if time.Now().After(end) {
			t.Fatal(err)
		}
	}
}

// next waits for an event of a type and skips others.
func next[E Event](t *testing.T, st *stand) E {
	t.Helper()
	timeout := time.After(patience)
	for {
		select {
		case e := <-st.events:
			if e, ok := e.(E); ok {
				return e
			}
		case <-timeout:
			var none E
			t.Fatalf("no %T came", none)
		}
	}
}

// sent waits until the switch was sent a packet.
func (st *stand) sent(t *testing.T, frame []byte) *openflow.PacketOut {
	t.Helper()
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(time.Millisecond) {
		for _, out := range st.sw.PacketOuts() {
			if bytes.Equal(out.Data, frame) {
				return out
			}
		}
	}
	t.Fatalf("never sent: %x", frame)
	return nil
}

// countSent is how often the switch was sent a packet.
func (st *stand) countSent(frame []byte) (n int) {
	for _, out := range st.sw.PacketOuts() {
		if bytes.Equal(out.Data, frame) {
			n++
		}
	}
	return n
}

func gateways() []netip.Prefix { return []netip.Prefix{netip.MustParsePrefix("10.30.0.1/24")} }

func TestNextHopsAreAskedForInEverySession(t *testing.T) {
	st := newStand(t)
	next[Connected](t, st)
	st.bridge.Want(Wants{Lead: true, Hops: []netip.Addr{host(11)}, MAC: ownMAC, Zone: 5, Gateways: gateways(), Refresh: time.Hour})
	question := packet.Ask(ownMAC, netip.MustParseAddr("10.30.0.1"), host(11))
	st.sent(t, question)
	st.sw.Async(&openflow.PacketIn{
		BufferID: openflow.NoBuffer, Cookie: pipeline.Cookie(pipeline.KindBase, 0, 0), Data: unhex(t, arpReplyFrame),
		Match: openflow.Match{openflow.InPort.Exact(2)},
	})
	found := next[NextHopFound](t, st)
	if found.Addr != host(11) || found.Hop.Port != 2 || found.Hop.MAC != (openflow.MAC{2, 0, 0, 0, 0, 0x0b}) {
		t.Errorf("%+v", found)
	}
	// A port has come: the member may have moved there.
	st.sw.SetPort(oftest.NewPort(3, "p3"))
	if ports := next[PortsChanged](t, st).Ports; len(ports) != 4 || ports[2].Name != "p3" || !ports[2].Live {
		t.Errorf("%+v", ports)
	}
	st.sent(t, question)
	// Nobody says again what is wanted in the next session.
	st.sw.Disconnect()
	next[Disconnected](t, st)
	next[Connected](t, st)
	st.sent(t, question)
}

// Next hops are looked for, and addresses announced, in the VLANs of the bridge
// too. Where an answer comes from a VLAN, that is told.
func TestVLANs(t *testing.T) {
	st := newStand(t)
	next[Connected](t, st)
	wants := Wants{Lead: true, Hops: []netip.Addr{host(11)}, MAC: ownMAC, Refresh: time.Hour, VLANs: []uint16{30, 100}}
	st.bridge.Want(wants)
	question := packet.Ask(ownMAC, netip.Addr{}, host(11))
	st.sent(t, packet.Tag(question, 30))
	st.sent(t, question) // asked again, as nobody has answered
	st.sent(t, packet.Tag(question, 100))
	reply := unhex(t, arpReplyFrame)
	st.sw.Async(&openflow.PacketIn{
		BufferID: openflow.NoBuffer, Cookie: pipeline.Cookie(pipeline.KindBase, 0, 0), Data: packet.Tag(reply, 100),
		Match: openflow.Match{openflow.InPort.Exact(2)},
	})
	if found := next[NextHopFound](t, st); found.Hop.VLAN != 100 {
		t.Errorf("%+v", found)
	}
	if err := st.bridge.Announce(t.Context(), ownMAC, []Announcement{{Addr: vip.Addr(), VLAN: 100}}); err != nil {
		t.Fatal(err)
	}
	st.sent(t, packet.Tag(packet.Announce(ownMAC, vip.Addr(), false)[1], 100))
}

// Solicitations for brlb's IPv6 addresses are sent to groups, which snooping
// switches forward only to who has joined.
func TestGroupsAreJoined(t *testing.T) {
	st := newStand(t)
	next[Connected](t, st)
	wants := Wants{Lead: true, MAC: ownMAC, Refresh: time.Hour, Listens: []netip.Addr{vip6.Addr()}, VLANs: []uint16{30}}
	st.bridge.Want(wants)
	st.sent(t, packet.Tag(packet.Join(ownMAC, wants.Listens)[0], 30))
	wants.Hops = []netip.Addr{member6.Addr()}
	st.bridge.Want(wants)
	both := packet.Join(ownMAC, []netip.Addr{vip6.Addr(), packet.LinkLocal(ownMAC)})[0]
	st.sent(t, both)
	// Who is behind a port that has come has heard of none.
	before := st.countSent(both)
	st.sw.SetPort(oftest.NewPort(3, "p3"))
	for end := time.Now().Add(patience); st.countSent(both) == before; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("groups are not joined anew when a port comes")
		}
	}
}

func TestIPv6NextHopsAreAskedFor(t *testing.T) {
	st := newStand(t)
	next[Connected](t, st)
	hop := netip.MustParseAddr("2001:db8:30::b")
	st.bridge.Want(Wants{Lead: true, Hops: []netip.Addr{hop}, MAC: ownMAC, Refresh: time.Hour})
	st.sent(t, packet.Ask(ownMAC, netip.Addr{}, hop))
	st.sw.Async(&openflow.PacketIn{
		BufferID: openflow.NoBuffer, Cookie: pipeline.Cookie(pipeline.KindBase, 0, 0), Match: openflow.Match{openflow.InPort.Exact(2)},
		Data: packet.Announce(openflow.MAC{2, 0, 0, 0, 0, 0x0b}, hop, false)[0],
	})
	found := next[NextHopFound](t, st)
	if found.Addr != hop || found.Hop.Port != 2 || found.Hop.MAC != (openflow.MAC{2, 0, 0, 0, 0, 0x0b}) || found.Hop.Source != "nd" {
		t.Errorf("%+v", found)
	}
}

// Who was dialled takes the master's role; a guest leaves it to others.
func TestRole(t *testing.T) {
	for _, guest := range []bool{false, true} {
		st := newListeningStand(t)
		if guest {
			st = newStand(t)
		} else {
			st.sw.Go(st.dial(t))
		}
		next[Connected](t, st)
		st.bridge.Want(Wants{Lead: true, Hops: []netip.Addr{host(11)}, MAC: ownMAC, Gateways: gateways(), Refresh: time.Hour})
		st.sent(t, packet.Ask(ownMAC, netip.MustParseAddr("10.30.0.1"), host(11))) // after the role
		if asked := st.sw.Received(openflow.TypeRoleRequest) > 0; asked == guest || !st.bridge.Leads() {
			t.Errorf("guest %v: asked for a role %v, leads %v", guest, asked, st.bridge.Leads())
		}
	}
}

func TestStaleConnectionsAreFlushedInTheirZone(t *testing.T) {
	st := newStand(t)
	next[Connected](t, st)
	st.bridge.Want(Wants{Lead: true, MAC: ownMAC, Zone: 5, Refresh: time.Hour})
	st.sw.Disconnect()
	next[Connected](t, st)
	m := handedUp(segment(t, 6, client, member), 6, client, vip)
	m.Cookie = pipeline.Cookie(pipeline.KindBase, 0, 0)
	before := st.sw.Received(openflow.TypeExperimenter)
	st.sw.Async(m)
	out := st.sent(t, segment(t, 6, client, vip))
	if out.InPort != 3 || st.sw.Received(openflow.TypeExperimenter) != before+1 {
		t.Errorf("out of port %v, %d flushes", out.InPort, st.sw.Received(openflow.TypeExperimenter)-before)
	}
	other := netip.AddrPortFrom(client.Addr(), 40001)
	// What somebody else's flow hands up is not brlb's business.
	m.Cookie = 7
	st.sw.Async(m)
	m.Cookie = pipeline.Cookie(pipeline.KindBase, 0, 0)
	m.Data = segment(t, 6, other, member)
	m.Match = handedUp(nil, 6, other, vip).Match
	st.sw.Async(m)
	st.sent(t, segment(t, 6, other, vip))
	if resent := st.bridge.Counters().Resent; resent != 2 {
		t.Errorf("%d packets put back, want 2", resent)
	}
}

// What the switch cannot answer comes up, and the answer leaves by the port where
// the question came in. A brlb that stands by answers nothing.
func TestAnswers(t *testing.T) {
	st := newStand(t)
	next[Connected](t, st)
	gateway := netip.MustParsePrefix("2001:db8:30::1/64")
	wants := Wants{MAC: ownMAC, Zone: 5, Refresh: time.Hour, Gateways: append(gateways(), gateway), Hops: []netip.Addr{host(11)}}
	st.bridge.Want(wants)
	// Whether the VIP and the gateway are free (RFC 4862).
	const forVIP = "3333ff000100 02000000000b 86dd 6000 0000 0018 3a ff 00000000000000000000000000000000 ff0200000000000000000001ff000100 87004acf 00000000 20010db8002000000000000000000100"
	const forGateway = "3333ff000001 02000000000b 86dd 6000 0000 0018 3a ff 00000000000000000000000000000000 ff0200000000000000000001ff000001 87004cbd 00000000 20010db8003000000000000000000001"
	up := func(table uint8, frame []byte) *openflow.PacketIn {
		return &openflow.PacketIn{
			BufferID: openflow.NoBuffer, Table: table, Cookie: pipeline.Cookie(pipeline.KindOwn, 0, 0), Data: frame,
			Match: openflow.Match{openflow.InPort.Exact(2)},
		}
	}
	reset, err := packet.Reject(segment(t, 6, client, vip), ownMAC)
	if err != nil {
		t.Fatal(err)
	}
	unreachable, err := packet.Reject(segment(t, 17, client6, vip6), ownMAC)
	if err != nil {
		t.Fatal(err)
	}
	expires := up(pipeline.TableToMember, segment(t, 6, client, member))
	expires.Match = append(handedUp(nil, 6, client, vip).Match[1:], openflow.InPort.Exact(2), openflow.Reg5.Exact(0xb007))
	expired, err := packet.Expired(packet.Tag(segment(t, 6, client, vip), 7), ownMAC, gateways()[0].Addr())
	if err != nil {
		t.Fatal(err)
	}
	cases := []struct {
		in   *openflow.PacketIn
		want []byte
	}{
		{expires, expired},
		{up(pipeline.TableRest, segment(t, 6, client, vip)), reset},
		{up(pipeline.TableSlots, segment(t, 17, client6, vip6)), unreachable},
		{up(pipeline.TableOwn, unhex(t, forVIP)), packet.Announce(ownMAC, vip6.Addr(), false)[0]},
		{up(pipeline.TableOwn, unhex(t, forGateway)), packet.Announce(ownMAC, gateway.Addr(), true)[0]},
	}
	for _, c := range cases {
		st.sw.Async(c.in)
	}
	st.sw.Async(up(pipeline.TableClassify, unhex(t, arpReplyFrame)))
	next[NextHopFound](t, st) // all that came before has been seen
	for _, out := range st.sw.PacketOuts() {
		if !bytes.Equal(out.Data, packet.Ask(ownMAC, gateways()[0].Addr(), host(11))) {
			t.Errorf("a brlb that stands by sends %x", out.Data)
		}
	}
	wants.Lead = true
	st.bridge.Want(wants)
	for deadline := time.Now().Add(patience); !st.bridge.Leads() && time.Now().Before(deadline); {
		time.Sleep(time.Millisecond)
	}
	for _, c := range cases {
		st.sw.Async(c.in)
		out := st.sent(t, c.want)
		if out.InPort != openflow.PortController || len(out.Actions) != 1 || out.Actions[0] != openflow.Action(openflow.Output{Port: 2}) {
			t.Errorf("%+v", out)
		}
	}
	if n := st.bridge.Counters().Answered; n != uint64(len(cases)) {
		t.Errorf("%d answers are counted, want %d", n, len(cases))
	}
}

// Rows name a meter: the switch has it before it gets the rows, also if somebody
// has deleted it.
func TestTheMeterComesBeforeTheRows(t *testing.T) {
	st := newStand(t)
	connected := next[Connected](t, st)
	row := openflow.NewFlowMod(openflow.FlowAdd)
	row.Table, row.Cookie, row.Instructions = pipeline.TableRest, pipeline.Cookie(pipeline.KindOwn, 0, 0), openflow.Instructions{openflow.Meter(pipeline.Meters()[0].ID)}
	apply := func() session.BundleResult {
		return st.bridge.Apply(t.Context(), connected.Session, []openflow.Message{row})
	}
	if r := apply(); r.Outcome != session.Applied {
		t.Fatal(r.Err)
	}
	if err := st.sw.Apply(&openflow.MeterMod{Command: openflow.MeterDelete, ID: openflow.MeterAll}); err != nil {
		t.Fatal(err)
	}
	if r := apply(); r.Outcome != session.Rejected {
		t.Errorf("%v without the meter", r.Outcome)
	}
	if r := apply(); r.Outcome != session.Applied {
		t.Errorf("the second time: %v", r.Err)
	}
	// A switch that has kept it when brlb comes back.
	st.sw.Disconnect()
	connected = next[Connected](t, st)
	if r := apply(); r.Outcome != session.Applied {
		t.Errorf("with the meter of the last session: %v", r.Err)
	}
}

func TestForeignChangesAreTold(t *testing.T) {
	st := newStand(t)
	connected := next[Connected](t, st)
	if !connected.Watched || !connected.KeepsReplyTuples || !connected.TracksNoSCTP || connected.Description != "Open vSwitch 3.1.0" || len(connected.Flows) != 0 || len(connected.Ports) != 3 {
		t.Errorf("%+v", connected)
	}
	f := openflow.NewFlowMod(openflow.FlowAdd)
	f.Table, f.Cookie = pipeline.TableHash, pipeline.Cookie(pipeline.KindHash, 1, 0)
	if r := st.bridge.Apply(t.Context(), connected.Session, []openflow.Message{f}); r.Outcome != session.Applied {
		t.Fatal(r.Err)
	}
	foreign := openflow.NewFlowMod(openflow.FlowDelete)
	foreign.Table = openflow.TableAll
	if err := st.sw.Apply(foreign); err != nil {
		t.Fatal(err)
	}
	if read := next[FlowsRead](t, st); read.Session != connected.Session || len(read.Flows) != 0 {
		t.Errorf("%+v", read)
	}
}

func TestApplyForAnotherSession(t *testing.T) {
	st := newStand(t)
	connected := next[Connected](t, st)
	f := openflow.NewFlowMod(openflow.FlowAdd)
	r := st.bridge.Apply(t.Context(), connected.Session+1, []openflow.Message{f})
	if r.Outcome != session.Unknown || !errors.Is(r.Err, ErrNotConnected) || st.sw.FlowMods() != 0 {
		t.Errorf("%v %v, %d flow-mods", r.Outcome, r.Err, st.sw.FlowMods())
	}
}

func TestAnotherBridgeIsRefused(t *testing.T) {
	st := newStand(t)
	next[Connected](t, st)
	st.sw.SetPort(oftest.NewPort(openflow.PortLocal, "br-other"))
	next[PortsChanged](t, st)
	st.sw.Disconnect()
	next[Disconnected](t, st)
	for {
		if refused := next[Refused](t, st); strings.Contains(refused.Err.Error(), `is bridge "br-other", not "br0"`) {
			return
		}
	}
}

// Somebody who is not the bridge is turned away, and the session that stands
// goes on.
func TestStrangersDoNotDisturb(t *testing.T) {
	st := newListeningStand(t)
	st.sw.Go(st.dial(t))
	connected := next[Connected](t, st)

	stranger := st.dial(t)
	defer stranger.Close()
	if _, err := stranger.Write([]byte("GET / HTTP/1.1\r\n\r\n")); err != nil {
		t.Fatal(err)
	}
	if refused := next[Refused](t, st); !strings.Contains(refused.Err.Error(), "GET / HTTP") {
		t.Errorf("%v", refused.Err)
	}
	silent := st.dial(t)
	defer silent.Close()
	other := newSwitch(t, false)
	other.SetPort(oftest.NewPort(openflow.PortLocal, "br-other"))
	other.Go(st.dial(t))
	if refused := next[Refused](t, st); !strings.Contains(refused.Err.Error(), "br-other") {
		t.Errorf("%v", refused.Err)
	}
	f := openflow.NewFlowMod(openflow.FlowAdd)
	if r := st.bridge.Apply(t.Context(), connected.Session, []openflow.Message{f}); r.Outcome != session.Applied {
		t.Errorf("%v: %v", r.Outcome, r.Err)
	}
	if other.FlowMods() != 0 || other.Received(openflow.TypeRoleRequest) != 0 {
		t.Error("another bridge was led")
	}
}

// A switch that connects anew has given the old session up.
func TestTheNewestSessionLeads(t *testing.T) {
	st := newListeningStand(t)
	st.sw.Go(st.dial(t))
	first := next[Connected](t, st)
	for range 3 {
		st.sw.Go(st.dial(t))
		if gone := next[Disconnected](t, st); !errors.Is(gone.Err, errReplaced) {
			t.Errorf("%v", gone.Err)
		}
		again := next[Connected](t, st)
		if again.Session != first.Session+1 {
			t.Errorf("session %d after %d", again.Session, first.Session)
		}
		if r := st.bridge.Apply(t.Context(), first.Session, []openflow.Message{openflow.NewFlowMod(openflow.FlowAdd)}); !errors.Is(r.Err, ErrNotConnected) {
			t.Errorf("a plan for an old session: %v %v", r.Outcome, r.Err)
		}
		first = again
	}
}

func TestTooManyConnections(t *testing.T) {
	st := newListeningStand(t)
	for range maxConnections {
		defer st.dial(t).Close()
	}
	for range maxConnections {
		next[Connecting](t, st)
	}
	extra := st.dial(t)
	defer extra.Close()
	if refused := next[Refused](t, st); !strings.Contains(refused.Err.Error(), "8 peers") {
		t.Errorf("%v", refused.Err)
	}
}
