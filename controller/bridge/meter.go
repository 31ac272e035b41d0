package bridge

import (
	"context"
	"errors"
	"fmt"

	"brlb/controller/pipeline"
	"brlb/openflow"
	"brlb/openflow/session"
)

// setMeters makes the switch have the meters that the pipeline's rows name. A
// switch that has restarted has lost them.
func setMeters(ctx context.Context, s *session.Session) error {
	for _, meter := range pipeline.Meters() {
		err := s.Transact(ctx, meter)
		if errors.Is(err, openflow.MeterModFailedMeterExists) {
			meter.Command = openflow.MeterModify
			err = s.Transact(ctx, meter)
		}
		if err != nil {
			return fmt.Errorf("set meter %d: %w", meter.ID, err)
		}
	}
	return nil
}
