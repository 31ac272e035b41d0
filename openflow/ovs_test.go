package openflow

import (
	"bytes"
	"errors"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// These helpers ask the real ovs-ofctl. Tests that need it are skipped where it
// is not installed.

func needOfctl(t testing.TB) {
	t.Helper()
	if _, err := exec.LookPath("ovs-ofctl"); err != nil {
		t.Skip("ovs-ofctl is not installed (Debian: openvswitch-common)")
	}
}

// ofctl runs ovs-ofctl and returns what it wrote.
func ofctl(t testing.TB, stdin string, args ...string) (stdout, stderr string) {
	t.Helper()
	cmd := exec.Command("ovs-ofctl", args...)
	cmd.Stdin = strings.NewReader(stdin)
	var out, errOut bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errOut
	if err := cmd.Run(); err != nil {
		var exit *exec.ExitError
		if !errors.As(err, &exit) {
			t.Fatal(err)
		}
	}
	return out.String(), errOut.String()
}

// ofpParse returns how ovs-ofctl prints each of the messages.
func ofpParse(t testing.TB, messages [][]byte) []string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "messages")
	if err := os.WriteFile(file, bytes.Join(messages, nil), 0o600); err != nil {
		t.Fatal(err)
	}
	out, stderr := ofctl(t, "", "--no-names", "ofp-parse", file)
	var texts []string
	nested := false // the next text is that of a message within a message
	for _, line := range strings.SplitAfter(out, "\n") {
		if nested && strings.HasPrefix(line, "OFPT_") {
			nested = false
		} else if strings.HasPrefix(line, "OFP") || strings.HasPrefix(line, "NX") || strings.HasPrefix(line, "ONF") || strings.HasPrefix(line, "***") {
			texts = append(texts, "")
			nested = strings.HasPrefix(line, "OFPT_BUNDLE_ADD_MESSAGE") && !strings.Contains(line, "***")
		}
		if len(texts) > 0 {
			texts[len(texts)-1] += line
		}
	}
	if len(texts) != len(messages) {
		t.Fatalf("ovs-ofctl printed %d texts for %d messages: %s%s", len(texts), len(messages), out, stderr)
	}
	return texts
}

// captureOfctl runs ovs-ofctl with args, in which SWITCH stands for the address
// of a switch that takes everything, and returns the messages that came after
// the hello.
func captureOfctl(t testing.TB, args ...string) (messages [][]byte, stderr string) {
	t.Helper()
	dir, err := os.MkdirTemp("", "of") // a short name: unix sockets have few octets for it
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	socket := filepath.Join(dir, "s")
	listener, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	done := make(chan [][]byte)
	go func() {
		conn, err := listener.Accept()
		if err != nil {
			done <- nil
			return
		}
		defer conn.Close()
		done <- serveEverything(conn)
	}()
	for i, a := range args {
		args[i] = strings.ReplaceAll(a, "SWITCH", "unix:"+socket)
	}
	_, stderr = ofctl(t, "", append([]string{"-OOpenFlow14", "--no-names", "--timeout=10"}, args...)...)
	listener.Close()
	return <-done, stderr
}

// serveEverything answers hellos, barriers and bundle controls until the peer
// goes, and returns the other messages.
func serveEverything(conn net.Conn) (messages [][]byte) {
	for {
		m, err := readMessage(conn)
		if err != nil {
			return messages
		}
		h, parsed, err := Parse(m)
		var reply Message
		switch parsed := parsed.(type) {
		case *Hello:
			reply = &Hello{Versions: HelloVersionBitmap(Version)}
		case *BarrierRequest:
			reply = &BarrierReply{}
		case *BundleControl:
			reply = &BundleControl{ID: parsed.ID, Kind: parsed.Kind + 1}
		default:
			messages = append(messages, m)
		}
		if err != nil || reply == nil {
			continue
		}
		b, err := Append(nil, h.Xid, reply)
		if err != nil {
			return messages
		}
		if _, err := conn.Write(b); err != nil {
			return messages
		}
	}
}

func readMessage(r io.Reader) ([]byte, error) {
	b := make([]byte, HeaderLen)
	if _, err := io.ReadFull(r, b); err != nil {
		return nil, err
	}
	h, err := ParseHeader(b)
	if err != nil {
		return nil, err
	}
	b = append(b, make([]byte, int(h.Length)-HeaderLen)...)
	_, err = io.ReadFull(r, b[HeaderLen:])
	return b, err
}
