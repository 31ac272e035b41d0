package image_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"path/filepath"
	"testing"
	"time"

	"github.com/moby/moby/client"
	"go.uber.org/goleak"

	"brlb/integration/image"
	"brlb/integration/lab"
)

func TestMain(m *testing.M) {
	if lab.Main() {
		return
	}
	goleak.VerifyTestMain(m)
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// containers lists the names of a lab's containers.
func containers(t *testing.T, name string) []string {
	t.Helper()
	engine, err := client.New(client.FromEnv)
	check(t, err)
	defer engine.Close()
	listed, err := engine.ContainerList(t.Context(), client.ContainerListOptions{
		All:     true,
		Filters: make(client.Filters).Add("name", name),
	})
	check(t, err)
	var names []string
	for _, item := range listed.Items {
		names = append(names, item.Names...)
	}
	return names
}

// TestMachine forwards HTTP through an Open vSwitch in a container, kills and
// starts its daemons, and has OVSDB and OpenFlow over TCP.
func TestMachine(t *testing.T) {
	ctx := t.Context()
	l, err := lab.New(ctx, lab.Options{LocalAddrs: []string{"10.30.0.1/24", "2001:db8::1/64"}, Machine: image.Machine})
	if lab.Unavailable(err) {
		t.Skip(err)
	}
	check(t, err)
	t.Cleanup(func() { check(t, l.Close()) })
	check(t, l.AddSegment("p2", lab.SegmentOptions{}))
	clientHost, err := l.AddHost("c1", "10.30.0.100/24", lab.HostOptions{Port: "p1"})
	check(t, err)
	serverHost, err := l.AddHost("be1", "10.30.0.11/24", lab.HostOptions{Port: "p2"})
	check(t, err)
	server, err := serverHost.StartServer(ctx, "be1", "10.30.0.11:8080")
	check(t, err)
	serves := func(from *lab.Namespace) {
		t.Helper()
		load := from.StartLoad(ctx, server.Addr(), lab.LoadOptions{Timeout: time.Second})
		waitUntil(t, func() bool { return load.Report().PerServer["be1"] > 0 })
		load.Stop()
	}

	t.Run("forwarding", func(t *testing.T) {
		serves(clientHost.Namespace)
		serves(l.Switch)
	})
	t.Run("OVSDB over TCP", func(t *testing.T) {
		if got := l.OVSDB(); got != "tcp:127.0.0.1:6640" {
			t.Fatalf("OVSDB at %q", got)
		}
		conn, err := l.Switch.DialContext(ctx, "tcp", "127.0.0.1:6640")
		check(t, err)
		defer conn.Close()
		_, err = io.WriteString(conn, `{"id":0,"method":"echo","params":["lab"]}`)
		check(t, err)
		want := []byte(`{"id":0,"result":["lab"],"error":null}`)
		got := make([]byte, len(want))
		_, err = io.ReadFull(conn, got)
		check(t, err)
		if !bytes.Equal(got, want) {
			t.Errorf("echo: got %s", got)
		}
	})
	t.Run("OpenFlow over TCP", func(t *testing.T) {
		controller, err := l.Switch.Listen("tcp", "127.0.0.1:6654")
		check(t, err)
		defer controller.Close()
		_, err = l.NewRelay("tcp:127.0.0.1:6653", "tcp:127.0.0.1:6654")
		check(t, err)
		_, err = l.Vsctl("set-controller", l.Bridge(), "tcp:127.0.0.1:6653")
		check(t, err)
		conn, err := controller.Accept()
		check(t, err)
		hello := make([]byte, 2)
		_, err = io.ReadFull(conn, hello)
		check(t, err)
		if hello[1] != 0 {
			t.Errorf("the switch began with message type %d, not HELLO", hello[1])
		}
		check(t, conn.Close())
		_, err = l.Vsctl("del-controller", l.Bridge())
		check(t, err)
	})
	t.Run("faults", func(t *testing.T) {
		check(t, l.PauseOVS())
		check(t, l.ResumeOVS())
		check(t, l.KillOVS())
		check(t, l.StartOVS(ctx))
		serves(clientHost.Namespace)
		serves(l.Switch)
		check(t, l.KillOVSDB())
		check(t, l.StartOVSDB(ctx))
		_, err := l.Vsctl("list-ports", l.Bridge())
		check(t, err)
		_, err = l.Appctl("version")
		check(t, err)
	})
	t.Run("cleanup", func(t *testing.T) {
		name := l.Name()
		if got := containers(t, name); len(got) != 1 {
			t.Fatalf("containers of the lab: %q", got)
		}
		check(t, l.Close())
		if left := containers(t, name); len(left) > 0 {
			t.Errorf("left containers %q", left)
		}
		left, err := filepath.Glob("/run/netns/" + name + "*")
		check(t, err)
		if len(left) > 0 {
			t.Errorf("left namespaces %q", left)
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

func TestTag(t *testing.T) {
	recipe := image.OpenVSwitch()
	if image.Tag(recipe) != image.Tag(image.OpenVSwitch()) {
		t.Error("equal recipes have different tags")
	}
	other := image.OpenVSwitch()
	other.Packages = append(other.Packages, "tcpdump")
	if image.Tag(recipe) == image.Tag(other) {
		t.Errorf("different recipes have the tag %s", image.Tag(recipe))
	}
}

func TestNoEngine(t *testing.T) {
	t.Setenv("DOCKER_HOST", "unix:///nonexistent/docker.sock")
	_, err := image.Machine(t.Context(), "x", t.TempDir())
	if !errors.Is(err, image.ErrNoEngine) {
		t.Errorf("error %v", err)
	}
	for _, required := range []string{"", "1"} {
		t.Setenv("BRLB_LAB_REQUIRED", required)
		if got := lab.Unavailable(err); got == (required != "") {
			t.Errorf("BRLB_LAB_REQUIRED=%q: unavailable %t", required, got)
		}
	}
	if _, err := image.CleanStale(t.Context()); !errors.Is(err, image.ErrNoEngine) {
		t.Errorf("error %v", err)
	}
}
