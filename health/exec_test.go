package health

import (
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// script writes a shell script that only its owner may change. Its directory is
// owned and closed the same way.
func script(t *testing.T, text string) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "check.sh")
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+text+"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestExec(t *testing.T) {
	address := netip.MustParseAddrPort("192.0.2.7:8080")
	for _, tc := range []struct {
		name, text string
		code       Code
		detail     string
	}{
		{"passes", "exit 0", PROCOK, "exit 0"},
		{"arguments and environment", `echo "$# $1 $2 $CHECK_ADDRESS $CHECK_PORT $CHECK_TIMEOUT $HOME"`, PROCOK, `"2 192.0.2.7 8080 192.0.2.7 8080 5000"`},
		{"fails", "echo disk full >&2; echo more; exit 3", PROCERR, `exit 3: "disk full"`},
		{"cannot tell", "exit 75", SOCKERR, "not counted"},
		{"killed by somebody", "kill -9 $$", SOCKERR, "signal: killed"},
		{"endless output", "yes | head -c 10000000; exit 1", PROCERR, `exit 1: "y"`},
		{"leaves a child behind with its output", "sleep 5 & exit 0", PROCOK, "exit 0"},
		{"no interpreter", "", PROCOK, "exit 0"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			check := Check{Type: Exec, Interval: 5 * time.Second, Timeout: 5 * time.Second, Command: script(t, tc.text)}
			wantReport(t, attempt(t, check, address), tc.code, tc.detail)
		})
	}
}

// TestExecTimeoutKillsGroup starts a program that starts another and hangs.
func TestExecTimeoutKillsGroup(t *testing.T) {
	pidFile := filepath.Join(t.TempDir(), "pid")
	check := Check{Type: Exec, Timeout: 500 * time.Millisecond, Command: script(t, "sleep 60 & echo $! > "+pidFile+"; wait")}
	wantReport(t, attempt(t, check, netip.MustParseAddrPort("192.0.2.7:80")), PROCTOUT, "killed at the timeout")
	text, err := os.ReadFile(pidFile)
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(5 * time.Second); running(pid); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("child %d still runs", pid)
		}
	}
}

// running reports whether pid exists and is not a zombie.
func running(pid int) bool {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	return err == nil && !strings.Contains(string(stat), ") Z ") && syscall.Kill(pid, 0) == nil
}

func TestExecRefused(t *testing.T) {
	address := netip.MustParseAddrPort("192.0.2.7:80")
	path := script(t, "exit 0")
	target := Target{address, Check{Type: Exec, Command: path}.WithDefaults()}
	if err := New(Options{}).Set([]Target{target}); err == nil || !strings.Contains(err.Error(), "allow_exec") {
		t.Errorf("without AllowExec: %v", err)
	}
	p := New(Options{AllowExec: true})
	if err := p.Set([]Target{target}); err != nil {
		t.Errorf("with AllowExec: %v", err)
	}
	other := script(t, "exit 0")
	target.Check.Command = other
	for _, open := range []string{other, filepath.Dir(other)} {
		if err := os.Chmod(open, 0o777); err != nil {
			t.Fatal(err)
		}
		if err := p.Set([]Target{target}); err == nil || !strings.Contains(err.Error(), "may be changed by others") {
			t.Errorf("%s writable by all: %v", open, err)
		}
		if err := os.Chmod(open, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	target.Check.Command = "/nonexistent/check"
	if err := p.Set([]Target{target}); err == nil || !strings.Contains(err.Error(), "/nonexistent") {
		t.Errorf("missing program: %v", err)
	}
}

func TestAllowedTargets(t *testing.T) {
	p := New(Options{Allow: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("fd00::/8")}})
	for address, want := range map[string]bool{"10.1.2.3:80": true, "[fd00::1]:80": true, "[::ffff:10.1.2.3]:80": true, "11.0.0.1:80": false, "[fe80::1%eth0]:80": false} {
		err := p.Set([]Target{{netip.MustParseAddrPort(address), Check{}.WithDefaults()}})
		if (err == nil) != want {
			t.Errorf("%s: %v, want allowed %v", address, err, want)
		}
	}
}
