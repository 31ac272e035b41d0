package integration

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"brlb/controller/api"
	"brlb/integration/lab"
	"brlb/integration/stand"
)

// secondBridge adds a bridge, br-2, with two servers. It returns the configuration of
// a brlb for it, which uses a conntrack zone, where that is to be written, and a
// client of that brlb.
func secondBridge(t *testing.T, s *stand.Stand, zone int) (text, path string, second *api.Client) {
	t.Helper()
	must(t, s.Lab.AddBridge("br-2", "10.31.0.2/24"))
	for i, name := range []string{"x1", "x2"} {
		address := []string{"10.31.0.11", "10.31.0.12"}[i]
		host, err := s.Lab.AddHost(name, address+"/24", lab.HostOptions{Bridge: "br-2", Gateway: "10.31.0.1"})
		must(t, err)
		_, err = host.StartServer(t.Context(), name, address+":8080")
		must(t, err)
	}
	text = strings.NewReplacer("bridge: br-lb", fmt.Sprintf("bridge: br-2\nzone: %d", zone), "api.sock", "api2.sock", "brlb.sock", "brlb2.sock", "relay.sock", "brlb2.sock",
		"10.30.0.", "10.31.0.", "10.20.0.", "10.21.0.").Replace(removeMember(removeMember(s.DefaultConfig(), "be3"), "be4"))
	second, err := api.NewClient(filepath.Join(s.Lab.Dir(), "api2.sock"))
	must(t, err)
	t.Cleanup(func() { second.Close() })
	return text, filepath.Join(s.Lab.Dir(), "br-2.yaml"), second
}

// One brlb runs two bridges, and what happens to one is nothing to the other.
func TestTwoBridges(t *testing.T) {
	s := build(t, stand.Options{})
	text, path, second := secondBridge(t, s, 2)
	client, err := s.Lab.AddHost("client2", "10.21.0.10/24", lab.HostOptions{Bridge: "br-2"})
	must(t, err)
	write := func(text string) { t.Helper(); must(t, os.WriteFile(path, []byte(text), 0o644)) }
	write(text)
	secondIs := func(active int) {
		t.Helper()
		eventually(t, "the second bridge", func() bool {
			status, err := second.Status(t.Context())
			return err == nil && status.Bridge == "br-2" && stand.Steady(active)(status)
		})
	}

	// Two that would get into each other's way do not start, and say why.
	s.Also = []string{s.ConfigPath()}
	must(t, s.Start())
	ended := s.Process().Wait()
	var exit interface{ ExitCode() int }
	if !errors.As(ended, &exit) || exit.ExitCode() != 1 || !strings.Contains(tail(s.LogPath(), 5), "cannot run together: both have bridge br-lb") {
		t.Errorf("twice the same file: %v", ended)
	}
	s.Also = []string{path}
	write(strings.Replace(text, "brlb2.sock", "no/such/directory/brlb2.sock", 1))
	must(t, s.Start())
	if ended := s.Process().Wait(); !errors.As(ended, &exit) || exit.ExitCode() != 1 || !strings.Contains(tail(s.LogPath(), 5), "error: "+path+": ") {
		t.Errorf("a socket that cannot be: %v", ended)
	}
	write(text)

	must(t, s.Start())
	before := await(t, s, "the first bridge", stand.Steady(4))
	secondIs(2)
	loads := []*lab.Load{
		s.Client.StartLoad(t.Context(), stand.VIP, lab.LoadOptions{Workers: 4, Pause: 5 * time.Millisecond, Timeout: 20 * time.Second}),
		client.StartLoad(t.Context(), "10.21.0.100:80", lab.LoadOptions{Workers: 4, Pause: 5 * time.Millisecond, Timeout: 20 * time.Second}),
	}
	s.Relay.ResetCounts()
	write(strings.Replace(text, "be2: 10.31.0.12:8080", "be2: {address: 10.31.0.12:8080, weight: 3}", 1))
	result, err := second.Reload(t.Context(), api.ReloadRequest{})
	must(t, err)
	if len(result.Pools) != 1 || result.Pools[0].Moves.Moved != 256 || !result.Confirmed {
		t.Errorf("the reload of the second bridge: %+v", result)
	}
	_, err = second.Change(t.Context(), "weight", api.ChangeRequest{Member: "be1", Weight: "2", Who: "test"})
	must(t, err)
	after := await(t, s, "the first bridge as it was", stand.Steady(4))
	if n := s.Relay.FlowMods(); n != 0 || after.Revision != before.Revision {
		t.Errorf("a reload of the second bridge (%q): revision %d -> %d and %d flow-mods on the first", result.Changes, before.Revision, after.Revision, n)
	}

	// SIGHUP is for both; the log says which is which.
	write(text)
	must(t, s.WriteConfig(strings.Replace(s.DefaultConfig(), "be4: 10.30.0.14:8080", "be4: {address: 10.30.0.14:8080, weight: 2}", 1)))
	must(t, s.Process().Signal(syscall.SIGHUP))
	await(t, s, "a heavier member on the first bridge", func(st *api.Status) bool { return stand.Steady(4)(st) && st.Pools[0].Members[3].Slots > 400 })
	secondIs(2)
	eventually(t, "both reloads in the log", func() bool {
		log, err := os.ReadFile(s.LogPath())
		return err == nil && strings.Contains(string(log), `member be4: weight 2 instead of 1`) && strings.Contains(string(log), "bridge=br-2") &&
			strings.Contains(string(log), "bridge=br-lb")
	})

	// A restart finds what is there.
	s.Relay.ResetCounts()
	must(t, s.Kill())
	must(t, s.Start())
	await(t, s, "the first bridge again", stand.Steady(4))
	secondIs(2)
	if n := s.Relay.FlowMods(); n != 0 {
		t.Errorf("%d flow-mods at a restart", n)
	}
	for i, load := range loads {
		r := load.Stop()
		t.Logf("bridge %d: %d requests, %d failed, per server %v", i+1, r.Requests, r.Failed, r.PerServer)
		if r.Failed > 0 || len(r.PerServer) != []int{4, 2}[i] {
			t.Errorf("bridge %d: %d of %d requests failed: %v; per server %v", i+1, r.Failed, r.Requests+r.Failed, r.Failures, r.PerServer)
		}
	}
}

