package integration

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"text/tabwriter"

	"brlb/controller/api"
	"brlb/controller/pipeline"
	"brlb/controller/state"
	"brlb/integration/lab"
	"brlb/integration/stand"
	"brlb/openflow"
)

// The ways to bring a change to the switch are taken in turn, so that what else
// the machine does burdens all of them alike.

// result is one line of a table.
type result struct {
	what string
	rows int
	took times
}

// report prints a table, whose last column compares with the first line, and
// reports that line's figures.
func report(b *testing.B, title string, results []result) {
	b.Helper()
	fmt.Printf("\n\n%s, %d times\n", title, len(results[0].took))
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "rows\tp50 ms\tp99 ms\tratio\t")
	base := results[0].took.percentile(50)
	for _, r := range results {
		p50 := r.took.percentile(50)
		fmt.Fprintf(w, "%d\t%.2f\t%.2f\t%.1f\t %s\n", r.rows, p50, r.took.percentile(99), p50/base, r.what)
	}
	w.Flush()
	fmt.Println()
	b.ReportMetric(base, "p50-ms")
	b.ReportMetric(results[0].took.percentile(99), "p99-ms")
	b.ReportMetric(0, "ns/op")
}

// rivals are the other ways to send a change, to a bridge of their own: what
// they change there would be somebody else's doing on brlb's.
type rivals struct {
	lab               *lab.Lab
	raw               *rawConn
	wrote, bare, full times
}

const rivalBridge = "br-rival"

// send measures one change, sent in each way; undo takes it back.
func (r *rivals) send(b *testing.B, c change, undo func()) {
	r.wrote.measure(func() { r.raw.send(b, c.raw) })
	undo()
	r.bare.measure(func() { addFlows(b, r.lab, rivalBridge, c, "--no-names") })
	undo()
	r.full.measure(func() { addFlows(b, r.lab, rivalBridge, c) })
}

func (r *rivals) results(rows int) []result {
	return []result{
		{"the same octets, encoded before and written raw", rows, r.wrote},
		{"ovs-ofctl --no-names --bundle add-flows", rows, r.bare},
		{"ovs-ofctl --bundle add-flows", rows, r.full},
	}
}

// BenchmarkOneMemberOfFour takes one of four members out and in again.
func BenchmarkOneMemberOfFour(b *testing.B) {
	l := benchLab(b, rivalBridge)
	c := newConverger(b, l, l.Bridge(), manyPools(b, 1))
	setMeters(b, l, rivalBridge)
	r := &rivals{lab: l, raw: dialRaw(b, l, rivalBridge)}

	// What others send is what brlb sends.
	first, err := c.plan()
	if err != nil {
		b.Fatal(err)
	}
	r.raw.send(b, encodeBundle(b, first.Mods))
	c.converge(b)
	c.judge(state.Down)
	out, err := c.plan()
	if err != nil {
		b.Fatal(err)
	}
	c.converge(b)
	c.judge(state.Up)
	in, err := c.plan()
	if err != nil {
		b.Fatal(err)
	}
	c.converge(b)
	goes, comes := newChange(b, l, "out", out.Mods), newChange(b, l, "in", in.Mods)
	// A script that keeps no record of what it sent before sends all slots.
	table := newChange(b, l, "table", slices.DeleteFunc(slices.Clone(first.Mods), func(m openflow.Message) bool {
		return m.(*openflow.FlowMod).Table != pipeline.TableSlots
	}))

	var native, whole times
	for b.Loop() {
		for _, health := range []state.Health{state.Down, state.Up} {
			there, back := goes, comes
			if health == state.Up {
				there, back = comes, goes
			}
			native.measure(func() {
				c.judge(health)
				c.converge(b)
			})
			r.send(b, there, func() { r.raw.send(b, back.raw) })
			whole.measure(func() { addFlows(b, l, rivalBridge, table, "--no-names") })
		}
	}
	c.check(b)
	report(b, "one member of four goes or comes back: from the event to the switch's confirmation", slices.Concat(
		[]result{{"brlb", goes.rows, native}}, r.results(goes.rows),
		[]result{{"ovs-ofctl --no-names --bundle add-flows, all slots", table.rows, whole}}))
}

