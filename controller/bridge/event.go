package bridge

import (
	"net/netip"

	"brlb/controller/state"
	"brlb/openflow"
)

// Event is what a Bridge tells its owner; one of the types below. Events of
// one session come in order, between its Connected and its Disconnected.
type Event interface{ isEvent() }

// Connected says that a session stands and what the switch holds.
type Connected struct {
	Session     uint64 // number of the session, for Apply
	Description string // "Open vSwitch 3.1.0"
	DatapathID  uint64
	// KeepsReplyTuples says that, if the datapath is in userspace, conntrack
	// keeps the reply tuple of an entry that a SYN has ended: Open vSwitch 3.0
	// to 3.2.
	KeepsReplyTuples bool
	// TracksNoSCTP says that, if the datapath is in userspace, conntrack knows
	// nothing of SCTP's ports: Open vSwitch before 3.2.
	TracksNoSCTP bool
	// NoMeters says that the datapath has none: the kernel's before Linux 4.15.
	NoMeters bool
	Flows    []openflow.FlowStats // own flows
	Ports    []state.Port
	Watched  bool // foreign changes are told by the switch; otherwise brlb looks now and then
}

// Connecting says that a connection was made and the handshake begins.
type Connecting struct{ Peer string }

// Refused says that a peer was turned away.
type Refused struct{ Err error }

// Disconnected says that the session ended, and why.
type Disconnected struct{ Err error }

// PortsChanged says what ports the bridge has now.
type PortsChanged struct{ Ports []state.Port }

// FlowsRead says what own flows the switch holds after somebody else may have
// changed them.
type FlowsRead struct {
	Session uint64
	Flows   []openflow.FlowStats
}

// NextHopFound says where an address answered from.
type NextHopFound struct {
	Addr netip.Addr
	Hop  state.NextHop
}

func (Connected) isEvent()    {}
func (Connecting) isEvent()   {}
func (Refused) isEvent()      {}
func (Disconnected) isEvent() {}
func (PortsChanged) isEvent() {}
func (FlowsRead) isEvent()    {}
func (NextHopFound) isEvent() {}
