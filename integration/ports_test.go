package integration

import (
	"testing"
	"time"

	"brlb/controller/api"
	"brlb/integration/lab"
	"brlb/integration/stand"
)

// Clients that use their source ports again and again connect at once, also
// right after connections that ended badly.
func TestPortReuse(t *testing.T) {
	onUserspace(t, func(t *testing.T, s *stand.Stand) {
		load := s.Client.StartLoad(t.Context(), stand.VIP, lab.LoadOptions{Workers: 32, KeepAlive: true})
		time.Sleep(2 * time.Second)
		aborted := load.Abort()
		ports := make([]int, 30000)
		if testing.Short() {
			ports = ports[:3000]
		}
		for i := range ports {
			ports[i] = 20000 + i%1000 // not among those that the kernel gives to others
		}
		start := time.Now()
		standstill := watchMachine(t)
		slowest, failed := time.Duration(0), 0
		for _, c := range s.Client.ConnectEach(t.Context(), stand.VIP, ports, 16) {
			slowest = max(slowest, c.Took)
			if c.Err != nil {
				if failed++; failed <= 3 {
					t.Errorf("source port %d: %v", c.SourcePort, c.Err)
				}
			}
		}
		t.Logf("after %d requests on %d connections that were cut: %d connections in %v, %d failed, slowest connect %v",
			aborted.Requests, aborted.Connections, len(ports), time.Since(start).Round(time.Millisecond), failed, slowest)
		// A SYN that is lost is sent again after one second.
		if slowest-standstill() >= 900*time.Millisecond {
			t.Errorf("the slowest connect took %v: its SYN was lost", slowest)
			explainLoss(t, s)
		}
	})
}

// watchMachine notes for how long the machine stands still, at worst, until the
// function that it returns is called.
func watchMachine(t *testing.T) (longest func() time.Duration) {
	t.Helper()
	const step = 10 * time.Millisecond
	stop, result := make(chan struct{}), make(chan time.Duration, 1)
	go func() {
		worst := time.Duration(0)
		for last := time.Now(); ; {
			select {
			case <-stop:
				result <- worst
				return
			case <-time.After(step):
			}
			now := time.Now()
			worst = max(worst, now.Sub(last)-step)
			last = now
		}
	}()
	return func() time.Duration {
		close(stop)
		worst := <-result
		t.Logf("the machine stood still for %v at worst", worst)
		return worst
	}
}

// settle waits until the switch's datapath forwards by the tables as they are:
// what it has cached follows them by up to half a second.
func settle(t *testing.T, s *stand.Stand) {
	t.Helper()
	_, err := s.Lab.Appctl("revalidator/wait")
	must(t, err)
}

// explainLoss logs what tells where a packet was lost: the rows that drop or
// ask the controller, and the hosts' own counters.
func explainLoss(t *testing.T, s *stand.Stand) {
	t.Helper()
	for _, table := range []string{"table=2", "table=3", "table=13"} {
		out, err := s.Lab.Ofctl("-OOpenFlow14", "--no-names", "dump-flows", s.Lab.Bridge(), table)
		must(t, err)
		t.Log(out)
	}
	for _, host := range append([]*lab.Host{s.Client}, s.Hosts...) {
		out, err := host.Output(t.Context(), "cat", "/proc/net/netstat")
		must(t, err)
		t.Logf("%s: %d SYNs sent again, %d dropped by the listener, %d by TIME_WAIT", host.Name,
			snmp(t, out, "TcpExt", "TCPSynRetrans"), snmp(t, out, "TcpExt", "ListenDrops"), snmp(t, out, "TcpExt", "PAWSEstab"))
	}
}

// A port whose last connection went to a member that is now drained, down or
// removed gets another member, at once.
func TestStaleEntries(t *testing.T) {
	onBoth(t, func(t *testing.T, s *stand.Stand) {
		ports := make([]int, 400)
		for i := range ports {
			ports[i] = 43000 + i
		}
		check := func(when, out string) {
			t.Helper()
			per := map[string]int{}
			slowest := time.Duration(0)
			for _, c := range s.Client.ConnectEach(t.Context(), stand.VIP, ports, 8) {
				if c.Err != nil {
					t.Errorf("%s: source port %d: %v", when, c.SourcePort, c.Err)
				}
				per[c.Server]++
				slowest = max(slowest, c.Took)
			}
			t.Logf("%s: %v, slowest connect %v", when, per, slowest)
			if per[out] > 0 {
				t.Errorf("%s: %d connections reached %s", when, per[out], out)
			}
			if slowest >= 900*time.Millisecond {
				t.Errorf("%s: the slowest connect took %v", when, slowest)
			}
		}
		check("all active", "nobody")
		_, err := s.API.Change(t.Context(), "drain", api.ChangeRequest{Member: "be1", Who: "test", WaitSeconds: patience.Seconds()})
		must(t, err)
		check("be1 drained", "be1")
		_, err = s.API.Change(t.Context(), "enable", api.ChangeRequest{Member: "be1", Who: "test", WaitSeconds: patience.Seconds()})
		must(t, err)
		check("be1 enabled", "nobody")
		must(t, s.Servers[1].Kill())
		await(t, s, "be2 out", stand.Steady(3))
		settle(t, s)
		check("be2 down", "be2")
		must(t, s.WriteConfig(removeMember(s.DefaultConfig(), "be3")))
		_, err = s.API.Reload(t.Context(), api.ReloadRequest{})
		must(t, err)
		await(t, s, "be3 removed", func(st *api.Status) bool { return st.InSync && len(st.Pools[0].Members) == 3 })
		check("be3 removed", "be3")
	})
}
