package oftest_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"brlb/openflow"
	"brlb/openflow/oftest"
	"brlb/openflow/session"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// connect returns a switch and a session with it, for the length of the test.
func connect(t testing.TB, opts oftest.SwitchOptions) (*oftest.Switch, *session.Session) {
	t.Helper()
	sw := oftest.NewSwitch(opts)
	t.Cleanup(sw.Close)
	return sw, join(t, sw)
}

// join opens one more session with a switch.
func join(t testing.TB, sw *oftest.Switch) *session.Session {
	t.Helper()
	conn, err := sw.Dial(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	s, err := session.Open(t.Context(), conn, session.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

// slot is a row of a slot table.
func slot(i, member int) *openflow.FlowMod {
	f := openflow.NewFlowMod(openflow.FlowAdd)
	f.Table, f.Priority, f.Cookie = 11, 100, 0xb51b<<48|1
	f.Match = openflow.Match{openflow.Reg0.Exact(1), openflow.Reg1.Exact(uint64(i))}
	f.Instructions = openflow.Instructions{
		openflow.ApplyActions{openflow.RegLoad{Dst: openflow.Reg2.Whole(), Value: uint64(member)}},
		openflow.GotoTable(12),
	}
	return f
}

func slots(n, member int) []openflow.Message {
	list := make([]openflow.Message, n)
	for i := range list {
		list[i] = slot(i, member)
	}
	return list
}

// remove is a delete of what m adds, strict or of a whole table.
func remove(command openflow.FlowModCommand, m *openflow.FlowMod) *openflow.FlowMod {
	d := *m
	d.Command, d.Cookie, d.CookieMask, d.Instructions = command, 0, 0, nil
	return &d
}

func mustApply(t testing.TB, r session.BundleResult) {
	t.Helper()
	if r.Outcome != session.Applied {
		t.Fatalf("%v: %v", r.Outcome, r.Err)
	}
}

func TestBundlesKeepCounters(t *testing.T) {
	sw, s := connect(t, oftest.SwitchOptions{})
	ctx := context.Background()
	mustApply(t, s.Bundle(ctx, slots(1024, 1)))
	sw.Count(openflow.AllFlows(), 3, 300)
	mustApply(t, s.Bundle(ctx, []openflow.Message{
		slot(0, 2), // counters stay
		remove(openflow.FlowDeleteStrict, slot(1, 0)), slot(1, 2), // and go
		remove(openflow.FlowDeleteStrict, slot(2, 0)),
	}))
	flows, err := s.Flows(ctx, openflow.FlowStatsRequest(openflow.AllFlows()))
	if err != nil || len(flows) != 1023 {
		t.Fatalf("%d flows, %v", len(flows), err)
	}
	if flows[0].PacketCount != 3 || flows[1].PacketCount != 0 || flows[2].PacketCount != 3 {
		t.Errorf("counters %d, %d, %d", flows[0].PacketCount, flows[1].PacketCount, flows[2].PacketCount)
	}
	if sw.FlowMods() != 1028 || sw.Received(openflow.TypeBundleAdd) != 1028 {
		t.Errorf("%d flow-mods in %d adds", sw.FlowMods(), sw.Received(openflow.TypeBundleAdd))
	}
}

func TestRefusals(t *testing.T) {
	sw, s := connect(t, oftest.SwitchOptions{})
	ctx := context.Background()
	mustApply(t, s.Bundle(ctx, slots(4, 1)))
	third := func(m openflow.Message) openflow.ErrorCode {
		if f, ok := m.(*openflow.FlowMod); ok {
			if o, _ := f.Match.Get(openflow.Reg1); o.Uint64() == 2 {
				return openflow.FlowModFailedTableFull
			}
		}
		return 0
	}
	for name, refuse := range map[string]func(oftest.Refusal){"add": sw.RefuseAdd, "commit": sw.RefuseCommit} {
		refuse(third)
		r := s.Bundle(ctx, slots(4, 2))
		if r.Outcome != session.Rejected || r.Errors[0].Index != 2 || !errors.Is(r.Err, openflow.FlowModFailedTableFull) {
			t.Errorf("at %s: %v: %v", name, r.Outcome, r.Err)
		}
		refuse(nil)
		for _, f := range sw.Flows() {
			if member := f.Instructions[0].(openflow.ApplyActions)[0].(openflow.RegLoad).Value; member != 1 {
				t.Errorf("at %s: a refused bundle changed %v", name, f.Match)
			}
		}
	}
}

func TestLostCommit(t *testing.T) {
	for _, applied := range []bool{false, true} {
		sw, s := connect(t, oftest.SwitchOptions{})
		sw.LoseCommit(applied)
		r := s.Bundle(context.Background(), slots(4, 1))
		if r.Outcome != session.Unknown || !errors.Is(r.Err, session.ErrHangup) {
			t.Errorf("applied %v: %v: %v", applied, r.Outcome, r.Err)
		}
		if n := len(sw.Flows()); (n == 4) != applied {
			t.Errorf("applied %v: %d flows", applied, n)
		}
		mustApply(t, join(t, sw).Bundle(context.Background(), slots(4, 1)))
	}
}

func TestSelections(t *testing.T) {
	sw, s := connect(t, oftest.SwitchOptions{})
	ctx := context.Background()
	vip := openflow.NewFlowMod(openflow.FlowAdd)
	vip.Table, vip.Priority, vip.Cookie = 0, 50, 7
	vip.Match = openflow.Match{openflow.EthType.Exact(0x0800), openflow.IPProto.Exact(6), openflow.TCPDst.Exact(80)}
	vip.Instructions = openflow.Instructions{openflow.ApplyActions{openflow.Output{Port: 3}}}
	mustApply(t, s.Bundle(ctx, append(slots(8, 1), vip)))

	count := func(change func(*openflow.FlowSelector)) int {
		selector := openflow.AllFlows()
		change(&selector)
		flows, err := s.Flows(ctx, openflow.FlowStatsRequest(selector))
		if err != nil {
			t.Fatal(err)
		}
		return len(flows)
	}
	tests := []struct {
		name   string
		want   int
		change func(*openflow.FlowSelector)
	}{
		{"all", 9, func(*openflow.FlowSelector) {}},
		{"table", 8, func(s *openflow.FlowSelector) { s.Table = 11 }},
		{"cookie", 8, func(s *openflow.FlowSelector) { s.Cookie, s.CookieMask = 0xb51b<<48, 0xffff<<48 }},
		{"out port", 1, func(s *openflow.FlowSelector) { s.OutPort = 3 }},
		{"exact", 1, func(s *openflow.FlowSelector) {
			s.Match = openflow.Match{openflow.Reg1.Exact(5), openflow.Reg0.Exact(1)}
		}},
		{"masked", 4, func(s *openflow.FlowSelector) { s.Match = openflow.Match{openflow.Reg1.Masked(4, 4)} }},
		{"wider", 1, func(s *openflow.FlowSelector) { s.Match = openflow.Match{openflow.EthType.Exact(0x0800)} }},
		{"narrower", 0, func(s *openflow.FlowSelector) {
			s.Match = openflow.Match{openflow.Reg0.Exact(1), openflow.Reg3.Exact(0)}
		}},
	}
	for _, test := range tests {
		if got := count(test.change); got != test.want {
			t.Errorf("%s: %d flows, want %d", test.name, got, test.want)
		}
	}

	d := openflow.NewFlowMod(openflow.FlowDelete)
	d.Table, d.Cookie, d.CookieMask = openflow.TableAll, 0xb51b<<48, 0xffff<<48
	if err := s.Transact(ctx, d); err != nil {
		t.Fatal(err)
	}
	if n := len(sw.Flows()); n != 1 {
		t.Errorf("after a delete by cookie: %d flows", n)
	}
}

func TestRolesAndRestart(t *testing.T) {
	sw, first := connect(t, oftest.SwitchOptions{})
	ctx := context.Background()
	got, err := first.TakeRole(ctx, openflow.RoleMaster)
	if err != nil || got.Role != openflow.RoleMaster || got.GenerationID != 0 {
		t.Fatalf("%+v %v", got, err)
	}
	second := join(t, sw)
	if got, err = second.TakeRole(ctx, openflow.RoleMaster); err != nil || got.GenerationID != 1 {
		t.Fatalf("%+v %v", got, err)
	}
	if e := <-first.Events(); e.Message.(*openflow.RoleStatus).Role != openflow.RoleSlave {
		t.Errorf("the first master got %+v", e.Message)
	}
	if r := first.Bundle(ctx, slots(1, 1)); !errors.Is(r.Err, openflow.BadRequestIsSlave) {
		t.Errorf("a slave's bundle: %v", r.Err)
	}
	if _, err := first.Role(ctx, openflow.RoleMaster, 0); !errors.Is(err, openflow.RoleRequestFailedStale) {
		t.Errorf("an old generation: %v", err)
	}
	mustApply(t, second.Bundle(ctx, slots(1, 1)))
	sw.Restart()
	<-first.Done()
	<-second.Done()
	if n := len(sw.Flows()); n != 0 {
		t.Errorf("%d flows after a restart", n)
	}
	if got, err = join(t, sw).TakeRole(ctx, openflow.RoleMaster); err != nil || got.GenerationID != 0 {
		t.Errorf("after a restart: %+v %v", got, err)
	}
}

func TestAsynchronousMessages(t *testing.T) {
	port := oftest.NewPort(1, "p1")
	sw, s := connect(t, oftest.SwitchOptions{Service: true, Ports: []openflow.Port{port}})
	ctx := context.Background()
	port.State = openflow.PortLinkDown
	sw.SetPort(port) // nobody hears it: a service connection has to ask first
	err := s.Transact(ctx, &openflow.SetConfig{SwitchConfig: openflow.SwitchConfig{MissSendLen: 128}})
	if err != nil {
		t.Fatal(err)
	}
	sw.SetPort(oftest.NewPort(2, "p2"))
	sw.RemovePort(1)
	sw.Async(&openflow.PacketIn{BufferID: openflow.NoBuffer, Data: []byte("packet")})
	for i, want := range []openflow.PortReason{openflow.PortAdded, openflow.PortDeleted} {
		if got := (<-s.Events()).Message.(*openflow.PortStatus); got.Reason != want {
			t.Errorf("event %d: %+v", i, got)
		}
	}
	if got := (<-s.Events()).Message.(*openflow.PacketIn); string(got.Data) != "packet" {
		t.Errorf("%+v", got)
	}
	ports, err := s.Ports(ctx)
	if err != nil || len(ports) != 1 || ports[0].No != 2 {
		t.Errorf("%+v %v", ports, err)
	}
}

func TestFlowMonitor(t *testing.T) {
	sw, s := connect(t, oftest.SwitchOptions{})
	ctx := context.Background()
	mustApply(t, s.Bundle(ctx, slots(3, 1)))
	initial := 0
	err := s.Monitor(ctx, openflow.FlowMonitorRequest{{
		ID: 1, OutPort: openflow.PortAny, OutGroup: openflow.GroupAny, Table: 11,
		Flags: openflow.MonitorInitial | openflow.MonitorAdd | openflow.MonitorRemoved | openflow.MonitorModify | openflow.MonitorInstructions,
	}}, func(part openflow.FlowMonitorReply) error {
		initial += len(part)
		return nil
	})
	if err != nil || initial != 3 {
		t.Fatalf("%d flows at first, %v", initial, err)
	}
	if err := sw.Apply(remove(openflow.FlowDeleteStrict, slot(1, 0)), slot(1, 9)); err != nil {
		t.Fatal(err)
	}
	mustApply(t, s.Bundle(ctx, slots(3, 1)))
	var events []openflow.FlowEvent
	for len(events) < 3 {
		for _, u := range (<-s.Events()).Message.(*openflow.MultipartReply).Body.(openflow.FlowMonitorReply) {
			events = append(events, u.Event)
		}
	}
	want := []openflow.FlowEvent{openflow.EventRemoved, openflow.EventAdded, openflow.EventAbbrev}
	for i := range want {
		if events[i] != want[i] {
			t.Fatalf("events %v, want %v", events, want)
		}
	}
}

func TestBadFlowMods(t *testing.T) {
	_, s := connect(t, oftest.SwitchOptions{})
	tests := []struct {
		name   string
		want   openflow.ErrorCode
		change func(*openflow.FlowMod)
	}{
		{"goto back", openflow.BadInstructionBadTableID, func(m *openflow.FlowMod) { m.Instructions = openflow.Instructions{openflow.GotoTable(11)} }},
		{"table 254", openflow.FlowModFailedBadTableID, func(m *openflow.FlowMod) { m.Table = 254 }},
		{"all tables", openflow.FlowModFailedBadTableID, func(m *openflow.FlowMod) { m.Table = openflow.TableAll }},
		{"flags", openflow.FlowModFailedBadFlags, func(m *openflow.FlowMod) { m.Flags = 1 << 9 }},
		{"buffer", openflow.BadRequestBufferUnknown, func(m *openflow.FlowMod) { m.BufferID = 3 }},
		{"field twice", openflow.BadMatchDupField, func(m *openflow.FlowMod) { m.Match = append(m.Match, m.Match[0]) }},
		{"no prerequisite", openflow.BadMatchBadPrereq, func(m *openflow.FlowMod) { m.Match = openflow.Match{openflow.TCPDst.Exact(80)} }},
		{"command", openflow.FlowModFailedBadCommand, func(m *openflow.FlowMod) { m.Command = 5 }},
	}
	for _, test := range tests {
		m := slot(1, 1)
		test.change(m)
		if err := s.Transact(context.Background(), m); !errors.Is(err, test.want) {
			t.Errorf("%s: %v, want %v", test.name, err, test.want)
		}
	}
}

// A frozen switch does not answer, and goes on where it was.
func TestFreeze(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sw, s := connect(t, oftest.SwitchOptions{})
		sw.Freeze()
		result := make(chan session.BundleResult, 1)
		go func() { result <- s.Bundle(context.Background(), slots(4, 1)) }()
		time.Sleep(3 * time.Second)
		if len(result) > 0 || len(sw.Flows()) > 0 {
			t.Fatal("a frozen switch applied a bundle")
		}
		sw.Thaw()
		mustApply(t, <-result)
		sw.Freeze()
		<-s.Done()
		if !errors.Is(s.Err(), session.ErrSilent) {
			t.Errorf("the session with a frozen switch ended: %v", s.Err())
		}
		sw.Thaw()
	})
}
