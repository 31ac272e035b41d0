// Package kernel runs scenarios of package integration on the datapath of the
// Linux kernel, in a guest.
package kernel

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"brlb/integration/guest"
	"brlb/integration/lab"
)

// scenarios are the tests of package integration that the guest runs. They
// depend on the datapath, and not on the speed of the machine.
var scenarios = []string{
	"TestPlacement",
	"TestHitless",
	"TestDatagrams",
	"TestIPv6",
	"TestSequenceCheckIsOff",
	"TestConntrackTimeouts",
	"TestStaleEntries",
	"TestPortReuse",
	"TestTwoRouters",
	"TestMemberKilled",
	"TestTunnelTypes",
	"TestTunnelIPv6",
	"TestPortRanges",
	"TestDownloadAcrossSmallerMTU",
	"TestErrorsReachClients",
	"TestShortErrors",
	"TestHairpin",
	"TestNeighboursAreAnswered",
	"TestOtherPorts",
	"TestTimeToLive",
	"TestConnectionsOfADownMember",
	"TestTransition",
	"TestPoolZones",
	"TestSCTP",
}

// build compiles what the guest needs, without libraries.
func build(t testing.TB, args ...string) {
	t.Helper()
	cmd := exec.Command("go", args...)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("go %v: %v\n%s", args, err, out)
	}
}

func TestScenarios(t *testing.T) {
	dir := t.TempDir()
	files := map[string]string{"brlb": filepath.Join(dir, "brlb"), "integration.test": filepath.Join(dir, "integration.test")}
	build(t, "build", "-o", files["brlb"], "brlb/cmd/brlb")
	build(t, "test", "-c", "-o", files["integration.test"], "brlb/integration")
	const limit = 25 * time.Minute
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	status, err := guest.Run(ctx, guest.Options{
		Files: files,
		Script: fmt.Sprintf("BRLB_LAB_REQUIRED=1 BRLB_LAB_DATAPATH=system BRLB_EXECUTABLE=/guest/brlb "+
			"exec ./integration.test -test.v -test.short -test.timeout=%s -test.run='^(%s)$'\n", limit, strings.Join(scenarios, "|")),
		Output: os.Stdout,
	})
	if lab.Unavailable(err) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	if status != 0 {
		t.Errorf("the scenarios failed in the guest, with status %d: see above", status)
	}
}
