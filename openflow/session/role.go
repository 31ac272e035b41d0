package session

import (
	"context"
	"errors"

	"brlb/openflow"
)

// Role asks for a role with a generation id, or with openflow.RoleNoChange only
// for what is so (OF1.4 section 7.3.8). The switch refuses a generation before
// the last with openflow.RoleRequestFailedStale.
func (s *Session) Role(ctx context.Context, role openflow.Role, generation uint64) (openflow.RoleBody, error) {
	reply, err := s.Call(ctx, &openflow.RoleRequest{RoleBody: openflow.RoleBody{Role: role, GenerationID: generation}})
	if err != nil {
		return openflow.RoleBody{}, err
	}
	return reply.(*openflow.RoleReply).RoleBody, nil
}

// TakeRole asks for a role with the generation after the switch's last. The
// switch remembers it across connections, so one that is made up is likely to be
// stale. If others take roles at the same time, the generation is asked for
// again a few times.
func (s *Session) TakeRole(ctx context.Context, role openflow.Role) (openflow.RoleBody, error) {
	const attempts = 5
	var err error
	for range attempts {
		var now, got openflow.RoleBody
		if now, err = s.Role(ctx, openflow.RoleNoChange, 0); err != nil {
			break
		}
		// A switch without a generation yet says all ones; the next is 0.
		if got, err = s.Role(ctx, role, now.GenerationID+1); !errors.Is(err, openflow.RoleRequestFailedStale) {
			return got, err
		}
	}
	return openflow.RoleBody{}, err
}
