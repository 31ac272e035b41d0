package session

import (
	"context"
	"fmt"
	"time"

	"brlb/openflow"
)

// Send queues messages, in order and in one piece, and returns. Nobody waits
// for what the switch says of them: an error arrives as an [Event]. An error
// from Send says that none was queued.
func (s *Session) Send(ctx context.Context, messages ...openflow.Message) error {
	if err := s.sendable(messages); err != nil {
		return err
	}
	ctx, cancel := s.bound(ctx)
	defer cancel()
	return s.enqueue(ctx, nil, len(messages), len(messages), at(messages))
}

// Call sends a request and returns its reply. The switch's refusal is an
// *openflow.Error. Requests that no message answers go to Transact, multipart
// requests to Multipart.
func (s *Session) Call(ctx context.Context, request openflow.Message) (openflow.Message, error) {
	want, ok := replyType(request.Type())
	if !ok {
		return nil, fmt.Errorf("openflow session with %s: Call: no reply answers %v", s.opts.Peer, request.Type())
	}
	ctx, cancel := s.bound(ctx)
	defer cancel()
	in := s.newInbox()
	if err := s.enqueue(ctx, in, 1, 1, at([]openflow.Message{request})); err != nil {
		return nil, err
	}
	defer in.close()
	for {
		_, m, err := in.next(ctx)
		if err != nil {
			return nil, err
		}
		if e, ok := m.(*openflow.Error); ok {
			return nil, e
		}
		if m.Type() == want {
			return m, nil
		}
		s.countUnknown(1)
	}
}

// replyType returns the type of the message that answers a request.
func replyType(request openflow.Type) (openflow.Type, bool) {
	switch request {
	case openflow.TypeEchoRequest:
		return openflow.TypeEchoReply, true
	case openflow.TypeExperimenter:
		return openflow.TypeExperimenter, true
	case openflow.TypeFeaturesRequest:
		return openflow.TypeFeaturesReply, true
	case openflow.TypeGetConfigRequest:
		return openflow.TypeGetConfigReply, true
	case openflow.TypeBarrierRequest:
		return openflow.TypeBarrierReply, true
	case openflow.TypeRoleRequest:
		return openflow.TypeRoleReply, true
	case openflow.TypeGetAsyncRequest:
		return openflow.TypeGetAsyncReply, true
	}
	return 0, false
}

// Barrier returns when the switch has handled all that was sent before (OF1.4
// section 7.3.7).
func (s *Session) Barrier(ctx context.Context) error {
	_, err := s.Call(ctx, &openflow.BarrierRequest{})
	return err
}

// Ping measures the time an echo takes there and back.
func (s *Session) Ping(ctx context.Context) (time.Duration, error) {
	start := time.Now()
	_, err := s.Call(ctx, &openflow.EchoRequest{})
	return time.Since(start), err
}

// Transact sends messages and a barrier, and returns when the switch has handled
// them. If it refused some, the error is a [RejectedError]; the others took
// effect. Who wants all or nothing uses Bundle.
func (s *Session) Transact(ctx context.Context, messages ...openflow.Message) error {
	if err := s.sendable(messages); err != nil {
		return err
	}
	ctx, cancel := s.bound(ctx)
	defer cancel()
	in, n := s.newInbox(), len(messages)
	err := s.enqueue(ctx, in, n+1, n+1, func(i int) openflow.Message {
		if i == n {
			return &openflow.BarrierRequest{}
		}
		return messages[i]
	})
	if err != nil {
		return err
	}
	defer in.close()
	var rejected RejectedError
	for {
		place, m, err := in.next(ctx)
		if err != nil {
			return err
		}
		switch m := m.(type) {
		case *openflow.Error:
			if place == n {
				return append(rejected, &MessageError{Index: -1, Err: m})
			}
			rejected = append(rejected, &MessageError{Index: place, Err: m})
		case *openflow.BarrierReply:
			if place != n {
				s.countUnknown(1)
				continue
			}
			if rejected != nil {
				return rejected
			}
			return nil
		default:
			s.countUnknown(1)
		}
	}
}

// bound gives a context without a deadline that of Options.Request.
func (s *Session) bound(ctx context.Context) (context.Context, context.CancelFunc) {
	if _, ok := ctx.Deadline(); ok {
		return ctx, func() {}
	}
	return context.WithTimeoutCause(ctx, s.opts.Request, fmt.Errorf("none within %v", s.opts.Request))
}

// sendable refuses messages that have a call of their own, which keeps their
// rules.
func (s *Session) sendable(messages []openflow.Message) error {
	for i, m := range messages {
		call := ""
		switch m := m.(type) {
		case *openflow.BundleControl, *openflow.BundleAdd:
			call = "Bundle"
		case *openflow.MultipartRequest:
			call = "Multipart"
			if _, ok := m.Body.(openflow.FlowMonitorRequest); ok {
				call = "Monitor"
			}
		}
		if call != "" {
			return fmt.Errorf("openflow session with %s: message %d, %v, is to be sent with %s", s.opts.Peer, i, m.Type(), call)
		}
	}
	return nil
}

// at returns the function that enqueue wants for a slice.
func at(messages []openflow.Message) func(int) openflow.Message {
	return func(i int) openflow.Message { return messages[i] }
}
