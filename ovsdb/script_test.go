package ovsdb_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"brlb/ovsdb"
	"brlb/ovsdb/ovsdbtest"
)

const tinySchema = `{"name":"db","version":"1.0.0","tables":{"T":{"isRoot":true,"columns":{
	"name":{"type":"string"},"n":{"type":"integer"},
	"set":{"type":{"key":"string","min":0,"max":"unlimited"}},
	"opt":{"type":{"key":"integer","min":0,"max":1}},
	"map":{"type":{"key":"string","value":"integer","min":0,"max":"unlimited"}}}}}}`

var tinySpec = ovsdb.MonitorSpec{Tables: []ovsdb.TableSpec{{
	Table: "T", Columns: []string{"name", "n", "set", "opt", "map"}, Indexes: [][]string{{"name"}},
}}}

func startScripted(t *testing.T, s *ovsdbtest.Script, change ...func(*ovsdb.Config)) *ovsdb.Client {
	t.Helper()
	cfg := ovsdb.Config{Endpoints: []string{"unix:/script"}, Database: "db", Dial: s.Dial}
	for _, f := range change {
		f(&cfg)
	}
	c, err := ovsdb.Start(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// monitorAsync calls Monitor while the test plays the server.
func monitorAsync(t *testing.T, c *ovsdb.Client, spec ovsdb.MonitorSpec) func() (*ovsdb.Replica, error) {
	type outcome struct {
		r   *ovsdb.Replica
		err error
	}
	ch := make(chan outcome, 1)
	go func() {
		r, err := c.Monitor(t.Context(), spec)
		ch <- outcome{r, err}
	}()
	return func() (*ovsdb.Replica, error) { o := <-ch; return o.r, o.err }
}

func mustReplica(t *testing.T) func(*ovsdb.Replica, error) *ovsdb.Replica {
	return func(r *ovsdb.Replica, err error) *ovsdb.Replica {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
}

const (
	u1 = "00000000-0000-0000-0000-000000000001"
	u2 = "00000000-0000-0000-0000-000000000002"
	u3 = "10000000-0000-0000-0000-000000000001"
	u0 = "00000000-0000-0000-0000-000000000000"
)

// dump writes a table in a form that tests compare.
func dump(s *ovsdb.Snapshot) string {
	var b strings.Builder
	for r := range s.Rows("T") {
		fmt.Fprintf(&b, "%s n=%v set=%v opt=%v map=%v\n", r.Get("name"), r.Get("n"), r.Get("set"), r.Get("opt"), r.Get("map"))
	}
	return b.String()
}

func describe(b ovsdb.Batch) string {
	var out []string
	for _, c := range b.Changes {
		switch {
		case c.Old == nil:
			out = append(out, "insert "+c.New.Get("name").String())
		case c.New == nil:
			out = append(out, "delete "+c.Old.Get("name").String())
		default:
			text := "modify " + c.New.Get("name").String()
			for col := range c.Columns() {
				text += " " + col
			}
			out = append(out, text)
		}
	}
	s := strings.Join(out, ", ")
	if b.Resync {
		s += " (resync)"
	}
	if b.Skipped {
		s += " (skipped)"
	}
	return s
}

func want(t *testing.T, got, want string) {
	t.Helper()
	if got != want {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
}

func TestWhatServersSend(t *testing.T) {
	script := ovsdbtest.NewScript(t)
	c := startScripted(t, script)
	p := script.Accept()
	p.Handshake(tinySchema)

	// Echo with any id, before and after params.
	for _, id := range []string{`"echo"`, `7`, `{"a":[1]}`, `null`} {
		p.Send(`{"method":"echo","params":[1,"x",{}],"id":` + id + `}`)
		if id == "null" {
			continue // a notification has no answer
		}
		if got, err := p.NextRaw(); err != nil || got != `{"id":`+id+`,"result":[1,"x",{}],"error":null}` {
			t.Errorf("echo %s: %s, %v", id, got, err)
		}
	}

	// Things that are to be survived.
	p.Send(`{"id":99,"result":[],"error":null} {"id":"x","result":null,"error":"y"} {} {"method":"no_such","params":[1]} {"method":"update2","params":[77,{}],"id":null}`)
	p.Send(`{"method":"update2","params":null,"id":null} {"method":"locked","params":["nobody"],"id":null} {"method":"update","params":[[[]],{}],"id":null} {"method":"locked","params":{},"id":null}`)

	if err := c.Ready(t.Context()); err != nil {
		t.Fatal(err)
	}
	ops := []ovsdb.Op{ovsdb.Insert{Table: "T"}, ovsdb.Delete{Table: "T"}}
	for _, tt := range []struct {
		reply   string
		outcome ovsdb.Outcome
		err     string
	}{
		{`"result":[{"uuid":["uuid","` + u1 + `"]},{"count":2}],"error":null`, ovsdb.Committed, ""},
		{`"error":null,"result":[{"uuid":["uuid","` + u1 + `"]},{"count":2}]`, ovsdb.Committed, ""},
		{`"result":[{"uuid":["uuid","` + u1 + `"]},{"error":"constraint violation","details":"no\n"}],"error":null`, ovsdb.Refused, `operation 1 (delete T): constraint violation: "no\n"`},
		{`"result":[{"error":"x"},null],"error":null`, ovsdb.Refused, `operation 0 (insert T): x`},
		{`"result":[{"uuid":["uuid","` + u1 + `"]},{"count":1},{"error":"referential integrity violation","details":"d"}],"error":null`, ovsdb.Refused, `at commit: referential integrity violation: "d"`},
		{`"error":"canceled"`, ovsdb.Refused, `"canceled"`},
		{`"error":{"error":"unknown database","details":"d","syntax":"s"}`, ovsdb.Refused, `"unknown database": "d"`},
		{`"result":null,"error":{"error":{}}`, ovsdb.Refused, `{\"error\":{}}`},
		{`"result":[{"count":1}],"error":null`, ovsdb.Unknown, "1 results for 2 operations"},
		{`"result":[{"count":1},{"count":1},{"count":1},{"count":1}],"error":null`, ovsdb.Unknown, "more results than operations"},
		{`"result":{"a":[1,[2]]},"error":null`, ovsdb.Unknown, "belongs"},
		{`"result":null,"error":null`, ovsdb.Unknown, "belongs"},
		{`"result":[{"uuid":"x"},{"rows":[]}],"error":null`, ovsdb.Unknown, "belongs"},
		{`"result":[{"uuid":["uuid","x"]},{}],"error":null`, ovsdb.Unknown, "not a uuid"},
	} {
		done := make(chan error, 1)
		go func() { _, err := c.Transact(t.Context(), ops...); done <- err }()
		r := p.Expect("transact")
		want(t, string(r.Params), `["db",{"op":"insert","table":"T","row":{}},{"op":"delete","table":"T","where":[]}]`)
		p.Send(`{"id":` + string(r.ID) + `,` + tt.reply + `}`)
		err := <-done
		if got := ovsdb.OutcomeOf(err); got != tt.outcome || err != nil && !strings.Contains(err.Error(), tt.err) {
			t.Errorf("%s: %v: %v", tt.reply, got, err)
		}
	}
	got := c.Stats()
	if got.StrayResponses != 3 || got.StrayUpdates != 5 {
		t.Errorf("stats: %+v", got)
	}
	if st, _ := c.State(); !st.Connected || st.Sessions != 1 {
		t.Errorf("state: %+v", st)
	}

	// In flight when the connection goes.
	done := make(chan error, 1)
	go func() { _, err := c.Transact(t.Context(), ops...); done <- err }()
	p.Expect("transact")
	p.Cut()
	if err := <-done; ovsdb.OutcomeOf(err) != ovsdb.Unknown {
		t.Errorf("cut: %v", err)
	}
	// Cancelled by its context.
	p = script.Accept()
	p.Handshake(tinySchema)
	if err := c.Ready(t.Context()); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	go func() { _, err := c.Transact(ctx, ops...); done <- err }()
	id := p.Expect("transact").ID
	cancel()
	want(t, string(p.Expect("cancel").Params), "["+string(id)+"]")
	if err := <-done; ovsdb.OutcomeOf(err) != ovsdb.Unknown || !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

func TestMissingColumn(t *testing.T) {
	script := ovsdbtest.NewScript(t)
	c := startScripted(t, script)
	spec := ovsdb.MonitorSpec{Tables: []ovsdb.TableSpec{{Table: "T", Columns: []string{"name", "color"}}}}
	result := monitorAsync(t, c, spec)
	p := script.Accept()
	p.Handshake(tinySchema)
	_, err := result()
	if err == nil || err.Error() != "ovsdb: database db has no column T.color in its schema version 1.0.0" {
		t.Error(err)
	}
	if st, _ := c.State(); !st.Connected {
		t.Errorf("one monitor's trouble ended the connection: %+v", st)
	}
	_, err = c.Transact(t.Context(), ovsdb.Insert{Table: "U"})
	if err == nil || !strings.Contains(err.Error(), "has no table U") {
		t.Error(err)
	}
}

func TestNothingWrongIsSent(t *testing.T) {
	script := ovsdbtest.NewScript(t)
	c := startScripted(t, script)
	p := script.Accept()
	p.Handshake(strings.Replace(tinySchema, `"tables":{`, `"tables":{"Leaf":{"columns":{"name":{"type":"string"}}},`, 1))
	if err := c.Ready(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, op := range []ovsdb.Op{
		ovsdb.Insert{Table: "T", Row: ovsdb.Columns{"name": ovsdb.String("a\x00b")}},
		ovsdb.Insert{Table: "T", Row: ovsdb.Columns{"name": ovsdb.String("\xff")}},
		ovsdb.Insert{Table: "T", Row: ovsdb.Columns{"name": ovsdb.Integer(1)}},
		ovsdb.Insert{Table: "T", Row: ovsdb.Columns{"name": {}}},
		ovsdb.Insert{Table: "T", Row: ovsdb.Columns{"map": ovsdb.Strings("a")}},
		ovsdb.Insert{Table: "T", Row: ovsdb.Columns{"set": ovsdb.EmptyMap()}},
		ovsdb.Insert{Table: "T", Name: "1x"},
		ovsdb.Insert{Table: "Leaf", Name: "x"},
		ovsdb.Comment{Text: "\x00"},
		ovsdb.Assert{Lock: "no lock"},
		ovsdb.Delete{Table: "T", Where: []ovsdb.Condition{ovsdb.Is("nope", ovsdb.Integer(1))}},
		ovsdb.Mutate{Table: "T", Mutations: []ovsdb.Mutation{{Column: "n", Mutator: ovsdb.MutateAdd, Value: ovsdb.Real(1)}}},
		ovsdb.Wait{Table: "T", Columns: []string{"nope"}},
		ovsdb.Delete{Table: "T", Where: []ovsdb.Condition{{Column: "n", Function: "~", Value: ovsdb.Integer(1)}}},
		&ovsdb.Select{Table: "T"},
		nil,
	} {
		if _, err := c.Transact(t.Context(), op); ovsdb.OutcomeOf(err) != ovsdb.NotSent {
			t.Errorf("%#v: %v", op, err)
		}
	}
	done := make(chan error, 1)
	go func() { _, err := c.Transact(t.Context(), ovsdb.Comment{Text: "ok"}); done <- err }()
	r := p.Expect("transact")
	if !strings.Contains(string(r.Params), `"ok"`) {
		t.Errorf("something was sent: %s", r.Params)
	}
	p.Reply(r, "[{}]")
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func TestOrderOfTheHandshake(t *testing.T) {
	script := ovsdbtest.NewScript(t)
	c := startScripted(t, script)
	lock, err := c.Lock("brlb")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Lock("brlb"); err == nil {
		t.Error("the same lock twice")
	}
	if _, err := c.Lock("no lock"); err == nil {
		t.Error("a name that is none")
	}
	result := monitorAsync(t, c, tinySpec)
	for range 2 {
		p := script.Accept()
		p.Handshake(tinySchema)
		if _, err := c.Transact(t.Context(), lock.Assert()); ovsdb.OutcomeOf(err) != ovsdb.NotSent {
			t.Errorf("before the locks are asked for: %v", err)
		}
		p.Reply(p.Expect("lock"), `{"locked":false}`)
		p.Reply(p.Expect("monitor_cond_since"), `[false,"`+u0+`",{}]`)
		if result != nil {
			mustReplica(t)(result())
			result = nil
		}
		if err := c.Ready(t.Context()); err != nil {
			t.Fatal(err)
		}
		st, changed := lock.State()
		if st.Held {
			t.Errorf("lock: %+v", st)
		}
		p.Notify("locked", `["brlb"]`)
		<-changed
		if st, changed = lock.State(); !st.Held || st.Reason != ovsdb.LockAcquired {
			t.Errorf("lock: %+v", st)
		}
		p.Cut()
		<-changed
		if st, _ = lock.State(); st.Held || st.Reason != ovsdb.LockLost {
			t.Errorf("lock: %+v", st)
		}
	}
	if st, _ := lock.State(); st.Acquired != 2 {
		t.Errorf("lock: %+v", st)
	}
}
