package integration

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"brlb/controller/api"
	"brlb/integration/lab"
	"brlb/integration/stand"
)

// TestConntrackTimeouts: idle connections are kept as long as the configuration
// says, whatever somebody does to the database, and those that are open when that
// changes go on.
func TestConntrackTimeouts(t *testing.T) {
	s := start(t, stand.Options{Config: serve("80/tcp, 53/udp")})
	zones := func() string {
		t.Helper()
		out, err := s.Lab.Vsctl("list-zone-tp", lab.Datapath())
		must(t, err)
		return out
	}
	entry := func(port int) bool {
		t.Helper()
		out, err := s.Lab.Appctl("dpctl/dump-conntrack", "zone=18200")
		must(t, err)
		return strings.Contains(out, fmt.Sprintf("sport=%d,dport=53)", port))
	}
	ask := func(port int) {
		t.Helper()
		for _, c := range s.Client.AskEach(t.Context(), stand.VIPAddress+":53", []int{port}, 100, 1) {
			must(t, c.Err)
		}
	}
	reload := func(from, to string) {
		t.Helper()
		must(t, s.WriteConfig(strings.Replace(serve("80/tcp, 53/udp")(s.DefaultConfig()), from, to, 1)))
		_, err := s.API.Reload(t.Context(), api.ReloadRequest{})
		must(t, err)
	}
	verified := func(detail string) func() bool {
		return func() bool {
			verify, err := s.API.Verify(t.Context())
			return err == nil && slices.Contains(verify.Checks, api.VerifyCheck{Name: "conntrack timeouts", OK: true, Detail: detail})
		}
	}

	before := keep(t, s, 36000, 3)
	reload("bridge:", "conntrack: {timeouts: {tcp_established: 48h, udp_first: 4s, udp_single: 4s, udp_multiple: 4s}}\nbridge:")
	const want = "tcp_established=48h0m0s, udp_first=4s, udp_multiple=4s, udp_single=4s"
	eventually(t, "verify tells of the timeouts", verified(want))
	for _, zone := range []string{"Zone:18200", "Zone:1816"} {
		if !strings.Contains(zones(), zone+", Timeout Policies: tcp_established=172800 udp_first=4 udp_multiple=4 udp_single=4") {
			t.Fatalf("no timeouts in %s:\n%s", zone, zones())
		}
	}
	after := keep(t, s, 36500, 3)
	ask(37000)
	asked := time.Now()
	if !entry(37000) && time.Since(asked) < 3*time.Second {
		t.Error("there is no entry of a UDP flow")
	}
	time.Sleep(time.Until(asked.Add(7 * time.Second))) // the switch's own timeout is 30 s
	if entry(37000) {
		t.Error("a UDP flow that has been idle for 7 s still has its entry")
	}
	for _, connections := range []map[string][]*kept{before, after} {
		for _, member := range []string{"be1", "be2", "be3", "be4"} {
			mustAnswer(t, "with the timeouts", connections[member])
		}
	}

	_, err := s.Lab.Vsctl("del-zone-tp", lab.Datapath(), "zone=18200")
	must(t, err)
	eventually(t, "the timeouts are back", func() bool { return strings.Contains(zones(), "Zone:18200,") })
	must(t, s.Kill())
	must(t, s.Start())
	await(t, s, "brlb is back", stand.Steady(4))
	eventually(t, "the timeouts outlive brlb", verified(want))

	reload("", "")
	eventually(t, "the timeouts are gone", func() bool { return !strings.Contains(zones(), "Zone:") })
	for _, member := range []string{"be1", "be2", "be3", "be4"} {
		mustAnswer(t, "after the timeouts", slices.Concat(before[member], after[member]))
	}
}
