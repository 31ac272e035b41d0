package integration

import (
	"slices"
	"testing"

	"brlb/controller/api"
	"brlb/integration/stand"
)

// Whatever the datapath, its conntrack does not check TCP sequence numbers once
// brlb has connected, and again after Open vSwitch has forgotten it.
func TestSequenceCheckIsOff(t *testing.T) {
	onBoth(t, func(t *testing.T, s *stand.Stand) {
		off := func() bool {
			verify, err := s.API.Verify(t.Context())
			return err == nil && slices.Contains(verify.Checks,
				api.VerifyCheck{Name: "conntrack", OK: true, Detail: "TCP sequence numbers are not checked"})
		}
		eventually(t, "the check is off", off)
		must(t, s.Lab.KillOVS())
		must(t, s.Lab.StartOVS(t.Context()))
		await(t, s, "switch back", stand.Steady(4))
		eventually(t, "the check is off again", off)
	})
}
