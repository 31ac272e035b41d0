package integration

import (
	"strings"
	"testing"
	"time"

	"brlb/controller/api"
	"brlb/integration/stand"
)

// withRules is the usual configuration with rules for the pool.
func withRules(s *stand.Stand, rules string) string {
	return strings.Replace(s.DefaultConfig(), "    check: web\n", "    check: web\n    "+rules+"\n", 1)
}

// sicken sets what /healthz of each server answers.
func sicken(t *testing.T, s *stand.Stand, status int, servers ...int) {
	t.Helper()
	for _, i := range servers {
		must(t, s.Servers[i].SetHealth(status))
	}
}

// TestEmergencies: what a pool's rules say is done on the switch when its
// members fail their probes. (They only say that they are sick: so connections
// tell who gets some.)
func TestEmergencies(t *testing.T) {
	onUserspace(t, func(t *testing.T, s *stand.Stand) {
		connect := func(first int) (served map[string]int, refused int) {
			t.Helper()
			_, err := s.Lab.Appctl("revalidator/wait")
			must(t, err)
			served = map[string]int{}
			for _, c := range s.Client.ConnectEach(t.Context(), stand.VIP, portsFrom(first, 40), 40) {
				if c.Err != nil {
					refused++
				} else {
					served[c.Server]++
				}
			}
			return served, refused
		}
		pool := func(emergency string, down int) func(*api.Status) bool {
			return func(st *api.Status) bool {
				n := 0
				for _, m := range st.Pools[0].Members {
					if m.State == "down" {
						n++
					}
				}
				return st.InSync && n == down && st.Pools[0].Emergency == emergency
			}
		}

		reload(t, s, withRules(s, "panic_below: 50%"))
		sicken(t, s, 503, 0, 1, 2)
		status := await(t, s, "panic", pool("panic", 3))
		if !strings.Contains(strings.Join(status.Degraded, " "), "panic") {
			t.Errorf("no alarm: %q", status.Degraded)
		}
		if served, refused := connect(33000); len(served) != 4 || refused != 0 {
			t.Errorf("in panic: %v served, %d refused", served, refused)
		}
		sicken(t, s, 200, 0, 1, 2)
		await(t, s, "calm", stand.Steady(4))

		reload(t, s, withRules(s, "on_all_down: keep"))
		sicken(t, s, 503, 0, 1)
		await(t, s, "two down", pool("", 2))
		sicken(t, s, 503, 2)
		await(t, s, "three down", pool("", 3))
		s.Relay.ResetCounts()
		sicken(t, s, 503, 3)
		await(t, s, "all down, kept", pool("kept", 4))
		if served, refused := connect(33100); served["be4"] != 40 || refused != 0 {
			t.Errorf("kept: %v served, %d refused", served, refused)
		}
		// brlb is restarted while everything is down.
		must(t, s.Kill())
		must(t, s.Start())
		await(t, s, "all down, kept by a new brlb", pool("kept", 4))
		if n := s.Relay.FlowMods(); n != 0 {
			t.Errorf("%d flow-mods when the last member went down, and at the restart", n)
		}
		sicken(t, s, 200, 0, 1, 2, 3)
		await(t, s, "calm", stand.Steady(4))

		reload(t, s, withRules(s, "min_active: 3"))
		sicken(t, s, 503, 0, 1)
		await(t, s, "short", pool("short", 2))
		if served, _ := connect(33200); len(served) != 0 {
			t.Errorf("with fewer than min_active: %v served", served)
		}
		sicken(t, s, 200, 0, 1)
		await(t, s, "calm", stand.Steady(4))
	})
}

