package integration

import (
	"strings"
	"testing"
	"time"

	"brlb/controller/api"
	"brlb/integration/lab"
	"brlb/integration/stand"
)

// What operators decide holds through a restart of brlb and a reload, is listed
// with who, when and why, and is taken back by enable; none of it fails a
// request.
func TestOverrides(t *testing.T) {
	onUserspace(t, func(t *testing.T, s *stand.Stand) {
		load := s.Client.StartLoad(t.Context(), stand.VIP, lab.LoadOptions{Workers: 4, Pause: 5 * time.Millisecond, Timeout: 20 * time.Second})
		change := func(operation string, req api.ChangeRequest) *api.Change {
			t.Helper()
			req.Who, req.WaitSeconds = "ann", patience.Seconds()
			c, err := s.API.Change(t.Context(), operation, req)
			must(t, err)
			if !c.Confirmed {
				t.Fatalf("%s %+v: not confirmed", operation, req)
			}
			return c
		}
		slots := func() (list [4]int) {
			t.Helper()
			status, err := s.API.Status(t.Context())
			must(t, err)
			for i, m := range status.Pools[0].Members {
				list[i] = m.Slots
			}
			return list
		}

		c := change("weight", api.ChangeRequest{Member: "be1", Weight: "50%", Why: "a disk is gone"})
		if got := slots(); got[0] < 140 || got[0] > 150 { // 1024 * 0.5 / 3.5
			t.Errorf("slots with be1 at 50%%: %v", got)
		}
		t.Logf("be1 at 50%%: %d moved, at least %d", c.Moves.Moved, c.Moves.LowerBound)
		change("weight", api.ChangeRequest{Member: "be2", Weight: "3"})
		change("drain", api.ChangeRequest{Member: "be3", Why: "kernel", DeadlineSeconds: 2})
		if m := member(t, s, 2); m.State != "draining" || m.AdminUntil.IsZero() {
			t.Errorf("be3: %+v", m)
		}
		before := slots()

		// A restart changes nothing, and the deadline passes while brlb is away.
		must(t, s.Kill())
		time.Sleep(2500 * time.Millisecond)
		s.Relay.ResetCounts()
		must(t, s.Start())
		await(t, s, "be3 disabled", func(st *api.Status) bool {
			return st.Phase == "steady" && st.InSync && st.Pools[0].Members[2].State == "disabled"
		})
		if n := s.Relay.FlowMods(); n != 0 || slots() != before {
			t.Errorf("%d flow-mods after the restart; slots %v, before %v", n, slots(), before)
		}
		if e, err := s.API.Explain(t.Context(), "be3"); err != nil || len(e.Remedies) == 0 || e.Remedies[0] != "brlb enable web/be3" {
			t.Errorf("explain: %+v, %v", e, err)
		}
		list, err := s.API.Overrides(t.Context())
		must(t, err)
		if o := list.Overrides; len(o) != 3 || o[0].Weight.To != "50%" || o[0].Weight.Why != "a disk is gone" || o[2].State != "disabled" || o[2].Who != "ann" || o[2].At.IsZero() {
			t.Errorf("overrides: %+v", o)
		}

		// What is set on a member that leaves the configuration stays until cleared.
		must(t, s.WriteConfig(removeMember(s.DefaultConfig(), "be3")))
		_, err = s.API.Reload(t.Context(), api.ReloadRequest{})
		must(t, err)
		list, err = s.API.Overrides(t.Context())
		must(t, err)
		if o := list.Overrides; len(o) != 3 || o[0].Member != "" || o[0].Address != "10.30.0.13:8080" {
			t.Errorf("overrides after be3 is removed: %+v", o)
		}
		_, err = s.API.Clear(t.Context(), api.ChangeRequest{Member: "10.30.0.13:8080", Who: "ann"})
		must(t, err)
		must(t, s.WriteConfig(s.DefaultConfig()))
		_, err = s.API.Reload(t.Context(), api.ReloadRequest{})
		must(t, err)
		await(t, s, "be3 back", stand.Steady(4))

		// A whole pool, which wants force; and back.
		_, err = s.API.Change(t.Context(), "drain", api.ChangeRequest{Pool: "web", Who: "ann"})
		if err == nil || !strings.Contains(err.Error(), "force") {
			t.Errorf("drain of the whole pool: %v", err)
		}
		change("weight", api.ChangeRequest{Pool: "web", Weight: "200%"})
		change("enable", api.ChangeRequest{Pool: "web"})
		if got := slots(); got != [4]int{256, 256, 256, 256} {
			t.Errorf("slots after enable: %v", got)
		}
		list, err = s.API.Overrides(t.Context())
		must(t, err)
		if len(list.Overrides) != 0 {
			t.Errorf("overrides after enable: %+v", list.Overrides)
		}
		if r := load.Stop(); r.Failed > 0 || r.Requests == 0 {
			t.Errorf("%d of %d requests failed: %v", r.Failed, r.Requests+r.Failed, r.Failures)
		}
	})
}

func member(t *testing.T, s *stand.Stand, i int) api.Member {
	t.Helper()
	status, err := s.API.Status(t.Context())
	must(t, err)
	return status.Pools[0].Members[i]
}
