package cli_test

import (
	"bytes"
	"context"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"brlb/cmd/brlb/internal/cli"
	"brlb/controller/api"
	"brlb/controller/api/apitest"
)

// output collects what a command writes and calls a function after each piece.
type output struct {
	mu    sync.Mutex
	buf   bytes.Buffer
	after func(all string)
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	o.buf.Write(p)
	all := o.buf.String()
	o.mu.Unlock()
	if o.after != nil {
		o.after(all)
	}
	return len(p), nil
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.String()
}

// start serves a made-up controller and returns an App that asks it.
func start(t *testing.T) (*cli.App, *apitest.Backend, *output) {
	t.Helper()
	directory, err := os.MkdirTemp("", "brlb")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(directory, "s")
	l, err := api.ListenUnix(path)
	if err != nil {
		t.Fatal(err)
	}
	backend := apitest.New(noon)
	server := api.NewServer(backend, http.NotFoundHandler(), nil)
	ctx, cancel := context.WithCancel(context.Background())
	var done sync.WaitGroup
	done.Go(func() { api.Serve(ctx, l, server.Full(), slog.New(slog.DiscardHandler)) })
	t.Cleanup(func() {
		cancel()
		done.Wait()
		os.RemoveAll(directory)
	})
	out := &output{}
	app := &cli.App{
		Version: "0.1.0", Stdout: out, Stderr: &output{}, Now: func() time.Time { return noon },
		Getenv: func(name string) string { return map[string]string{"BRLB_SOCKET": path}[name] },
	}
	return app, backend, out
}

func TestFollow(t *testing.T) {
	for _, test := range []struct{ form, want string }{
		{"text", "web/be1: drained\n"},
		{"json", `"member":"be1","text":"drained"}` + "\n"},
		{"yaml", "member: be1\ntext: drained\n"},
	} {
		t.Run(test.form, func(t *testing.T) {
			app, backend, out := start(t)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			recorded := sync.OnceFunc(func() { backend.Record("web", "be1", "drained") })
			out.after = func(all string) {
				recorded()
				if strings.HasSuffix(all, test.want) {
					cancel()
				}
			}
			if code := app.Main(ctx, []string{"events", "--follow", "-o", test.form}); code != 0 {
				t.Errorf("exit code %d", code)
			}
			if !strings.Contains(out.String(), "L4TOUT") || !strings.HasSuffix(out.String(), test.want) {
				t.Errorf("the output is\n%s", out)
			}
		})
	}
}

func TestWatch(t *testing.T) {
	app, backend, out := start(t)
	app.Terminal = true
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	change := sync.OnceFunc(func() {
		backend.Adjust(func(s *api.Status) { s.Degraded = []string{"something"} })
	})
	out.after = func(all string) {
		change()
		if strings.Contains(all, "DEGRADED something") {
			cancel()
		}
	}
	if code := app.Main(ctx, []string{"status", "--watch=1ms"}); code != 0 {
		t.Errorf("exit code %d", code)
	}
	if got := out.String(); !strings.HasPrefix(got, "\x1b[H") || !strings.HasSuffix(got, "\x1b[K\n\x1b[J") {
		t.Errorf("the frames are\n%q", got)
	}
}

// TestWatchGoesOn: while brlb is away, a watching command waits for it.
func TestWatchGoesOn(t *testing.T) {
	app, _, out := start(t)
	app.Getenv = func(string) string { return "/nonexistent/s" }
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	complaints := &output{after: func(all string) {
		if strings.Count(all, "brlb is not running") == 3 {
			cancel()
		}
	}}
	app.Stderr = complaints
	if code := app.Main(ctx, []string{"slots", "--watch=1ms"}); code != 0 {
		t.Errorf("exit code %d", code)
	}
	if out.String() != "" {
		t.Errorf("standard output has %q", out)
	}
}

func TestRun(t *testing.T) {
	app, _, _ := start(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	log := &output{}
	log.after = func(all string) {
		if strings.Contains(all, "reloaded") {
			cancel()
		}
	}
	app.Stderr = log
	app.Run = func(ctx context.Context, options cli.RunOptions) error {
		if strings.Join(options.ConfigPaths, " ") != "a.yaml b.yaml" || options.Version != "0.1.0" {
			t.Errorf("options %+v", options)
		}
		// The process's own SIGHUP: run has asked to be told.
		if err := syscall.Kill(os.Getpid(), syscall.SIGHUP); err != nil {
			return err
		}
		<-options.Reload
		options.Logger.Debug("reloaded")
		<-ctx.Done()
		return nil
	}
	if code := app.Main(ctx, []string{"run", "a.yaml", "b.yaml", "--log-level", "debug", "--log-format", "json"}); code != 0 {
		t.Errorf("exit code %d", code)
	}
	if !strings.Contains(log.String(), `"msg":"brlb has stopped; its flows stay in place`) {
		t.Errorf("the log is\n%s", log)
	}
}
