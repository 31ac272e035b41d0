package integration

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"text/tabwriter"
	"time"

	"brlb/controller/api"
	"brlb/controller/pipeline"
	"brlb/integration/stand"
	"brlb/openflow"
)

// scalePools is how many services BenchmarkScale has, each with a pool of 1,024
// slots.
const scalePools = 200

// stage is what BenchmarkScale measures, each time anew.
type stage struct {
	what   string
	rows   int // flow-mods to the switch
	took   times
	echo   time.Duration // longest that brlb took to answer the switch
	memory int           // of brlb, in kB, at most
}

// during measures what happens on the session meanwhile.
func (m *stage) during(b *testing.B, s *stand.Stand, f func() time.Duration) {
	b.Helper()
	s.Relay.ResetCounts()
	stop := s.Relay.Echo(20 * time.Millisecond)
	m.took = append(m.took, f())
	m.echo = max(m.echo, stop())
	m.rows = s.Relay.FlowMods()
	m.memory = max(m.memory, memory(b, s))
}

// BenchmarkScale has brlb, as it is run, fill a bridge with the rows of many pools,
// change one member of one of them, and start again with what the switch holds.
// Meanwhile it is asked for signs of life on the session that all this goes over.
func BenchmarkScale(b *testing.B) {
	s := build(b, stand.Options{Config: manyServices})
	fill := &stage{what: "first fill: from the process's start until all is confirmed"}
	bundle := &stage{what: "of that, the bundle"}
	change := &stage{what: "ten changes of one member of one pool: from event to confirmation, each"}
	restart := &stage{what: "after a crash: from the process's start until all is taken over"}
	const converged = "brlb_convergence_duration_seconds_sum"
	for b.Loop() {
		_, err := s.Lab.Ofctl("-OOpenFlow14", "del-flows", s.Lab.Bridge())
		must(b, err)
		fill.during(b, s, func() time.Duration { return startReady(b, s) })
		before := metrics(b, s)
		bundle.rows, bundle.took = fill.rows, append(bundle.took, inSeconds(before["brlb_bundle_duration_seconds_sum"]))
		change.during(b, s, func() time.Duration {
			const changes = 10
			for i := range changes {
				_, err := s.API.Change(b.Context(), []string{"drain", "enable"}[i%2], api.ChangeRequest{Member: "p0/m0", WaitSeconds: patience.Seconds()})
				must(b, err)
			}
			return inSeconds((metrics(b, s)[converged] - before[converged]) / changes)
		})
		must(b, s.Kill())
		restart.during(b, s, func() time.Duration { return startReady(b, s) })
		if sessions := metrics(b, s)["brlb_openflow_sessions_total"]; sessions != 1 {
			b.Errorf("%v sessions with the switch, want 1", sessions)
		}
		must(b, s.Stop())
	}
	fmt.Printf("\n\n%d services with pools of 1,024 slots and four members, %d times\n", scalePools, len(fill.took))
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "rows sent\tp50 ms\tmost ms\techo most ms\tmemory most MB\t")
	for _, m := range []*stage{fill, bundle, rawFill(b), change, restart} {
		fmt.Fprintf(w, "%d\t%.1f\t%.1f\t", m.rows, m.took.percentile(50), m.took.percentile(100))
		if m.memory > 0 {
			fmt.Fprintf(w, "%d\t%d\t %s\n", m.echo.Milliseconds(), m.memory>>10, m.what)
		} else {
			fmt.Fprintf(w, "\t\t %s\n", m.what)
		}
	}
	w.Flush()
	fmt.Println()
	b.ReportMetric(0, "ns/op")
}

func inSeconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// manyServices is the stand's configuration with many pools, of whose members
// nobody needs a probe.
func manyServices(text string) string {
	head, _, _ := strings.Cut(text, "checks:")
	var b strings.Builder
	b.WriteString(head + "checks:\n  link: {type: port}\npools:\n")
	for i := range scalePools {
		fmt.Fprintf(&b, "  p%d: {id: %d, check: link, members: {", i, i+1)
		for m := range 4 {
			fmt.Fprintf(&b, "m%d: 10.30.0.%d:%d, ", m, 11+m, 8000+i)
		}
		b.WriteString("}}\n")
	}
	b.WriteString("services:\n")
	for i := range scalePools {
		fmt.Fprintf(&b, "  s%d: {address: 10.20.1.%d, ports: [80/tcp], pool: p%d}\n", i, i, i)
	}
	return b.String()
}

// startReady starts brlb and returns how long it takes to be ready.
func startReady(b *testing.B, s *stand.Stand) time.Duration {
	b.Helper()
	client := overSocket(s)
	defer client.CloseIdleConnections()
	start := time.Now()
	must(b, s.Start())
	var readiness api.Readiness
	for time.Since(start) < patience {
		if response, err := client.Get("http://brlb/-/ready"); err == nil {
			err = json.NewDecoder(response.Body).Decode(&readiness)
			response.Body.Close()
			if err == nil && response.StatusCode == http.StatusOK {
				return time.Since(start)
			}
		}
		time.Sleep(5 * time.Millisecond)
	}
	b.Fatalf("not ready within %v: %v", patience, readiness.Missing)
	return 0
}

// memory is the most that brlb had since its start, in kB.
func memory(b *testing.B, s *stand.Stand) int {
	b.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.Process().Pid()))
	must(b, err)
	_, after, _ := strings.Cut(string(text), "VmHWM:")
	n, err := strconv.Atoi(strings.Fields(after)[0])
	must(b, err)
	return n
}

// rawFill is what the switch alone takes for the slots of so many pools.
func rawFill(b *testing.B) *stage {
	l := benchLab(b)
	c := newConverger(b, l, l.Bridge(), manyPools(b, scalePools))
	plan, err := c.plan()
	must(b, err)
	slots := slices.DeleteFunc(plan.Mods, func(m openflow.Message) bool { return m.(*openflow.FlowMod).Table != pipeline.TableSlots })
	octets := encodeBundle(b, slots)
	raw := dialRaw(b, l, l.Bridge())
	m := &stage{what: "the slots alone, encoded before and written raw", rows: len(slots)}
	m.took.measure(func() { raw.send(b, octets) })
	return m
}
