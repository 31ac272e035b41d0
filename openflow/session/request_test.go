package session_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"brlb/openflow"
	"brlb/openflow/oftest"
	"brlb/openflow/session"
)

// requests counts from the handshake's three messages.
const firstRequest = 3

func TestRepliesFindTheirRequests(t *testing.T) {
	s := play(t, session.Options{},
		oftest.Expect(openflow.TypeRoleRequest, openflow.TypeGetConfigRequest, openflow.TypeBarrierRequest),
		// An error first, a reply of the wrong type, the replies in reverse, and
		// one of them twice.
		oftest.ReplyTo(firstRequest+2, &openflow.RoleReply{}),
		oftest.ReplyTo(firstRequest+2, &openflow.BarrierReply{}),
		oftest.ReplyTo(firstRequest+2, &openflow.BarrierReply{}),
		oftest.ReplyTo(firstRequest+1, &openflow.Error{Code: openflow.BadRequestEPERM}),
		oftest.SendXid(0xdeadbeef, &openflow.BarrierReply{}),
		oftest.ReplyTo(firstRequest, &openflow.RoleReply{RoleBody: openflow.RoleBody{Role: openflow.RoleSlave}}),
		untilClosed(),
	)
	ctx := context.Background()
	role := make(chan error, 1)
	config := make(chan error, 1)
	go func() {
		got, err := s.Role(ctx, openflow.RoleNoChange, 0)
		if err == nil && got.Role != openflow.RoleSlave {
			err = errors.New("another's reply")
		}
		role <- err
	}()
	waitSent(t, s, openflow.TypeRoleRequest)
	go func() {
		_, err := s.Call(ctx, &openflow.GetConfigRequest{})
		config <- err
	}()
	waitSent(t, s, openflow.TypeGetConfigRequest)
	if err := s.Barrier(ctx); err != nil {
		t.Errorf("barrier: %v", err)
	}
	if err := <-config; !errors.Is(err, openflow.BadRequestEPERM) {
		t.Errorf("the refused request: %v", err)
	}
	if err := <-role; err != nil {
		t.Errorf("role: %v", err)
	}
	if got := s.Counters(); got.UnknownReplies != 3 {
		t.Errorf("%d unknown replies, want 3: %+v", got.UnknownReplies, got)
	}
}

// waitSent waits until a message of a type is on its way.
func waitSent(t *testing.T, s *session.Session, typ openflow.Type) {
	t.Helper()
	for s.Counters().Sent[typ] == 0 {
		if err := s.Err(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Millisecond)
	}
}

// A call whose context ends leaves a reply that is counted, and nobody gets it.
func TestLateReply(t *testing.T) {
	s := play(t, session.Options{},
		oftest.Expect(openflow.TypeBarrierRequest, openflow.TypeBarrierRequest),
		oftest.ReplyTo(firstRequest, &openflow.BarrierReply{}),
		oftest.ReplyTo(firstRequest+1, &openflow.BarrierReply{}),
		untilClosed(),
	)
	ctx, cancel := context.WithTimeout(context.Background(), time.Millisecond)
	defer cancel()
	if err := s.Barrier(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v", err)
	}
	if err := s.Barrier(context.Background()); err != nil {
		t.Error(err)
	}
	if n := s.Counters().UnknownReplies; n != 1 {
		t.Errorf("%d unknown replies", n)
	}
}

func TestCallsWithoutDeadlineEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := play(t, session.Options{Request: 3 * time.Second}, answerEchoes())
		start := time.Now()
		err := s.Barrier(context.Background())
		if !errors.Is(err, context.DeadlineExceeded) && !strings.Contains(err.Error(), "none within 3s") {
			t.Errorf("%v", err)
		}
		if d := time.Since(start); d != 3*time.Second {
			t.Errorf("after %v", d)
		}
	})
}

