package session_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"brlb/openflow"
	"brlb/openflow/oftest"
	"brlb/openflow/session"
)

// What nobody asked for arrives in order, and only that.
func TestEvents(t *testing.T) {
	update := &openflow.MultipartReply{Body: openflow.FlowMonitorReply{{Event: openflow.EventPaused}}}
	s := play(t, session.Options{},
		oftest.Expect(openflow.TypeFlowMod, openflow.TypeBarrierRequest),
		oftest.ReplyTo(firstRequest, &openflow.Error{Code: openflow.FlowModFailedOverlap}),
		oftest.Send(&openflow.PacketIn{}),
		oftest.SendXid(5, &openflow.PortStatus{}), // the barrier's id makes it no reply
		oftest.Send(&openflow.BarrierReply{}),     // nobody's
		oftest.Send(update),
		oftest.SendXid(99, update), // the answer to no request
		oftest.Send(&openflow.FlowRemoved{}),
		oftest.Send(&openflow.RoleStatus{}),
		oftest.Send(&openflow.Experimenter{Experimenter: 1}),
		oftest.Send(&openflow.RawMessage{RawType: 77}), // unknown type
		oftest.Reply(&openflow.BarrierReply{}),
	)
	ctx := context.Background()
	if err := s.Send(ctx, slots(1)...); err != nil {
		t.Fatal(err)
	}
	if err := s.Barrier(ctx); err != nil {
		t.Fatal(err)
	}
	want := []openflow.Type{
		openflow.TypeError, openflow.TypePacketIn, openflow.TypePortStatus, openflow.TypeMultipartReply,
		openflow.TypeFlowRemoved, openflow.TypeRoleStatus, openflow.TypeExperimenter,
	}
	for i, want := range want {
		e := <-s.Events()
		if e.Lost || e.Message.Type() != want {
			t.Errorf("event %d: %+v, want %v", i, e, want)
		}
		if err, ok := e.Message.(*openflow.Error); ok && (!errors.Is(err, openflow.FlowModFailedOverlap) || e.Xid != 4) {
			t.Errorf("%v of message %d", err, e.Xid)
		}
	}
	if _, open := <-s.Events(); open {
		t.Error("one event too many")
	}
	if n := s.Counters().UnknownReplies; n != 3 {
		t.Errorf("%d unknown replies", n)
	}
}

// A slow consumer loses events, learns where, and delays no reply.
func TestSlowConsumer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		status := func(n int) oftest.Step {
			return oftest.Do(func(p *oftest.Peer) error {
				for i := range n {
					if err := oftest.Send(&openflow.PortStatus{Port: openflow.Port{No: openflow.PortNo(i)}})(p); err != nil {
						return err
					}
				}
				return nil
			})
		}
		s := play(t, session.Options{Events: 10},
			oftest.Expect(openflow.TypeBarrierRequest), status(25), oftest.Reply(&openflow.BarrierReply{}),
			oftest.Expect(openflow.TypeBarrierRequest), status(2), oftest.Reply(&openflow.BarrierReply{}),
			untilClosed(),
		)
		ctx := context.Background()
		if err := s.Barrier(ctx); err != nil {
			t.Fatal(err)
		}
		for i := range 10 {
			if e := <-s.Events(); e.Lost || e.Message.(*openflow.PortStatus).Port.No != openflow.PortNo(i) {
				t.Errorf("event %d: %+v", i, e)
			}
		}
		if e := <-s.Events(); !e.Lost || e.Message != nil {
			t.Errorf("instead of the mark: %+v", e)
		}
		if err := s.Barrier(ctx); err != nil {
			t.Fatal(err)
		}
		for i := range 2 {
			if e := <-s.Events(); e.Lost || e.Message.(*openflow.PortStatus).Port.No != openflow.PortNo(i) {
				t.Errorf("event %d after the gap: %+v", i, e)
			}
		}
		if n := s.Counters().EventsDropped; n != 15 {
			t.Errorf("%d events dropped", n)
		}
	})
}