// BenchmarkFullTable fills an empty switch: at the start, when nothing is
// rendered yet, and when a switch that had everything comes back with nothing.
func BenchmarkFullTable(b *testing.B) {
	l := benchLab(b, rivalBridge)
	cfg := manyPools(b, 1)
	c := newConverger(b, l, l.Bridge(), cfg)
	setMeters(b, l, rivalBridge)
	r := &rivals{lab: l, raw: dialRaw(b, l, rivalBridge)}
	plan, err := c.plan()
	if err != nil {
		b.Fatal(err)
	}
	fill := newChange(b, l, "fill", plan.Mods)
	everything := []openflow.Message{openflow.NewFlowMod(openflow.FlowDelete)}
	clean := func() { r.raw.send(b, encodeBundle(b, everything)) }

	var first, again times
	for b.Loop() {
		c.send(b, everything)
		c.forget(b, cfg)
		first.measure(func() { c.converge(b) })
		c.send(b, everything)
		c.installed = pipeline.Set{}
		again.measure(func() { c.converge(b) })
		clean()
		r.send(b, fill, clean)
	}
	c.check(b)
	report(b, "a pool of 1,024 slots onto an empty switch: from the facts to the switch's confirmation", append([]result{
		{"brlb, at its start", fill.rows, first},
		{"brlb, after the switch has lost everything", fill.rows, again},
	}, r.results(fill.rows)...))
}

// BenchmarkOnePoolOfMany changes one member in one of many pools: that costs
// what its rows cost.
func BenchmarkOnePoolOfMany(b *testing.B) {
	sizes := []int{1, 20, 200}
	bridges := make([]string, len(sizes))
	for i, n := range sizes {
		bridges[i] = fmt.Sprintf("br-%d", n)
	}
	l := benchLab(b, bridges...)
	convergers := make([]*converger, len(sizes))
	results := make([]result, len(sizes))
	for i, n := range sizes {
		convergers[i] = newConverger(b, l, bridges[i], manyPools(b, n))
		rows := convergers[i].converge(b)
		results[i].what = fmt.Sprintf("of %d pools, %d rows on the switch", n, rows)
	}
	for b.Loop() {
		for _, health := range []state.Health{state.Down, state.Up} {
			for i, c := range convergers {
				results[i].took.measure(func() {
					c.judge(health)
					results[i].rows = c.converge(b)
				})
			}
		}
	}
	for _, c := range convergers {
		c.check(b)
	}
	report(b, "one member of four in one pool of 1,024 slots: from the event to the switch's confirmation", results)
}

// BenchmarkDrainAndEnable is what an operator waits for: brlb drain and enable,
// over HTTP, with the decision stored in OVSDB, the table confirmed and the
// datapath's cache brought up to date.
func BenchmarkDrainAndEnable(b *testing.B) {
	s := start(b, stand.Options{Config: func(text string) string {
		return strings.ReplaceAll(text, "relay.sock", "brlb.sock") // nobody in between
	}})
	before := metrics(b, s)
	var took times
	for b.Loop() {
		for _, operation := range []string{"drain", "enable"} {
			took.measure(func() {
				change, err := s.API.Change(b.Context(), operation, api.ChangeRequest{Member: "be1", WaitSeconds: patience.Seconds()})
				must(b, err)
				if !change.Confirmed {
					b.Fatalf("%s was not confirmed", operation)
				}
			})
		}
	}
	after := metrics(b, s)
	more := func(metric string) float64 { return after[metric] - before[metric] }
	report(b, "an operator drains or enables one member of four and waits for the datapath",
		[]result{{"brlb drain, brlb enable", int(more("brlb_flow_mods_total")) / len(took), took}})
	converged := func(le string) float64 {
		return more(fmt.Sprintf("brlb_convergence_duration_seconds_bucket{le=%q}", le))
	}
	fmt.Printf("of these brlb's own part, from the event to the switch's confirmation: %.1f %% within 2 ms, %.1f %% within 20 ms\n\n",
		100*converged("0.002")/converged("+Inf"), 100*converged("0.02")/converged("+Inf"))
}

// overSocket is a client of brlb's API socket.
func overSocket(s *stand.Stand) *http.Client {
	return &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", s.Socket())
	}}}
}

// metrics reads brlb's metrics, each under its name and labels.
func metrics(b testing.TB, s *stand.Stand) map[string]float64 {
	b.Helper()
	client := overSocket(s)
	defer client.CloseIdleConnections()
	response, err := client.Get("http://brlb/metrics")
	must(b, err)
	defer response.Body.Close()
	values := map[string]float64{}
	for lines := bufio.NewScanner(response.Body); lines.Scan(); {
		if space := strings.LastIndexByte(lines.Text(), ' '); space > 0 && lines.Text()[0] != '#' {
			values[lines.Text()[:space]], err = strconv.ParseFloat(lines.Text()[space+1:], 64)
			must(b, err)
		}
	}
	return values
}
