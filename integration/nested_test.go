package integration

import (
	"strings"
	"testing"
	"time"

	"brlb/controller/api"
	"brlb/integration/lab"
	"brlb/integration/stand"
)

// TestNestedPools: a service over pools inside a pool. What operators and probes
// say of a member holds in both pools; the inner pool keeps its share while one
// of its members is active; a restart finds everything as it was.
func TestNestedPools(t *testing.T) {
	onUserspace(t, func(t *testing.T, s *stand.Stand) {
		load := s.Client.StartLoad(t.Context(), stand.VIP, lab.LoadOptions{Workers: 4, Pause: 5 * time.Millisecond, Timeout: 20 * time.Second})
		before, _, _ := strings.Cut(s.DefaultConfig(), "      be1:")
		reload(t, s, before+`      be4: 10.30.0.14:8080
      eu: {pool: eu, weight: 2}
      us: {pool: us}
  eu: {id: 2, check: web, members: {be1: 10.30.0.11:8080, be2: 10.30.0.12:8080}}
  us: {id: 3, check: web, members: {be3: 10.30.0.13:8080}}
services:
  web: {address: `+stand.VIPAddress+`, ports: [80/tcp], pool: web}
`)
		// be4, eu/be1, eu/be2, us/be3, as status lists them.
		owns := func(want ...int) func(*api.Status) bool {
			return func(st *api.Status) bool {
				for i, m := range st.Pools[0].Members {
					if m.Slots < want[i]-1 || m.Slots > want[i]+1 {
						return false
					}
				}
				return st.InSync && st.Phase == "steady"
			}
		}
		connect := func(first int, gone ...string) {
			t.Helper()
			_, err := s.Lab.Appctl("revalidator/wait")
			must(t, err)
			slots, err := s.API.Slots(t.Context(), "web")
			must(t, err)
			for _, c := range s.Client.ConnectEach(t.Context(), stand.VIP, portsFrom(first, 200), 8) {
				want := s.Owner(slots, c.SourcePort)
				if _, server, found := strings.Cut(want, "/"); found {
					want = server
				}
				if c.Err != nil || c.Server != want {
					t.Fatalf("from port %d to %q, not %q: %v", c.SourcePort, c.Server, want, c.Err)
				}
				for _, name := range gone {
					if c.Server == name {
						t.Fatalf("from port %d to %s", c.SourcePort, name)
					}
				}
			}
		}
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
		await(t, s, "the whole", owns(256, 256, 256, 256))
		connect(35000)

		c := change("drain", api.ChangeRequest{Member: "be1", DeadlineSeconds: 1})
		if c.Pool != "eu" || !strings.Contains(c.Text, "in pool web, which contains it, 256 of 1024 slots move") {
			t.Errorf("drain: %+v", c)
		}
		await(t, s, "be1's share with be2", owns(256, 0, 512, 256))
		connect(35000, "be1")
		await(t, s, "the end of the drain", func(st *api.Status) bool {
			return st.Pools[0].Members[1].State == "disabled" && st.Pools[1].Members[0].State == "disabled"
		})
		must(t, s.Kill())
		s.Relay.ResetCounts()
		must(t, s.Start())
		await(t, s, "the same after a restart", owns(256, 0, 512, 256))
		if n := s.Relay.FlowMods(); n != 0 {
			t.Errorf("%d flow-mods at a restart", n)
		}

		sicken(t, s, 503, 1)
		await(t, s, "eu is down", owns(512, 0, 0, 512))
		connect(35000, "be1", "be2")
		sicken(t, s, 200, 1)
		await(t, s, "eu is back", owns(256, 0, 512, 256))
		change("enable", api.ChangeRequest{Member: "eu/be1"})
		await(t, s, "the whole again", owns(256, 256, 256, 256))

		// In the outer pool alone, by the name that it has there.
		change("drain", api.ChangeRequest{Member: "web/us/be3"})
		status := await(t, s, "us is drained in web", owns(341, 341, 341, 0))
		if m := status.Pools[2].Members[0]; !m.Active || m.Slots != 1024 {
			t.Errorf("be3 in us: %+v", m)
		}
		e, err := s.API.Explain(t.Context(), "web/us/be3")
		must(t, err)
		if len(e.Remedies) != 1 || e.Remedies[0] != "brlb enable web/us/be3" {
			t.Errorf("explain: %q", e.Remedies)
		}
		// A pool that is only inside others may be drained as a whole.
		change("drain", api.ChangeRequest{Pool: "eu"})
		await(t, s, "only be4", owns(1024, 0, 0, 0))
		_, err = s.API.Change(t.Context(), "drain", api.ChangeRequest{Member: "be4", Who: "ann"})
		if err == nil || !strings.Contains(err.Error(), "leave pool web without a member") {
			t.Errorf("drain of the last member: %v", err)
		}
		change("enable", api.ChangeRequest{Pool: "eu"})
		change("enable", api.ChangeRequest{Pool: "web"})
		await(t, s, "the whole at the end", owns(256, 256, 256, 256))

		verify, err := s.API.Verify(t.Context())
		must(t, err)
		if !verify.OK {
			t.Errorf("verify: %+v", verify.Checks)
		}
		if r := load.Stop(); r.Failed > 0 || r.Requests == 0 {
			t.Errorf("%d of %d requests failed: %v", r.Failed, r.Requests+r.Failed, r.Failures)
		}
	})
}
