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
