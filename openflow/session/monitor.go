package session

import (
	"context"
	"errors"
	"fmt"

	"brlb/openflow"
)

// oldestMonitor is the first version of Open vSwitch that reads a monitor
// request of OpenFlow 1.4 as one. Older ones read past its end.
const oldestMonitor = 3

// monitorFlags are the flags that Open vSwitch takes. Others make it answer with
// pieces of its memory.
const monitorFlags = openflow.MonitorInitial | openflow.MonitorAdd | openflow.MonitorRemoved |
	openflow.MonitorModify | openflow.MonitorInstructions | openflow.MonitorOnlyOwn

// monitorChanges are the flags of which a monitor needs one at least.
const monitorChanges = openflow.MonitorAdd | openflow.MonitorRemoved | openflow.MonitorModify

// lastTable is the last table that a controller can name.
const lastTable = 253

// CanMonitor says whether the switch is known to have flow monitors: it is Open
// vSwitch 3.0 or newer.
func (s *Session) CanMonitor() bool {
	major, _, ok := s.SoftwareVersion()
	return ok && major >= oldestMonitor
}

// Monitor starts, changes or stops flow monitors (OF1.4 section 7.3.5.18). The
// flows that are there already, if asked for, go to each; changes after that
// arrive as events. Monitors end with the session.
//
// Every Open vSwitch answers an invalid request with garbage out of its own
// memory, which ends the session, and one before 3.0 does so with any request.
// So whatever is not known to be valid is refused here.
func (s *Session) Monitor(ctx context.Context, request openflow.FlowMonitorRequest, each func(openflow.FlowMonitorReply) error) error {
	if !s.CanMonitor() {
		return fmt.Errorf("openflow session with %s: flow monitors need Open vSwitch 3.0 or newer; this is %q %q", s.opts.Peer, s.desc.Hardware, s.desc.Software)
	}
	ids, err := s.admitMonitors(request)
	if err != nil {
		return fmt.Errorf("openflow session with %s: %w", s.opts.Peer, err)
	}
	err = s.multipart(ctx, request, func(part openflow.MultipartReplyBody) error {
		return each(part.(openflow.FlowMonitorReply))
	})
	if e, ok := err.(*openflow.Error); ok { // the switch changed nothing
		s.mu.Lock()
		s.monitors = ids
		s.mu.Unlock()
		return e
	}
	return err
}

// admitMonitors checks a request against what Open vSwitch takes and notes the
// ids that it leaves in use. It returns those that were in use before.
func (s *Session) admitMonitors(request openflow.FlowMonitorRequest) (before map[uint32]bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	after := make(map[uint32]bool, len(s.monitors)+len(request))
	for id := range s.monitors {
		after[id] = true
	}
	for i, m := range request {
		switch {
		case m.Command > openflow.MonitorCommandDelete:
			err = fmt.Errorf("no such command: %d", m.Command)
		case m.Command == openflow.MonitorCommandAdd && after[m.ID]:
			err = fmt.Errorf("id %d is in use", m.ID)
		case m.Command != openflow.MonitorCommandAdd && !after[m.ID]:
			err = fmt.Errorf("id %d is not in use", m.ID)
		case m.Flags&^monitorFlags != 0:
			err = fmt.Errorf("flags %#x: Open vSwitch takes %#x", m.Flags, monitorFlags)
		case m.Flags&monitorChanges == 0:
			err = fmt.Errorf("flags %#x ask for no change: one of %#x is needed", m.Flags, monitorChanges)
		case m.Table != openflow.TableAll && m.Table > lastTable:
			err = fmt.Errorf("table %d: the last is %d", m.Table, lastTable)
		case m.OutPort != openflow.PortAny || m.OutGroup != openflow.GroupAny:
			err = errors.New("only PortAny and GroupAny are known to be taken")
		case len(m.Match) > 0:
			err = errors.New("only the empty match is known to be taken")
		}
		if err != nil {
			return nil, fmt.Errorf("flow monitor %d of the request: %w", i, err)
		}
		if m.Command == openflow.MonitorCommandDelete {
			delete(after, m.ID)
		} else {
			after[m.ID] = true
		}
	}
	before, s.monitors = s.monitors, after
	return before, nil
}
