package bridge

import (
	"context"
	"errors"
	"fmt"

	"brlb/controller/pipeline"
	"brlb/openflow"
	"brlb/openflow/session"
)

// Meters reads the meters that the switch has.
func (b *Bridge) Meters(ctx context.Context) ([]openflow.MeterConfig, error) {
	s := b.session(0)
	if s == nil {
		return nil, ErrNotConnected
	}
	return readMeters(ctx, s)
}

func readMeters(ctx context.Context, s *session.Session) ([]openflow.MeterConfig, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	var meters []openflow.MeterConfig
	err := s.Multipart(ctx, openflow.MeterConfigRequest{ID: openflow.MeterAll}, func(part openflow.MultipartReplyBody) error {
		list, _ := part.(openflow.MeterConfigReply)
		meters = append(meters, list...)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read meters: %w", err)
	}
	return meters, nil
}

// lacksMeters says whether a switch can have no meters at all.
func lacksMeters(ctx context.Context, s *session.Session) (bool, error) {
	var features openflow.MeterFeatures
	err := s.Multipart(ctx, openflow.MeterFeaturesRequest{}, func(part openflow.MultipartReplyBody) error {
		features, _ = part.(openflow.MeterFeatures)
		return nil
	})
	if refusal := (*openflow.Error)(nil); err != nil && !errors.As(err, &refusal) {
		return false, fmt.Errorf("read what meters there can be: %w", err)
	}
	return features.MaxMeter == 0, nil
}

// keepMeters sets meters right that somebody has changed. Nothing tells of that.
func (v *serving) keepMeters(ctx context.Context) error {
	if !v.bridge.leads.Load() || v.bridge.noMeters.Load() {
		return nil
	}
	meters, err := readMeters(ctx, v.session)
	if err != nil || len(pipeline.WrongMeters(meters)) == 0 {
		return err
	}
	v.bridge.opts.Logger.Warn("somebody else has changed brlb's meters: repairing")
	return setMeters(ctx, v.session)
}

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
