package health

import (
	"net/netip"
	"syscall"
	"testing"
)

// TestDescriptorsExhausted leaves the process no file descriptor.
func TestDescriptorsExhausted(t *testing.T) {
	program := script(t, "exit 0")
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &syscall.Rlimit{Cur: 1, Max: limit.Max}); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
			t.Fatal(err)
		}
	}()
	address := netip.MustParseAddrPort("127.0.0.1:9")
	for _, c := range []Check{
		{Type: TCP}, {Type: HTTP}, {Type: HTTPS, TLS: TLSOptions{SkipVerify: true}}, {Type: GRPC}, {Type: ICMP},
		{Type: UDP, Send: "x"}, {Type: AgentLine}, {Type: Exec, Command: program},
	} {
		wantReport(t, attempt(t, c, address), SOCKERR, "local error")
	}
}
