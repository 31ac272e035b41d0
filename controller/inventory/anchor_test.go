package inventory

import (
	"reflect"
	"strings"
	"testing"

	"brlb/maglev"
)

func TestAnchors(t *testing.T) {
	anchor := []maglev.Member{{Key: "10.30.0.11:80", Weight: 1}, {Key: "10.30.0.12:80", Weight: 1<<31 - 1}, {Key: "[2001:db8::1]:80", Weight: 0}}
	text := anchorText(anchor)
	if want := `{"10.30.0.11:80":1,"10.30.0.12:80":2147483647,"[2001:db8::1]:80":0}`; text != want {
		t.Errorf("stored as %s, want %s", text, want)
	}
	found, problems := anchors(map[string]string{anchorPrefix + "web": text, "brlb-member-numbers": "next=1", anchorPrefix + "api": "{}"})
	if want := map[string][]maglev.Member{"web": anchor}; !reflect.DeepEqual(found, want) {
		t.Errorf("found %v, want %v", found, want)
	}
	if len(problems) != 1 || !strings.Contains(problems[0], `"brlb-anchor/api" is no anchor of brlb, ignored: no member has a weight above 0`) {
		t.Errorf("problems %q", problems)
	}
	for _, bad := range []string{"", "[]", "{", "null", `{"be1": 1}`, `{"10.30.0.11:080": 1}`, `{"10.30.0.11:80": 2147483648}`, `{"10.30.0.11:80": 4294967297}`, `{"10.30.0.11:80": -1}`, `{"10.30.0.11:80": "1"}`} {
		if members, err := parseAnchor(bad); err == nil {
			t.Errorf("%s: read as %v", bad, members)
		}
	}
}

func FuzzAnchor(f *testing.F) {
	f.Add(`{"10.30.0.11:80":1}`)
	f.Add(`{"10.30.0.11:80":0,"[2001:db8::1]:80":7}`)
	f.Fuzz(func(t *testing.T, text string) {
		members, err := parseAnchor(text)
		if err != nil {
			return
		}
		again, err := parseAnchor(anchorText(members))
		if err != nil || !reflect.DeepEqual(again, members) {
			t.Errorf("%s: %v, read again: %v, %v", text, members, again, err)
		}
	})
}
