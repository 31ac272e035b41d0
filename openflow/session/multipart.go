package session

import (
	"context"
	"fmt"

	"brlb/openflow"
)

// Multipart sends a request and calls each for every part of the reply, in
// order, in the caller's goroutine (OF1.4 section 7.3.5). Every part has the
// type of the request. An error from each ends the call and is returned; later
// parts count as unknown replies. The switch's refusal is an *openflow.Error. A
// reply beyond Options.MaxReply ends the session. Flow monitors are asked for
// with Monitor.
func (s *Session) Multipart(ctx context.Context, request openflow.MultipartRequestBody, each func(part openflow.MultipartReplyBody) error) error {
	if request.MultipartType() == openflow.MultipartFlowMonitor {
		return fmt.Errorf("openflow session with %s: flow monitors are to be asked for with Monitor", s.opts.Peer)
	}
	return s.multipart(ctx, request, each)
}

func (s *Session) multipart(ctx context.Context, request openflow.MultipartRequestBody, each func(part openflow.MultipartReplyBody) error) error {
	ctx, cancel := s.bound(ctx)
	defer cancel()
	in := s.newInbox()
	message := &openflow.MultipartRequest{Body: request}
	if err := s.enqueue(ctx, in, 1, 1, func(int) openflow.Message { return message }); err != nil {
		return err
	}
	defer in.close()
	for {
		_, m, err := in.next(ctx)
		if err != nil {
			return err
		}
		switch m := m.(type) {
		case *openflow.Error:
			return m
		case *openflow.MultipartReply:
			if m.Body.MultipartType() != request.MultipartType() {
				s.countUnknown(1)
				continue
			}
			if err := each(m.Body); err != nil {
				return err
			}
			if m.Flags&openflow.MultipartMore == 0 {
				return nil
			}
		default:
			s.countUnknown(1)
		}
	}
}

// Flows returns the flows that the request selects, with their statistics. For
// very many, Multipart hands them over part by part.
func (s *Session) Flows(ctx context.Context, request openflow.FlowStatsRequest) ([]openflow.FlowStats, error) {
	var flows []openflow.FlowStats
	err := s.Multipart(ctx, request, func(part openflow.MultipartReplyBody) error {
		some := part.(openflow.FlowStatsReply)
		if flows == nil {
			flows = some
		} else {
			flows = append(flows, some...)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return flows, nil
}

// Ports returns the switch's ports.
func (s *Session) Ports(ctx context.Context) ([]openflow.Port, error) {
	var ports []openflow.Port
	err := s.Multipart(ctx, openflow.PortDescRequest{}, func(part openflow.MultipartReplyBody) error {
		ports = append(ports, part.(openflow.PortDescReply)...)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return ports, nil
}
