package openflow

import (
	"os"
	"strings"
	"testing"
)

// flowCase is a flow of testdata/flows.txt, which has every field and action.
type flowCase struct {
	text string
	// differs says that ovs-ofctl prints it in a way that loses something.
	differs bool
}

func flowTexts(t testing.TB) []flowCase {
	t.Helper()
	b, err := os.ReadFile("testdata/flows.txt")
	if err != nil {
		t.Fatal(err)
	}
	var cases []flowCase
	differs := false
	for line := range strings.Lines(string(b)) {
		line = strings.TrimSpace(line)
		if line != "" && line[0] != '#' {
			cases = append(cases, flowCase{line, differs})
		}
		differs = strings.HasPrefix(line, "# text differs")
	}
	return cases
}

func TestFlowsOfOfctl(t *testing.T) {
	needOfctl(t)
	texts := flowTexts(t)
	messages, stderr := captureOfctl(t, "add-flows", "SWITCH", "testdata/flows.txt")
	if len(messages) != len(texts) {
		t.Fatalf("ovs-ofctl sent %d messages for %d flows: %s", len(messages), len(texts), stderr)
	}
	printed := ofpParse(t, messages)
	for i, want := range messages {
		h, m, err := Parse(want)
		if err != nil {
			t.Errorf("%s\nParse(%x): %v", texts[i].text, want, err)
			continue
		}
		got, err := Append(nil, h.Xid, m)
		if err != nil || string(got) != string(want) {
			t.Errorf("%s\n got %x\nwant %x\nerr %v", texts[i].text, got, want, err)
		}
		_, wantText, _ := strings.Cut(strings.TrimSpace(printed[i]), "): ")
		if gotText := m.(*FlowMod).String(); gotText != wantText && !texts[i].differs {
			t.Errorf("%s\n got %s\nwant %s\nwire %x", texts[i].text, gotText, wantText, want)
		}
	}
}
