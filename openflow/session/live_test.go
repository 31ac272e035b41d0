package session_test

import (
	"context"
	"errors"
	"net"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"brlb/openflow"
	"brlb/openflow/oftest"
	"brlb/openflow/session"
)

// open opens a session with a real switch for the length of the test.
func open(t testing.TB, ovs *oftest.OVS, opts session.Options) *session.Session {
	t.Helper()
	s, err := session.Open(context.Background(), ovs.Dial(), opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

// slots returns n flows like those of a slot table.
func slots(n int) []openflow.Message {
	flows := make([]openflow.Message, n)
	for i := range flows {
		f := openflow.NewFlowMod(openflow.FlowAdd)
		f.Table, f.Priority, f.Cookie = 11, 100, 0xb51b<<48
		f.Match = openflow.Match{openflow.Reg0.Exact(1), openflow.Reg1.Exact(uint64(i))}
		f.Instructions = openflow.Instructions{
			openflow.ApplyActions{openflow.RegLoad{Dst: openflow.Reg2.Whole(), Value: uint64(i%7 + 1)}},
			openflow.GotoTable(12),
		}
		flows[i] = f
	}
	return flows
}

func TestLiveBundle(t *testing.T) {
	ovs := oftest.StartOVS(t, 2)
	s := open(t, ovs, session.Options{})
	ctx := context.Background()
	if major, minor, ok := s.SoftwareVersion(); !ok || major < 2 {
		t.Errorf("version %d.%d %v of %+v", major, minor, ok, s.Desc())
	}
	if r := s.Bundle(ctx, slots(1024)); r.Outcome != session.Applied {
		t.Fatalf("%v: %v", r.Outcome, r.Err)
	}
	flows, err := s.Flows(ctx, openflow.FlowStatsRequest(openflow.AllFlows()))
	if err != nil || len(flows) != 1024 {
		t.Fatalf("%d flows, %v", len(flows), err)
	}

	// The switch refuses one message when it is added.
	bad := slots(3)
	bad[1].(*openflow.FlowMod).Instructions = openflow.Instructions{openflow.GotoTable(3)}
	r := s.Bundle(ctx, bad)
	if r.Outcome != session.Rejected || len(r.Errors) != 1 || r.Errors[0].Index != 1 || !errors.Is(r.Err, openflow.BadInstructionBadTableID) {
		t.Errorf("%v: %v", r.Outcome, r.Err)
	}

	// The switch refuses one message when the bundle is committed.
	clear := openflow.NewFlowMod(openflow.FlowDelete)
	clear.Table = openflow.TableAll
	overlapping := openflow.NewFlowMod(openflow.FlowAdd)
	overlapping.Table, overlapping.Priority, overlapping.Flags = 11, 100, openflow.FlowCheckOverlap
	r = s.Bundle(ctx, append(append([]openflow.Message{clear}, slots(10)...), overlapping))
	if r.Outcome != session.Rejected || len(r.Errors) != 2 || r.Errors[0].Index != 11 || r.Errors[1].Index != -1 ||
		!errors.Is(r.Errors[0], openflow.FlowModFailedOverlap) || !errors.Is(r.Errors[1], openflow.BundleFailedMsgFailed) {
		t.Errorf("%v: %v", r.Outcome, r.Err)
	}
	flows, err = s.Flows(ctx, openflow.FlowStatsRequest(openflow.AllFlows()))
	if err != nil || len(flows) != 1024 {
		t.Errorf("after refused bundles: %d flows, %v", len(flows), err)
	}
	if c := s.Counters(); c.FlowModsSent != 1024+3+12 || c.UnknownReplies != 0 {
		t.Errorf("%+v", c)
	}
}

// 20,000 refused messages: Open vSwitch stops reading while 100 answers wait,
// so whoever writes first and reads later hangs here.
func TestLiveManyRefusals(t *testing.T) {
	s := open(t, oftest.StartOVS(t, 1), session.Options{})
	const n = 20_000
	flows := slots(n)
	for _, f := range flows {
		f.(*openflow.FlowMod).Instructions = openflow.Instructions{openflow.GotoTable(0)}
	}
	r := s.Bundle(context.Background(), flows)
	if r.Outcome != session.Rejected || len(r.Errors) != n || !errors.Is(r.Errors[n-1], openflow.BadInstructionBadTableID) || r.Errors[n-1].Index != n-1 {
		t.Errorf("%v with %d errors", r.Outcome, len(r.Errors))
	}
	var rejected session.RejectedError
	if err := s.Transact(context.Background(), flows...); !errors.As(err, &rejected) || len(rejected) != n {
		t.Errorf("unbundled: %d errors", len(rejected))
	}
}

// A switch that is stopped ends the session; what it had been sent it does when
// it goes on, so the outcome is unknown after COMMIT and rejected before.
func TestLiveStopped(t *testing.T) {
	ovs := oftest.StartOVS(t, 1)
	s := open(t, ovs, session.Options{Idle: 200 * time.Millisecond})
	ovs.Signal(syscall.SIGSTOP)
	start := time.Now()
	r := s.Bundle(context.Background(), slots(10))
	if r.Outcome != session.Rejected || !errors.Is(r.Err, session.ErrSilent) || time.Since(start) > 5*time.Second {
		t.Errorf("after %v: %v: %v", time.Since(start), r.Outcome, r.Err)
	}

	// The socket takes connections although nobody serves them.
	_, err := session.Open(context.Background(), ovs.Dial(), session.Options{Handshake: 300 * time.Millisecond})
	if !errors.Is(err, session.ErrHandshake) {
		t.Errorf("handshake with a stopped switch: %v", err)
	}
	ovs.Signal(syscall.SIGCONT)
	s = open(t, ovs, session.Options{})
	if flows, err := s.Flows(context.Background(), openflow.FlowStatsRequest(openflow.AllFlows())); err != nil || len(flows) != 0 {
		t.Errorf("%d flows of a bundle that was not committed, %v", len(flows), err)
	}
}

func TestLiveRestart(t *testing.T) {
	ovs := oftest.StartOVS(t, 1)
	s := open(t, ovs, session.Options{})
	if r := s.Bundle(context.Background(), slots(10)); r.Err != nil {
		t.Fatal(r.Err)
	}
	ovs.Restart()
	<-s.Done()
	if !errors.Is(s.Err(), session.ErrHangup) {
		t.Error(s.Err())
	}
	s = open(t, ovs, session.Options{})
	if flows, err := s.Flows(context.Background(), openflow.FlowStatsRequest(openflow.AllFlows())); err != nil || len(flows) != 0 {
		t.Errorf("%d flows after a restart, %v", len(flows), err)
	}
}

func TestLiveRoles(t *testing.T) {
	ovs := oftest.StartOVS(t, 1)
	first, second := open(t, ovs, session.Options{}), open(t, ovs, session.Options{})
	ctx := context.Background()
	for i, s := range []*session.Session{first, second} {
		got, err := s.TakeRole(ctx, openflow.RoleMaster)
		if err != nil || got.Role != openflow.RoleMaster || got.GenerationID != uint64(i) {
			t.Errorf("session %d: %+v %v", i, got, err)
		}
	}
	if status, ok := (<-first.Events()).Message.(*openflow.RoleStatus); !ok || status.Role != openflow.RoleSlave {
		t.Errorf("%+v", status)
	}
	if r := first.Bundle(ctx, slots(3)); r.Outcome != session.Rejected || !errors.Is(r.Err, openflow.BadRequestIsSlave) {
		t.Errorf("a slave's bundle: %v: %v", r.Outcome, r.Err)
	}
	if _, err := first.Role(ctx, openflow.RoleMaster, 0); !errors.Is(err, openflow.RoleRequestFailedStale) {
		t.Errorf("a stale generation: %v", err)
	}
	if r := second.Bundle(ctx, slots(3)); r.Err != nil {
		t.Error(r.Err)
	}
}

func TestLiveMonitorAndPorts(t *testing.T) {
	ovs := oftest.StartOVS(t, 2)
	s := open(t, ovs, session.Options{})
	ctx := context.Background()
	if r := s.Bundle(ctx, slots(2000)); r.Err != nil {
		t.Fatal(r.Err)
	}
	monitor := openflow.FlowMonitor{
		ID: 7, OutPort: openflow.PortAny, OutGroup: openflow.GroupAny, Table: openflow.TableAll,
		Flags: openflow.MonitorInitial | openflow.MonitorAdd | openflow.MonitorRemoved | openflow.MonitorModify | openflow.MonitorInstructions,
	}
	initial := 0
	count := func(part openflow.FlowMonitorReply) error { initial += len(part); return nil }
	if err := s.Monitor(ctx, openflow.FlowMonitorRequest{monitor}, count); err != nil || initial != 2000 {
		t.Fatalf("%d flows at first, %v", initial, err)
	}
	if err := s.Monitor(ctx, openflow.FlowMonitorRequest{monitor}, count); err == nil {
		t.Error("an id was taken twice")
	}
	ovs.Ofctl("del-flows", "table=11,reg1=5")
	ovs.Ofctl("add-flow", "table=11,priority=100,reg0=1,reg1=5,actions=drop")
	if r := s.Bundle(ctx, slots(3)); r.Err != nil {
		t.Fatal(r.Err)
	}
	want := []openflow.FlowEvent{openflow.EventRemoved, openflow.EventAdded, openflow.EventAbbrev}
	for len(want) > 0 {
		e := <-s.Events()
		reply, ok := e.Message.(*openflow.MultipartReply)
		if !ok {
			t.Fatalf("%+v, %v", e, s.Err())
		}
		for _, u := range reply.Body.(openflow.FlowMonitorReply) {
			if len(want) == 0 || u.Event != want[0] {
				t.Fatalf("%+v, want %v", u, want)
			}
			want = want[1:]
		}
	}
	monitor.Command = openflow.MonitorCommandDelete
	if err := s.Monitor(ctx, openflow.FlowMonitorRequest{monitor}, count); err != nil {
		t.Errorf("end of the monitor: %v", err)
	}

	// A service connection hears of ports only after SET_CONFIG.
	ports, err := s.Ports(ctx)
	if err != nil || len(ports) != 3 {
		t.Errorf("%+v, %v", ports, err)
	}
	if err := s.Transact(ctx, &openflow.SetConfig{SwitchConfig: openflow.SwitchConfig{MissSendLen: 128}}); err != nil {
		t.Fatal(err)
	}
	ovs.Vsctl("del-port", "p2")
	if status, ok := (<-s.Events()).Message.(*openflow.PortStatus); !ok || status.Reason != openflow.PortDeleted || status.Port.Name != "p2" {
		t.Errorf("%+v", status)
	}
}

// The switch dials a socket in its own run directory, as it does when brlb is
// its controller. Such a connection hears of ports without asking.
func TestLiveSwitchDials(t *testing.T) {
	ovs := oftest.StartOVS(t, 1)
	path := filepath.Join(ovs.Dir, "controller.sock")
	listener, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	ovs.Vsctl("set-controller", oftest.Bridge, "unix:"+path)
	conn, err := listener.Accept()
	if err != nil {
		t.Fatal(err)
	}
	s, err := session.Open(context.Background(), conn, session.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if _, err := s.TakeRole(context.Background(), openflow.RoleMaster); err != nil {
		t.Fatal(err)
	}
	if r := s.Bundle(context.Background(), slots(100)); r.Err != nil {
		t.Fatal(r.Err)
	}
	ovs.Vsctl("del-port", "p1")
	if status, ok := (<-s.Events()).Message.(*openflow.PortStatus); !ok || status.Port.Name != "p1" {
		t.Errorf("%+v", status)
	}
}

// Every reason for a handshake to fail, with a real peer that is no switch.
func TestLiveWrongPeers(t *testing.T) {
	ovs := oftest.StartOVS(t, 1)
	conn, err := net.Dial("unix", filepath.Join(ovs.Dir, "db.sock"))
	if err != nil {
		t.Fatal(err)
	}
	_, err = session.Open(context.Background(), conn, session.Options{})
	if !errors.Is(err, session.ErrHangup) && !errors.Is(err, session.ErrNotOpenFlow) {
		t.Errorf("the database server: %v", err)
	}
	ovs.Vsctl("set", "bridge", oftest.Bridge, "protocols=OpenFlow10,OpenFlow13")
	_, err = session.Open(context.Background(), ovs.Dial(), session.Options{})
	if !errors.Is(err, session.ErrVersion) {
		t.Errorf("a bridge without OpenFlow 1.4: %v", err)
	}
}

// stopAtCommit is a connection whose switch is stopped just before a COMMIT
// reaches it.
type stopAtCommit struct {
	net.Conn
	ovs *oftest.OVS
}

func (c *stopAtCommit) Write(b []byte) (int, error) {
	for rest := b; len(rest) > 0; {
		h, err := openflow.ParseHeader(rest)
		if err != nil {
			return 0, err
		}
		_, m, err := openflow.Parse(rest[:h.Length])
		if err != nil {
			return 0, err
		}
		if control, ok := m.(*openflow.BundleControl); ok && control.Kind == openflow.BundleCommitRequest {
			c.ovs.Signal(syscall.SIGSTOP)
		}
		rest = rest[h.Length:]
	}
	return c.Conn.Write(b)
}

// A switch that is stopped between COMMIT and its reply has the bundle or not:
// nobody can know before it goes on, and then it has all of it or nothing.
func TestLiveStoppedAtCommit(t *testing.T) {
	ovs := oftest.StartOVS(t, 1)
	s, err := session.Open(context.Background(), &stopAtCommit{ovs.Dial(), ovs}, session.Options{Idle: 200 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	r := s.Bundle(context.Background(), slots(10))
	ovs.Signal(syscall.SIGCONT)
	if r.Outcome != session.Unknown || !errors.Is(r.Err, session.ErrSilent) {
		t.Errorf("%v: %v", r.Outcome, r.Err)
	}
	s = open(t, ovs, session.Options{})
	if flows, err := s.Flows(context.Background(), openflow.FlowStatsRequest(openflow.AllFlows())); err != nil || len(flows) != 0 && len(flows) != 10 {
		t.Errorf("%d flows, %v", len(flows), err)
	} else {
		t.Logf("the switch has %d flows", len(flows))
	}
}