// TestSlowStart: a member that comes back gets its share in steps; a restart of
// brlb is neither a beginning nor an end of that.
func TestSlowStart(t *testing.T) {
	onUserspace(t, func(t *testing.T, s *stand.Stand) {
		reload(t, s, withRules(s, "slow_start: 4s"))
		sicken(t, s, 503, 0)
		await(t, s, "be1 down", stand.Steady(3))
		sicken(t, s, 200, 0)
		began := time.Now()
		seen := map[int]bool{}
		await(t, s, "be1 with its whole share", func(st *api.Status) bool {
			m := st.Pools[0].Members[0]
			seen[m.Slots] = true
			return st.InSync && m.Slots == 256
		})
		t.Logf("whole after %v; numbers of slots on the way: %v", time.Since(began).Round(time.Millisecond), seen)
		if len(seen) < 5 || len(seen) > 6 {
			t.Errorf("%d steps: %v", len(seen), seen)
		}
		s.Relay.ResetCounts()
		must(t, s.Kill())
		must(t, s.Start())
		await(t, s, "brlb back", stand.Steady(4))
		if n := s.Relay.FlowMods(); n != 0 {
			t.Errorf("%d flow-mods at a restart", n)
		}

		sicken(t, s, 503, 0)
		await(t, s, "be1 down again", stand.Steady(3))
		sicken(t, s, 200, 0)
		began = time.Now()
		await(t, s, "be1 with a part of its share", func(st *api.Status) bool {
			n := st.Pools[0].Members[0].Slots
			return n > 0 && n < 256
		})
		must(t, s.Kill())
		must(t, s.Start())
		await(t, s, "be1 with its whole share after a restart", func(st *api.Status) bool {
			return st.InSync && st.Phase == "steady" && st.Pools[0].Members[0].Slots == 256
		})
		if took := time.Since(began); took < 4*time.Second {
			t.Errorf("with a restart on its way it was whole after %v", took)
		}
	})
}

// TestBackupPool: when no member of a service's pool is active, its backup
// serves; when one is again, for as long as asked for, the pool is back. A
// restart of brlb meanwhile changes nothing.
func TestBackupPool(t *testing.T) {
	onUserspace(t, func(t *testing.T, s *stand.Stand) {
		text := s.DefaultConfig()
		for _, name := range []string{"be3", "be4"} {
			text = removeMember(text, name)
		}
		text = strings.Replace(text, "services:\n", "  spare:\n    id: 2\n    check: web\n    members: {be3: 10.30.0.13:8080, be4: 10.30.0.14:8080}\nservices:\n", 1)
		text = strings.Replace(text, "pool: web}", "pool: web, backup: spare, return_after: 2s}", 1)
		reload(t, s, text)
		serves := func(pool string) func(*api.Status) bool {
			return func(st *api.Status) bool { return st.InSync && st.Services[0].Pool == pool && st.Phase == "steady" }
		}
		connect := func(first int, a, b string) {
			t.Helper()
			_, err := s.Lab.Appctl("revalidator/wait")
			must(t, err)
			for _, c := range s.Client.ConnectEach(t.Context(), stand.VIP, portsFrom(first, 100), 8) {
				if c.Err != nil || c.Server != a && c.Server != b {
					t.Fatalf("from port %d to %q, not %s or %s: %v", c.SourcePort, c.Server, a, b, c.Err)
				}
			}
		}
		await(t, s, "web", serves("web"))
		connect(34000, "be1", "be2")

		sicken(t, s, 503, 0, 1)
		status := await(t, s, "spare", serves("spare"))
		if !strings.Contains(strings.Join(status.Degraded, " "), "backup pool spare serves in place of web") {
			t.Errorf("no alarm: %q", status.Degraded)
		}
		connect(34000, "be3", "be4")

		must(t, s.Kill())
		s.Relay.ResetCounts()
		must(t, s.Start())
		await(t, s, "spare after a restart", serves("spare"))
		time.Sleep(2 * time.Second)
		await(t, s, "spare after a while", serves("spare"))
		if n := s.Relay.FlowMods(); n != 0 {
			t.Errorf("%d flow-mods at a restart while the backup serves", n)
		}

		sicken(t, s, 200, 1)
		began := time.Now()
		await(t, s, "web again", serves("web"))
		if d := time.Since(began); d < 2*time.Second {
			t.Errorf("back after %v", d)
		}
		connect(34000, "be2", "be2")
		verify, err := s.API.Verify(t.Context())
		must(t, err)
		if !verify.OK {
			t.Errorf("verify: %+v", verify.Checks)
		}
	})
}
