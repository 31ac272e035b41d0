package integration

import (
	"bytes"
	"context"
	"fmt"
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
	// All that a demo makes is named after its process.
	leftovers := func(cmd *exec.Cmd) string {
		name := fmt.Sprintf("brlb-%d-*", cmd.Process.Pid)
		namespaces, err := filepath.Glob("/run/netns/" + name)
		must(t, err)
		dirs, err := filepath.Glob(filepath.Join(os.TempDir(), name))
		must(t, err)
		return strings.Join(append(namespaces, dirs...), " ")
	}
	t.Run("whole", func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 2*patience)
		defer cancel()
		cmd := exec.CommandContext(ctx, brlb, "demo")
		out, err := cmd.CombinedOutput()
		if err != nil || !strings.Contains(string(out), "All was as it should be.") {
			t.Errorf("brlb demo: %v\n%s", err, out)
		}
		if left := leftovers(cmd); left != "" {
			t.Errorf("left behind: %s", left)
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
			if left := leftovers(cmd); left != "" {
				t.Errorf("interrupted after %v, left behind: %s\n%s", after, left, out.String())
			}
		}
	})
}
