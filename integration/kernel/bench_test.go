package kernel

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"text/tabwriter"
	"time"

	"brlb/integration/guest"
	"brlb/integration/lab"
)

// What a benchmark runs: each box and measure so many times, for so long.
const (
	benchRounds  = 6
	benchSeconds = 1
	benchLimit   = 15 * time.Minute
)

// BenchmarkDatapath measures what a client gets through brlb and through others
// on the same kernel, in turn. The guest is emulated: only ratios mean anything.
func BenchmarkDatapath(b *testing.B) {
	dir := b.TempDir()
	files := map[string]string{"brlb": filepath.Join(dir, "brlb"), "bench.sh": "bench.sh"}
	build(b, "build", "-o", files["brlb"], "brlb/cmd/brlb")
	ctx, cancel := context.WithTimeout(b.Context(), benchLimit)
	defer cancel()
	var pid atomic.Int64
	m := meter{results: map[measure][]result{}, used: func() (time.Duration, error) { return cpuTime(pid.Load()) }}
	status, err := guest.Run(ctx, guest.Options{
		Files:   files,
		Script:  fmt.Sprintf("exec sh bench.sh %d %d\n", benchRounds, benchSeconds),
		Output:  &m,
		Started: func(p int) { pid.Store(int64(p)) },
	})
	if lab.Unavailable(err) {
		b.Skip(err)
	}
	if err == nil {
		err = m.err
	}
	fmt.Print("\n", table(m.results)) // also what there is when it failed
	if err != nil {
		b.Fatal(err)
	}
	if status != 0 {
		b.Fatalf("the script ended with status %d", status)
	}
	b.ReportMetric(0, "ns/op")
}

// cpuTime tells how much CPU time a process has used.
func cpuTime(pid int64) (time.Duration, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	// After the name, which is in brackets, come the state and ten more fields
	// before the ticks in user and kernel mode (proc(5)).
	_, rest, _ := strings.Cut(string(text), ") ")
	fields := strings.Fields(rest)
	if len(fields) < 13 {
		return 0, fmt.Errorf("/proc/%d/stat has %d fields", pid, len(fields))
	}
	const tick = 10 * time.Millisecond
	sum := time.Duration(0)
	for _, field := range fields[11:13] {
		ticks, err := strconv.ParseInt(field, 10, 64)
		if err != nil {
			return 0, fmt.Errorf("/proc/%d/stat: %w", pid, err)
		}
		sum += time.Duration(ticks) * tick
	}
	return sum, nil
}

// measure is what is measured.
type measure struct{ box, what string }

// result is one figure in two forms.
type result struct {
	perSecond float64 // as the client saw it
	perCPU    float64 // per second of CPU time that the whole guest used
}

// meter reads the output of the script, and how much CPU time the guest uses
// between a line "begin BOX MEASURE" and its "result BOX MEASURE REQUESTS
// PER-SECOND". Whatever else there is to see is shown as it comes.
type meter struct {
	used    func() (time.Duration, error)
	results map[measure][]result

	line  []byte // not whole yet
	began time.Duration
	err   error // the first
}

// Write takes output in pieces of any size; it never fails.
func (m *meter) Write(p []byte) (int, error) {
	for _, c := range p {
		if c != '\n' {
			m.line = append(m.line, c)
			continue
		}
		if err := m.take(string(m.line)); err != nil && m.err == nil {
			m.err = fmt.Errorf("line %q: %w", m.line, err)
		}
		m.line = m.line[:0]
	}
	return len(p), nil
}

