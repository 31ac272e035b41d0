package session

import (
	"encoding/binary"

	"brlb/openflow"
)

// Counters are what a session has sent and received since it was opened.
type Counters struct {
	// Sent and Received count messages by type; a type that never occurred is
	// absent. Messages inside bundles are counted only as BUNDLE_ADD.
	Sent, Received map[openflow.Type]uint64
	// FlowModsSent counts flow-mods, those in bundles included.
	FlowModsSent uint64
	// OctetsSent counts octets queued for the peer, OctetsReceived those read.
	OctetsSent, OctetsReceived uint64
	// EventsDropped counts events for which the consumer was too slow.
	EventsDropped uint64
	// UnknownReplies counts replies that no request waited for.
	UnknownReplies uint64
	// EchoesIgnored counts echo requests not answered, because the peer asked
	// faster than it read the answers.
	EchoesIgnored uint64
	// Probes counts echo requests sent because the peer was silent.
	Probes uint64
}

// Counters returns a copy of the session's counters.
func (s *Session) Counters() Counters {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.counters.snapshot()
}

// counters counts by type in arrays, which cost nothing per message. Session.mu
// guards it.
type counters struct {
	c                      Counters
	sentByType, recvByType [256]uint64
}

// sent counts encoded messages, octet for octet as the peer will see them.
func (c *counters) sent(b []byte) {
	const (
		inBundle   = 16 // where the message inside BUNDLE_ADD begins
		typeOffset = 1
	)
	c.c.OctetsSent += uint64(len(b))
	for len(b) >= openflow.HeaderLen {
		t := openflow.Type(b[typeOffset])
		c.sentByType[t]++
		if t == openflow.TypeBundleAdd {
			t = openflow.Type(b[inBundle+typeOffset])
		}
		if t == openflow.TypeFlowMod {
			c.c.FlowModsSent++
		}
		b = b[binary.BigEndian.Uint16(b[2:]):]
	}
}

func (c *counters) received(t openflow.Type) { c.recvByType[t]++ }

func (c *counters) snapshot() Counters {
	out := c.c
	out.Sent, out.Received = byType(&c.sentByType), byType(&c.recvByType)
	return out
}

func byType(n *[256]uint64) map[openflow.Type]uint64 {
	m := make(map[openflow.Type]uint64)
	for t, n := range n {
		if n > 0 {
			m[openflow.Type(t)] = n
		}
	}
	return m
}

// countUnknown counts n replies that nobody waited for.
func (s *Session) countUnknown(n int) {
	s.mu.Lock()
	s.counters.c.UnknownReplies += uint64(n)
	s.mu.Unlock()
}
