package guest_test

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"brlb/integration/guest"
	"brlb/integration/lab"
)

// run runs a script in a guest and returns what it printed and its status.
func run(t *testing.T, options guest.Options) (string, int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	var out bytes.Buffer
	options.Output = &out
	status, err := guest.Run(ctx, options)
	if lab.Unavailable(err) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatalf("%v; it printed:\n%s", err, out.Bytes())
	}
	return out.String(), status
}

// A guest has the files it is given, a kernel with Open vSwitch's datapath, and
// tells how its script ended.
func TestRun(t *testing.T) {
	file := filepath.Join(t.TempDir(), "hello")
	if err := os.WriteFile(file, []byte("#!/bin/sh\necho \"hello $1\"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	out, status := run(t, guest.Options{
		Files:  map[string]string{"hello": file},
		Script: "./hello world; grep -o '^openvswitch' /proc/modules; exit 3\n",
	})
	if want := "hello world\nopenvswitch\n"; out != want {
		t.Errorf("printed %q, not %q", out, want)
	}
	if status != 3 {
		t.Errorf("status %d, not 3", status)
	}
}

// A kernel that crashes is an error, with what the kernel said last.
func TestCrash(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	_, err := guest.Run(ctx, guest.Options{Script: "echo c >/proc/sysrq-trigger\n", Output: new(bytes.Buffer)})
	if lab.Unavailable(err) {
		t.Skip(err)
	}
	if err == nil || !strings.Contains(err.Error(), "Kernel Offset") {
		t.Errorf("error %v", err)
	}
}
