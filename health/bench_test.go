package health

import (
	"context"
	"io"
	"math/rand/v2"
	"os"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// BenchmarkProber watches 10,000 targets at an interval of one second for ten
// seconds and reports what that costs: processor cores of this process,
// resident memory, lateness of attempts, and false transitions.
func BenchmarkProber(b *testing.B) {
	for _, kind := range []Type{TCP, HTTP} {
		b.Run(string(kind), func(b *testing.B) {
			targets := loopbackTargets(10000, startServer(b), Check{Type: kind})
			for b.Loop() {
				measureProber(b, targets, 10*time.Second)
			}
		})
	}
}

func measureProber(b *testing.B, targets []Target, length time.Duration) {
	var mu sync.Mutex
	var late []time.Duration
	codes := make(map[Code]int)
	p := New(Options{OnResult: func(_ Target, r Result) {
		mu.Lock()
		defer mu.Unlock()
		late = append(late, r.Late)
		codes[r.Code]++
	}})
	ctx, cancel := context.WithCancel(b.Context())
	done := make(chan struct{})
	go func() { defer close(done); p.Run(ctx) }()
	defer func() { cancel(); <-done }()
	if err := p.Set(targets); err != nil {
		b.Fatal(err)
	}
	for range targets {
		<-p.Transitions() // the cold start
	}
	debug.FreeOSMemory()
	mu.Lock()
	late = late[:0]
	clear(codes)
	mu.Unlock()

	var before, after syscall.Rusage
	syscall.Getrusage(syscall.RUSAGE_SELF, &before)
	transitions := 0
	for end := time.After(length); ; {
		select {
		case <-p.Transitions():
			transitions++
			continue
		case <-end:
		}
		break
	}
	syscall.Getrusage(syscall.RUSAGE_SELF, &after)
	mu.Lock()
	defer mu.Unlock()
	slices.Sort(late)
	b.ReportMetric(float64(cpuTime(after)-cpuTime(before))/float64(length), "cores")
	b.ReportMetric(float64(residentBytes())/(1<<20), "MiB")
	b.ReportMetric(float64(len(late))/length.Seconds(), "probes/s")
	b.ReportMetric(float64(late[len(late)/2].Microseconds())/1000, "late-p50-ms")
	b.ReportMetric(float64(late[len(late)*99/100].Microseconds())/1000, "late-p99-ms")
	b.ReportMetric(float64(len(late)-codes[L4OK]-codes[L7OK]), "not-ok")
	b.ReportMetric(float64(transitions), "transitions")
	b.Logf("results by code: %v", codes)
}

func cpuTime(r syscall.Rusage) time.Duration {
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}

func residentBytes() int {
	statm, _ := os.ReadFile("/proc/self/statm")
	fields := strings.Fields(string(statm))
	if len(fields) < 2 {
		return 0
	}
	pages, _ := strconv.Atoi(fields[1])
	return pages * os.Getpagesize()
}

// BenchmarkStoppedProber stops a prober of 1,000 targets at random, for up to a
// second at a time, and reports the transitions that it saw. There should be
// none: the servers are fine.
func BenchmarkStoppedProber(b *testing.B) {
	port := startServer(b)
	for b.Loop() {
		prober := startRole(b, proberRole, strconv.Itoa(int(port)))
		prober.readLine(b) // the cold start is over
		for end := time.Now().Add(15 * time.Second); time.Now().Before(end); {
			time.Sleep(rand.N(500 * time.Millisecond))
			prober.signal(b, syscall.SIGSTOP)
			time.Sleep(rand.N(time.Second))
			prober.signal(b, syscall.SIGCONT)
		}
		prober.end()
		said, err := io.ReadAll(prober.output)
		if err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(float64(strings.Count(string(said), "transition:")), "transitions")
		b.Logf("prober said:\n%s", said[max(0, len(said)-1000):])
	}
}
