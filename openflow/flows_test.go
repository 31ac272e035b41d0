package openflow

import (
	"os"
	"strings"
	"testing"
)

// flowCase is a flow of testdata/flows.txt, which has every field and action.
type flowCase struct {
	text string
	// ovs-ofctl prints it in a way that loses something.
	textDiffers bool
	// ovs-ofctl sends a mask that it was not given.
	wireDiffers bool
}

func flowTexts(t testing.TB) []flowCase {
	t.Helper()
	b, err := os.ReadFile("testdata/flows.txt")
	if err != nil {
		t.Fatal(err)
	}
	var cases []flowCase
	textDiffers, wireDiffers := false, false
	for line := range strings.Lines(string(b)) {
		line = strings.TrimSpace(line)
		if line != "" && line[0] != '#' {
			cases = append(cases, flowCase{line, textDiffers, wireDiffers})
		}
		wireDiffers = strings.HasPrefix(line, "# text and wire differ")
		textDiffers = wireDiffers || strings.HasPrefix(line, "# text differs")
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
		if parsed, err := ParseFlow(texts[i].text); err != nil {
			t.Errorf("ParseFlow(%q): %v", texts[i].text, err)
		} else if got, err := Append(nil, h.Xid, parsed); err != nil || string(got) != string(want) && !texts[i].wireDiffers {
			t.Errorf("ParseFlow(%q)\n got %x %v\nwant %x %v\nerr %v", texts[i].text, got, parsed, want, m, err)
		}
		_, wantText, _ := strings.Cut(strings.TrimSpace(printed[i]), "): ")
		if gotText := m.(*FlowMod).String(); gotText != wantText && !texts[i].textDiffers {
			t.Errorf("%s\n got %s\nwant %s\nwire %x", texts[i].text, gotText, wantText, want)
		}
	}
}