// A brlb that would use the conntrack zones of another bridge's keeps off, and says
// what to change.
func TestZonesOfAnotherBridge(t *testing.T) {
	s := start(t, stand.Options{})
	text, path, second := secondBridge(t, s, 1816)
	run := func(text string) *lab.Process {
		t.Helper()
		must(t, os.WriteFile(path, []byte(text), 0o644))
		log, err := os.Create(filepath.Join(s.Lab.Dir(), "br-2.log"))
		must(t, err)
		defer log.Close()
		cmd := exec.Command(brlb, "run", path)
		cmd.Stdout, cmd.Stderr = log, log
		process, err := s.Lab.Switch.Start(cmd)
		must(t, err)
		t.Cleanup(func() { process.Kill(); checkLog(t, log.Name()) })
		return process
	}
	secondIs := func(what string, condition func(*api.Status) bool) {
		t.Helper()
		eventually(t, "the second bridge: "+what, func() bool {
			status, err := second.Status(t.Context())
			return err == nil && condition(status)
		})
	}
	bridge := func(column string) string {
		t.Helper()
		out, err := s.Lab.Vsctl("get", "bridge", "br-2", column)
		must(t, err)
		return strings.TrimSpace(out)
	}

	process := run(text)
	secondIs("it keeps off", func(st *api.Status) bool {
		return len(st.Degraded) > 0 && strings.HasPrefix(st.Degraded[0], `brlb does not serve: the brlb of bridge "br-lb" uses conntrack zone 18200, too`)
	})
	for column, empty := range map[string]string{"controller": "[]", "fail_mode": "[]", "external_ids": "{}"} {
		if got := bridge(column); got != empty {
			t.Errorf("%s of the second bridge is %s", column, got)
		}
	}
	verified(t, s)
	must(t, process.Kill())

	text = strings.Replace(text, "zone: 1816", "zone: 2", 1)
	process = run(text)
	secondIs("it serves in other zones", stand.Steady(2))
	if got := bridge("external_ids:brlb-zones"); got != `"2 16386 32770"` {
		t.Errorf("it has noted zones %s", got)
	}
	verified(t, s)
	// Nor may a pool of its own zone have one of the other's.
	spare := "  spare: {id: 9, conntrack: {zone: 18200}, members: {s: 10.31.0.12:8081}}\nservices:\n"
	must(t, os.WriteFile(path, []byte(strings.Replace(text, "services:\n", spare, 1)), 0o644))
	if _, err := second.Reload(t.Context(), api.ReloadRequest{}); err == nil || !strings.Contains(err.Error(), "uses conntrack zone 18200, too") {
		t.Errorf("a pool with the other bridge's zone: %v", err)
	}
	// What somebody else writes does not stop one that serves: it is told.
	must(t, process.Kill())
	_, err := s.Lab.Vsctl("br-set-external-id", "br-2", "brlb-zones", "18200")
	must(t, err)
	await(t, s, "a warning", func(st *api.Status) bool {
		return stand.Steady(4)(st) && len(st.Degraded) > 0 && strings.HasPrefix(st.Degraded[0], `the brlb of bridge "br-2" uses conntrack zone 18200, too`)
	})
	run(text) // it notes its own zones again
	await(t, s, "no warning", func(st *api.Status) bool { return stand.Steady(4)(st) && len(st.Degraded) == 0 })
}
