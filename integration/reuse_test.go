package integration

import (
	"fmt"
	"testing"
	"time"

	"brlb/integration/stand"
)

// A client that uses its ports again, at whatever pace, connects at once, and
// the members see the ports that it uses.
func TestPortReusePace(t *testing.T) {
	onUserspace(t, func(t *testing.T, s *stand.Stand) {
		first := 20000
		for _, c := range []struct {
			pace time.Duration
			uses int
		}{{500 * time.Millisecond, 12}, {2500 * time.Millisecond, 5}, {6 * time.Second, 3}} {
			t.Run(c.pace.String(), func(t *testing.T) {
				ports := make([]int, 400)
				for i := range ports {
					ports[i] = first + i
				}
				first += len(ports)
				ticker := time.NewTicker(c.pace)
				defer ticker.Stop()
				for use := range c.uses {
					if use > 0 {
						<-ticker.C
					}
					connectAgain(t, s, use, ports)
				}
			})
		}
	})
}

// connectAgain makes a connection from each port.
func connectAgain(t *testing.T, s *stand.Stand, use int, ports []int) {
	t.Helper()
	standstill := watchMachine(t)
	slowest, failed, other := time.Duration(0), 0, 0
	for _, c := range s.Client.ConnectEach(t.Context(), stand.VIP, ports, 8) {
		slowest = max(slowest, c.Took)
		if c.Err != nil {
			if failed++; failed <= 3 {
				t.Errorf("use %d of source port %d: %v", use, c.SourcePort, c.Err)
			}
			continue
		}
		if want := fmt.Sprintf("%s:%d", s.Client.Addr(), c.SourcePort); c.Seen != want {
			if other++; other <= 3 {
				t.Errorf("use %d of source port %d: %s sees %s", use, c.SourcePort, c.Server, c.Seen)
			}
		}
	}
	if failed+other > 0 {
		t.Errorf("use %d of %d ports: %d failed, the port of %d was changed", use, len(ports), failed, other)
	}
	if slowest-standstill() >= 900*time.Millisecond {
		t.Errorf("use %d: the slowest connect took %v: its SYN was lost", use, slowest)
	}
}

// While brlb is away, a client that uses a port again connects at its second
// SYN.
func TestPortReuseWithoutBrlb(t *testing.T) {
	onUserspace(t, func(t *testing.T, s *stand.Stand) {
		ports := make([]int, 32)
		for i := range ports {
			ports[i] = 20000 + i
		}
		connectAgain(t, s, 0, ports)
		must(t, s.Kill())
		for _, c := range s.Client.ConnectEach(t.Context(), stand.VIP, ports, 32) {
			if c.Err != nil {
				t.Errorf("source port %d: %v", c.SourcePort, c.Err)
			}
		}
	})
}
