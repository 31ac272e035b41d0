package kernel

import (
	"bytes"
	"context"
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

// What a benchmark runs: each box and measure so many times, for so long.
const (
	benchRounds  = 5
	benchSeconds = 5
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
	var out bytes.Buffer
	status, err := guest.Run(ctx, guest.Options{
		Files:  files,
		Script: fmt.Sprintf("exec sh bench.sh %d %d\n", benchRounds, benchSeconds),
		Output: io.MultiWriter(&out, os.Stderr),
	})
	if lab.Unavailable(err) {
		b.Skip(err)
	}
	if err != nil {
		b.Fatal(err)
	}
	if status != 0 {
		b.Fatalf("the script ended with status %d", status)
	}
	results, err := parseResults(out.String())
	if err != nil {
		b.Fatal(err)
	}
	fmt.Print("\n", table(results))
	b.ReportMetric(0, "ns/op")
}

// measure is what was measured.
type measure struct{ box, what string }

// parseResults reads the lines "result BOX MEASURE PER-SECOND" of a script.
func parseResults(text string) (map[measure][]float64, error) {
	results := map[measure][]float64{}
	for line := range strings.Lines(text) {
		fields := strings.Fields(line)
		if len(fields) == 0 || fields[0] != "result" {
			continue
		}
		if len(fields) != 4 {
			return nil, fmt.Errorf("result without a figure: %q", line)
		}
		perSecond, err := strconv.ParseFloat(fields[3], 64)
		if err != nil {
			return nil, fmt.Errorf("result %q: %w", line, err)
		}
		key := measure{fields[1], fields[2]}
		results[key] = append(results[key], perSecond)
	}
	return results, nil
}

// table shows medians, and how brlb's compare with each.
func table(results map[measure][]float64) string {
	var out strings.Builder
	fmt.Fprintf(&out, "medians of %d; brlb's part of each in brackets\n", len(results[measure{"brlb", "connections"}]))
	w := tabwriter.NewWriter(&out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "keep-alive requests/s\t\tconnections/s\t\t")
	for _, box := range []string{"brlb", "haproxy", "nft", "direct"} {
		for _, what := range []string{"keep-alive", "connections"} {
			its := median(results[measure{box, what}])
			fmt.Fprintf(w, "%.0f\t(%.2f)\t", its, median(results[measure{"brlb", what}])/its)
		}
		fmt.Fprintf(w, " %s\n", box)
	}
	w.Flush()
	return out.String()
}

// median returns NaN for no values.
func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	n := len(sorted)
	if n == 0 {
		return math.NaN()
	}
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}

func TestTable(t *testing.T) {
	results, err := parseResults("other line\n" +
		"result brlb keep-alive 90\nresult brlb keep-alive 100\nresult brlb keep-alive 500\nresult brlb connections 10\n" +
		"result haproxy keep-alive 50\nresult haproxy connections 20\nresult nft keep-alive 100\nresult nft connections 10\n" +
		"result direct keep-alive 200\nresult direct connections 40\nresult direct connections 60\n")
	if err != nil {
		t.Fatal(err)
	}
	want := `medians of 1; brlb's part of each in brackets
  keep-alive requests/s          connections/s        
                    100  (1.00)             10  (1.00) brlb
                     50  (2.00)             20  (0.50) haproxy
                    100  (1.00)             10  (1.00) nft
                    200  (0.50)             50  (0.20) direct
`
	if got := table(results); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	for _, bad := range []string{"result brlb keep-alive\n", "result brlb keep-alive x\n"} {
		if _, err := parseResults(bad); err == nil {
			t.Errorf("%q: no error", bad)
		}
	}
}
