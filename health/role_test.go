package health

import (
	"bufio"
	"context"
	"fmt"
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

// A role makes the test binary a server or a prober in a process of its own, so
// that a benchmark can tell their costs apart and stop one of them. All roles
// of a benchmark live in a network namespace of their own, because ten thousand
// connections a second would fill the connection tracking table of the host.
// A role ends with its standard input.
const (
	roleVar    = "BRLB_HEALTH_TEST_ROLE"
	serverRole = "server"
	proberRole = "prober"
)

type role struct {
	cmd    *exec.Cmd
	stdin  io.Closer
	output *bufio.Reader
	port   string // of a server
}

// startRole starts the test binary in a role, to end with the benchmark at the
// latest. It lives in the network namespace of beside, or in a new one.
func startRole(b *testing.B, name string, beside *role, args ...string) *role {
	b.Helper()
	if os.Geteuid() != 0 {
		b.Skip("needs root, to make a network namespace")
	}
	// The server gets priority: what is measured is the prober.
	command := []string{"nice", "-n", "-15", "unshare", "--net", os.Args[0]}
	if beside != nil {
		command = []string{"nsenter", fmt.Sprintf("--net=/proc/%d/ns/net", beside.cmd.Process.Pid), os.Args[0]}
	}
	command = append(command, args...)
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Env = append(os.Environ(), roleVar+"="+name)
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		b.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { stdin.Close(); cmd.Wait() })
	return &role{cmd: cmd, stdin: stdin, output: bufio.NewReader(stdout)}
}

// startServer starts a server of every address of 127.0.0.0/8.
func startServer(b *testing.B) *role {
	b.Helper()
	r := startRole(b, serverRole, nil)
	r.port = r.readLine(b)
	return r
}

func (r *role) signal(b *testing.B, s syscall.Signal) {
	b.Helper()
	if err := r.cmd.Process.Signal(s); err != nil {
		b.Fatal(err)
	}
}

func (r *role) readLine(b *testing.B) string {
	b.Helper()
	line, err := r.output.ReadString('\n')
	if err != nil {
		b.Fatal(err)
	}
	return strings.TrimSpace(line)
}

// runServerRole brings up the loopback device of the new namespace, prints its
// port and answers every request with 200.
func runServerRole() {
	if out, err := exec.Command("ip", "link", "set", "lo", "up").CombinedOutput(); err != nil {
		panic(string(out))
	}
	l, err := net.Listen("tcp4", "0.0.0.0:0")
	if err != nil {
		panic(err)
	}
	fmt.Println(l.Addr().(*net.TCPAddr).Port)
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

// runProberRole watches targets of one kind: its arguments are the port, the
// kind and how many. It prints "up" after the cold start, then each transition,
// and at the end what it measured since.
func runProberRole() {
	port, err := strconv.ParseUint(os.Args[1], 10, 16)
	if err != nil {
		panic(err)
	}
	count, err := strconv.Atoi(os.Args[3])
	if err != nil {
		panic(err)
	}
	m := newMeasure()
	p := New(Options{OnResult: m.result})
	if err := p.Set(loopbackTargets(count, uint16(port), Check{Type: Type(os.Args[2])})); err != nil {
		panic(err)
	}
	go p.Run(context.Background())
	for range count {
		<-p.Transitions()
	}
	debug.FreeOSMemory()
	m.begin()
	fmt.Println("up")
	end := make(chan struct{})
	go func() { io.Copy(io.Discard, os.Stdin); close(end) }()
	for {
		select {
		case tr := <-p.Transitions():
			m.transitions++
			if m.transitions <= 10 {
				fmt.Println("transition:", tr.From, tr.To, tr.Result)
			}
		case <-end:
			m.print()
			os.Exit(0)
		}
	}
}

// loopbackTargets returns n targets with addresses of their own.
func loopbackTargets(n int, port uint16, c Check) []Target {
	targets := make([]Target, n)
	for i := range targets {
		ip := netip.AddrFrom4([4]byte{127, 1 + byte(i>>16), byte(i >> 8), byte(i)})
		targets[i] = Target{netip.AddrPortFrom(ip, port), c.WithDefaults()}
	}
	return targets
}

// measure is what a prober role measures.
type measure struct {
	transitions int

	mu    sync.Mutex
	start time.Time
	cpu   [2]time.Duration
	late  []time.Duration
	codes map[Code]int
}

func newMeasure() *measure { return &measure{codes: make(map[Code]int)} }

func (m *measure) result(_ Target, r Result) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.late = append(m.late, r.Late)
	m.codes[r.Code]++
}

func (m *measure) begin() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.start, m.cpu, m.late = time.Now(), cpuTime(), m.late[:0]
	clear(m.codes)
}

func (m *measure) print() {
	m.mu.Lock()
	defer m.mu.Unlock()
	took, used := time.Since(m.start), cpuTime()
	user, system := used[0]-m.cpu[0], used[1]-m.cpu[1]
	slices.Sort(m.late)
	ms := func(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
	fmt.Printf("metric %.3f cores\n", float64(user+system)/float64(took))
	fmt.Printf("metric %.3f kernel-cores\n", float64(system)/float64(took))
	fmt.Printf("metric %.1f MiB\n", float64(residentBytes())/(1<<20))
	fmt.Printf("metric %.0f probes/s\n", float64(len(m.late))/took.Seconds())
	fmt.Printf("metric %.2f late-p50-ms\n", ms(m.late[len(m.late)/2]))
	fmt.Printf("metric %.2f late-p99-ms\n", ms(m.late[len(m.late)*99/100]))
	fmt.Printf("metric %d transitions\n", m.transitions)
	fmt.Println("results by code:", m.codes)
}

// cpuTime is what this process used so far: itself, and the kernel for it. With
// servers on the same machine the kernel's part contains what it does for both
// ends of a connection.
func cpuTime() [2]time.Duration {
	var r syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &r); err != nil {
		panic(err)
	}
	return [2]time.Duration{time.Duration(r.Utime.Nano()), time.Duration(r.Stime.Nano())}
}

func residentBytes() int {
	statm, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		panic(err)
	}
	pages, err := strconv.Atoi(strings.Fields(string(statm))[1])
	if err != nil {
		panic(err)
	}
	return pages * os.Getpagesize()
}
