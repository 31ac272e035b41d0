// Package docs_test keeps the guides true: what they quote is compared with
// what it is quoted from.
package docs_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
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

// pipeline.md shows, between marks, what the code says of the pipeline.
func TestPipelineIsShown(t *testing.T) {
	const guide = "pipeline.md"
	have := read(t, guide)
	want := have
	legend := pipeline.NewLegend()
	for name, text := range map[string]string{
		"tables": tablesOf(legend), "registers": fieldsOf("register", legend.Registers), "conntrack": fieldsOf("field", legend.Conntrack),
		"cookie": fieldsOf("bits", legend.Cookie), "flows": "```\n" + explained(t) + "```\n",
	} {
		begin := "<!-- generated: " + name + " -->\n"
		before, rest, begun := strings.Cut(want, begin)
		_, after, ended := strings.Cut(rest, "<!-- end -->")
		if !begun || !ended {
			t.Fatalf("%s has no place for %s, between %q and an end", guide, name, begin)
		}
		want = before + begin + text + "<!-- end -->" + after
	}
	if have == want {
		return
	}
	if !*update {
		t.Fatalf("%s does not show the pipeline of today: go test ./docs -update", guide)
	}
	if err := os.WriteFile(guide, []byte(want), 0o644); err != nil {
		t.Fatal(err)
	}
}

func tablesOf(legend *pipeline.Legend) string {
	var b strings.Builder
	b.WriteString("| table | name | rows | what a miss means |\n|---|---|---|---|\n")
	for _, table := range legend.Tables {
		fmt.Fprintf(&b, "| %d | %s | %s | %s |\n", table.ID, table.Name, table.Rows, table.Miss)
	}
	return b.String()
}

// fieldsOf leaves the tables out where there are none.
func fieldsOf(title string, fields []pipeline.FieldLegend) string {
	var b strings.Builder
	fmt.Fprintf(&b, "| %s | holds |", title)
	tables := slices.ContainsFunc(fields, func(f pipeline.FieldLegend) bool { return f.Set != nil })
	if tables {
		b.WriteString(" set in | read in |\n|---|---|---|---|\n")
	} else {
		b.WriteString("\n|---|---|\n")
	}
	for _, f := range fields {
		fmt.Fprintf(&b, "| `%s` | %s |", f.Name, f.Holds)
		if tables {
			fmt.Fprintf(&b, " %s | %s |", f.SetIn(), f.ReadIn())
		}
		b.WriteByte('\n')
	}
	return b.String()
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
