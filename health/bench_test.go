package health

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// serverVar makes the test binary a server in a process of its own, so that a
// benchmark can tell the prober's costs from the server's.
const serverVar = "BRLB_HEALTH_TEST_SERVER"

// runServerProcess listens on all addresses, prints its port, answers every
// request with 200, and ends with its standard input.
func runServerProcess() {
	l, err := net.Listen("tcp4", "0.0.0.0:0")
	if err != nil {
		panic(err)
	}
	os.Stdout.WriteString(strconv.Itoa(l.Addr().(*net.TCPAddr).Port) + "\n")
	go func() { io.Copy(io.Discard, os.Stdin); os.Exit(0) }()
	for {
		c, err := l.Accept()
		if err != nil {
			continue
		}
		go func() {
			defer c.Close()
			if readRequest(c) != "" {
				io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
			}
		}()
	}
}

// startServerProcess returns the port on which every address of 127.0.0.0/8
// is served.
func startServerProcess(tb testing.TB) uint16 {
	tb.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), serverVar+"=1")
	stdin, err := cmd.StdinPipe()
	if err != nil {
		tb.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		tb.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { stdin.Close(); cmd.Wait() })
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		tb.Fatal(err)
	}
	port, err := strconv.ParseUint(strings.TrimSpace(line), 10, 16)
	if err != nil {
		tb.Fatal(err)
	}
	return uint16(port)
}

// BenchmarkProber watches 10,000 targets at an interval of one second for ten
// seconds and reports what that costs: processor cores of this process,
// resident memory, lateness of attempts, and false transitions.
func BenchmarkProber(b *testing.B) {
	for _, kind := range []Type{TCP, HTTP} {
		b.Run(string(kind), func(b *testing.B) {
			port := startServerProcess(b)
			targets := make([]Target, 10000)
			for i := range targets {
				ip := netip.AddrFrom4([4]byte{127, 1 + byte(i>>16), byte(i >> 8), byte(i)})
				targets[i] = Target{netip.AddrPortFrom(ip, port), Check{Type: kind}.WithDefaults()}
			}
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
