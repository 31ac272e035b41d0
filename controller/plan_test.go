package controller

import (
	"strings"
	"testing"
	"time"

	"brlb/controller/api"
	"brlb/controller/config"
	"brlb/controller/state"
	"brlb/maglev"
)

// serving is a state in which all members of a pool with these settings and
// members are up.
func serving(t *testing.T, settings, members string) *state.State {
	t.Helper()
	s := allUp(t, "pools:\n  web: {id: 1, "+settings+"members: {"+members+"}}\n")
	return s
}

const four = "be1: 10.30.0.11:80, be2: 10.30.0.12:80, be3: 10.30.0.13:80, be4: 10.30.0.14:80"

func foresee(t *testing.T, s *state.State, req api.PlanRequest) (*api.Change, error) {
	t.Helper()
	c, err := consider(s.Snapshot(), s.Clone(), func(c *consequence) error { return c.carryOut(req, time.Now()) })
	if err != nil {
		return nil, err
	}
	return c.describe(), nil
}

func TestPlans(t *testing.T) {
	for _, c := range []struct {
		req       api.PlanRequest
		text      string
		moved     int
		name      string // of the member whose slots are looked at
		slots     int    // that it has afterwards
		connected string
	}{
		{api.PlanRequest{Operation: "drain", Member: "be1"}, "be1 is draining", 256, "be1", 0, "none that is open moves"},
		{api.PlanRequest{Operation: "disable", Member: "web/be1"}, "be1 is disabled", 256, "be1", 0, "none"},
		{api.PlanRequest{Operation: "enable", Member: "10.30.0.11:80"}, "be1 is enabled", 0, "", 0, "none"},
		{api.PlanRequest{Operation: "weight", Member: "be2", Weight: 5}, "the weight of be2 is 5 instead of 1", 384, "be2", 640, "none"},
		{api.PlanRequest{Operation: "weight", Member: "be2", Weight: 0}, "the weight of be2 is 0 instead of 1", 256, "be2", 0, "none"},
		{api.PlanRequest{Operation: "remove", Member: "be4"}, "be4 is removed", 256, "be4", 0, "those that are open to be4 are cut"},
		{api.PlanRequest{Operation: "add", Member: "be5", Address: "10.30.0.15:80", Weight: 4}, "be5, 10.30.0.15:80 of weight 4, is added and its probes pass", 512, "be5", 512, "none"},
		{api.PlanRequest{Operation: "rebase"}, "the anchor of pool web is its members as they are now", 0, "", 0, "none"},
		{api.PlanRequest{Operation: "layout", Pool: "web", Layout: "sticky"}, "pool web has layout sticky instead of v2", 0, "", 0, "none"},
	} {
		s := serving(t, "", four)
		before := s.Snapshot()
		change, err := foresee(t, s, c.req)
		if err != nil {
			t.Errorf("%+v: %v", c.req, err)
			continue
		}
		m := change.Moves
		if m.Moved != c.moved || m.LowerBound != c.moved || m.Collateral != 0 || change.Text != c.text || !strings.HasPrefix(change.Connections, c.connected) || change.Pool != "web" {
			t.Errorf("%+v: %+v", c.req, change)
		}
		for _, member := range change.Members {
			if member.Name == c.name && (member.After != c.slots || member.ShareAfter != float64(c.slots)/1024) {
				t.Errorf("%+v: %+v", c.req, member)
			}
		}
		if s.Snapshot() != before {
			t.Errorf("%+v has changed the state", c.req)
		}
	}
}

// TestPlansOfStatelessPools: their open connections depend on the slots.
func TestPlansOfStatelessPools(t *testing.T) {
	for _, c := range []struct {
		settings, operation, connections string
	}{
		{"mode: dsr, ", "drain", "they are not tracked: those on slots that move stay where they are for 5m0s (transition), and break if they last longer"},
		{"mode: dsr, transition: 0s, ", "drain", "those on slots that move break: they are not tracked, and the transition is 0s"},
		{"mode: dsr, ", "remove", "those that are open to be1 are cut (drain it first, and wait for their end)"},
	} {
		change, err := foresee(t, serving(t, c.settings, four), api.PlanRequest{Operation: c.operation, Member: "be1"})
		if err != nil || change.Connections != c.connections {
			t.Errorf("%s%s: %+v, %v", c.settings, c.operation, change, err)
		}
	}
}

