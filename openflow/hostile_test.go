package openflow

import (
	"bytes"
	"encoding/binary"
	"errors"
	"runtime"
	"strings"
	"testing"
)

// sampleMessages are encoded messages of all types.
func sampleMessages(t testing.TB) [][]byte {
	t.Helper()
	list := goldenMessages(t)
	for _, c := range messageCases() {
		b, err := Append(nil, 7, c.message)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, b)
	}
	return list
}

// checkParse parses anything; what it takes must encode to something that it
// takes again and that encodes to the same.
func checkParse(t *testing.T, b []byte) {
	t.Helper()
	h, m, err := Parse(b)
	if err != nil {
		var parseError *ParseError
		if !errors.As(err, &parseError) {
			t.Fatalf("Parse(%x): error of type %T", b, err)
		}
		if parseError.Offset < 0 || parseError.Offset > len(b) {
			t.Fatalf("Parse(%x): offset %d", b, parseError.Offset)
		}
		return
	}
	_ = messageText(m)
	again, err := Append(nil, h.Xid, m)
	if err != nil {
		var encodeError *EncodeError
		if !errors.As(err, &encodeError) {
			t.Fatalf("Append(%+v): %v", m, err)
		}
		return
	}
	_, second, err := Parse(again)
	if err != nil {
		t.Fatalf("%x was parsed to %+v, encoded as %x, and that: %v", b, m, again, err)
	}
	third, err := Append(nil, h.Xid, second)
	if err != nil || !bytes.Equal(third, again) {
		t.Fatalf("\n got %x\nwant %x\nerr %v\nfrom %x", third, again, err, b)
	}
}

// messageText makes the text of all parts that have one.
func messageText(m Message) string {
	switch m := m.(type) {
	case *FlowMod:
		return m.String()
	case *PacketIn:
		return m.Match.String()
	case *PacketOut:
		return actionsText(m.Actions)
	case *Error:
		return m.Error()
	case *BundleAdd:
		return messageText(m.Message)
	case *MultipartReply:
		if flows, ok := m.Body.(FlowStatsReply); ok {
			var s strings.Builder
			for i := range flows {
				s.WriteString(flows[i].String())
			}
			return s.String()
		}
	}
	return ""
}

// withLength copies b and puts its length into its header.
func withLength(b []byte) []byte {
	b = bytes.Clone(b)
	binary.BigEndian.PutUint16(b[2:], uint16(len(b)))
	return b
}

func TestParseCutMessages(t *testing.T) {
	for _, b := range sampleMessages(t) {
		for n := range b {
			if _, _, err := Parse(b[:n]); !errors.Is(err, ErrTruncated) {
				t.Errorf("Parse(%x): %v, want ErrTruncated", b[:n], err)
			}
			if n >= HeaderLen {
				checkParse(t, withLength(b[:n]))
			}
		}
	}
}

// TestParseBadLengths puts hostile numbers into every 16-bit place of every
// message, among them all the lengths.
func TestParseBadLengths(t *testing.T) {
	for _, sample := range sampleMessages(t) {
		if len(sample) > 2000 {
			continue
		}
		for at := HeaderLen; at+2 <= len(sample); at++ {
			for _, v := range []uint16{0, 1, 2, 3, 4, 5, 6, 7, 8, uint16(len(sample) - at), uint16(len(sample)), 0xfff8, 0xffff} {
				b := bytes.Clone(sample)
				binary.BigEndian.PutUint16(b[at:], v)
				checkParse(t, b)
			}
		}
	}
}

func TestParseHeaderErrors(t *testing.T) {
	for _, c := range []struct {
		b    []byte
		kind ParseErrorKind
	}{
		{nil, ErrTruncated},
		{[]byte{5, 0, 0, 8, 0, 0, 0}, ErrTruncated},
		{[]byte{5, 0, 0, 0, 0, 0, 0, 0}, ErrBadLength},
		{[]byte{5, 0, 0, 7, 0, 0, 0, 0}, ErrBadLength},
		{[]byte{5, 20, 0, 8, 0, 0, 0, 0, 0}, ErrBadLength},
		{[]byte{5, 20, 0, 9, 0, 0, 0, 0, 0}, ErrBadLength}, // a barrier request has no body
		{[]byte{5, 20, 0, 9, 0, 0, 0, 0}, ErrTruncated},
		{[]byte{4, 20, 0, 8, 0, 0, 0, 0}, ErrBadVersion},
		{[]byte{6, 2, 0, 8, 0, 0, 0, 0}, ErrBadVersion},
	} {
		h, m, err := Parse(c.b)
		if !errors.Is(err, c.kind) || m != nil {
			t.Errorf("Parse(%x): %v, %v; want %q", c.b, m, err, string(c.kind))
		}
		if len(c.b) >= HeaderLen && (h.Version != c.b[0] || h.Type != Type(c.b[1])) {
			t.Errorf("Parse(%x): header %+v", c.b, h)
		}
	}
	// Hello and error are read whatever their version.
	for _, b := range [][]byte{{6, 0, 0, 8, 0, 0, 0, 1}, {1, 1, 0, 12, 0, 0, 0, 1, 0, 1, 0, 0}} {
		if _, _, err := Parse(b); err != nil {
			t.Errorf("Parse(%x): %v", b, err)
		}
	}
}

