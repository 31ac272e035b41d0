// Package integration tests brlb against a real Open vSwitch: one on this
// machine, and for some scenarios one in a container.
package integration

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"brlb/controller/api"
	"brlb/integration/image"
	"brlb/integration/lab"
	"brlb/integration/stand"
)

// brlb is the path of the executable under test.
var brlb string

func TestMain(m *testing.M) {
	if lab.Main() {
		return
	}
	flag.Parse()
	if brlb = os.Getenv("BRLB_EXECUTABLE"); brlb != "" {
		os.Exit(m.Run()) // in a guest, which cannot build it
	}
	code := func() int {
		dir, err := os.MkdirTemp("", "brlb-test-")
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer os.RemoveAll(dir)
		brlb = filepath.Join(dir, "brlb")
		args := []string{"build", "-o", brlb}
		if raceEnabled {
			args = append(args, "-race")
		}
		build := exec.Command("go", append(args, "brlb/cmd/brlb")...)
		build.Stderr = os.Stderr
		if err := build.Run(); err != nil {
			fmt.Fprintln(os.Stderr, "build brlb:", err)
			return 1
		}
		lab.CleanStale()
		return m.Run()
	}()
	os.Exit(code)
}

// machine is a place where Open vSwitch runs.
type machine struct {
	name    string
	options stand.Options
}

// machines are those of the tests that are for all of them.
func machines() []machine {
	if datapath := lab.Datapath(); datapath != "netdev" {
		return []machine{{datapath, stand.Options{}}}
	}
	return []machine{
		{"userspace", stand.Options{}},
		{"container", stand.Options{Machine: image.Machine, TCP: true}},
	}
}

// onBoth runs a scenario on each machine.
func onBoth(t *testing.T, scenario func(t *testing.T, s *stand.Stand)) {
	onBothWith(t, stand.Options{}, scenario)
}

// onBothWith is onBoth with further options.
func onBothWith(t *testing.T, options stand.Options, scenario func(t *testing.T, s *stand.Stand)) {
	for _, m := range machines() {
		t.Run(m.name, func(t *testing.T) {
			o := m.options
			o.IPv6, o.Config = options.IPv6, options.Config
			scenario(t, start(t, o))
		})
	}
}

// onUserspace runs a scenario on this machine's Open vSwitch.
func onUserspace(t *testing.T, scenario func(t *testing.T, s *stand.Stand)) {
	scenario(t, start(t, stand.Options{}))
}

// build builds a stand without starting brlb. The test is skipped where the
// machine cannot run it; in CI it fails.
func build(t testing.TB, options stand.Options) *stand.Stand {
	t.Helper()
	options.Brlb = brlb
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	s, err := stand.New(ctx, options)
	if err != nil {
		if (lab.Unavailable(err) || errors.Is(err, image.ErrNoEngine)) && os.Getenv("CI") == "" {
			t.Skip(err)
		}
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Log("end of brlb's log:\n" + tail(s.LogPath(), 60))
		}
		checkLog(t, s.LogPath())
		if err := s.Close(); err != nil {
			t.Errorf("close the stand: %v", err)
		}
	})
	return s
}

// start builds a stand, starts brlb and waits until all members are active.
func start(t testing.TB, options stand.Options) *stand.Stand {
	t.Helper()
	s := build(t, options)
	must(t, s.Start())
	await(t, s, "all members active", stand.Steady(len(s.Servers)))
	return s
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// patience is how long a test waits for what must come; it fails after that,
// however slow the machine is.
const patience = 60 * time.Second

func await(t testing.TB, s *stand.Stand, what string, condition func(*api.Status) bool) *api.Status {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	status, err := s.Await(ctx, what, condition)
	must(t, err)
	return status
}

// eventually polls until a condition holds.
func eventually(t *testing.T, what string, condition func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
		if condition() {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s: not within %v", what, patience)
		}
	}
}

// checkLog fails a test in which brlb raced or panicked.
func checkLog(t testing.TB, path string) {
	data, err := os.ReadFile(path)
	if err != nil {
		return
	}
	for _, bad := range []string{"DATA RACE", "panic:", "fatal error:"} {
		if strings.Contains(string(data), bad) {
			t.Errorf("brlb's log has %q:\n%s", bad, tail(path, 80))
		}
	}
}

func tail(path string, n int) string {
	f, err := os.Open(path)
	if err != nil {
		return err.Error()
	}
	defer f.Close()
	var lines []string
	scanner := bufio.NewScanner(f)
	for scanner.Scan() {
		lines = append(lines, scanner.Text())
		if len(lines) > n {
			lines = lines[1:]
		}
	}
	return strings.Join(lines, "\n")
}

// removeMember takes a member's line out of a configuration.
func removeMember(config, name string) string {
	var kept strings.Builder
	for line := range strings.Lines(config) {
		if !strings.HasPrefix(strings.TrimSpace(line), name+":") {
			kept.WriteString(line)
		}
	}
	return kept.String()
}