func TestPlansThatCannotBe(t *testing.T) {
	s := serving(t, "", four)
	v1 := serving(t, "layout: v1, ", four)
	idle := serving(t, "", four)
	idle.Snapshot()
	idle.EditPool("web", func(p *config.Pool) {
		for i := range p.Members {
			p.Members[i].Weight = 0
		}
	})
	heavy := serving(t, "", "be1: {address: 10.30.0.11:80, weight: 300}, be2: 10.30.0.12:80")
	for _, c := range []struct {
		state *state.State
		req   api.PlanRequest
		want  string
	}{
		{s, api.PlanRequest{Operation: "drop"}, `operation "drop" is not known`},
		{s, api.PlanRequest{Operation: "drain", Member: "be9"}, `no member is called "be9"; there is be1, be2, be3, be4`},
		{s, api.PlanRequest{Operation: "add", Member: "be5", Address: "10.30.0.14:80", Weight: 1}, "10.30.0.14:80 is member be4 of pool web already"},
		{s, api.PlanRequest{Operation: "add", Member: "be1", Address: "10.30.0.15:80", Weight: 1}, "be1 is the name of another member of pool web"},
		{s, api.PlanRequest{Operation: "add", Member: "be5", Address: "[2001:db8::1]:80", Weight: 1}, "it has an IPv6 address, and the pool's members are IPv4"},
		{s, api.PlanRequest{Operation: "add", Member: "be5", Address: "10.30.0.15", Weight: 1}, "is not the address and port"},
		{s, api.PlanRequest{Operation: "rebase", Pool: "api"}, `no pool is called "api"`},
		{v1, api.PlanRequest{Operation: "rebase"}, "only layout v2 has an anchor"},
		{idle, api.PlanRequest{Operation: "rebase"}, "nobody has a weight above 0"},
		{s, api.PlanRequest{Operation: "layout", Layout: "v9"}, `no layout is called "v9"; there is v2`},
		{heavy, api.PlanRequest{Operation: "layout", Layout: "chash"}, "pool web would have no table: pool 1: weights out of range"},
	} {
		if change, err := foresee(t, c.state, c.req); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %+v, %v, want %s", c.req, change, err, c.want)
		}
	}
}

// A comparison starts each layout from its own table and says what the pool's
// own layout does just as the plan does.
func TestCompareLayouts(t *testing.T) {
	s := serving(t, "", four)
	c, err := consider(s.Snapshot(), s.Clone(), func(c *consequence) error { return c.remove("be1") })
	if err != nil {
		t.Fatal(err)
	}
	list := compareLayouts(c.before, c.after, false)
	if len(list) != len(maglev.Names()) {
		t.Fatalf("%d layouts", len(list))
	}
	for _, l := range list {
		m := l.Moves
		exact := l.Layout == "v2" || l.Layout == "sticky" || l.Layout == "v1"
		if l.Error != "" || m.Moved == 0 || (m.Collateral == 0) == (l.Layout == "v1") || exact != (l.MaxShare < 1.01) {
			t.Errorf("%+v", l)
		}
	}
	if list[0].Layout != "v2" || list[0].Moves != c.describe().Moves {
		t.Errorf("the comparison says %+v, the plan %+v", list[0].Moves, c.describe().Moves)
	}
}

// The cost of a rebase is what the rebase moves, and counted once.
func TestRebaseCosts(t *testing.T) {
	s := serving(t, "", four)
	s.Snapshot() // with which the pool gets its anchor
	s.RemoveMember(state.MemberID{Pool: "web", Key: "10.30.0.14:80"})
	stale := s.Snapshot().Pool("web")
	costs := newRebaseCosts()
	foretold := costs.moves(stale)
	if known := costs.pools["web"]; costs.moves(stale) != foretold || known.table != stale.Table {
		t.Error("the cost is not remembered")
	}
	s.Rebase("web")
	if m := moves(stale, s.Snapshot().Pool("web")); m.Moved != foretold || foretold == 0 {
		t.Errorf("the rebase moves %d slots, foretold were %d", m.Moved, foretold)
	}
}
