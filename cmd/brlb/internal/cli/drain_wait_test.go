package cli

import (
	"strings"
	"testing"

	"brlb/controller/api"
)

// TestLeftAt: what a drain waits for, and when it is over.
func TestLeftAt(t *testing.T) {
	member := func(name, admin string, open int) api.Member {
		return api.Member{Name: name, Admin: admin, Connections: &open}
	}
	uncounted := api.Member{Name: "be1", Admin: "draining"}
	one := &api.Change{Pool: "web", Member: "be1"}
	whole := &api.Change{Pool: "web"}
	for _, c := range []struct {
		name   string
		pools  []api.Pool
		change *api.Change
		left   int
		over   bool
		err    string
	}{
		{"one", []api.Pool{{Name: "web", Mode: "nat", Members: []api.Member{member("be1", "draining", 3), member("be2", "enabled", 5)}}}, one, 3, false, ""},
		{"its namesake", []api.Pool{
			{Name: "web", Mode: "nat", Members: []api.Member{member("be1", "draining", 3)}},
			{Name: "api", Mode: "nat", Members: []api.Member{member("be1", "enabled", 5)}}}, one, 3, false, ""},
		{"in a pool around", []api.Pool{
			{Name: "web", Mode: "nat", Members: []api.Member{member("be1", "draining", 3)}},
			{Name: "all", Mode: "nat", Members: []api.Member{member("web/be1", "draining", 5), member("web/be2", "enabled", 7)}}}, one, 8, false, ""},
		{"in the pool around alone", []api.Pool{
			{Name: "web", Mode: "nat", Members: []api.Member{member("be1", "enabled", 3)}},
			{Name: "all", Mode: "nat", Members: []api.Member{member("web/be1", "draining", 5)}}}, &api.Change{Pool: "all", Member: "web/be1"}, 5, false, ""},
		{"at the deadline", []api.Pool{{Name: "web", Mode: "nat", Members: []api.Member{member("be1", "disabled", 3)}}}, one, 3, true, ""},
		{"all", []api.Pool{{Name: "web", Mode: "nat", Members: []api.Member{member("be1", "draining", 3), member("be2", "draining", 5), member("be3", "enabled", 9)}}}, whole, 8, false, ""},
		{"all, some at the deadline", []api.Pool{{Name: "web", Mode: "nat", Members: []api.Member{member("be1", "disabled", 0), member("be2", "draining", 5)}}}, whole, 5, false, ""},
		{"not counted yet", []api.Pool{{Name: "web", Mode: "nat", Members: []api.Member{uncounted}}}, one, 1, false, ""},
		{"without conntrack", []api.Pool{{Name: "web", Mode: "dsr", Members: []api.Member{uncounted}}}, one, 0, false, "in mode dsr"},
		{"enabled meanwhile", []api.Pool{{Name: "web", Mode: "nat", Members: []api.Member{member("be1", "enabled", 3)}}}, one, 0, false, "web/be1 is enabled again"},
		{"gone", []api.Pool{{Name: "web"}}, one, 0, false, "gone from the configuration"},
	} {
		left, over, err := leftAt(&api.Status{Pools: c.pools}, c.change, c.change.Member == "")
		if left != c.left || over != c.over || (err != nil) != (c.err != "") || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%s: %d left, over %v, %v", c.name, left, over, err)
		}
	}
}
