package session

import "brlb/openflow"

// Event is a message that no call asked for: PacketIn, FlowRemoved, PortStatus,
// RoleStatus, TableStatus, RequestForward, the updates of a flow monitor (a
// multipart reply), an experimenter's message, or the error of a message that
// nobody waits for.
type Event struct {
	// Xid is the message's transaction id: 0, or for an error that of the
	// message it belongs to.
	Xid uint32
	// Message is the event; nil if Lost.
	Message openflow.Message
	// Lost says that events are missing here, because the consumer was too
	// slow for them. What they were is to be read from the switch.
	Lost bool
}

// Events is the channel of asynchronous messages, in the order in which the
// switch sent them. It is closed when the session ends, after what was received
// before. Nothing waits for its consumer: while it is full, events are dropped
// and counted, and an Event with Lost set takes the place of the first of them.
func (s *Session) Events() <-chan Event { return s.events }

// deliverEvent hands an event to the consumer, or drops it. Only the reader
// calls it, so the channel can only get emptier meanwhile: the last place is
// kept for the mark that says something is missing.
func (s *Session) deliverEvent(e Event) {
	if len(s.events) < cap(s.events)-1 {
		s.events <- e
		return
	}
	if len(s.events) < cap(s.events) {
		s.events <- Event{Lost: true}
	}
	s.mu.Lock()
	s.counters.c.EventsDropped++
	s.mu.Unlock()
}
