package lab_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"brlb/integration/lab"
)

func TestMain(m *testing.M) {
	if lab.Main() {
		return
	}
	goleak.VerifyTestMain(m)
}

// newLab builds a lab, or skips the test where it cannot.
func newLab(t *testing.T, options lab.Options) *lab.Lab {
	t.Helper()
	l, err := lab.New(t.Context(), options)
	if lab.Unavailable(err) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
	return l
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// leftovers lists what a lab of this name left on the machine.
func leftovers(t *testing.T, name string) []string {
	t.Helper()
	var found []string
	for _, pattern := range []string{"/run/netns/" + name + "*", filepath.Join(os.TempDir(), name), "/tmp/" + name} {
		names, err := filepath.Glob(pattern)
		check(t, err)
		found = append(found, names...)
	}
	return slices.Compact(found)
}

// TestBridge forwards HTTP between a client and four servers through the
// bridge as an ordinary switch, and through faults.
func TestBridge(t *testing.T) {
	ctx := t.Context()
	l := newLab(t, lab.Options{LocalAddrs: []string{"10.30.0.1/24"}})
	check(t, l.AddSegment("p2", lab.SegmentOptions{}))
	client, err := l.AddHost("c1", "10.30.0.100/24", lab.HostOptions{Port: "p1"})
	check(t, err)
	names := []string{"be1", "be2", "be3", "be4"}
	addrs := []string{"10.30.0.11", "10.30.0.12", "10.30.0.13", "10.30.0.14"}
	servers := make([]*lab.Server, len(names))
	for i, name := range names {
		host, err := l.AddHost(name, addrs[i]+"/24", lab.HostOptions{Port: "p2"})
		check(t, err)
		servers[i], err = host.StartServer(ctx, name, addrs[i]+":8080")
		check(t, err)
	}

	t.Run("load", func(t *testing.T) {
		for i, s := range servers {
			for _, keepAlive := range []bool{false, true} {
				load := client.StartLoad(ctx, s.Addr(), lab.LoadOptions{KeepAlive: keepAlive})
				waitUntil(t, func() bool { return load.Report().Requests >= 20 })
				report := load.Stop()
				if report.Failed > 0 || report.PerServer[names[i]] != report.Requests {
					t.Errorf("keep-alive %t to %s: %+v", keepAlive, names[i], report)
				}
			}
		}
	})
	t.Run("connect from chosen ports", func(t *testing.T) {
		ports := []int{2000, 2001, 2002, 2003, 2000, 2001, 2002, 2003, 2000}
		for i, c := range client.ConnectEach(ctx, servers[0].Addr(), ports, 4) {
			if c.Err != nil || c.SourcePort != ports[i] || c.Server != "be1" {
				t.Errorf("connection %d: %+v", i, c)
			}
		}
	})
	t.Run("health through the LOCAL port", func(t *testing.T) {
		check(t, servers[1].SetHealth(503))
		load := l.Switch.StartLoad(ctx, servers[1].Addr(), lab.LoadOptions{Path: "/healthz"})
		waitUntil(t, func() bool { return load.Report().Failed > 0 })
		if f := load.Stop().Failures[0]; f.Phase != lab.PhaseStatus || f.Server != "be2" {
			t.Errorf("failure %v", f)
		}
	})
	t.Run("server killed and restarted", func(t *testing.T) {
		stream, err := client.OpenStream(ctx, servers[2].Addr(), time.Millisecond)
		check(t, err)
		load := client.StartLoad(ctx, servers[2].Addr(), lab.LoadOptions{KeepAlive: true})
		waitUntil(t, func() bool { return load.Report().Requests > 0 })
		check(t, servers[2].Kill())
		<-stream.Done()
		if got, _, err := stream.Progress(); stream.Server != "be3" || got == 0 || err == nil {
			t.Errorf("stream of %s ended after %d bytes: %v", stream.Server, got, err)
		}
		check(t, stream.Close())
		waitUntil(t, func() bool { return load.Report().Failed > 0 })
		check(t, servers[2].Restart(ctx))
		before := load.Report().Requests
		waitUntil(t, func() bool { return load.Report().Requests > before })
		load.Stop()
	})
	t.Run("server paused", func(t *testing.T) {
		check(t, servers[3].Process().Pause())
		load := client.StartLoad(ctx, servers[3].Addr(), lab.LoadOptions{Timeout: 50 * time.Millisecond})
		waitUntil(t, func() bool { return load.Report().Failed > 0 })
		check(t, servers[3].Process().Resume())
		waitUntil(t, func() bool { return load.Report().Requests > 0 })
		load.Stop()
	})
	t.Run("Open vSwitch killed and started", func(t *testing.T) {
		check(t, l.KillOVS())
		if err := l.KillOVS(); err == nil {
			t.Error("killed a dead ovs-vswitchd")
		}
		check(t, l.StartOVS(ctx))
		for _, from := range []*lab.Namespace{client.Namespace, l.Switch} {
			load := from.StartLoad(ctx, servers[0].Addr(), lab.LoadOptions{})
			waitUntil(t, func() bool { return load.Report().Requests > 0 })
			load.Stop()
		}
		check(t, l.PauseOVS())
		check(t, l.ResumeOVS())
	})
	t.Run("ovsdb-server killed and started", func(t *testing.T) {
		check(t, l.KillOVSDB())
		if _, err := l.Vsctl("--timeout=1", "show"); err == nil {
			t.Error("ovs-vsctl works without ovsdb-server")
		}
		check(t, l.StartOVSDB(ctx))
		ports, err := l.Vsctl("list-ports", l.Bridge())
		check(t, err)
		if got := strings.Fields(ports); len(got) != 2 || got[0] != "p1" || got[1] != "p2" {
			t.Errorf("ports %q", got)
		}
	})
	t.Run("cleanup", func(t *testing.T) {
		name := l.Name()
		if len(leftovers(t, name)) == 0 {
			t.Fatal("looked for leftovers in the wrong places")
		}
		check(t, l.Close())
		if left := leftovers(t, name); len(left) > 0 {
			t.Errorf("left behind: %q", left)
		}
	})
}

// waitUntil waits for a condition that must come true; the time limit is only
// for a test that is broken.
func waitUntil(t *testing.T, condition func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	for !condition() {
		select {
		case <-ctx.Done():
			t.Fatal("waited 30 s in vain")
		case <-time.After(2 * time.Millisecond):
		}
	}
}
