package kernel

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"text/tabwriter"
	"time"

	"brlb/integration/guest"
	"brlb/integration/lab"
)

// How often each box and measure is run, and for how long by the guest's clock.
const (
	benchRounds  = 3
	benchSeconds = 1
	benchLimit   = 15 * time.Minute
)

// BenchmarkDatapath measures what a client gets through brlb and through others
// on the same kernel, in turn. The guest's clock counts instructions: ratios say
// how many of those a request takes.
func BenchmarkDatapath(b *testing.B) {
	dir := b.TempDir()
	files := map[string]string{"brlb": filepath.Join(dir, "brlb"), "bench.sh": "bench.sh"}
	build(b, "build", "-o", files["brlb"], "brlb/cmd/brlb")
	ctx, cancel := context.WithTimeout(b.Context(), benchLimit)
	defer cancel()
	m := meter{results: map[measure][]float64{}, log: os.Stderr}
	status, err := guest.Run(ctx, guest.Options{
		Files:   files,
		Script:  fmt.Sprintf("exec sh bench.sh %d %d\n", benchRounds, benchSeconds),
		Output:  &m,
		Counted: true,
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

// measure is what is measured.
type measure struct{ box, what string }

// meter reads the lines "result BOX MEASURE PER-SECOND" of the script's output.
// Everything goes to log as it comes.
type meter struct {
	results map[measure][]float64
	log     io.Writer

	line []byte // not whole yet
	err  error  // the first
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

func (m *meter) take(line string) error {
	fmt.Fprintln(m.log, line)
	fields := strings.Fields(line)
	if len(fields) == 0 || fields[0] != "result" {
		return nil
	}
	if len(fields) != 4 {
		return errors.New("a result has a box, a measure and a figure")
	}
	perSecond, err := strconv.ParseFloat(fields[3], 64)
	if err != nil {
		return err
	}
	key := measure{fields[1], fields[2]}
	m.results[key] = append(m.results[key], perSecond)
	return nil
}

// boxes are what is between client and servers, as bench.sh calls them.
var boxes = []string{"brlb", "brlb-port", "haproxy", "nft", "direct"}

// table shows medians, and in brackets how those of brlb, and of brlb with
// affinity port, compare with each.
func table(results map[measure][]float64) string {
	var out strings.Builder
	for _, what := range []string{"keep-alive", "connections"} {
		fmt.Fprintf(&out, "%s, requests a second, medians of %d\n", what, len(results[measure{"brlb", what}]))
		w := tabwriter.NewWriter(&out, 0, 0, 2, ' ', tabwriter.AlignRight)
		fmt.Fprintln(w, "\tbrlb's part\tbrlb-port's\t")
		for _, box := range boxes {
			its := median(results[measure{box, what}])
			fmt.Fprintf(w, "%.0f\t%.2f\t%.2f\t %s\n", its,
				median(results[measure{"brlb", what}])/its, median(results[measure{"brlb-port", what}])/its, box)
		}
		w.Flush()
	}
	return out.String()
}

// median returns NaN for no results.
func median(results []float64) float64 {
	sorted := slices.Sorted(slices.Values(results))
	n := len(sorted)
	if n == 0 {
		return math.NaN()
	}
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}

// A script's lines become a table, whatever pieces they come in; a line that
// makes no sense is an error.
func TestTable(t *testing.T) {
	m := meter{results: map[measure][]float64{}, log: io.Discard}
	for _, line := range []string{
		"brlb keep-alive 90", "brlb keep-alive 100", "brlb keep-alive 500", "brlb connections 10",
		"brlb-port keep-alive 50", "brlb-port connections 40",
		"haproxy keep-alive 50", "haproxy connections 20", "nft keep-alive 100", "nft connections 10",
		"direct keep-alive 200", "direct connections 40", "direct connections 60",
	} {
		for _, c := range "unasked\nresult " + line + "\n" {
			m.Write([]byte(string(c)))
		}
	}
	if m.err != nil {
		t.Fatal(m.err)
	}
	want := `keep-alive, requests a second, medians of 3
       brlb's part  brlb-port's
  100         1.00         0.50 brlb
   50         2.00         1.00 brlb-port
   50         2.00         1.00 haproxy
  100         1.00         0.50 nft
  200         0.50         0.25 direct
connections, requests a second, medians of 1
      brlb's part  brlb-port's
  10         1.00         4.00 brlb
  40         0.25         1.00 brlb-port
  20         0.50         2.00 haproxy
  10         1.00         4.00 nft
  50         0.20         0.80 direct
`
	if got := table(m.results); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	for _, bad := range []string{"result brlb keep-alive\n", "result brlb keep-alive x\n"} {
		m := meter{results: map[measure][]float64{}, log: io.Discard}
		m.Write([]byte(bad))
		if m.err == nil {
			t.Errorf("%q: no error", bad)
		}
	}
}
