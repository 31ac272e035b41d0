package controller

import (
	"strings"
	"testing"
	"time"

	"brlb/controller/api"
	"brlb/controller/state"
)

// nested is a state in which pool all contains pool eu, and serves.
func nested(t *testing.T) *state.State {
	t.Helper()
	s := allUp(t, `
pools:
  all: {id: 1, members: {own: 10.30.0.19:80, eu: {pool: eu, weight: 3}}}
  eu: {id: 2, members: {be1: 10.30.0.11:80, be2: 10.30.0.12:80}}
services:
  all: {address: 10.20.0.100, ports: [80/tcp], pool: all}
`)
	return s
}

// TestNestedPlans: what a change of a member does in the pool around its own, and
// what cannot be done there.
func TestNestedPlans(t *testing.T) {
	for _, c := range []struct {
		req         api.PlanRequest
		text, error string
	}{
		{api.PlanRequest{Operation: "drain", Member: "be1"}, "be1 is draining; in pool all, which contains it, 384 of 1024 slots move", ""},
		{api.PlanRequest{Operation: "drain", Member: "eu/be1"}, "be1 is draining; in pool all, which contains it, 384 of 1024 slots move", ""},
		{api.PlanRequest{Operation: "drain", Member: "all/eu/be1"}, "eu/be1 is draining", ""},
		{api.PlanRequest{Operation: "drain", Pool: "all", Member: "eu/be1"}, "eu/be1 is draining", ""},
		{api.PlanRequest{Operation: "drain", Pool: "eu"}, "all 2 members of pool eu are draining; in pool all, which contains it, 768 of 1024 slots move", ""},
		{api.PlanRequest{Operation: "weight", Member: "be1", Weight: 3}, "the weight of be1 is 3 instead of 1; in pool all, which contains it, 192 of 1024 slots move", ""},
		{api.PlanRequest{Operation: "weight", Member: "all/eu/be1", Weight: 3}, "", "give a percentage, or set the weight of eu/be1"},
		{api.PlanRequest{Operation: "remove", Member: "all/eu/be1"}, "", "can only be removed there"},
		{api.PlanRequest{Operation: "remove", Member: "be1"}, "be1 is removed; in pool all, which contains it, 384 of 1024 slots move", ""},
		{api.PlanRequest{Operation: "add", Pool: "eu", Member: "be3", Address: "10.30.0.13:80", Weight: 1}, "be3, 10.30.0.13:80 of weight 1, is added and its probes pass; in pool all, which contains it, 256 of 1024 slots move", ""},
		{api.PlanRequest{Operation: "add", Pool: "all", Member: "be3", Address: "10.30.0.12:80", Weight: 1}, "", "is member eu/be2 of pool all already"},
		{api.PlanRequest{Operation: "layout", Pool: "all", Layout: "ring"}, "", "layout ring has whole weights only"},
	} {
		change, err := foresee(t, nested(t), c.req)
		switch {
		case c.error != "" && (err == nil || !strings.Contains(err.Error(), c.error)):
			t.Errorf("%+v: %v, want %q", c.req, err, c.error)
		case c.error == "" && (err != nil || change.Text != c.text):
			t.Errorf("%+v: %+v, %v, want %q", c.req, change, err, c.text)
		}
	}
}

// TestNestedEmpties: a pool that is only inside another may be left empty, unless
// that leaves the outer one empty too.
func TestNestedEmpties(t *testing.T) {
	s := nested(t)
	now := time.Date(2024, 5, 1, 12, 0, 0, 0, time.UTC)
	drain := func(member, pool string) *consequence {
		t.Helper()
		ask := &consequence{now: s.Snapshot(), state: s.Clone()}
		d, text, err := decide("drain", api.ChangeRequest{}, now)
		if err == nil {
			err = ask.override(member, pool, d, text)
		}
		if err != nil {
			t.Fatal(err)
		}
		ask.compare()
		return ask
	}
	if got := drain("", "eu").empties(); got != "" {
		t.Errorf("draining eu leaves %q empty", got)
	}
	if got := drain("", "all").empties(); got != "all" {
		t.Errorf("draining all leaves %q empty", got)
	}
	s = drain("own", "").state
	if got := drain("", "eu").empties(); got != "all" {
		t.Errorf("draining eu after own leaves %q empty", got)
	}
}

// TestNestedWeights: for members of a pool inside, a weight for all members of
// the outer pool makes no sense, and a percentage does.
func TestNestedWeights(t *testing.T) {
	s := nested(t)
	for weight, want := range map[string]string{"2": "give a percentage", "50%": ""} {
		d, text, err := decide("weight", api.ChangeRequest{Weight: weight}, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		ask := &consequence{now: s.Snapshot(), state: s.Clone()}
		err = ask.override("", "all", d, text)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", weight, err)
		}
	}
}

// TestNestedStory: explain names the member about which operators have decided,
// and the part of the pool around it.
func TestNestedStory(t *testing.T) {
	s := nested(t)
	at := time.Date(2024, 5, 1, 12, 0, 0, 0, time.UTC)
	be1, inAll := state.MemberID{Pool: "eu", Key: "10.30.0.11:80"}, state.MemberID{Pool: "all", Key: "10.30.0.11:80"}
	tell := func() *story {
		snapshot := s.Snapshot()
		p := snapshot.Pool("all")
		told := &story{view: &view{snapshot: snapshot, config: s.Config()}, pool: p, member: p.Member(inAll.Key)}
		told.tell()
		return told
	}
	var weight string
	for _, f := range tell().facts {
		if f.Name == "weight" {
			weight = f.Text
		}
	}
	if weight != "1 configured; as a member of pool eu, which is inside, it has 37.5% of this one" {
		t.Error(weight)
	}
	s.SetOverride(be1, state.Override{State: state.Draining, At: at})
	if got := tell().remedies; got[0] != "brlb enable eu/be1" {
		t.Errorf("remedies %q", got)
	}
	s.SetOverride(be1, state.Override{State: state.Enabled, At: at})
	s.SetOverride(inAll, state.Override{State: state.Draining, At: at})
	if got := tell().remedies; got[0] != "brlb enable all/eu/be1" {
		t.Errorf("remedies %q", got)
	}
}
