// Package openflow is the wire format of OpenFlow 1.4 with Open vSwitch's
// (Nicira) extensions: it turns octets into plain values and back, and both
// into the text that ovs-ofctl prints and reads. It does no I/O, starts no
// goroutine and reads no clock.
//
// # Messages
//
// A message is a pointer to a plain struct without a transaction id:
//
//	mod := openflow.NewFlowMod(openflow.FlowAdd)
//	mod.Table, mod.Priority = 11, 100
//	mod.Match = openflow.Match{openflow.Reg0.Exact(1), openflow.Reg1.Exact(5)}
//	mod.Instructions = openflow.Instructions{
//		openflow.ApplyActions{openflow.RegLoad{Dst: openflow.Reg2.Whole(), Value: 6}},
//		openflow.GotoTable(12),
//	}
//	b, err := openflow.Append(nil, xid, mod)
//	header, message, err := openflow.Parse(b)
//
// Append writes lengths and padding itself, and refuses what does not fit.
// Nothing on a value has to be kept consistent by the caller.
//
// # Unknown is a value
//
// A message, action, instruction, match field or property that this package
// does not know is kept as octets (RawMessage, RawAction, ...) and goes back
// out unchanged. Known elements with impossible lengths are a *ParseError that
// says where and what.
//
// # Aliasing
//
// Parse copies nothing that is a []byte: PacketIn.Data, Error.Data, Note, the
// Data of every Raw value and of experimenter messages alias the input. All
// else (strings, matches, action lists) is copied. Whoever reuses the buffer
// clones those slices first.
//
// # Names
//
// Types and fields carry the names of the OpenFlow Switch Specification 1.4.0
// (cited as OF1.4 with its section) and of ovs-actions(7) and ovs-fields(7).
package openflow
