package image_test

import (
	"fmt"
	"os/exec"
	"slices"
	"testing"

	"brlb/integration/image"
	"brlb/integration/lab"
)

// TestCleanStale leaves a container under the name of a dead process and one
// under that of a living process: only the first is removed.
func TestCleanStale(t *testing.T) {
	dead := exec.Command("true")
	check(t, dead.Run())
	name := fmt.Sprintf("brlb-%d-1-sw", dead.Process.Pid)
	own, err := lab.New(t.Context(), lab.Options{Machine: image.Machine})
	if lab.Unavailable(err) {
		t.Skip(err)
	}
	check(t, err)
	t.Cleanup(func() { check(t, own.Close()) })
	abandoned, err := image.Machine(t.Context(), name, t.TempDir())
	check(t, err)
	defer abandoned.Close() // only the client is left to close by then
	removed, err := image.CleanStale(t.Context())
	check(t, err)
	if !slices.Contains(removed, name) {
		t.Errorf("removed %q, not %s", removed, name)
	}
	if left := containers(t, name); len(left) > 0 {
		t.Errorf("left %q", left)
	}
	if kept := containers(t, own.Name()); len(kept) != 1 {
		t.Errorf("containers of a living process: %q", kept)
	}
}