func TestAppendRefuses(t *testing.T) {
	manyActions := make([]Action, 5000)
	for i := range manyActions {
		manyActions[i] = Output{Port: 1}
	}
	v4, v6 := IPv4Dst.Exact(0).IP(), IPv6Dst.Exact128(1, 2).IP()
	for _, m := range []Message{
		&EchoRequest{Data: make([]byte, 65528)},
		&PacketOut{Actions: manyActions},
		&FlowMod{Instructions: Instructions{ApplyActions(manyActions)}},
		&FlowMod{Instructions: Instructions{WriteActions(manyActions)}},
		&FlowMod{Instructions: Instructions{nil}},
		&FlowMod{Instructions: Instructions{ApplyActions{nil}}},
		&FlowMod{Instructions: Instructions{ApplyActions{Clone(manyActions)}}},
		&FlowMod{Match: Match{EthType.Exact(0x10000)}},
		&FlowMod{Match: Match{IPv4Dst.Addr(v6)}},
		&FlowMod{Match: Match{IPTTL.Masked(0x1ff, 0x1fe)}},
		&FlowMod{Match: Match{TunnelMetadata(1).Exact(5)}},
		&FlowMod{Match: TunnelMetadata(1).MaskedBytes([]byte{1}, nil)},
		&FlowMod{Match: RawOXM(0x7fff0000, make([]byte, 256))},
		&PacketOut{Actions: []Action{SetField{EthDst.Masked(0, 1)}}},
		&PacketOut{Actions: []Action{RegLoad{Dst: Reg0.Whole(), Value: 1 << 32}}},
		&PacketOut{Actions: []Action{RegLoad{Dst: XXReg0.Whole()}}},
		&PacketOut{Actions: []Action{RegLoad{}}},
		&PacketOut{Actions: []Action{RegMove{Src: Reg0.Whole(), Dst: Reg1.Range(0, 3)}}},
		&PacketOut{Actions: []Action{Multipath{}}},
		&PacketOut{Actions: []Action{Resubmit{Port: 0x10000}}},
		&PacketOut{Actions: []Action{SetTunnelOption{}}},
		&PacketOut{Actions: []Action{SetTunnelOption{Reg0.Exact(1)}}},
		&PacketOut{Actions: []Action{SetTunnelOption(append(TunnelMetadata(1).Bytes([]byte{1}), Reg0.Exact(1)))}},
		&PacketOut{Actions: []Action{SetTunnelOption(TunnelMetadata(1).Bytes(make([]byte, 256)))}},
		&PacketOut{Actions: []Action{RawAction{Type: 9, Data: make([]byte, 5)}}},
		&PacketOut{Actions: []Action{CheckPktLarger{Dst: Reg0.Whole()}}},
		&PacketOut{Actions: []Action{CT{Exec: []Action{NAT{MinAddr: v4, MaxAddr: v6}}}}},
		&PacketOut{Actions: []Action{CT{Exec: []Action{NAT{MaxPort: 5}}}}},
		&PacketOut{Actions: []Action{Learn{Specs: []LearnSpec{{}}}}},
		&PacketOut{Actions: []Action{LinkBundle{Members: make([]PortNo, 3000)}}},
		&BundleAdd{},
		&BundleAdd{Message: &BundleControl{}},
		&BundleAdd{Message: &EchoRequest{Data: make([]byte, 65525)}},
		&RequestForward{},
		&MultipartRequest{},
		&MultipartReply{},
		&MultipartReply{Body: Desc{SerialNumber: strings.Repeat("x", 33)}},
		&MultipartReply{Body: FlowMonitorReply{{Event: 9, Data: []byte{1}}}},
		&PortStatus{Port: Port{Name: "a name of 17 octets"}},
	} {
		b, err := Append([]byte("before"), 1, m)
		var encodeError *EncodeError
		if !errors.As(err, &encodeError) || string(b) != "before" {
			t.Errorf("Append(%T): %d octets, %v; want an EncodeError", m, len(b), err)
		}
	}
	// The greatest message that there is.
	b, err := Append(nil, 1, &EchoRequest{Data: make([]byte, 65527)})
	if err != nil || len(b) != MaxMessageLen {
		t.Errorf("Append: %d octets, %v", len(b), err)
	}
}

