package ovsdb_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"brlb/ovsdb"
)

const schemaFile = "/usr/share/openvswitch/vswitch.ovsschema"

// server is a private ovsdb-server on a database of its own.
type server struct {
	t    testing.TB
	dir  string
	args []string
	cmd  *exec.Cmd
}

// startServer runs ovsdb-server with an Open_vSwitch database that has its one
// root row, or skips the test where Open vSwitch is not installed.
func startServer(t testing.TB) *server {
	t.Helper()
	for _, tool := range []string{"ovsdb-server", "ovsdb-tool"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("needs Open vSwitch: %v", err)
		}
	}
	if _, err := os.Stat(schemaFile); err != nil {
		t.Skipf("needs the Open_vSwitch schema: %v", err)
	}
	// Not t.TempDir: the paths of unix sockets must be short.
	dir, err := os.MkdirTemp("", "ovsdb")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	s := &server{t: t, dir: dir}
	s.tool("create", s.path("conf.db"), schemaFile)
	s.tool("transact", s.path("conf.db"), `["Open_vSwitch",{"op":"insert","table":"Open_vSwitch","row":{}}]`)
	s.args = []string{s.path("conf.db"), "--remote=punix:" + s.path("db.sock"), "--unixctl=" + s.path("ctl"), "--no-chdir", "-vfile:off", "-vconsole:off", "-vsyslog:off"}
	s.start()
	t.Cleanup(s.stop)
	return s
}

func (s *server) path(name string) string { return filepath.Join(s.dir, name) }

func (s *server) endpoint() string { return "unix:" + s.path("db.sock") }

func (s *server) tool(args ...string) {
	s.t.Helper()
	if out, err := exec.Command("ovsdb-tool", args...).CombinedOutput(); err != nil {
		s.t.Fatalf("ovsdb-tool %q: %v: %s", args, err, out)
	}
}