// answerEchoes is a step that answers echo requests and nothing else.
func answerEchoes() oftest.Step {
	return oftest.Do(func(p *oftest.Peer) error {
		for {
			r, err := p.Read()
			if err != nil {
				return nil
			}
			if r.Header.Type == openflow.TypeEchoRequest {
				if err := oftest.Reply(&openflow.EchoReply{})(p); err != nil {
					return nil
				}
			}
		}
	})
}

func TestMisuse(t *testing.T) {
	s := play(t, session.Options{}, untilClosed())
	ctx := context.Background()
	monitor := &openflow.MultipartRequest{Body: openflow.FlowMonitorRequest{}}
	for name, err := range map[string]error{
		"Bundle":    s.Send(ctx, &openflow.BarrierRequest{}, &openflow.BundleControl{}),
		"Monitor":   s.Transact(ctx, monitor),
		"Multipart": s.Send(ctx, &openflow.MultipartRequest{Body: openflow.DescRequest{}}),
		"no reply":  func() error { _, err := s.Call(ctx, &openflow.FlowMod{}); return err }(),
		"with Mon":  s.Multipart(ctx, openflow.FlowMonitorRequest{}, nil),
		"not sent":  s.Send(ctx, &openflow.EchoRequest{Data: make([]byte, 70_000)}),
		"carries":   s.Bundle(ctx, []openflow.Message{&openflow.BarrierRequest{}}).Err,
	} {
		if err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("error %v, want something of %q", err, name)
		}
	}
	sent := s.Counters().Sent
	if sent[openflow.TypeBarrierRequest] != 0 || sent[openflow.TypeBundleControl] != 0 || sent[openflow.TypeMultipartRequest] != 1 {
		t.Errorf("refused calls have sent something: %v", sent)
	}
}

func TestTransact(t *testing.T) {
	s := play(t, session.Options{},
		oftest.Expect(openflow.TypeFlowMod, openflow.TypeFlowMod, openflow.TypeFlowMod, openflow.TypeBarrierRequest),
		oftest.ReplyTo(firstRequest+2, &openflow.Error{Code: openflow.FlowModFailedTableFull}),
		oftest.ReplyTo(firstRequest, &openflow.Error{Code: openflow.FlowModFailedOverlap}),
		oftest.Reply(&openflow.BarrierReply{}),
		oftest.Expect(openflow.TypeFlowMod, openflow.TypeBarrierRequest),
		oftest.Reply(&openflow.BarrierReply{}),
		untilClosed(),
	)
	err := s.Transact(context.Background(), slots(3)...)
	var rejected session.RejectedError
	if !errors.As(err, &rejected) || len(rejected) != 2 || rejected[0].Index != 2 || rejected[1].Index != 0 ||
		!errors.Is(err, openflow.FlowModFailedOverlap) {
		t.Errorf("%v", err)
	}
	if err := s.Transact(context.Background(), slots(1)...); err != nil {
		t.Error(err)
	}
}

// Parts of a reply may have other messages between them.
func TestMultipartParts(t *testing.T) {
	part := func(more openflow.MultipartFlags, cookies ...uint64) oftest.Step {
		var flows openflow.FlowStatsReply
		for _, c := range cookies {
			flows = append(flows, openflow.FlowStats{Cookie: c})
		}
		return oftest.ReplyTo(firstRequest, &openflow.MultipartReply{Flags: more, Body: flows})
	}
	s := play(t, session.Options{},
		oftest.Expect(openflow.TypeMultipartRequest, openflow.TypeBarrierRequest),
		part(openflow.MultipartMore, 1, 2),
		oftest.Send(&openflow.PortStatus{}),
		part(openflow.MultipartMore),
		oftest.ReplyTo(firstRequest, &openflow.MultipartReply{Body: openflow.AggregateReply{}}), // of another type
		part(0, 3),
		part(0, 4), // after the last
		oftest.ReplyTo(firstRequest+1, &openflow.BarrierReply{}),
		untilClosed(),
	)
	type result struct {
		flows []openflow.FlowStats
		err   error
	}
	done := make(chan result, 1)
	go func() {
		flows, err := s.Flows(context.Background(), openflow.FlowStatsRequest(openflow.AllFlows()))
		done <- result{flows, err}
	}()
	for s.Counters().Sent[openflow.TypeMultipartRequest] < 2 {
		time.Sleep(time.Millisecond)
	}
	if err := s.Barrier(context.Background()); err != nil {
		t.Error(err)
	}
	r := <-done
	if r.err != nil || len(r.flows) != 3 || r.flows[0].Cookie != 1 || r.flows[1].Cookie != 2 || r.flows[2].Cookie != 3 {
		t.Errorf("%+v", r)
	}
	if e := <-s.Events(); e.Message.Type() != openflow.TypePortStatus {
		t.Errorf("%+v", e)
	}
}

