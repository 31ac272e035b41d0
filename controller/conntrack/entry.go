package conntrack

import (
	"bytes"
	"fmt"
	"net/netip"
	"strconv"
)

// Entry is one connection.
type Entry struct {
	Proto       uint8 // IP protocol
	Orig, Reply Tuple // in the direction of the first packet, and back
	Zone        uint16
	Mark        uint32
	// State of TCP, of the end that opened the connection and of the other. A
	// kernel knows one state only and says it for both.
	OrigState, ReplyState State
}

// Tuple is one direction of a connection.
type Tuple struct {
	Src, Dst         netip.Addr
	SrcPort, DstPort uint16 // 0 without ports
	// ICMP identity of echo requests and the like.
	ICMPID             uint16
	ICMPType, ICMPCode uint8
}

// State is a state of TCP in Open vSwitch's words, "" where there is none.
type State string

// The states that other parts of brlb tell apart.
const (
	Closed      State = "CLOSED"
	SynSent     State = "SYN_SENT"
	SynRecv     State = "SYN_RECV"
	Established State = "ESTABLISHED"
	CloseWait   State = "CLOSE_WAIT"
	FinWait1    State = "FIN_WAIT_1"
	Closing     State = "CLOSING"
	LastAck     State = "LAST_ACK"
	FinWait2    State = "FIN_WAIT_2"
	TimeWait    State = "TIME_WAIT"
)

// IP protocols by Open vSwitch's names (ct_dpif_format_ipproto).
const (
	ProtoICMP   = 1
	ProtoTCP    = 6
	ProtoUDP    = 17
	ProtoICMPv6 = 58
	ProtoSCTP   = 132
)

// Open says whether data may still pass. A TCP connection that both ends have
// closed, or that was reset, is kept for a while but open no longer.
func (e *Entry) Open() bool { return !e.OrigState.over() || !e.ReplyState.over() }

// over says whether this end has said that nothing more comes. CLOSING is a FIN
// that is not acknowledged, and what a kernel's table says after a reset.
func (s State) over() bool {
	switch s {
	case Closed, Closing, FinWait2, TimeWait:
		return true
	}
	return false
}

// Parse reads one line. Parts that it does not know it passes over; an entry
// without both directions is an error.
func Parse(line []byte) (Entry, error) {
	name, rest, _ := bytes.Cut(line, []byte(","))
	var e Entry
	var err error
	if e.Proto, err = parseProto(name); err != nil {
		return e, err
	}
	for len(rest) > 0 {
		var key, value []byte
		if key, value, rest, err = field(rest); err != nil {
			return e, err
		}
		switch string(key) {
		case "orig":
			err = e.Orig.parse(value)
		case "reply":
			err = e.Reply.parse(value)
		case "zone":
			e.Zone, err = number[uint16](value, 16)
		case "mark":
			e.Mark, err = number[uint32](value, 32)
		case "protoinfo":
			err = e.parseStates(value)
		}
		if err != nil {
			return e, fmt.Errorf("%s: %w", key, err)
		}
	}
	if !e.Orig.Src.IsValid() || !e.Orig.Dst.IsValid() || !e.Reply.Src.IsValid() || !e.Reply.Dst.IsValid() {
		return e, fmt.Errorf("%.60q names not all addresses", line)
	}
	return e, nil
}

// field cuts KEY=VALUE or KEY=(VALUE) off the front.
func field(text []byte) (key, value, rest []byte, err error) {
	key, rest, ok := bytes.Cut(text, []byte("="))
	if !ok {
		return nil, nil, nil, fmt.Errorf("%.60q is no KEY=VALUE", text)
	}
	if !bytes.HasPrefix(rest, []byte("(")) {
		value, rest, _ = bytes.Cut(rest, []byte(","))
		return key, value, rest, nil
	}
	value, rest, ok = bytes.Cut(rest[1:], []byte(")"))
	if !ok {
		return nil, nil, nil, fmt.Errorf("%.60q has no closing parenthesis", text)
	}
	return key, value, bytes.TrimPrefix(rest, []byte(",")), nil
}

func (t *Tuple) parse(text []byte) error {
	for len(text) > 0 {
		key, value, rest, err := field(text)
		if err != nil {
			return err
		}
		text = rest
		switch string(key) {
		case "src":
			err = parseAddr(value, &t.Src)
		case "dst":
			err = parseAddr(value, &t.Dst)
		case "sport":
			t.SrcPort, err = number[uint16](value, 16)
		case "dport":
			t.DstPort, err = number[uint16](value, 16)
		case "id":
			t.ICMPID, err = number[uint16](value, 16)
		case "type":
			t.ICMPType, err = number[uint8](value, 8)
		case "code":
			t.ICMPCode, err = number[uint8](value, 8)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func parseAddr(text []byte, dst *netip.Addr) error {
	addr, err := netip.ParseAddr(string(text))
	if err != nil {
		return err
	}
	if addr.Zone() != "" {
		return fmt.Errorf("address %.60q has a zone", text)
	}
	*dst = addr
	return nil
}

// parseStates reads the inside of protoinfo=(...): state_orig and state_reply
// with -m, state without.
func (e *Entry) parseStates(text []byte) error {
	for len(text) > 0 {
		key, value, rest, err := field(text)
		if err != nil {
			return err
		}
		text = rest
		switch string(key) {
		case "state":
			e.OrigState = parseState(value)
			e.ReplyState = e.OrigState
		case "state_orig":
			e.OrigState = parseState(value)
		case "state_reply":
			e.ReplyState = parseState(value)
		}
	}
	return nil
}

// parseState makes no new string of a state that is known.
func parseState(text []byte) State {
	for _, known := range [...]State{Established, TimeWait, FinWait2, SynSent, Closed, SynRecv, Closing, FinWait1, CloseWait, LastAck} {
		if string(text) == string(known) {
			return known
		}
	}
	return State(text)
}

func parseProto(name []byte) (uint8, error) {
	switch string(name) {
	case "tcp":
		return ProtoTCP, nil
	case "udp":
		return ProtoUDP, nil
	case "icmp":
		return ProtoICMP, nil
	case "icmpv6":
		return ProtoICMPv6, nil
	case "sctp":
		return ProtoSCTP, nil
	case "udplite":
		return 136, nil
	case "dccp":
		return 33, nil
	case "igmp":
		return 2, nil
	}
	n, err := number[uint8](name, 8)
	if err != nil {
		return 0, fmt.Errorf("%.60q does not begin with a protocol", name)
	}
	return n, nil
}

func number[T uint8 | uint16 | uint32](text []byte, bits int) (T, error) {
	n, err := strconv.ParseUint(string(text), 10, bits)
	if err != nil {
		return 0, fmt.Errorf("%.40q is not a number of %d bits", text, bits)
	}
	return T(n), nil
}
