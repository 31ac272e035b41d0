package health

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"runtime"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// newNetns makes a network namespace that lives until the test ends, runs open
// in it, and returns its path.
func newNetns(t *testing.T, open func() error) string {
	t.Helper()
	ready, end, ended := make(chan error), make(chan struct{}), make(chan struct{})
	var path string
	go func() {
		defer close(ended)
		runtime.LockOSThread() // for good: the thread, and the namespace, end with the goroutine
		path = fmt.Sprintf("/proc/self/task/%d/ns/net", unix.Gettid())
		err := unix.Unshare(unix.CLONE_NEWNET)
		if err == nil {
			err = errors.Join(setUp("lo"), open())
		}
		ready <- err
		<-end
	}()
	t.Cleanup(func() { close(end); <-ended })
	err := <-ready
	if errors.Is(err, unix.EPERM) {
		t.Skip("a network namespace needs privilege: ", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	return path
}

func setUp(device string) error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	request, err := unix.NewIfreq(device)
	if err != nil {
		return err
	}
	request.SetUint16(unix.IFF_UP)
	return unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, request)
}

// TestNetns makes attempts on servers that are in another network namespace,
// from there and from here.
func TestNetns(t *testing.T) {
	var tcp, udp netip.AddrPort
	var own string
	netns := newNetns(t, func() (err error) {
		tcp = serve(t, func(c net.Conn) { readRequest(c); io.WriteString(c, "HTTP/1.1 200 OK\r\n\r\n") })
		udp = serveUDP(t, func(question []byte) []byte { return question })
		own, err = os.Readlink("/proc/thread-self/ns/net")
		return err
	})
	home, err := os.Readlink("/proc/thread-self/ns/net")
	if err != nil {
		t.Fatal(err)
	}
	there := wayOf(&Dialer{Source4: netip.MustParseAddr("127.0.0.9"), Device: "lo", Netns: netns})
	gone := wayOf(&Dialer{Netns: "/run/netns/no-such"})
	exec := Check{Type: Exec, Command: script(t, "readlink /proc/self/ns/net")}
	for _, tc := range []struct {
		name    string
		check   Check
		address netip.AddrPort
		code    Code
		detail  string
		here    Code // of the same attempt from this namespace
		local   string
	}{
		{"tcp", Check{Type: TCP}, tcp, L4OK, "connected", L4CON, "refused"},
		{"http", Check{Type: HTTP}, tcp, L7OK, "200", L4CON, "refused"},
		{"udp", Check{Type: UDP, Send: "x", Expect: "x"}, udp, L7OK, "expected answer", L4CON, "refused"},
		{"icmp", Check{Type: ICMP}, netip.MustParseAddrPort("127.0.0.1:1"), L4OK, "echo reply", L4OK, "echo reply"},
		{"exec", exec, tcp, PROCOK, own, PROCOK, home},
	} {
		t.Run(tc.name, func(t *testing.T) {
			tc.check.Interval, tc.check.Timeout = 5*time.Second, 5*time.Second
			wantReport(t, attemptBy(t, there, tc.check, tc.address), tc.code, tc.detail)
			wantReport(t, attempt(t, tc.check, tc.address), tc.here, tc.local)
			wantReport(t, attemptBy(t, gone, tc.check, tc.address), SOCKERR, "network namespace /run/netns/no-such: no such file")
		})
	}
}