// A reply without end ends the session, and takes no more memory than allowed.
func TestMultipartWithoutEnd(t *testing.T) {
	s := play(t, session.Options{MaxReply: 1 << 20},
		oftest.Expect(openflow.TypeMultipartRequest),
		oftest.Do(func(p *oftest.Peer) error {
			flows := make(openflow.FlowStatsReply, 1000)
			for oftest.Reply(&openflow.MultipartReply{Flags: openflow.MultipartMore, Body: flows})(p) == nil {
			}
			return nil
		}),
	)
	parts := 0
	err := s.Multipart(context.Background(), openflow.FlowStatsRequest(openflow.AllFlows()), func(openflow.MultipartReplyBody) error {
		parts++
		return nil
	})
	if !errors.Is(err, session.ErrLimit) {
		t.Errorf("%v", err)
	}
	if parts > 1<<20/56_000 {
		t.Errorf("%d parts", parts)
	}
}

// An error of the caller's function ends the call and nothing else.
func TestMultipartStopped(t *testing.T) {
	sw := oftest.NewSwitch(oftest.SwitchOptions{})
	defer sw.Close()
	conn, _ := sw.Dial(context.Background())
	s, err := session.Open(context.Background(), conn, session.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if r := s.Bundle(context.Background(), slots(2000)); r.Err != nil {
		t.Fatal(r.Err)
	}
	stop := errors.New("enough")
	err = s.Multipart(context.Background(), openflow.FlowStatsRequest(openflow.AllFlows()), func(openflow.MultipartReplyBody) error { return stop })
	if err != stop {
		t.Error(err)
	}
	if flows, err := s.Flows(context.Background(), openflow.FlowStatsRequest(openflow.AllFlows())); err != nil || len(flows) != 2000 {
		t.Errorf("%d flows, %v", len(flows), err)
	}
}

// Close wakes whoever waits, and every later call fails alike.
func TestCloseWakesAll(t *testing.T) {
	s := play(t, session.Options{}, untilClosed())
	calls := []func() error{
		func() error { return s.Barrier(context.Background()) },
		func() error { return s.Transact(context.Background(), slots(1)...) },
		func() error { return s.Bundle(context.Background(), slots(1)).Err },
		func() error {
			_, err := s.Flows(context.Background(), openflow.FlowStatsRequest(openflow.AllFlows()))
			return err
		},
	}
	errs := make(chan error, len(calls))
	for _, call := range calls {
		go func() { errs <- call() }()
	}
	for s.Counters().Sent[openflow.TypeMultipartRequest] < 2 || s.Counters().Sent[openflow.TypeBarrierRequest] < 3 {
		time.Sleep(time.Millisecond)
	}
	s.Close()
	for range calls {
		if err := <-errs; !errors.Is(err, session.ErrClosed) || !errors.As(err, new(*session.ClosedError)) {
			t.Error(err)
		}
	}
	for i, call := range append(calls, func() error { return s.Send(context.Background(), slots(1)...) }, s.Err) {
		if err := call(); !errors.Is(err, session.ErrClosed) {
			t.Errorf("call %d after Close: %v", i, err)
		}
	}
	if _, open := <-s.Events(); open {
		t.Error("an event after Close")
	}
	s.Close()
}
