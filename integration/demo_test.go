package integration

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// The demo is right, and leaves nothing behind, also when it is interrupted.
func TestDemo(t *testing.T) {
	leftovers := func() string {
		namespaces, err := exec.Command("ip", "netns").Output()
		must(t, err)
		dirs, err := filepath.Glob(filepath.Join(os.TempDir(), "brlb-[0-9]*-*"))
		must(t, err)
		return string(namespaces) + strings.Join(dirs, "\n")
	}
	before := leftovers()
	t.Run("whole", func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 2*patience)
		defer cancel()
		out, err := exec.CommandContext(ctx, brlb, "demo").CombinedOutput()
		if err != nil || !strings.Contains(string(out), "All was as it should be.") {
			t.Errorf("brlb demo: %v\n%s", err, out)
		}
		if after := leftovers(); after != before {
			t.Errorf("before:\n%s\nleft behind:\n%s", before, after)
		}
	})
	t.Run("interrupted", func(t *testing.T) {
		for _, after := range []time.Duration{500 * time.Millisecond, 3 * time.Second, 8 * time.Second} {
			var out bytes.Buffer
			cmd := exec.Command(brlb, "demo", "--keep")
			cmd.Stdout, cmd.Stderr = &out, &out
			must(t, cmd.Start())
			time.Sleep(after)
			must(t, cmd.Process.Signal(syscall.SIGINT))
			done := make(chan error, 1)
			go func() { done <- cmd.Wait() }()
			select {
			case <-done:
			case <-time.After(patience):
				cmd.Process.Kill()
				t.Fatalf("still running %v after Ctrl-C\n%s", patience, out.String())
			}
			if left := leftovers(); left != before {
				t.Errorf("interrupted after %v: before:\n%s\nleft behind:\n%s\n%s", after, before, left, out.String())
			}
		}
	})
}
