package integration

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"brlb/controller/api"
	"brlb/integration/lab"
	"brlb/integration/stand"
)

// A switch that comes back empty gets the whole table in one piece: whoever
// looks sees no row or all of them.
func TestSwitchComesBackEmpty(t *testing.T) {
	onBoth(t, func(t *testing.T, s *stand.Stand) {
		const whole = 1024 + 1 // and the floor
		seen := map[int]int{}
		stop, stopped := make(chan struct{}), sync.WaitGroup{}
		stopped.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				// A switch that is down cannot be dumped.
				if text, err := s.Lab.Ofctl("-OOpenFlow14", "--no-names", "dump-flows", s.Lab.Bridge(), "table=11"); err == nil {
					seen[strings.Count(text, "cookie=")]++
				}
			}
		})
		s.Relay.ResetCounts()
		must(t, s.Lab.KillOVS())
		must(t, s.Lab.StartOVS(t.Context()))
		await(t, s, "switch back", stand.Steady(4))
		time.Sleep(200 * time.Millisecond)
		close(stop)
		stopped.Wait()
		for rows := range seen {
			if rows != 0 && rows != whole {
				t.Errorf("a dump saw %d rows of table 11; only 0 and %d are right", rows, whole)
			}
		}
		const bundleControl = 33
		controls := s.Relay.Counts(lab.ToSwitch)[bundleControl]
		t.Logf("dumps by number of rows: %v; %d flow-mods; %d bundle controls (2 a bundle)", seen, s.Relay.FlowMods(), controls)
		if controls != 2 {
			t.Errorf("%d bundle control messages were sent, 2 expected: one bundle", controls)
		}
		if answers := s.Client.ConnectEach(t.Context(), stand.VIP, []int{40001, 40002, 40003}, 1); answers[0].Err != nil {
			t.Errorf("after the restart: %v", answers[0].Err)
		}
	})
}

// When a member dies, its own connections end and nobody else's does; its
// slots move, and of the others only what the layout says.
func TestMemberKilled(t *testing.T) {
	onUserspace(t, func(t *testing.T, s *stand.Stand) {
		plan, err := s.API.Plan(t.Context(), api.PlanRequest{Operation: "drain", Member: "be3"})
		must(t, err)
		before, err := s.API.Slots(t.Context(), "")
		must(t, err)
		streams := map[string][]*lab.Stream{}
		for range 24 {
			stream, err := s.Client.OpenStream(t.Context(), stand.VIP, 10*time.Millisecond)
			must(t, err)
			streams[stream.Server] = append(streams[stream.Server], stream)
		}
		if len(streams["be3"]) == 0 || len(streams) != 4 {
			t.Fatalf("24 streams reached only %v", streams)
		}
		must(t, s.Servers[2].Kill())
		await(t, s, "be3 out", stand.Steady(3))
		after, err := s.API.Slots(t.Context(), "")
		must(t, err)
		moved, others := 0, 0
		for slot := range before.Owner {
			was, is := before.Members[before.Owner[slot]], after.Members[after.Owner[slot]]
			if was == is {
				continue
			}
			moved++
			if was != "be3" {
				others++
			}
			if is == "be3" {
				t.Fatalf("slot %d belongs to the dead member", slot)
			}
		}
		if moved != plan.Moves.Moved || others != plan.Moves.Collateral {
			t.Errorf("%d slots moved, %d of them not be3's; the layout says %d and %d", moved, others, plan.Moves.Moved, plan.Moves.Collateral)
		}
		t.Logf("%d slots moved, %d collateral", moved, others)
		for name, list := range streams {
			for _, stream := range list {
				bytes, _, _ := stream.Progress()
				alive := true
				if name == "be3" {
					select {
					case <-stream.Done():
						alive = false
					case <-time.After(patience):
					}
				} else {
					eventually(t, "a stream of "+name+" goes on", func() bool { n, _, err := stream.Progress(); return err != nil || n > bytes+10 })
					_, _, err := stream.Progress()
					alive = err == nil
				}
				if alive != (name != "be3") {
					t.Errorf("a stream of %s: alive %v", name, alive)
				}
				stream.Close()
			}
		}
		must(t, s.Servers[2].Restart(t.Context()))
		await(t, s, "be3 back", stand.Steady(4))
		again, err := s.API.Slots(t.Context(), "")
		must(t, err)
		if again.Digest != before.Digest {
			t.Errorf("digest %s after the member's return, %s before its death", again.Digest, before.Digest)
		}
	})
}

