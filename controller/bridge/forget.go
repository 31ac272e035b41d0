package bridge

import (
	"context"
	"errors"
	"slices"

	"brlb/openflow"
)

// ErrNoFlush is returned by Forget when the switch is older than 3.1, which
// brought the message that forgets single connections.
var ErrNoFlush = errors.New("the switch forgets single connections over OpenFlow only from Open vSwitch 3.1 on")

// flushesAtOnce is how many messages are sent before the switch is asked whether
// it has handled them. It handles each in a few microseconds.
const flushesAtOnce = 500

// Forget makes the switch forget connections, and returns when it has done so.
// Each flush must name a zone and a tuple: less would forget more.
func (b *Bridge) Forget(ctx context.Context, flushes []openflow.CTFlush) error {
	s := b.session(0)
	if s == nil {
		return ErrNotConnected
	}
	if major, minor, ok := s.SoftwareVersion(); !ok || major < 3 || major == 3 && minor < 1 {
		return ErrNoFlush
	}
	for some := range slices.Chunk(flushes, flushesAtOnce) {
		messages := make([]openflow.Message, len(some))
		for i := range some {
			messages[i] = &some[i]
		}
		if err := s.Transact(ctx, messages...); err != nil {
			return err
		}
	}
	return nil
}
