package openflow

import (
	"encoding/binary"
	"fmt"
)

// Version is the version octet of OpenFlow 1.4 (OF1.4 section 7.1).
const Version = 5

// HeaderLen is the length of the header that every message begins with.
const HeaderLen = 8

// MaxMessageLen is the greatest length that a header can state.
const MaxMessageLen = 65535

// Type says what a message is (ofp_type, OF1.4 section 7.1).
type Type uint8

// The message types. 22 and 23, the queue configuration of 1.3, are not used.
const (
	TypeHello            Type = 0
	TypeError            Type = 1
	TypeEchoRequest      Type = 2
	TypeEchoReply        Type = 3
	TypeExperimenter     Type = 4
	TypeFeaturesRequest  Type = 5
	TypeFeaturesReply    Type = 6
	TypeGetConfigRequest Type = 7
	TypeGetConfigReply   Type = 8
	TypeSetConfig        Type = 9
	TypePacketIn         Type = 10
	TypeFlowRemoved      Type = 11
	TypePortStatus       Type = 12
	TypePacketOut        Type = 13
	TypeFlowMod          Type = 14
	TypeGroupMod         Type = 15
	TypePortMod          Type = 16
	TypeTableMod         Type = 17
	TypeMultipartRequest Type = 18
	TypeMultipartReply   Type = 19
	TypeBarrierRequest   Type = 20
	TypeBarrierReply     Type = 21
	TypeRoleRequest      Type = 24
	TypeRoleReply        Type = 25
	TypeGetAsyncRequest  Type = 26
	TypeGetAsyncReply    Type = 27
	TypeSetAsync         Type = 28
	TypeMeterMod         Type = 29
	TypeRoleStatus       Type = 30
	TypeTableStatus      Type = 31
	TypeRequestForward   Type = 32
	TypeBundleControl    Type = 33
	TypeBundleAdd        Type = 34
)

// String returns the specification's name, such as "OFPT_FLOW_MOD".
func (t Type) String() string {
	if int(t) < len(typeNames) && typeNames[t] != "" {
		return "OFPT_" + typeNames[t]
	}
	return fmt.Sprintf("OFPT(%d)", uint8(t))
}

var typeNames = [...]string{
	TypeHello: "HELLO", TypeError: "ERROR", TypeEchoRequest: "ECHO_REQUEST", TypeEchoReply: "ECHO_REPLY",
	TypeExperimenter: "EXPERIMENTER", TypeFeaturesRequest: "FEATURES_REQUEST", TypeFeaturesReply: "FEATURES_REPLY",
	TypeGetConfigRequest: "GET_CONFIG_REQUEST", TypeGetConfigReply: "GET_CONFIG_REPLY", TypeSetConfig: "SET_CONFIG",
	TypePacketIn: "PACKET_IN", TypeFlowRemoved: "FLOW_REMOVED", TypePortStatus: "PORT_STATUS", TypePacketOut: "PACKET_OUT",
	TypeFlowMod: "FLOW_MOD", TypeGroupMod: "GROUP_MOD", TypePortMod: "PORT_MOD", TypeTableMod: "TABLE_MOD",
	TypeMultipartRequest: "MULTIPART_REQUEST", TypeMultipartReply: "MULTIPART_REPLY",
	TypeBarrierRequest: "BARRIER_REQUEST", TypeBarrierReply: "BARRIER_REPLY",
	TypeRoleRequest: "ROLE_REQUEST", TypeRoleReply: "ROLE_REPLY", TypeGetAsyncRequest: "GET_ASYNC_REQUEST",
	TypeGetAsyncReply: "GET_ASYNC_REPLY", TypeSetAsync: "SET_ASYNC", TypeMeterMod: "METER_MOD",
	TypeRoleStatus: "ROLE_STATUS", TypeTableStatus: "TABLE_STATUS", TypeRequestForward: "REQUESTFORWARD",
	TypeBundleControl: "BUNDLE_CONTROL", TypeBundleAdd: "BUNDLE_ADD_MESSAGE",
}

// Header begins every message (OF1.4 section 7.1.1).
type Header struct {
	Version uint8
	Type    Type
	Length  uint16 // of the whole message, header included, in octets
	Xid     uint32 // pairs a reply with its request
}

// ParseHeader reads the first HeaderLen octets of b. A Length below HeaderLen
// is an error: no stream can be split after it.
func ParseHeader(b []byte) (Header, error) {
	if len(b) < HeaderLen {
		return Header{}, &ParseError{Kind: ErrTruncated, Offset: len(b), What: "message header"}
	}
	h := Header{
		Version: b[0],
		Type:    Type(b[1]),
		Length:  binary.BigEndian.Uint16(b[2:]),
		Xid:     binary.BigEndian.Uint32(b[4:]),
	}
	if h.Length < HeaderLen {
		return h, &ParseError{Kind: ErrBadLength, Offset: 2, What: fmt.Sprintf("message header: length %d is below %d", h.Length, HeaderLen)}
	}
	return h, nil
}

// Message is one OpenFlow message, without version, length and transaction id.
// The implementations are pointers to the structs of this package.
type Message interface {
	// Type is the type that goes into the header.
	Type() Type
	// appendBody appends what follows the header.
	appendBody(b []byte) ([]byte, error)
}

// Append appends the whole message m with transaction id xid to b. It
// allocates only if b has too little room. An error (a value that its field
// cannot hold, a message over MaxMessageLen) returns b as it was.
func Append(b []byte, xid uint32, m Message) ([]byte, error) {
	version := byte(Version)
	if hello, ok := m.(*Hello); ok && hello.Version != 0 {
		version = hello.Version
	}
	return appendMessage(b, version, xid, m)
}