func (m *meter) take(line string) (err error) {
	fields := strings.Fields(line)
	switch {
	case len(fields) > 0 && fields[0] == "begin":
		m.began, err = m.used()
		return err
	case len(fields) > 0 && fields[0] == "result":
	default:
		fmt.Fprintln(os.Stderr, line)
		return nil
	}
	now, err := m.used()
	if err != nil {
		return err
	}
	fmt.Fprintf(os.Stderr, "%s, on %.2f s of CPU\n", line, (now - m.began).Seconds())
	if len(fields) != 5 {
		return errors.New("a result has a box, a measure and two figures")
	}
	requests, err := strconv.ParseFloat(fields[3], 64)
	if err != nil {
		return err
	}
	perSecond, err := strconv.ParseFloat(fields[4], 64)
	if err != nil {
		return err
	}
	key := measure{fields[1], fields[2]}
	m.results[key] = append(m.results[key], result{perSecond, requests / (now - m.began).Seconds()})
	return nil
}

// table shows medians, and how brlb's compare with each.
func table(results map[measure][]result) string {
	var out strings.Builder
	for _, what := range []string{"keep-alive", "connections"} {
		ours := results[measure{"brlb", what}]
		fmt.Fprintf(&out, "%s, medians of %d; in brackets brlb's part of it\n", what, len(ours))
		w := tabwriter.NewWriter(&out, 0, 0, 2, ' ', tabwriter.AlignRight)
		fmt.Fprintln(w, "requests per second of CPU\t\trequests per second\t\t")
		for _, box := range []string{"brlb", "haproxy", "nft", "direct"} {
			for _, form := range []func(result) float64{
				func(r result) float64 { return r.perCPU }, func(r result) float64 { return r.perSecond },
			} {
				its := median(results[measure{box, what}], form)
				fmt.Fprintf(w, "%.0f\t(%.2f)\t", its, median(ours, form)/its)
			}
			fmt.Fprintf(w, " %s\n", box)
		}
		w.Flush()
	}
	return out.String()
}

// median returns NaN for no results.
func median(results []result, form func(result) float64) float64 {
	var sorted []float64
	for _, r := range results {
		sorted = append(sorted, form(r))
	}
	slices.Sort(sorted)
	n := len(sorted)
	if n == 0 {
		return math.NaN()
	}
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}

// A script's lines become a table, whatever pieces they come in; a line that
// makes no sense is an error.
func TestTable(t *testing.T) {
	clock := time.Duration(0)
	newMeter := func() *meter {
		return &meter{results: map[measure][]result{}, used: func() (time.Duration, error) {
			clock += 2 * time.Second
			return clock, nil
		}}
	}
	m := newMeter()
	for _, line := range []string{
		"brlb keep-alive 200 90", "brlb keep-alive 400 100", "brlb keep-alive 900 500", "brlb connections 20 10",
		"haproxy keep-alive 200 50", "haproxy connections 40 20", "nft keep-alive 400 100", "nft connections 20 10",
		"direct keep-alive 800 200", "direct connections 100 40", "direct connections 100 60",
	} {
		box, rest, _ := strings.Cut(line, " ")
		what, _, _ := strings.Cut(rest, " ")
		for _, c := range fmt.Sprintf("begin %s %s\nresult %s\n", box, what, line) {
			m.Write([]byte(string(c)))
		}
	}
	if m.err != nil {
		t.Fatal(m.err)
	}
	want := `keep-alive, medians of 3; in brackets brlb's part of it
  requests per second of CPU          requests per second        
                         200  (1.00)                  100  (1.00) brlb
                         100  (2.00)                   50  (2.00) haproxy
                         200  (1.00)                  100  (1.00) nft
                         400  (0.50)                  200  (0.50) direct
connections, medians of 1; in brackets brlb's part of it
  requests per second of CPU          requests per second        
                          10  (1.00)                   10  (1.00) brlb
                          20  (0.50)                   20  (0.50) haproxy
                          10  (1.00)                   10  (1.00) nft
                          50  (0.20)                   50  (0.20) direct
`
	if got := table(m.results); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	for _, bad := range []string{"result brlb keep-alive\n", "result brlb keep-alive x 1\n", "result brlb keep-alive 1 x\n"} {
		m := newMeter()
		m.Write([]byte(bad))
		if m.err == nil {
			t.Errorf("%q: no error", bad)
		}
	}
}
