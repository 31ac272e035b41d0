package integration

import (
	"strings"
	"syscall"
	"testing"
	"time"

	"brlb/controller/api"
	"brlb/integration/lab"
	"brlb/integration/stand"
)

// What operators do under load costs no request and resets no connection; what
// changes nothing sends nothing.
func TestHitless(t *testing.T) {
	onBoth(t, func(t *testing.T, s *stand.Stand) {
		loads := map[string]*lab.Load{
			"a connection each": s.Client.StartLoad(t.Context(), stand.VIP, lab.LoadOptions{Workers: 4, Pause: 5 * time.Millisecond, Timeout: 20 * time.Second}),
			"keep-alive":        s.Client.StartLoad(t.Context(), stand.VIP, lab.LoadOptions{Workers: 8, KeepAlive: true, Pause: 2 * time.Millisecond, Timeout: 20 * time.Second}),
		}
		time.Sleep(300 * time.Millisecond)

		change := func(operation, member string) {
			t.Helper()
			c, err := s.API.Change(t.Context(), operation, api.ChangeRequest{Member: member, Who: "test", WaitSeconds: patience.Seconds()})
			must(t, err)
			if !c.Confirmed {
				t.Fatalf("%s %s: not confirmed", operation, member)
			}
			time.Sleep(300 * time.Millisecond)
		}
		change("drain", "be1")
		status := await(t, s, "be1 drained", func(st *api.Status) bool { return st.InSync && st.Pools[0].Active == 3 })
		if m := status.Pools[0].Members[0]; m.Slots != 0 || m.State != "draining" || m.AdminWho != "test" {
			t.Errorf("drained member: %+v", m)
		}
		drained := s.Client.ConnectEach(t.Context(), stand.VIP, []int{30001, 30002, 30003, 30004, 30005, 30006, 30007, 30008}, 4)
		for _, c := range drained {
			if c.Server == "be1" || c.Err != nil {
				t.Errorf("a new connection while be1 drains: %+v", c)
			}
		}
		change("enable", "be1")
		_, err := s.API.Reapply(t.Context())
		must(t, err)

		must(t, s.WriteConfig(strings.Replace(s.DefaultConfig(), "be2: 10.30.0.12:8080", "be2: {address: 10.30.0.12:8080, weight: 3}", 1)))
		_, err = s.API.Reload(t.Context(), api.ReloadRequest{})
		must(t, err)
		await(t, s, "weight 3", func(st *api.Status) bool { return st.InSync && st.Pools[0].Members[1].Slots > 500 })

		s.Relay.ResetCounts()
		must(t, s.Process().Signal(syscall.SIGHUP))
		time.Sleep(500 * time.Millisecond)
		if n := s.Relay.FlowMods(); n != 0 {
			t.Errorf("SIGHUP without a change sent %d flow-mods", n)
		}
		digest := await(t, s, "steady", stand.Steady(4)).Pools[0].Digest

		s.Relay.ResetCounts()
		must(t, s.Kill())
		time.Sleep(500 * time.Millisecond)
		must(t, s.Start())
		status = await(t, s, "brlb back", stand.Steady(4))
		time.Sleep(time.Second)
		if n := s.Relay.FlowMods(); n != 0 {
			t.Errorf("a restart without a change sent %d flow-mods", n)
		}
		if status.Pools[0].Digest != digest {
			t.Errorf("digest %s before the restart, %s after it", digest, status.Pools[0].Digest)
		}
		must(t, s.Stop())
		time.Sleep(300 * time.Millisecond)

		for name, load := range loads {
			r := load.Stop()
			t.Logf("%s: %d requests on %d connections, %d failed, per server %v, slowest %v", name, r.Requests, r.Connections, r.Failed, r.PerServer, r.Slowest)
			if r.Failed > 0 || r.Requests == 0 {
				t.Errorf("%s: %d of %d requests failed, the first: %v", name, r.Failed, r.Requests, r.Failures)
			}
			if name == "keep-alive" && r.Connections != 8 {
				t.Errorf("%d keep-alive connections were made, 8 expected: some were cut", r.Connections)
			}
		}
	})
}
