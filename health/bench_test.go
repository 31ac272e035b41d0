package health

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"syscall"
	"testing"
	"time"
)

// BenchmarkProber watches 10,000 targets at an interval of one second for ten
// seconds and reports what that costs: processor cores and resident memory of
// the prober's process, lateness of attempts, and false transitions.
func BenchmarkProber(b *testing.B) {
	for _, kind := range []Type{TCP, HTTP} {
		b.Run(string(kind), func(b *testing.B) {
			server := startServer(b)
			for b.Loop() {
				prober := server.startProber(b, kind, 10000)
				time.Sleep(10 * time.Second)
				prober.finish(b)
			}
		})
	}
}

// BenchmarkStoppedProber stops a prober of 1,000 targets at random, for up to a
// second at a time, and reports the transitions that it saw. There should be
// none: the servers are fine.
func BenchmarkStoppedProber(b *testing.B) {
	server := startServer(b)
	for b.Loop() {
		prober := server.startProber(b, HTTP, 1000)
		for end := time.Now().Add(15 * time.Second); time.Now().Before(end); {
			time.Sleep(rand.N(500 * time.Millisecond))
			prober.signal(b, syscall.SIGSTOP)
			time.Sleep(rand.N(time.Second))
			prober.signal(b, syscall.SIGCONT)
		}
		prober.finish(b)
	}
}

// startProber starts a prober role and waits until all targets are up.
func (server *role) startProber(b *testing.B, kind Type, targets int) *role {
	b.Helper()
	prober := startRole(b, proberRole, server, server.port, string(kind), fmt.Sprint(targets))
	if line := prober.readLine(b); line != "up" {
		b.Fatalf("prober says %q", line)
	}
	return prober
}

// finish ends a prober role and reports what it measured.
func (r *role) finish(b *testing.B) {
	b.Helper()
	r.stdin.Close()
	for {
		line, err := r.output.ReadString('\n')
		if err != nil {
			return
		}
		var value float64
		var unit string
		if n, _ := fmt.Sscanf(line, "metric %g %s", &value, &unit); n == 2 {
			b.ReportMetric(value, unit)
		} else {
			b.Log(strings.TrimSpace(line))
		}
	}
}
