package integration

import (
	"context"
	"testing"

	"brlb/integration/lab"
	"brlb/integration/stand"
)

// Every connection lands on the member that the slot table names for its
// 5-tuple, whatever was restarted in between.
func TestPlacement(t *testing.T) {
	onBoth(t, func(t *testing.T, s *stand.Stand) {
		ports := make([]int, 4000)
		if testing.Short() {
			ports = ports[:1000]
		}
		for i := range ports {
			ports[i] = 20000 + i*7
		}
		want, err := s.Predict(t.Context(), ports)
		must(t, err)
		compare(t, "fresh", want, connect(t, s, ports))

		must(t, s.Kill())
		must(t, s.Start())
		await(t, s, "brlb back", stand.Steady(4))
		compare(t, "after a restart of brlb", want, connect(t, s, ports))

		must(t, s.Lab.KillOVS())
		must(t, s.Lab.StartOVS(t.Context()))
		await(t, s, "switch back", stand.Steady(4))
		compare(t, "after a restart of Open vSwitch", want, connect(t, s, ports))
	})
}

func connect(t *testing.T, s *stand.Stand, ports []int) []lab.Connection {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*patience)
	defer cancel()
	return s.Client.ConnectEach(ctx, stand.VIP, ports, 32)
}

func compare(t *testing.T, when string, want []string, got []lab.Connection) {
	t.Helper()
	wanted, counted, wrong := map[string]int{}, map[string]int{}, 0
	for i, c := range got {
		wanted[want[i]]++
		counted[c.Server]++
		if c.Err != nil {
			t.Fatalf("%s: source port %d: %v", when, c.SourcePort, c.Err)
		}
		if c.Server != want[i] {
			if wrong++; wrong <= 5 {
				t.Errorf("%s: source port %d landed on %s, predicted %s", when, c.SourcePort, c.Server, want[i])
			}
		}
	}
	t.Logf("%s: %d connections, predicted %v, counted %v, %d elsewhere", when, len(got), wanted, counted, wrong)
}
