package unixctl

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"brlb/ovsdb/ovsdbtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestRealDaemons(t *testing.T) {
	sw := ovsdbtest.StartSwitch(t)
	for _, daemon := range []string{"ovs-vswitchd", "ovsdb-server"} {
		path, err := Find(sw.Dir, daemon)
		if err != nil {
			t.Fatal(err)
		}
		c, err := Dial(t.Context(), path)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		out, err := c.Call(t.Context(), "version")
		if err != nil || !strings.HasPrefix(out, daemon+" (Open vSwitch)") {
			t.Errorf("version: %q, %v", out, err)
		}
		if out, err = c.Call(t.Context(), "list-commands"); err != nil || !strings.Contains(out, "coverage/") {
			t.Errorf("list-commands: %q, %v", out, err)
		}
		var refused *Error
		if _, err = c.Call(t.Context(), "no-such-command"); !errors.As(err, &refused) || !strings.Contains(refused.Text, "not a valid command") {
			t.Errorf("unknown command: %v", err)
		}
		if _, err = c.Call(t.Context(), "coverage/read-counter", "no\x00counter"); err == nil {
			t.Error("U+0000 was sent")
		}
		if out, err = c.Call(t.Context(), "coverage/read-counter", "poll_zero_timeout"); err != nil {
			t.Errorf("coverage/read-counter: %q, %v", out, err)
		}
	}
}

func TestDaemonRestarts(t *testing.T) {
	srv := ovsdbtest.StartServer(t)
	c := Daemon(srv.Dir, "ovsdb-server")
	defer c.Close()
	if _, err := c.Call(t.Context(), "version"); err != nil {
		t.Fatal(err)
	}
	srv.Kill()
	if _, err := c.Call(t.Context(), "version"); err == nil {
		t.Error("a dead daemon answered")
	}
	srv.Start()
	if _, err := c.Call(t.Context(), "version"); err != nil {
		t.Error(err)
	}
}

func TestFindFails(t *testing.T) {
	dir := t.TempDir()
	pidFile := filepath.Join(dir, "ovs-vswitchd.pid")
	for _, text := range []string{"", "x\n", "-1\n", "0\n", "99999999999999999999\n", "12\n"} {
		if err := os.WriteFile(pidFile, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if path, err := Find(dir, "ovs-vswitchd"); err == nil {
			t.Errorf("pid file %q: found %s", text, path)
		}
	}
	if _, err := Find(dir, "ovsdb-server"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no pid file: %v", err)
	}
}

// fakeDaemon answers each request on each connection with the next of replies,
// and nothing once there are no more.
func fakeDaemon(t *testing.T, replies ...string) string {
	dir, err := os.MkdirTemp("", "uctl")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	path := filepath.Join(dir, "ctl")
	ln, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	t.Cleanup(func() { ln.Close(); <-done })
	go func() {
		defer close(done)
		for {
			nc, err := ln.Accept()
			if err != nil {
				return
			}
			buf := make([]byte, 4096)
			for {
				if _, err := nc.Read(buf); err != nil {
					break
				}
				if len(replies) == 0 {
					continue
				}
				if replies[0] == "" {
					replies = replies[1:]
					break // cut the connection
				}
				nc.Write([]byte(replies[0]))
				replies = replies[1:]
			}
			nc.Close()
		}
	}()
	return path
}

func TestReplies(t *testing.T) {
	for _, tt := range []struct{ name, reply, want, err string }{
		{"result", `{"id":1,"result":"a\nb\n","error":null}`, "a\nb\n", ""},
		{"no error member", `{"result":"","id":1}`, "", ""},
		{"error alone", `{"id":1,"error":"bad\n"}`, "", `says "bad"`},
		{"error with null result", `{"id":1,"error":"bad","result":null}`, "", `says "bad"`},
		{"JSON result", `{"id":1,"result":{"a":[1]},"error":null}`, `{"a":[1]}`, ""},
		{"other id", `{"id":2,"result":"x","error":null}`, "", "is for request"},
		{"no result", `{"id":1}`, "", "has no result"},
		{"garbage", `}{`, "", "reading the answer"},
		{"not an object", `[]`, "", "not an object"},
		{"cut", ``, "", "closed the connection"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c, err := Dial(t.Context(), fakeDaemon(t, tt.reply))
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			got, err := c.Call(t.Context(), "x")
			if got != tt.want || (err == nil) != (tt.err == "") || err != nil && !strings.Contains(err.Error(), tt.err) {
				t.Errorf("got %q, %v", got, err)
			}
		})
	}
}

// After a call without an answer the next one must not take that answer for its
// own.
func TestDeadlineThenReconnect(t *testing.T) {
	c, err := Dial(t.Context(), fakeDaemon(t, "", `{"id":2,"result":"two","error":null}`))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Call(t.Context(), "one"); err == nil {
		t.Error("a cut connection gave an answer")
	}
	if got, err := c.Call(t.Context(), "two"); got != "two" || err != nil {
		t.Errorf("got %q, %v", got, err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if _, err := c.Call(ctx, "three"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("silent daemon: %v", err)
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	if _, err := c.Call(t.Context(), "four"); !errors.Is(err, ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
}

func FuzzReply(f *testing.F) {
	for _, s := range []string{`{"id":1,"result":"a","error":null}`, `{"id":1,"error":"b\n"}`, `{"id":1}`, `[[[`, `{"id":1,"result":"\ud800"}`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		readReply(strings.NewReader(s), 1, "m")
	})
}
