package integration

import (
	"strings"
	"testing"
	"time"

	"brlb/controller/api"
	"brlb/integration/lab"
	"brlb/integration/stand"
)

// TestDeadMemberStaysDead: a member that is known to be down gets no request
// while brlb crashes, is stopped, started and reloaded, and none is lost.
func TestDeadMemberStaysDead(t *testing.T) {
	onUserspace(t, func(t *testing.T, s *stand.Stand) {
		sicken(t, s, 503, 0) // it only says so: its requests would be answered, and counted
		await(t, s, "be1 down", stand.Steady(3))
		_, err := s.Lab.Appctl("revalidator/wait")
		must(t, err)
		load := s.Client.StartLoad(t.Context(), stand.VIP, lab.LoadOptions{Workers: 4, Pause: 2 * time.Millisecond, Timeout: 20 * time.Second})
		awaitDown := func(what string) {
			t.Helper()
			await(t, s, what, func(st *api.Status) bool {
				return st.Phase == "steady" && st.InSync && st.Pools[0].Members[0].State == "down" && st.Pools[0].Active == 3
			})
		}
		for range 3 {
			must(t, s.Kill())
			must(t, s.Start())
			awaitDown("brlb after a crash")
		}
		must(t, s.Stop())
		time.Sleep(200 * time.Millisecond)
		must(t, s.Start())
		awaitDown("brlb after a stop")
		for _, change := range [][2]string{
			{"be2: 10.30.0.12:8080", "be2: {address: 10.30.0.12:8080, weight: 3}"}, // another weight
			{"fast: 500ms, down: 500ms", "fast: 600ms, down: 600ms"},               // a check that starts anew
			{"path: /healthz", "path: /healthz?again"},                             // and another one
			{"id: 1\n", "id: 1\n    slots: 512\n"},                                 // another table
		} {
			reload(t, s, strings.Replace(s.DefaultConfig(), change[0], change[1], 1))
			awaitDown("reload with " + change[1])
		}
		r := load.Stop()
		t.Logf("%d requests, %v", r.Requests, r.PerServer)
		if r.PerServer["be1"] > 0 || r.Failed > 0 || r.Requests == 0 {
			t.Errorf("%d requests, of which %d to be1 and %d failed: %v", r.Requests, r.PerServer["be1"], r.Failed, r.Failures)
		}
	})
}
