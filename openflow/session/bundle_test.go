package session_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"brlb/openflow"
	"brlb/openflow/oftest"
	"brlb/openflow/session"
)

// Places of a bundle's messages among those that a script has expected, for a
// bundle of two flow-mods as the session's first request.
const (
	placeOpen = firstRequest + iota
	placeAdd0
	placeAdd1
	placeBarrier
	placeCommit
)

func control(place int, kind openflow.BundleControlType) oftest.Step {
	return oftest.ReplyTo(place, &openflow.BundleControl{ID: 1, Kind: kind})
}

func refuse(place int, code openflow.ErrorCode) oftest.Step {
	return oftest.ReplyTo(place, &openflow.Error{Code: code})
}

// opened expects a bundle of two flow-mods up to its barrier and confirms OPEN.
func opened() oftest.Step {
	return oftest.Steps(
		oftest.Expect(openflow.TypeBundleControl, openflow.TypeBundleAdd, openflow.TypeBundleAdd, openflow.TypeBarrierRequest),
		control(placeOpen, openflow.BundleOpenReply),
	)
}

// then expects a bundle control of a kind.
func then(kind openflow.BundleControlType) oftest.Step {
	return oftest.Do(func(p *oftest.Peer) error {
		r, err := p.Read()
		if err != nil {
			return err
		}
		if m, ok := r.Message.(*openflow.BundleControl); !ok || m.Kind != kind {
			return fmt.Errorf("%+v came, a bundle control of kind %d was expected", r.Message, kind)
		}
		return nil
	})
}

func barrierReply() oftest.Step { return oftest.ReplyTo(placeBarrier, &openflow.BarrierReply{}) }

func TestBundleOutcomes(t *testing.T) {
	const (
		commit  = openflow.BundleCommitRequest
		discard = openflow.BundleDiscardRequest
	)
	tests := []struct {
		name    string
		want    session.Outcome
		err     error // among the result's errors
		indexes []int // of what was refused, in order
		unknown uint64
		script  []oftest.Step
	}{
		{name: "applied", want: session.Applied, script: []oftest.Step{
			opened(), barrierReply(), then(commit), control(placeCommit, openflow.BundleCommitReply)}},
		{name: "refused ADD", want: session.Rejected, err: openflow.BadActionBadType, indexes: []int{1}, script: []oftest.Step{
			opened(), refuse(placeAdd1, openflow.BadActionBadType), barrierReply(), then(discard), control(placeCommit, openflow.BundleDiscardReply)}},
		{name: "refused OPEN", want: session.Rejected, err: openflow.BadRequestIsSlave, indexes: []int{-1, 0, 1}, script: []oftest.Step{
			oftest.Expect(openflow.TypeBundleControl, openflow.TypeBundleAdd, openflow.TypeBundleAdd, openflow.TypeBarrierRequest),
			refuse(placeOpen, openflow.BadRequestIsSlave), refuse(placeAdd0, openflow.BadRequestIsSlave), refuse(placeAdd1, openflow.BadRequestIsSlave),
			barrierReply(), then(discard), refuse(placeCommit, openflow.BadRequestIsSlave)}},
		{name: "timed out while added", want: session.Rejected, err: openflow.BundleFailedTimeout, indexes: []int{-1}, script: []oftest.Step{
			opened(), refuse(placeOpen, openflow.BundleFailedTimeout), barrierReply(), then(discard), control(placeCommit, openflow.BundleDiscardReply)}},
		{name: "timed out before commit", want: session.Rejected, err: openflow.BundleFailedTimeout, indexes: []int{-1, -1}, script: []oftest.Step{
			opened(), barrierReply(), refuse(placeOpen, openflow.BundleFailedTimeout), then(commit), refuse(placeCommit, openflow.BundleFailedBadID)}},
		{name: "refused at commit", want: session.Rejected, err: openflow.FlowModFailedTableFull, indexes: []int{1, -1}, script: []oftest.Step{
			opened(), barrierReply(), then(commit), refuse(placeAdd1, openflow.FlowModFailedTableFull), refuse(placeCommit, openflow.BundleFailedMsgFailed)}},
		{name: "refused barrier", want: session.Rejected, err: openflow.BadRequestEPERM, indexes: []int{-1}, script: []oftest.Step{
			opened(), refuse(placeBarrier, openflow.BadRequestEPERM), then(discard), control(placeCommit, openflow.BundleDiscardReply)}},
		{name: "OPEN never confirmed", want: session.Rejected, script: []oftest.Step{
			oftest.Expect(openflow.TypeBundleControl, openflow.TypeBundleAdd, openflow.TypeBundleAdd, openflow.TypeBarrierRequest),
			barrierReply(), then(discard), control(placeCommit, openflow.BundleDiscardReply)}},
		{name: "replies twice and of other bundles", want: session.Applied, unknown: 5, script: []oftest.Step{
			opened(), control(placeOpen, openflow.BundleOpenReply), control(placeAdd0, openflow.BundleCommitReply), barrierReply(), then(commit), barrierReply(),
			oftest.ReplyTo(placeCommit, &openflow.BundleControl{ID: 9, Kind: openflow.BundleCommitReply}),
			control(placeCommit, openflow.BundleOpenReply),
			control(placeCommit, openflow.BundleCommitReply)}},
		{name: "confirmed after an error", want: session.Unknown, err: openflow.BadActionBadType, indexes: []int{0}, script: []oftest.Step{
			opened(), barrierReply(), then(commit), refuse(placeAdd0, openflow.BadActionBadType), control(placeCommit, openflow.BundleCommitReply)}},
		{name: "lost before the barrier", want: session.Rejected, err: session.ErrHangup, script: []oftest.Step{opened(), oftest.Cut()}},
		{name: "lost after commit", want: session.Unknown, err: session.ErrHangup, script: []oftest.Step{opened(), barrierReply(), then(commit), oftest.Cut()}},
		{name: "garbage after commit", want: session.Unknown, err: session.ErrMalformed, script: []oftest.Step{
			opened(), barrierReply(), then(commit), oftest.Octets([]byte{1, 1, 0, 8, 0, 0, 0, 9, 9, 9, 9, 9, 9, 9, 9, 9})}},
		{name: "confirmed and then lost", want: session.Applied, script: []oftest.Step{
			opened(), barrierReply(), then(commit), control(placeCommit, openflow.BundleCommitReply), oftest.Cut()}},
		{name: "frozen before the barrier", want: session.Rejected, err: context.DeadlineExceeded, script: []oftest.Step{opened(), answerEchoes()}},
		{name: "frozen after commit", want: session.Unknown, err: context.DeadlineExceeded, script: []oftest.Step{
			opened(), barrierReply(), then(commit), answerEchoes()}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := play(t, session.Options{}, append(test.script, untilClosed())...)
				ctx, cancel := context.WithTimeout(context.Background(), 7*time.Second)
				defer cancel()
				r := s.Bundle(ctx, slots(2))
				if r.Outcome != test.want || (r.Err == nil) != (test.want == session.Applied) || test.err != nil && !errors.Is(r.Err, test.err) {
					t.Errorf("%v: %v; want %v: %v", r.Outcome, r.Err, test.want, test.err)
				}
				var indexes []int
				for _, e := range r.Errors {
					indexes = append(indexes, e.Index)
				}
				if fmt.Sprint(indexes) != fmt.Sprint(test.indexes) {
					t.Errorf("refused %v, want %v", indexes, test.indexes)
				}
				if n := s.Counters().UnknownReplies; n != test.unknown {
					t.Errorf("%d unknown replies, want %d", n, test.unknown)
				}
			})
		})
	}
}

