package bridge

import (
	"testing"
	"time"
)

// A switch of 200,000 rows, which takes half a second to tell them, is not asked
// all the time.
func TestLooksTakeAFiftieth(t *testing.T) {
	for _, c := range []struct{ audit, took, want time.Duration }{
		{auditOnlyLook, 5 * time.Millisecond, 2 * time.Second},
		{auditOnlyLook, 500 * time.Millisecond, 25 * time.Second},
		{auditWatched, 500 * time.Millisecond, time.Minute},
	} {
		if got := untilLook(c.audit, c.took); got != c.want {
			t.Errorf("after %v, looking every %v otherwise: %v until the next look, want %v", c.took, c.audit, got, c.want)
		}
	}
}
