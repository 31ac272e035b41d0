package session_test

import (
	"context"
	"errors"
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
	start := time.Now()
	if r := s.Bundle(ctx, slots(1024)); r.Outcome != session.Applied {
		t.Fatalf("%v: %v", r.Outcome, r.Err)
	}
	t.Logf("1024 adds in %v", time.Since(start))
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
	t.Logf("%+v", s.Counters())
}
