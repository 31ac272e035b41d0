package maglev

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
)

var record = flag.Bool("record", false, "add the digests that testdata/digests.txt lacks")

// The output of a released layout never changes. testdata/digests.txt has one
// line for each layout version and input; -record adds lines for a new one and
// touches no other.
func TestDigestsOfReleasedLayouts(t *testing.T) {
	const path = "testdata/digests.txt"
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	recorded := make(map[string]string)
	for line := range strings.Lines(string(data)) {
		if fields := strings.Fields(line); len(fields) == 3 {
			recorded[fields[0]+" "+fields[1]] = fields[2]
		}
	}
	var added strings.Builder
	for _, name := range Names() {
		layout, err := ByName(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range digestCases() {
			var table Table
			if err := layout.Build(c.in, &table); err != nil {
				t.Fatal(err)
			}
			id := layout.Version() + " " + c.name
			switch want, known := recorded[id]; {
			case !known && *record:
				fmt.Fprintf(&added, "%s %s\n", id, table.Digest())
			case table.Digest() != want:
				t.Errorf("%s: digest %s, recorded %q", id, table.Digest(), want)
			}
		}
	}
	if added.Len() > 0 {
		if err := os.WriteFile(path, append(data, added.String()...), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

type digestCase struct {
	name string
	in   Input
}

func digestCases() []digestCase {
	var cases []digestCase
	add := func(name string, in Input) {
		if in.Pool == 0 {
			in.Pool = 1
		}
		cases = append(cases, digestCase{name, in})
	}
	v6 := []Member{{Key: "[2001:db8::1]:443", Weight: 2}, {Key: "[2001:db8::2]:443", Weight: 1}, {Key: "10.0.0.1:80", Weight: 3}}
	add("one", Input{Slots: 2, Members: testMembers(1, 1)})
	add("four", Input{Slots: 1024, Members: testMembers(4, 1)})
	add("four-pool-65535", Input{Pool: 65535, Slots: 1024, Members: testMembers(4, 1)})
	add("weighted", Input{Slots: 1024, Members: testMembers(9, 9)})
	add("v6", Input{Slots: 256, Members: v6})
	add("hundred", Input{Slots: 1024, Members: testMembers(100, 1)})
	add("hundred-weighted", Input{Slots: 2048, Members: testMembers(100, 100)})
	add("thousand", Input{Slots: 8192, Members: testMembers(1000, 7)})
	add("full", Input{Slots: 32, Members: testMembers(32, 3)})
	add("domains", Input{Slots: 512, Members: farm(3, 2, 2, 2)})
	away := testMembers(20, 4)
	in := Input{Slots: 1024, Anchor: away, Members: slices.Concat(away[2:9], away[11:], v6[:1])}
	add("away", in)
	in.Slack = 1
	add("away-slack", in)
	in.Pins = []Pin{{Slot: 0, Key: away[5].Key}, {Slot: 9, Key: away[5].Key}}
	add("away-slack-pins", in)
	previous := &Table{}
	if err := new(v1).Build(Input{Pool: 1, Slots: 512, Members: away}, previous); err == nil {
		add("previous", Input{Slots: 1024, Members: away[3:], Previous: previous})
	}
	return cases
}
