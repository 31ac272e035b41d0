package ovsdb_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"go.uber.org/goleak"

	"brlb/ovsdb"
	"brlb/ovsdb/ovsdbtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func dial(t testing.TB, s *ovsdbtest.Server) *ovsdb.Client {
	t.Helper()
	c, err := ovsdb.Dial(t.Context(), ovsdb.Config{Endpoints: []string{s.Endpoint()}, MinBackoff: time.Millisecond})
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
	srv := ovsdbtest.StartServer(t)
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
	srv.Kill()
	srv.Tool("transact", srv.Database(), `["Open_vSwitch",{"op":"update","table":"Bridge","where":[["name","==","br0"]],"row":{"external_ids":["map",[["x","y"]]]}}]`)
	srv.Start()
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
	srv := ovsdbtest.StartServer(t)
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
	srv.Kill()
	wait(l1, ovsdb.LockLost)
	srv.Start()
	wait(l1, ovsdb.LockAcquired)
	if err := l1.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// A server that is killed again and again under many writers: what was
// committed is there, what was refused or not sent is not, and the replica
// agrees with the server in the end.
func TestServerRestartsUnderLoad(t *testing.T) {
	srv := ovsdbtest.StartServer(t)
	c := dial(t, srv)
	rep, err := c.Monitor(t.Context(), bridgeSpec)
	if err != nil {
		t.Fatal(err)
	}
	const writers = 4
	type attempt struct {
		name    string
		outcome ovsdb.Outcome
	}
	results := make(chan []attempt, writers)
	stop := make(chan struct{})
	for w := range writers {
		go func() {
			var all []attempt
			defer func() { results <- all }()
			for i := 0; ; i++ {
				select {
				case <-stop:
					return
				default:
				}
				if c.Ready(t.Context()) != nil {
					return
				}
				name := fmt.Sprintf("br%d-%d", w, i)
				_, err := c.Transact(t.Context(), addBridge(name)...)
				all = append(all, attempt{name, ovsdb.OutcomeOf(err)})
			}
		}()
	}
	for range 5 {
		time.Sleep(20 * time.Millisecond)
		srv.Kill()
		srv.Start()
		if err := c.Ready(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	close(stop)
	var all []attempt
	for range writers {
		all = append(all, <-results...)
	}
	for {
		if err := c.Ready(t.Context()); err != nil {
			t.Fatal(err)
		}
		if res, err := c.Transact(t.Context(), ovsdb.Select{Table: "Bridge"}); err == nil {
			if len(res[0].Rows) != rep.Snapshot().Len("Bridge") {
				t.Errorf("%d bridges in the replica, %d on the server", rep.Snapshot().Len("Bridge"), len(res[0].Rows))
			}
			break
		}
	}
	counts := make(map[ovsdb.Outcome]int)
	for _, a := range all {
		counts[a.outcome]++
		n := 0
		for range rep.Snapshot().Find("Bridge", "name", ovsdb.String(a.name)) {
			n++
		}
		switch a.outcome {
		case ovsdb.Committed:
			if n != 1 {
				t.Errorf("%s was committed and is there %d times", a.name, n)
			}
		case ovsdb.Unknown:
		default:
			if n != 0 {
				t.Errorf("%s was %v and is there", a.name, a.outcome)
			}
		}
	}
	t.Logf("%d transactions: %v", len(all), counts)
}