// TestAliasing checks what the package comment says: octets alias the input,
// all else does not.
func TestAliasing(t *testing.T) {
	flow := &FlowMod{
		Match:        append(RawOXM(0x7fff0000, []byte{0xaa}), TunnelMetadata(3).Bytes([]byte{0xaa, 0xaa})...),
		Instructions: Instructions{ApplyActions{Note(bytes.Repeat([]byte{0xaa}, 6)), RegLoad{Dst: Reg0.Whole(), Value: 0xaaaaaaaa}}},
	}
	parse := func(m Message) ([]byte, Message) {
		b, err := Append(nil, 1, m)
		if err != nil {
			t.Fatal(err)
		}
		_, parsed, err := Parse(b)
		if err != nil {
			t.Fatal(err)
		}
		for i := range b {
			if b[i] == 0xaa {
				b[i] = 0xbb
			}
		}
		return b, parsed
	}
	_, m := parse(flow)
	got := m.(*FlowMod)
	if got.Match[0] != flow.Match[0] || got.Match[1] != flow.Match[1] {
		t.Errorf("the match changed with the input: %v", got.Match)
	}
	actions := got.Instructions[0].(ApplyActions)
	if actions[1] != flow.Instructions[0].(ApplyActions)[1] {
		t.Errorf("the action changed with the input: %v", actions[1])
	}
	if actions[0].(Note)[0] != 0xbb {
		t.Errorf("the note does not alias the input: %v", actions[0])
	}
	data := bytes.Repeat([]byte{0xaa}, 4)
	for _, c := range []struct {
		message Message
		octets  func(Message) []byte
	}{
		{&EchoRequest{data}, func(m Message) []byte { return m.(*EchoRequest).Data }},
		{&EchoReply{data}, func(m Message) []byte { return m.(*EchoReply).Data }},
		{&Error{Data: data}, func(m Message) []byte { return m.(*Error).Data }},
		{&PacketIn{Data: data}, func(m Message) []byte { return m.(*PacketIn).Data }},
		{&PacketOut{Data: data}, func(m Message) []byte { return m.(*PacketOut).Data }},
		{&Experimenter{1, 2, data}, func(m Message) []byte { return m.(*Experimenter).Data }},
		{&RawMessage{99, data}, func(m Message) []byte { return m.(*RawMessage).Data }},
		{&PacketIn2{UserData: data}, func(m Message) []byte { return m.(*PacketIn2).UserData }},
		{&PacketOut{Actions: []Action{RawAction{99, data}}}, func(m Message) []byte { return m.(*PacketOut).Actions[0].(RawAction).Data }},
		{&MultipartReply{Body: RawMultipart{99, data}}, func(m Message) []byte { return m.(*MultipartReply).Body.(RawMultipart).Data }},
	} {
		if _, m := parse(c.message); len(c.octets(m)) != 4 || c.octets(m)[0] != 0xbb {
			t.Errorf("%T: %x does not alias the input", m, c.octets(m))
		}
	}
	// Appending to a slice of a message does not write into the input.
	b, m := parse(&PacketIn{Data: data})
	before := bytes.Clone(b)
	_ = append(m.(*PacketIn).Match, InPort.Exact(1))
	_ = append(m.(*PacketIn).Data, 1)
	if !bytes.Equal(b, before) {
		t.Error("appending wrote into the input")
	}
}

// TestFlowListsAreSeparate checks that appending to the list of one flow of a
// reply does not change the next flow.
func TestFlowListsAreSeparate(t *testing.T) {
	flow := FlowStats{Match: Match{Reg0.Exact(1)}, Instructions: Instructions{ApplyActions{Output{Port: 1}}, GotoTable(1)}}
	b, err := Append(nil, 1, &MultipartReply{Body: FlowStatsReply{flow, flow, flow}})
	if err != nil {
		t.Fatal(err)
	}
	_, m, err := Parse(b)
	if err != nil {
		t.Fatal(err)
	}
	flows := m.(*MultipartReply).Body.(FlowStatsReply)
	_ = append(flows[0].Match, Reg5.Exact(5))
	_ = append(flows[0].Instructions, Meter(5))
	_ = append(flows[0].Instructions[0].(ApplyActions), Exit{})
	if again, err := Append(nil, 1, m); err != nil || !bytes.Equal(again, b) {
		t.Errorf("\n got %x\nwant %x\nerr %v", again, b, err)
	}
}

// TestParseAllocationIsBounded parses the messages of which the most values
// come from the fewest octets.
func TestParseAllocationIsBounded(t *testing.T) {
	oxms := &FlowMod{}
	for range 10000 {
		oxms.Match = append(oxms.Match, RawOXM(0x7fff0000, nil)...)
	}
	nested := []Action{Exit{}}
	for range 2000 {
		nested = []Action{Clone(nested)}
	}
	for _, m := range []Message{
		oxms,
		&PacketOut{Actions: nested},
		&PacketOut{Actions: []Action{DecTTLCntIDs(make([]uint16, 20000))}},
		&MultipartReply{Body: FlowStatsReply(make([]FlowStats, 1000))},
		&MultipartReply{Body: FlowMonitorReply(make([]FlowUpdate, 1000))},
	} {
		b, err := Append(nil, 1, m)
		if err != nil {
			t.Fatal(err)
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, parsed, err := Parse(b)
		runtime.ReadMemStats(&after)
		if err != nil {
			t.Errorf("%T: %v", m, err)
		}
		_ = messageText(parsed)
		// 64 octets of a field come from 4 on the wire, and slices double as they grow.
		if grown := after.TotalAlloc - before.TotalAlloc; grown > 100*uint64(len(b)) {
			t.Errorf("%T: %d octets allocated for %d", m, grown, len(b))
		}
	}
}
