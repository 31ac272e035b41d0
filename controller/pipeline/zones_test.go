package pipeline

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"brlb/controller/state"
	"brlb/openflow"
)

// zoned has a pool with a conntrack zone of its own, 7.
const zoned = `
mac: 02:00:5e:00:01:02
zone: 5
gateways: [10.30.0.1/24]
pools:
  web: {id: 1, slots: 64, members: {be1: 10.30.0.11:8080}}
  dns: {id: 2, slots: 64, conntrack: {timeouts: {udp_single: 5s}}, members: {be2: 10.30.0.12:53}}
services:
  web: {address: 10.20.0.100, ports: [80/tcp], pool: web}
  dns: {address: 10.20.0.101, ports: [53/tcp], pool: dns}
`

// remembered is what a commit remembers.
var remembered = regexp.MustCompile(`exec\(move.*\[80\]\)`)

// changes lists the rows that one snapshot has and another has not.
func changes(t *testing.T, before, after *state.Snapshot) string {
	t.Helper()
	var b strings.Builder
	was, is := render(t, before).Flows(), render(t, after).Flows()
	missing := func(from, to []*openflow.FlowMod, sign string, s *state.Snapshot) {
		for _, f := range from {
			if !slices.ContainsFunc(to, func(g *openflow.FlowMod) bool { return f.String() == g.String() }) {
				fmt.Fprintf(&b, "# %s\n%s%s\n", Explain(s, f), sign, remembered.ReplaceAllString(strings.TrimPrefix(f.String(), "ADD"), "exec(...)"))
			}
		}
	}
	missing(was, is, "-", before)
	missing(is, was, "+", after)
	return b.String()
}

// What a pool's own zone changes: its own rows, those of its VIP, and those that
// do not know whose a packet is.
func TestOwnZoneRows(t *testing.T) {
	plain := strings.Replace(zoned, "conntrack: {timeouts: {udp_single: 5s}}, ", "", 1)
	golden(t, "testdata/zones.txt", changes(t, flushing(t, plain), flushing(t, zoned)))
}

// Where the switch sends packets on for which conntrack has no room, those of pools
// with a limit come back from it, and are dropped.
func TestLimitedRows(t *testing.T) {
	before, after := serving(t, zoned), serving(t, strings.Replace(zoned, "{timeouts: {udp_single: 5s}}", "{limit: 10}", 1))
	golden(t, "testdata/limited.txt", changes(t, before.Snapshot(), after.Snapshot()))
	for _, s := range []*state.State{before, after} {
		s.SetKernel(true) // a kernel's datapath drops them itself
	}
	if got := changes(t, before.Snapshot(), after.Snapshot()); got != "" {
		t.Errorf("for a kernel's datapath: %s", got)
	}
}

// Of two members that answer from the same address and port, the pools of which
// have different zones, one has rows of answers.
func TestRivalsAnswerOnce(t *testing.T) {
	s := serving(t, strings.Replace(zoned, "conntrack:", "from_ovsdb: true, conntrack:", 1))
	s.SetDeclared([]state.Declared{{Interface: "i", Pool: "dns", Address: addrPort("10.30.0.11:8080"), Weight: 1}}, start)
	var answers []string
	for _, f := range render(t, s.Snapshot()).Flows() {
		if row := f.String(); f.Table == TableClassify && strings.Contains(row, "nw_src=10.30.0.11,") {
			answers = append(answers, row)
		}
	}
	if len(answers) != 1 || !strings.Contains(answers[0], "zone=5,") {
		t.Errorf("%q", answers)
	}
}
