// Package docs_test keeps the guides true: what they quote is compared with
// what it is quoted from.
package docs_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"brlb/controller/config"
	"brlb/controller/pipeline"
	"brlb/controller/state"
	"brlb/openflow"
)

var update = flag.Bool("update", false, "write what is generated anew")

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestReadmeQuotesTheExample(t *testing.T) {
	if !strings.Contains(read(t, "../README.md"), "```yaml\n"+config.Example()+"```\n") {
		t.Error("the configuration in README.md is not controller/config/example.yaml: copy that file there")
	}
}

// Every link to a file leads to one.
func TestLinks(t *testing.T) {
	link := regexp.MustCompile(`\]\(([^)#:]+)(#[^)]*)?\)`)
	guides := []string{"../README.md"}
	for _, pattern := range []string{"*.md", "adr/*.md"} {
		found, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		guides = append(guides, found...)
	}
	for _, guide := range guides {
		for _, match := range link.FindAllStringSubmatch(read(t, guide), -1) {
			if _, err := os.Stat(filepath.Join(filepath.Dir(guide), match[1])); err != nil {
				t.Errorf("%s: %v", guide, err)
			}
		}
	}
}

// shown is the configuration whose flows pipeline.md shows.
const shown = `
mac: 02:00:5e:00:01:02
gateways: [10.30.0.1/24]
pools:
  web:
    id: 1
    members: {be1: 10.30.0.11:8080, be2: 10.30.0.12:8080}
services:
  web: {address: 10.20.0.100, ports: [80/tcp], pool: web}
`

// shownSlots is how many slots of the table pipeline.md shows.
const shownSlots = 3

const (
	generatedBegin = "<!-- generated: go test ./docs -update -->\n```\n"
	generatedEnd   = "```\n<!-- end -->"
)

func TestPipelineShowsTheFlows(t *testing.T) {
	const guide = "pipeline.md"
	text := read(t, guide)
	before, rest, begun := strings.Cut(text, generatedBegin)
	have, after, ended := strings.Cut(rest, generatedEnd)
	if !begun || !ended {
		t.Fatalf("%s has no place for what is generated, between %q and %q", guide, generatedBegin, generatedEnd)
	}
	want := explained(t)
	if have == want {
		return
	}
	if !*update {
		t.Fatalf("%s does not show the flows of today: go test ./docs -update", guide)
	}
	if err := os.WriteFile(guide, []byte(before+generatedBegin+want+generatedEnd+after), 0o644); err != nil {
		t.Fatal(err)
	}
}

// explained is what `brlb flows --explain` prints for the shown configuration,
// with a heading for each table and only some slots.
func explained(t *testing.T) string {
	t.Helper()
	snapshot := serving(t).Snapshot()
	flows, _, err := pipeline.NewRenderer().Render(snapshot)
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	said, table := "", -1
	for _, f := range flows.Flows() {
		if int(f.Table) != table {
			table = int(f.Table)
			fmt.Fprintf(&b, "\n=== table %d ===\n", table)
		}
		if kind, _, slot := pipeline.CookieParts(f.Cookie); kind == pipeline.KindSlot && slot >= shownSlots {
			if slot == shownSlots {
				fmt.Fprintf(&b, "# ... and so on, one row a slot\n")
			}
			continue
		}
		if sentence := pipeline.Explain(snapshot, f); sentence != said {
			said = sentence
			fmt.Fprintf(&b, "# %s\n", said)
		}
		stats := openflow.FlowStats{Cookie: f.Cookie, Table: f.Table, Priority: f.Priority, Match: f.Match, Instructions: f.Instructions}
		fmt.Fprintln(&b, stats.String())
	}
	return strings.TrimPrefix(b.String(), "\n")
}

// serving is the state in which all members of the shown configuration are up.
func serving(t *testing.T) *state.State {
	t.Helper()
	cfg, err := config.Parse("shown.yaml", []byte(shown))
	if err != nil {
		t.Fatal(err)
	}
	now := time.Date(2024, 5, 1, 12, 0, 0, 0, time.UTC)
	s := state.New(cfg, now)
	if err := s.LoadNumbers(""); err != nil {
		t.Fatal(err)
	}
	s.SetPorts([]state.Port{{Number: 1, Name: "p1", Live: true}, {Number: 2, Name: "p2", Live: true}}, now)
	for i, addr := range s.NextHops() {
		s.SetNextHop(addr, state.NextHop{MAC: openflow.MAC{2, 0, 0, 0, 1, byte(i + 1)}, Port: 2, Source: "arp"}, now)
	}
	for _, id := range s.Probes() {
		s.SetVerdict(id, state.Verdict{Health: state.Up, Since: now, Code: "L4OK"}, now)
	}
	return s
}
