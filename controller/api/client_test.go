package api_test

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"brlb/controller/api"
	"brlb/controller/api/apitest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// socketPath is short, whatever the test's name: a socket's path ends at 107
// bytes.
func socketPath(t *testing.T) string {
	t.Helper()
	directory, err := os.MkdirTemp("", "brlb")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(directory) })
	return filepath.Join(directory, "run", "br-lb.sock")
}

// running is a server on a unix socket and a client of it.
func running(t *testing.T) (*api.Client, *apitest.Backend) {
	t.Helper()
	server, backend := newServer()
	path := socketPath(t)
	serve(t, path, server.Full())
	client, err := api.NewClient(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return client, backend
}

func serve(t *testing.T, path string, handler http.Handler) {
	t.Helper()
	l, err := api.ListenUnix(path)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var done sync.WaitGroup
	done.Go(func() {
		if err := api.Serve(ctx, l, handler, slog.New(slog.DiscardHandler)); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(func() { cancel(); done.Wait() })
}

func TestClientReads(t *testing.T) {
	client, _ := running(t)
	ctx := t.Context()
	status, err := client.Status(ctx)
	if err != nil || status.Bridge != "br-lb" || len(status.Pools[0].Members) != 4 {
		t.Errorf("status %+v, %v", status, err)
	}
	slots, err := client.Slots(ctx, "web")
	if err != nil || len(slots.Owner) != apitest.Slots {
		t.Errorf("slots %+v, %v", slots, err)
	}
	events, err := client.Events(ctx, 0)
	if err != nil || len(events.Events) != 1 {
		t.Errorf("events %+v, %v", events, err)
	}
	plan, err := client.Plan(ctx, api.PlanRequest{Operation: "drain", Member: "be1"})
	if err != nil || plan.Member != "be1" {
		t.Errorf("plan %+v, %v", plan, err)
	}
	flows, err := client.Flows(ctx, "actual")
	if err != nil || flows.Set != "actual" {
		t.Errorf("flows %+v, %v", flows, err)
	}
	trace, err := client.Trace(ctx, api.TraceRequest{Src: "10.20.0.10", SrcPort: 40001, Dst: "10.20.0.100", DstPort: 80, InPort: "p1"})
	if err != nil || trace.Slot != 40001%apitest.Slots || !trace.Switch.Agrees {
		t.Errorf("trace %+v, %v", trace, err)
	}
	verify, err := client.Verify(ctx)
	if err != nil || !verify.OK {
		t.Errorf("verify %+v, %v", verify, err)
	}
}

func TestClientChanges(t *testing.T) {
	client, backend := running(t)
	ctx := t.Context()
	change, err := client.Change(ctx, "drain", api.ChangeRequest{Member: "be1", Who: "alice", Why: "upgrade", WaitSeconds: 1})
	if err != nil || !change.Confirmed || change.Members[0].After != 0 {
		t.Fatalf("change %+v, %v", change, err)
	}
	if m := backend.Status().Pools[0].Members[0]; m.Admin != "draining" || m.AdminWho != "alice" || m.AdminWhy != "upgrade" {
		t.Errorf("the member is %+v", m)
	}
	_, err = client.Change(ctx, "drain", api.ChangeRequest{Member: "be9"})
	var mistake *api.RequestError
	if !errors.As(err, &mistake) || mistake.Status != http.StatusNotFound {
		t.Errorf("an unknown member: %v", err)
	}
	if _, err := client.Reload(ctx, api.ReloadRequest{}); err != nil {
		t.Error(err)
	}
	if _, err := client.Reapply(ctx); err != nil {
		t.Error(err)
	}
}

func TestClientFollows(t *testing.T) {
	client, backend := running(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var seen []string
	err := client.Follow(ctx, 0, func(e api.Event) error {
		seen = append(seen, e.Text)
		switch e.Seq {
		case 1:
			backend.Record("web", "be3", "down")
			backend.Record("web", "be3", "active")
		case 3:
			cancel()
		}
		return nil
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("the stream ended with %v", err)
	}
	if want := "down: L4TOUT no answer within 500ms|down|active"; strings.Join(seen, "|") != want {
		t.Errorf("seen %q", seen)
	}
}

// TestFollowAfterRestart: a client that was told more by an earlier run starts
// over.
func TestFollowAfterRestart(t *testing.T) {
	client, _ := running(t)
	enough := errors.New("enough")
	err := client.Follow(t.Context(), 99, func(e api.Event) error {
		if e.Seq != 1 {
			t.Errorf("first event %+v", e)
		}
		return enough
	})
	if err != enough {
		t.Error(err)
	}
}

func TestTooManyFollowers(t *testing.T) {
	client, _ := running(t)
	ctx, cancel := context.WithCancel(t.Context())
	var followers sync.WaitGroup
	defer followers.Wait()
	defer cancel()
	open := make(chan struct{})
	for range 64 {
		followers.Go(func() {
			client.Follow(ctx, 0, func(api.Event) error { open <- struct{}{}; return nil })
		})
		<-open
	}
	err := client.Follow(ctx, 0, func(api.Event) error { return nil })
	if err == nil || !strings.Contains(err.Error(), "64 clients follow the events already") {
		t.Errorf("the 65th follower: %v", err)
	}
}

// TestStop: a stream that is open doesn't hold up the end of brlb.
func TestStop(t *testing.T) {
	server, _ := newServer()
	path := socketPath(t)
	l, err := api.ListenUnix(path)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- api.Serve(ctx, l, server.Full(), slog.New(slog.DiscardHandler)) }()
	client, _ := api.NewClient("unix:" + path)
	err = client.Follow(t.Context(), 0, func(api.Event) error { cancel(); return nil })
	if err == nil || !strings.Contains(err.Error(), "ended the event stream") && !strings.Contains(err.Error(), "broke off") {
		t.Errorf("the stream ended with %v", err)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
	if _, err := os.Lstat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the socket is still there: %v", err)
	}
}

func TestClientErrors(t *testing.T) {
	path := socketPath(t)
	client, err := api.NewClient(path)
	if err != nil {
		t.Fatal(err)
	}
	_, err = client.Status(t.Context())
	want := "brlb is not running: dial unix " + path + `: connect: no such file or directory (start it with "brlb run FILE", or name its --bridge or --socket)`
	if err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
	for _, endpoint := range []string{"", "unix:", "ftp://host", "http://", "http://%zz"} {
		if _, err := api.NewClient(endpoint); err == nil {
			t.Errorf("endpoint %q was accepted", endpoint)
		}
	}
}

func TestClientOverTCP(t *testing.T) {
	server, _ := newServer()
	h := httptest.NewServer(server.ReadOnly())
	defer h.Close()
	client, err := api.NewClient(h.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	if _, err := client.Status(t.Context()); err != nil {
		t.Error(err)
	}
	_, err = client.Change(t.Context(), "drain", api.ChangeRequest{Member: "be1"})
	var mistake *api.RequestError
	if !errors.As(err, &mistake) || mistake.Status != http.StatusForbidden {
		t.Errorf("a change over TCP: %v", err)
	}
}

func TestClientOfAnotherServer(t *testing.T) {
	h := httptest.NewServer(http.NotFoundHandler())
	defer h.Close()
	client, _ := api.NewClient(h.URL)
	defer client.Close()
	_, err := client.Status(t.Context())
	if err == nil || err.Error() != "the answer to /v1/status is 404 Not Found, and not from brlb" {
		t.Error(err)
	}
}

func TestListenUnix(t *testing.T) {
	path := socketPath(t)
	l, err := api.ListenUnix(path)
	if err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o660 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	if _, err := api.ListenUnix(path); err == nil || !strings.Contains(err.Error(), "is another brlb running") {
		t.Errorf("a socket in use was replaced: %v", err)
	}
	// A brlb that was killed leaves its socket behind.
	l.(*net.UnixListener).SetUnlinkOnClose(false)
	l.Close()
	again, err := api.ListenUnix(path)
	if err != nil {
		t.Fatalf("a stale socket was not replaced: %v", err)
	}
	again.Close()

	if err := os.WriteFile(path, []byte("precious"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := api.ListenUnix(path); err == nil || !strings.Contains(err.Error(), "not a socket") {
		t.Errorf("a plain file was replaced: %v", err)
	}
	if _, err := api.ListenUnix("/" + strings.Repeat("a", 107)); err == nil || !strings.Contains(err.Error(), "at most 107") {
		t.Errorf("a path that is too long: %v", err)
	}
}

// TestListenUnixRace: of several brlb that start at once over a stale socket,
// one wins and keeps its socket.
func TestListenUnixRace(t *testing.T) {
	path := socketPath(t)
	stale, err := api.ListenUnix(path)
	if err != nil {
		t.Fatal(err)
	}
	stale.(*net.UnixListener).SetUnlinkOnClose(false)
	stale.Close()
	var starts sync.WaitGroup
	won := make(chan net.Listener, 8)
	for range cap(won) {
		starts.Go(func() {
			if l, err := api.ListenUnix(path); err == nil {
				won <- l
			}
		})
	}
	starts.Wait()
	if len(won) != 1 {
		t.Errorf("%d listen", len(won))
	}
	for range len(won) {
		(<-won).Close()
	}
}
