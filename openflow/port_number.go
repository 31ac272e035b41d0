package openflow

import "strconv"

// PortNo is the number of a switch port, or one of the reserved numbers (OF1.4
// section 7.2.1). OpenFlow 1.4 has 32 bits for it; Open vSwitch's own actions
// have 16, into which this package converts as Open vSwitch does.
type PortNo uint32

// The reserved port numbers.
const (
	PortMax        PortNo = 0xffffff00 // the first number that is no port
	PortInPort     PortNo = 0xfffffff8 // back out where the packet came in
	PortTable      PortNo = 0xfffffff9 // packet-out only: through the flow tables
	PortNormal     PortNo = 0xfffffffa // as an ordinary learning switch does
	PortFlood      PortNo = 0xfffffffb // all ports but the ingress and blocked ones
	PortAll        PortNo = 0xfffffffc // all ports but the ingress one
	PortController PortNo = 0xfffffffd
	PortLocal      PortNo = 0xfffffffe // the bridge's own network device
	PortAny        PortNo = 0xffffffff // no port, or any, as the message says
)

var portNames = map[PortNo]string{
	PortInPort: "IN_PORT", PortTable: "TABLE", PortNormal: "NORMAL", PortFlood: "FLOOD", PortAll: "ALL",
	PortController: "CONTROLLER", PortLocal: "LOCAL", PortAny: "ANY",
}

// String returns the number, or ovs-ofctl's name of a reserved one.
func (p PortNo) String() string {
	if p >= PortInPort {
		return portNames[p]
	}
	return strconv.FormatUint(uint64(p), 10)
}

// port16Max is the first reserved number among 16-bit ports.
const port16Max = 0xff00

// uint16 is p as a port of 16 bits.
func (p PortNo) uint16() (uint16, error) {
	if p >= PortMax || p < port16Max {
		return uint16(p), nil
	}
	return 0, encodeErrorf("port %d in an action that has 16 bits for it", uint32(p))
}

// portFrom16 is the port with a number of 16 bits.
func portFrom16(p uint16) PortNo {
	if p >= port16Max {
		return PortMax | PortNo(p)
	}
	return PortNo(p)
}

// NoBuffer is the buffer id that says "the packet is not buffered". Open
// vSwitch buffers none.
const NoBuffer = 0xffffffff

// GroupAny is the group id that says "any" where a message selects by group.
const GroupAny = 0xffffffff

// GroupAll is the group id that says "all groups" in a GroupMod that deletes.
const GroupAll = 0xfffffffc

// TableAll is the table id that says "all tables" where a message selects.
const TableAll = 0xff
