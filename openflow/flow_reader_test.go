package openflow

import (
	"bytes"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// checkFlowStatsReader compares the reader with Parse.
func checkFlowStatsReader(t *testing.T, b []byte) {
	t.Helper()
	_, m, parseErr := Parse(b)
	var flows FlowStatsReply
	r, err := NewFlowStatsReader(b)
	for err == nil && r.Next() {
		f := r.Flow().FlowStats
		f.Match = append(Match(nil), f.Match...)
		f.Instructions, err = r.Flow().ParseInstructions()
		flows = append(flows, f)
	}
	if err == nil {
		err = r.Err()
	}
	if (err == nil) != (parseErr == nil) {
		t.Fatalf("%x: reader says %v, Parse %v", b, err, parseErr)
	}
	if err != nil {
		return
	}
	if diff := cmp.Diff(m.(*MultipartReply).Body.(FlowStatsReply), flows, sameMessage); diff != "" {
		t.Errorf("%x (-Parse +reader):\n%s", b, diff)
	}
}

func TestFlowStatsReader(t *testing.T) {
	b := tableOfSlots(t)
	checkFlowStatsReader(t, b)
	r, err := NewFlowStatsReader(b)
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for ; r.Next(); n++ {
		f := r.Flow()
		match, errMatch := AppendMatch(nil, Match{Reg0.Exact(1), Reg1.Exact(uint64(n))})
		instructions, errInstructions := AppendInstructions(nil, slotInstructions(n))
		if errMatch != nil || errInstructions != nil || !bytes.Equal(f.MatchOctets, match) || !bytes.Equal(f.InstructionOctets, instructions) {
			t.Fatalf("flow %d: match %x, instructions %x", n, f.MatchOctets, f.InstructionOctets)
		}
	}
	if n != slots || r.Err() != nil || r.More() || r.Header().Xid != 1 {
		t.Errorf("%d flows, %v", n, r.Err())
	}
	for _, bad := range []Message{&BarrierReply{}, &MultipartReply{Body: AggregateReply{}}, &MultipartRequest{Body: FlowStatsRequest(AllFlows())}} {
		b, err := Append(nil, 1, bad)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := NewFlowStatsReader(b); err == nil {
			t.Errorf("NewFlowStatsReader took a %T", bad)
		}
	}
}
