package cli_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"brlb/cmd/brlb/internal/cli"
	"brlb/controller"
	"brlb/controller/api"
	"brlb/controller/api/apitest"
)

// noon is when the scripts are played.
var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"brlb": brlb})
}

// brlb is the command as the scripts call it: on a terminal if BRLB_TERMINAL is
// set, and with a controller that runs until it is interrupted.
func brlb() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	app := cli.App{
		Version:  "0.1.0",
		Stdout:   os.Stdout,
		Stderr:   os.Stderr,
		Terminal: os.Getenv("BRLB_TERMINAL") != "",
		Getenv:   os.Getenv,
		Now:      func() time.Time { return noon },
		Run:      pretend,

		TraceFile: controller.TraceFile,
	}
	os.Exit(app.Main(ctx, os.Args[1:]))
}

// pretend stands for the controller.
func pretend(ctx context.Context, options cli.RunOptions) error {
	for _, path := range options.ConfigPaths {
		if _, err := os.Stat(path); err != nil {
			return err
		}
	}
	options.Logger.Info("running", "version", options.Version)
	for {
		select {
		case <-options.Reload:
			options.Logger.Info("reloaded")
		case <-ctx.Done():
			return nil
		}
	}
}

// TestScripts plays testdata/*.txtar, each against a brlb of its own, whose
// controller is made up. The command "world" changes what that controller says.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:           "testdata",
		UpdateScripts: os.Getenv("UPDATE_SCRIPTS") != "",
		Setup:         setUp,
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"world": world,
			"exits": exits,
		},
	})
}

type worldKey struct{}

// exits runs a command and demands its exit code.
func exits(ts *testscript.TestScript, _ bool, args []string) {
	code := 0
	var exit *exec.ExitError
	if err := ts.Exec(args[1], args[2:]...); errors.As(err, &exit) {
		code = exit.ExitCode()
	} else {
		ts.Check(err)
	}
	if fmt.Sprint(code) != args[0] {
		ts.Fatalf("exit code %d, want %s", code, args[0])
	}
}

func setUp(env *testscript.Env) error {
	backend := apitest.New(noon)
	env.Values[worldKey{}] = backend
	server := api.NewServer(backend, http.NotFoundHandler(), nil)
	// Not under the script's directory: a socket's path ends at 107 bytes.
	directory, err := os.MkdirTemp("", "brlb")
	if err != nil {
		return err
	}
	path := filepath.Join(directory, "s")
	l, err := api.ListenUnix(path)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	var done sync.WaitGroup
	done.Go(func() { api.Serve(ctx, l, server.Full(), slog.New(slog.DiscardHandler)) })
	env.Defer(func() {
		cancel()
		done.Wait()
		os.RemoveAll(directory)
	})
	env.Setenv("BRLB_SOCKET", path)
	env.Setenv("TZ", "UTC")
	env.Setenv("GORACE", "atexit_sleep_ms=0") // else each command takes a second longer under the race detector
	env.Setenv("GOVERSION", runtime.Version())
	env.Setenv("PLATFORM", runtime.GOOS+"/"+runtime.GOARCH)
	env.Setenv("SUDO_USER", "alice")
	return nil
}

func world(ts *testscript.TestScript, _ bool, args []string) {
	backend := ts.Value(worldKey{}).(*apitest.Backend)
	text := strings.Join(args[1:], " ")
	switch args[0] {
	case "stick":
		backend.Stick()
	case "fail":
		backend.Fail(text)
	case "disagree":
		backend.Disagree(text)
	case "record":
		backend.Record("web", "be1", text)
	case "degrade":
		backend.Adjust(func(s *api.Status) {
			s.InSync, s.Switch.Connected, s.Phase, s.Since = false, false, "disconnected", noon.Add(-95*time.Second)
			s.Degraded = []string{"the switch br-lb is not connected: no such file or directory", "1 of 4 members of pool web is down"}
		})
	case "anchor":
		backend.Adjust(func(s *api.Status) {
			s.Pools[0].Layout, s.Pools[0].Version = "v2", "v2"
			s.Pools[0].Anchor = &api.Anchor{Digest: "5b7c41a09d3e2f68", Stale: true, RebaseMoves: 91}
		})
	case "hang-up": // clients of a member
		backend.Adjust(func(s *api.Status) {
			for i := range s.Pools[0].Members {
				if m := &s.Pools[0].Members[i]; m.Name == text {
					m.Connections = new(int)
				}
			}
		})
	case "uncounted":
		backend.Adjust(func(s *api.Status) {
			s.Conntrack = api.Conntrack{Problem: "no control socket"}
			for i := range s.Pools[0].Members {
				s.Pools[0].Members[i].Connections = nil
			}
		})
	case "own-zone":
		backend.Adjust(func(s *api.Status) {
			s.Conntrack.Pools = []api.ZoneUsage{{Number: 18201, Pools: []string{"web"}, TableUsage: api.TableUsage{Entries: 312, Limit: 50_000}}}
		})
	case "empty":
		backend.Adjust(func(s *api.Status) { s.Services, s.Pools = nil, nil })
	case "all-down":
		backend.Adjust(func(s *api.Status) {
			for i := range s.Pools[0].Members {
				s.Pools[0].Members[i].Active, s.Pools[0].Members[i].State = false, "down"
			}
		})
	case "hostile":
		backend.Adjust(func(s *api.Status) {
			m := &s.Pools[0].Members[0]
			m.Name, m.Check.Detail = "be\x1b[2J1", "200\r\n\x07"
		})
	case "two-services":
		backend.Adjust(func(s *api.Status) {
			s.Services = append(s.Services, api.Service{Name: "alt", Addresses: []string{"10.20.0.101", "2001:db8::1"}, Ports: []string{"80/tcp", "443/tcp"}, Pool: "web"})
			s.Services[0], s.Services[1] = s.Services[1], s.Services[0]
			s.InSync = false
		})
	case "on-backup":
		backend.Adjust(func(s *api.Status) {
			s.Services = []api.Service{{Name: "web", Pool: "spare", Primary: "web"}, {Name: "alt", Pool: "other", Primary: "other", Backup: []string{"web"}}}
		})
	case "inside":
		backend.Adjust(func(s *api.Status) { s.Services, s.Pools[0].Around = nil, []string{"all"} })
	default:
		ts.Fatalf("world: unknown change %s", args[0])
	}
}