func (s *server) start() {
	s.t.Helper()
	s.cmd = exec.Command("ovsdb-server", s.args...)
	if err := s.cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	deadline := time.Now().Add(10 * time.Second)
	for {
		if _, err := os.Stat(s.path("db.sock")); err == nil {
			return
		}
		if time.Now().After(deadline) {
			s.t.Fatal("ovsdb-server does not listen")
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// stop kills the server as a crash would.
func (s *server) stop() {
	if s.cmd == nil {
		return
	}
	s.cmd.Process.Kill()
	s.cmd.Wait()
	s.cmd = nil
	os.Remove(s.path("db.sock"))
}

func dial(t testing.TB, s *server) *ovsdb.Client {
	t.Helper()
	c, err := ovsdb.Dial(t.Context(), ovsdb.Config{Endpoints: []string{s.endpoint()}, MinBackoff: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func transact(t testing.TB, c *ovsdb.Client, ops ...ovsdb.Op) []ovsdb.Result {
	t.Helper()
	res, err := c.Transact(t.Context(), ops...)
	if err != nil {
		t.Fatal(err)
	}
	return res
}

func next(t testing.TB, s *ovsdb.Subscription) ovsdb.Batch {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	b, err := s.Next(ctx)
	if err != nil {
		t.Fatalf("next batch: %v", err)
	}
	return b
}

// addBridge inserts a bridge with one internal port of its name.
func addBridge(name string) []ovsdb.Op {
	return []ovsdb.Op{
		ovsdb.Insert{Table: "Interface", Name: "i", Row: ovsdb.Columns{"name": ovsdb.String(name), "type": ovsdb.String("internal")}},
		ovsdb.Insert{Table: "Port", Name: "p", Row: ovsdb.Columns{"name": ovsdb.String(name), "interfaces": ovsdb.NamedRef("i")}},
		ovsdb.Insert{Table: "Bridge", Name: "b", Row: ovsdb.Columns{"name": ovsdb.String(name), "ports": ovsdb.NamedRef("p")}},
		ovsdb.Mutate{Table: "Open_vSwitch", Mutations: []ovsdb.Mutation{{"bridges", ovsdb.MutateInsert, ovsdb.NamedRef("b")}}},
	}
}

var bridgeSpec = ovsdb.MonitorSpec{Tables: []ovsdb.TableSpec{
	{Table: "Open_vSwitch", Columns: []string{"bridges", "cur_cfg", "next_cfg"}},
	{Table: "Bridge", Columns: []string{"name", "ports", "external_ids", "flood_vlans"}, Indexes: [][]string{{"name"}}},
	{Table: "Port", Columns: []string{"name", "interfaces", "trunks"}, OptionalColumns: []string{"no_such_column"}},
}}

func TestServerMonitorAndTransact(t *testing.T) {
	srv := startServer(t)
	c := dial(t, srv)
	rep, err := c.Monitor(t.Context(), bridgeSpec)
	if err != nil {
		t.Fatal(err)
	}
	sub := rep.Subscribe(0)
	if b := next(t, sub); len(b.Changes) != 1 || b.Changes[0].Table != "Open_vSwitch" || b.Resync || b.Skipped {
		t.Fatalf("first batch: %+v", b)
	}
	res := transact(t, c, addBridge("br0")...)
	br := rep.Snapshot().Row("Bridge", res[2].UUID)
	if name, _ := br.Get("name").AsString(); name != "br0" {
		t.Fatalf("the replica does not show what Transact did: %v", br)
	}
	found := 0
	for r := range rep.Snapshot().Find("Bridge", "name", ovsdb.String("br0")) {
		if r != br {
			t.Error("index finds another row")
		}
		found++
	}
	if found != 1 {
		t.Errorf("index finds %d rows", found)
	}
	b := next(t, sub)
	if len(b.Changes) != 3 {
		t.Errorf("adding a bridge made %d changes: %+v", len(b.Changes), b.Changes)
	}

	// Differences of sets and maps.
	set := func(column string, v ovsdb.Value) {
		t.Helper()
		transact(t, c, ovsdb.Update{Table: "Bridge", Where: []ovsdb.Condition{ovsdb.IsRow(res[2].UUID)}, Row: ovsdb.Columns{column: v}})
		if got := rep.Snapshot().Row("Bridge", res[2].UUID).Get(column); !got.Equal(v) {
			t.Errorf("%s: got %v, want %v", column, got, v)
		}
	}
	set("flood_vlans", ovsdb.Integers(1, 2))
	set("flood_vlans", ovsdb.Integers(2, 3))
	set("flood_vlans", ovsdb.EmptySet())
	set("external_ids", ovsdb.StringMap(map[string]string{"a": "1", "b": "2"}))
	set("external_ids", ovsdb.StringMap(map[string]string{"b": "3", "c": "\"\\\n☃"}))
	set("external_ids", ovsdb.EmptyMap())

	// Refusals.
	_, err = c.Transact(t.Context(), ovsdb.Assert{Lock: "nobody"})
	if !errors.Is(err, ovsdb.ErrNotOwner) || ovsdb.OutcomeOf(err) != ovsdb.Refused {
		t.Errorf("assert: %v", err)
	}
	_, err = c.Transact(t.Context(), ovsdb.Insert{Table: "Open_vSwitch"})
	if !errors.Is(err, ovsdb.ErrConstraint) {
		t.Errorf("second root row: %v", err)
	}
	_, err = c.Transact(t.Context(), ovsdb.Update{Table: "Bridge", Row: ovsdb.Columns{"nope": ovsdb.Integer(1)}})
	var missing *ovsdb.SchemaError
	if !errors.As(err, &missing) || ovsdb.OutcomeOf(err) != ovsdb.NotSent {
		t.Errorf("missing column: %v", err)
	}
	t.Log(err)
	rows := transact(t, c, ovsdb.Select{Table: "Bridge"})[0].Rows
	if len(rows) != 1 || rows[0].UUID() != res[2].UUID {
		t.Errorf("select: %v", rows)
	}

	// A restart in the middle.
	transact(t, c, addBridge("br1")...)
	if b := next(t, sub); b.Resync {
		t.Error("unexpected resync")
	}
	srv.stop()
	srv.tool("transact", srv.path("conf.db"), `["Open_vSwitch",{"op":"update","table":"Bridge","where":[["name","==","br0"]],"row":{"external_ids":["map",[["x","y"]]]}}]`)
	srv.start()
	for {
		b := next(t, sub)
		if !b.Resync {
			continue
		}
		if len(b.Changes) != 1 || !b.Changes[0].Changed("external_ids") || b.Changes[0].Changed("name") {
			t.Errorf("resync: %+v", b)
		}
		break
	}
	c.Close()
	c.Close()
	if _, err := c.Transact(t.Context(), ovsdb.Abort{}); !errors.Is(err, ovsdb.ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
	if _, err := sub.Next(t.Context()); !errors.Is(err, ovsdb.ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
}

func TestServerLocks(t *testing.T) {
	srv := startServer(t)
	c1, c2 := dial(t, srv), dial(t, srv)
	wait := func(l *ovsdb.Lock, reason ovsdb.LockReason) {
		t.Helper()
		deadline := time.After(20 * time.Second)
		for {
			st, changed := l.State()
			if st.Reason == reason {
				return
			}
			select {
			case <-changed:
			case <-deadline:
				t.Fatalf("lock is %v, want %v", st.Reason, reason)
			}
		}
	}
	l1, err := c1.Lock("brlb")
	if err != nil {
		t.Fatal(err)
	}
	wait(l1, ovsdb.LockAcquired)
	l2, err := c2.Lock("brlb")
	if err != nil {
		t.Fatal(err)
	}
	transact(t, c1, l1.Assert(), ovsdb.Comment{Text: "mine"})
	if err := l2.Steal(t.Context()); err != nil {
		t.Fatal(err)
	}
	wait(l2, ovsdb.LockAcquired)
	wait(l1, ovsdb.LockStolen)
	if _, err := c1.Transact(t.Context(), l1.Assert()); !errors.Is(err, ovsdb.ErrNotOwner) {
		t.Errorf("assert after a steal: %v", err)
	}
	c2.Close()
	wait(l1, ovsdb.LockAcquired)
	srv.stop()
	wait(l1, ovsdb.LockLost)
	srv.start()
	wait(l1, ovsdb.LockAcquired)
	if err := l1.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
}
