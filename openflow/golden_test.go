package openflow

import (
	"encoding/hex"
	"encoding/json"
	"os"
	"strings"
	"testing"
)

// wireCase is what ovs-ofctl sent for a command line.
type wireCase struct {
	Cmd string
	Arg string
	Hex []string
}

func goldenCases(t testing.TB) []wireCase {
	t.Helper()
	b, err := os.ReadFile("testdata/ovs_wire.json")
	if err != nil {
		t.Fatal(err)
	}
	var cases []wireCase
	if err := json.Unmarshal(b, &cases); err != nil {
		t.Fatal(err)
	}
	return cases
}

// goldenMessages are the messages of all cases.
func goldenMessages(t testing.TB) [][]byte {
	t.Helper()
	var messages [][]byte
	for _, c := range goldenCases(t) {
		for _, text := range c.Hex {
			if i := strings.IndexByte(text, ' '); i >= 0 {
				text = text[i+1:] // the direction, in a dialogue
			}
			b, err := hex.DecodeString(text)
			if err != nil {
				t.Fatal(err)
			}
			messages = append(messages, b)
		}
	}
	return messages
}

func TestGoldenRoundTrip(t *testing.T) {
	for _, want := range goldenMessages(t) {
		h, m, err := Parse(want)
		if err != nil {
			t.Errorf("Parse(%x): %v", want, err)
			continue
		}
		got, err := Append(nil, h.Xid, m)
		if err != nil || string(got) != string(want) {
			t.Errorf("%v %v\n got %x\nwant %x\nerr %v", h.Type, m, got, want, err)
		}
	}
}

// TestGoldenText reads the texts that ovs-ofctl was given, and encodes what it sent.
func TestGoldenText(t *testing.T) {
	commands := map[string]string{
		"add-flow": "add", "mod-flows": "modify", "del-flows": "delete", "--strict mod-flows": "modify_strict", "--strict del-flows": "delete_strict",
	}
	tested := 0
	for _, c := range goldenCases(t) {
		word, ok := commands[c.Cmd]
		if !ok {
			continue
		}
		tested++
		m, err := ParseFlow(word + " " + c.Arg)
		if err != nil {
			t.Errorf("%s %s: %v", c.Cmd, c.Arg, err)
			continue
		}
		got, err := Append(nil, 2, m)
		if err != nil || hex.EncodeToString(got) != c.Hex[0] {
			t.Errorf("%s %s\n got %x\nwant %s\nerr %v", c.Cmd, c.Arg, got, c.Hex[0], err)
		}
	}
	if tested < 30 {
		t.Errorf("only %d cases", tested)
	}
}

// TestGoldenBundle checks the dialogue of a bundle, message by message.
func TestGoldenBundle(t *testing.T) {
	cases := goldenCases(t)
	dialogue := cases[len(cases)-1].Hex
	flow := func(text string) Message {
		m, err := ParseFlow(text)
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	const flags = BundleAtomic | BundleOrdered
	want := []struct {
		xid     uint32
		message Message
	}{
		{1, &Hello{Versions: HelloVersionBitmap(5)}},
		{0x879, &Hello{Version: 6, Versions: HelloVersionBitmap(1, 4, 5, 6)}},
		{5, &BundleControl{Kind: BundleOpenRequest, Flags: flags}},
		{5, &BundleControl{Kind: BundleOpenReply}},
		{2, &BundleAdd{Flags: flags, Message: flow("delete table=11")}},
		{3, &BundleAdd{Flags: flags, Message: flow("add table=11,priority=0,actions=drop")}},
		{4, &BundleAdd{Flags: flags, Message: flow("add table=11,priority=100,reg1=1,actions=set_field:2->reg2,goto_table:12")}},
		{6, &BarrierRequest{}},
		{6, &BarrierReply{}},
		{7, &BundleControl{Kind: BundleCommitRequest, Flags: flags}},
		{7, &BundleControl{Kind: BundleCommitReply}},
	}
	if len(dialogue) != len(want) {
		t.Fatalf("%d messages, want %d", len(dialogue), len(want))
	}
	for i, w := range want {
		got, err := Append(nil, w.xid, w.message)
		_, text, _ := strings.Cut(dialogue[i], " ")
		if err != nil || hex.EncodeToString(got) != text {
			t.Errorf("message %d\n got %x\nwant %s\nerr %v", i, got, text, err)
		}
	}
}