// Without an active member, packets for the VIP are dropped by the floor and
// never forwarded; the first member that returns restores the service.
func TestAllMembersDown(t *testing.T) {
	onUserspace(t, func(t *testing.T, s *stand.Stand) {
		// One connection, so that the client knows the VIP's MAC.
		if c := s.Client.ConnectEach(t.Context(), stand.VIP, []int{41000}, 1); c[0].Err != nil {
			t.Fatal(c[0].Err)
		}
		for _, server := range s.Servers {
			must(t, server.Kill())
		}
		status := await(t, s, "nobody active", func(st *api.Status) bool { return st.InSync && st.Pools[0].Active == 0 })
		if status.Pools[0].Digest != "" || !strings.Contains(strings.Join(status.Degraded, " "), "no member owns a slot") {
			t.Errorf("status without members: digest %q, degraded %q", status.Pools[0].Digest, status.Degraded)
		}
		flows, err := s.Lab.Ofctl("-OOpenFlow14", "--no-names", "dump-flows", s.Lab.Bridge(), "table=11")
		must(t, err)
		if n := strings.Count(flows, "cookie="); n != 1 {
			t.Errorf("table 11 holds %d rows, only the floor expected:\n%s", n, flows)
		}
		// The servers' ports see nothing of a connection attempt.
		seen := func() (n int) {
			for _, host := range s.Hosts {
				out, err := host.Output(t.Context(), "cat", "/proc/net/snmp")
				must(t, err)
				n += snmp(t, out, "Tcp", "PassiveOpens")
			}
			return n
		}
		opens := seen()
		floor := floorPackets(t, s)
		conn, err := s.Client.DialFrom(withTimeout(t, 1500*time.Millisecond), "tcp", stand.VIP, 41001)
		if err == nil {
			conn.Close()
			t.Error("a connection was accepted although no member is active")
		}
		eventually(t, "the floor counts", func() bool { return floorPackets(t, s) > floor })
		if n := seen(); n != opens {
			t.Errorf("%d connections reached a server", n-opens)
		}
		must(t, s.Servers[1].Restart(t.Context()))
		await(t, s, "be2 back", stand.Steady(1))
		eventually(t, "service restored", func() bool {
			c := s.Client.ConnectEach(t.Context(), stand.VIP, []int{41002}, 1)
			return c[0].Err == nil && c[0].Server == "be2"
		})
	})
}

// A change that somebody else makes to brlb's rows is undone; flows of others
// are not touched.
func TestForeignChangesAreRepaired(t *testing.T) {
	onUserspace(t, func(t *testing.T, s *stand.Stand) {
		ofctl := func(args ...string) string {
			t.Helper()
			out, err := s.Lab.Ofctl(append([]string{"-OOpenFlow14", "--no-names"}, args...)...)
			must(t, err)
			return out
		}
		bridge := s.Lab.Bridge()
		canonical := func() string {
			var rows []string
			for line := range strings.Lines(ofctl("--no-stats", "dump-flows", bridge, "cookie=0xb71b000000000000/0xffff000000000000")) {
				rows = append(rows, line)
			}
			slices.Sort(rows) // a row that was repaired is dumped at another place
			return strings.Join(rows, "")
		}
		before := canonical()
		ofctl("add-flow", bridge, "table=77,cookie=0x4242,priority=7,tcp,tp_dst=4242,actions=drop")
		foreign := ofctl("--no-stats", "dump-flows", bridge, "table=77")
		ofctl("--strict", "del-flows", bridge, "table=11,priority=100,reg0=1,reg1=5")
		ofctl("add-flow", bridge, "table=11,priority=100,reg0=1,reg1=9,actions=set_field:999->reg2,goto_table:12")
		eventually(t, "own flows repaired", func() bool { return canonical() == before })
		if after := ofctl("--no-stats", "dump-flows", bridge, "table=77"); after != foreign {
			t.Errorf("the foreign flow became %q", after)
		}
		verify, err := s.API.Verify(t.Context())
		must(t, err)
		for _, check := range verify.Checks {
			if !check.OK {
				t.Errorf("verify: %s: %s", check.Name, check.Detail)
			}
		}
	})
}

// A bundle that the switch refuses leaves the table as it was; the row is
// named, and the change comes in the end.
func TestRefusedBundle(t *testing.T) {
	onUserspace(t, func(t *testing.T, s *stand.Stand) {
		dump := func() string {
			out, err := s.Lab.Ofctl("-OOpenFlow14", "--no-names", "--no-stats", "dump-flows", s.Lab.Bridge(), "table=11")
			must(t, err)
			return out
		}
		before := dump()
		s.Relay.CorruptBundleAdd(700)
		// With all but one drained at once, most rows change.
		text := s.DefaultConfig()
		for i := 2; i <= 4; i++ {
			text = strings.Replace(text, fmt.Sprintf("be%d: 10.30.0.1%d:8080", i, i), fmt.Sprintf("be%d: {address: 10.30.0.1%d:8080, weight: 0}", i, i), 1)
		}
		must(t, s.WriteConfig(text))
		must(t, s.Process().Signal(syscall.SIGHUP))
		status := await(t, s, "refusal", func(st *api.Status) bool { return strings.Contains(strings.Join(st.Degraded, " "), "refuses") })
		degraded := strings.Join(status.Degraded, "; ")
		t.Log(degraded)
		if !strings.Contains(degraded, "OFPFMFC_BAD_FLAGS") || !strings.Contains(degraded, "reg1=") || status.InSync {
			t.Errorf("status after a refused bundle: in sync %v, degraded %q", status.InSync, degraded)
		}
		if after := dump(); after != before {
			t.Error("the table has changed although its bundle was refused")
		}
		await(t, s, "retry", func(st *api.Status) bool {
			return st.InSync && st.Pools[0].Members[0].Slots == 1024 && len(st.Degraded) == 0
		})
	})
}