// A call that is given up before the commit discards the bundle; one that never
// began has nothing to discard.
func TestBundleGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		discarded := make(chan struct{})
		s := play(t, session.Options{}, opened(), then(openflow.BundleDiscardRequest),
			oftest.Do(func(*oftest.Peer) error { close(discarded); return nil }), untilClosed())
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		if r := s.Bundle(ctx, slots(2)); r.Outcome != session.Rejected || !errors.Is(r.Err, context.DeadlineExceeded) {
			t.Errorf("%v: %v", r.Outcome, r.Err)
		}
		<-discarded
	})
}

func TestBundleOfNothing(t *testing.T) {
	s := play(t, session.Options{}, untilClosed())
	if r := s.Bundle(context.Background(), nil); r.Outcome != session.Applied || r.Err != nil {
		t.Errorf("%+v", r)
	}
	if n := s.Counters().Sent[openflow.TypeBundleControl]; n != 0 {
		t.Errorf("%d messages were sent", n)
	}
}

// Bundles at the same time have ids of their own and do not mix.
func TestBundlesAtOnce(t *testing.T) {
	sw := oftest.NewSwitch(oftest.SwitchOptions{})
	defer sw.Close()
	conn, _ := sw.Dial(context.Background())
	s, err := session.Open(context.Background(), conn, session.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	sw.RefuseAdd(func(m openflow.Message) openflow.ErrorCode {
		if f := m.(*openflow.FlowMod); f.Priority == 3 {
			return openflow.FlowModFailedTableFull
		}
		return 0
	})
	results := make(chan session.BundleResult)
	for i := range 8 {
		go func() {
			flows := slots(100)
			for _, f := range flows {
				f.(*openflow.FlowMod).Priority = uint16(i)
			}
			results <- s.Bundle(context.Background(), flows)
		}()
	}
	rejected := 0
	for range 8 {
		if r := <-results; r.Outcome != session.Applied {
			rejected += len(r.Errors)
		}
	}
	if rejected != 100 || len(sw.Flows()) != 700 {
		t.Errorf("%d messages refused, %d flows", rejected, len(sw.Flows()))
	}
}

// A switch that asks for a sign of life while it takes a large bundle gets it
// before the end of the bundle.
func TestEchoDuringBundle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const rows = 20_000 // 2.6 MB
		before := 0
		s := play(t, session.Options{MaxQueued: 100_000}, oftest.Expect(openflow.TypeBundleControl), oftest.Do(func(p *oftest.Peer) error {
			if err := oftest.Send(&openflow.EchoRequest{})(p); err != nil {
				return err
			}
			for {
				r, err := p.Read()
				if err != nil {
					return err
				}
				switch r.Header.Type {
				case openflow.TypeEchoReply:
					return nil
				case openflow.TypeBundleAdd:
					before++
					synctest.Wait() // until the session has done what it can
				}
			}
		}))
		if result := s.Bundle(context.Background(), slots(rows)); result.Outcome != session.Rejected {
			t.Errorf("%+v", result)
		}
		if before > rows/2 {
			t.Errorf("the answer came after %d of %d messages", before, rows)
		}
	})
}