func appendMessage(b []byte, version byte, xid uint32, m Message) ([]byte, error) {
	start := len(b)
	b = append(b, version, byte(m.Type()), 0, 0, byte(xid>>24), byte(xid>>16), byte(xid>>8), byte(xid))
	var err error
	switch m := m.(type) {
	case *FlowMod: // the message that is sent by the thousand: spared the indirect call
		b, err = m.appendBody(b)
	case *BundleAdd:
		b, err = m.appendWithXid(b, xid)
	default:
		b, err = m.appendBody(b)
	}
	if err == nil && len(b)-start > MaxMessageLen {
		err = &EncodeError{What: fmt.Sprintf("message of %d octets; a header can state %d at most", len(b)-start, MaxMessageLen)}
	}
	if err != nil {
		return b[:start], fmt.Errorf("encode %v: %w", m.Type(), err)
	}
	binary.BigEndian.PutUint16(b[start+2:], uint16(len(b)-start))
	return b, nil
}

// Parse reads b, which must be exactly one message. Slices within the message
// alias b (see the package comment). The header is returned even with an error
// if it could be read, so that the sender can be told which request was bad.
//
// A message of another version is an error (ErrBadVersion), except hello and
// error messages, which are read whatever their version: they are how two ends
// find out that they have none in common.
func Parse(b []byte) (Header, Message, error) {
	h, err := ParseHeader(b)
	if err != nil {
		return h, nil, err
	}
	if int(h.Length) != len(b) {
		kind := ErrTruncated
		if int(h.Length) < len(b) {
			kind = ErrBadLength
		}
		return h, nil, &ParseError{Kind: kind, Offset: 2, What: fmt.Sprintf("%v: header states %d octets, have %d", h.Type, h.Length, len(b))}
	}
	if h.Version != Version && h.Type != TypeHello && h.Type != TypeError {
		return h, nil, &ParseError{Kind: ErrBadVersion, Offset: 0, What: fmt.Sprintf("%v: version %d, want %d", h.Type, h.Version, Version)}
	}
	d := decoder{b: b, pos: HeaderLen, end: len(b)}
	m := parseBody(&d, h)
	if !d.bad && d.pos != d.end {
		d.failf(ErrBadLength, "%d octets after the end of the message", d.end-d.pos)
	}
	if fault := d.fault(); fault != nil {
		fault.What = h.Type.String() + ": " + fault.What
		return h, nil, fault
	}
	return h, m, nil
}

// parseBody reads the body of the message that h announces.
func parseBody(d *decoder, h Header) Message {
	switch h.Type {
	case TypeHello:
		return parseHello(d, h.Version)
	case TypeError:
		return parseError(d)
	case TypeEchoRequest:
		return &EchoRequest{Data: d.rest()}
	case TypeEchoReply:
		return &EchoReply{Data: d.rest()}
	case TypeExperimenter:
		return parseExperimenter(d)
	case TypeFeaturesRequest:
		return &FeaturesRequest{}
	case TypeFeaturesReply:
		return parseFeaturesReply(d)
	case TypeGetConfigRequest:
		return &GetConfigRequest{}
	case TypeGetConfigReply:
		return &GetConfigReply{SwitchConfig: parseSwitchConfig(d)}
	case TypeSetConfig:
		return &SetConfig{SwitchConfig: parseSwitchConfig(d)}
	case TypePacketIn:
		return parsePacketIn(d)
	case TypeFlowRemoved:
		return parseFlowRemoved(d)
	case TypePortStatus:
		return parsePortStatus(d)
	case TypePacketOut:
		return parsePacketOut(d)
	case TypeFlowMod:
		return parseFlowMod(d)
	case TypeGroupMod:
		return parseGroupMod(d)
	case TypePortMod:
		return parsePortMod(d)
	case TypeTableMod:
		return parseTableMod(d)
	case TypeMeterMod:
		return parseMeterMod(d)
	case TypeTableStatus:
		return parseTableStatus(d)
	case TypeRequestForward:
		return parseRequestForward(d)
	case TypeMultipartRequest:
		return parseMultipartRequest(d)
	case TypeMultipartReply:
		return parseMultipartReply(d)
	case TypeBarrierRequest:
		return &BarrierRequest{}
	case TypeBarrierReply:
		return &BarrierReply{}
	case TypeRoleRequest:
		return &RoleRequest{RoleBody: parseRoleBody(d)}
	case TypeRoleReply:
		return &RoleReply{RoleBody: parseRoleBody(d)}
	case TypeRoleStatus:
		return parseRoleStatus(d)
	case TypeGetAsyncRequest:
		return &GetAsyncRequest{Properties: parseAsync(d)}
	case TypeGetAsyncReply:
		return &GetAsyncReply{Properties: parseAsync(d)}
	case TypeSetAsync:
		return &SetAsync{Properties: parseAsync(d)}
	case TypeBundleControl:
		return parseBundleControl(d)
	case TypeBundleAdd:
		return parseBundleAdd(d, h)
	}
	return &RawMessage{RawType: h.Type, Data: d.rest()}
}

// RawMessage is a message of a type that this package does not know. Data is
// all that follows the header and aliases the parsed octets.
type RawMessage struct {
	RawType Type
	Data    []byte
}

// Type returns m.RawType.
func (m *RawMessage) Type() Type { return m.RawType }

func (m *RawMessage) appendBody(b []byte) ([]byte, error) { return append(b, m.Data...), nil }
