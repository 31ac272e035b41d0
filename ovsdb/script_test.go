package ovsdb_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

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

func TestUpdateFormats(t *testing.T) {
	for _, tt := range []struct {
		name    string
		methods []string // refused before the last one
		first   string   // its result
		update  string   // method of updates
		params  string   // before the updates
		insert, modify, remove,
		misfit string
	}{
		{"since", nil,
			`[false,"` + u0 + `",{"T":{"` + u1 + `":{"initial":{"name":"a","set":["set",["x","y"]],"opt":1,"map":["map",[["k",1],["l",2]]]}}}}]`,
			"update3", `1,"` + u0 + `",`,
			`{"insert":{"name":"b","n":-9223372036854775808}}`,
			`{"modify":{"set":["set",["y","z"]],"opt":["set",[]],"map":["map",[["k",1],["l",3],["m",4]]]}}`,
			`{"delete":null}`, `{"modify":{"n":1}}`},
		{"cond", []string{"monitor_cond_since"},
			`{"T":{"` + u1 + `":{"initial":{"name":"a","set":["set",["x","y"]],"opt":["set",[1]],"map":["map",[["l",2],["k",1]]]}}}}`,
			"update2", `2,`,
			`{"insert":{"name":"b","n":-9223372036854775808}}`,
			`{"modify":{"set":["set",["z","y"]],"opt":["set",[]],"map":["map",[["m",4],["l",3],["k",1]]]}}`,
			`{"delete":null}`, `{"delete":null}`},
		{"RFC 7047", []string{"monitor_cond_since", "monitor_cond"},
			`{"T":{"` + u1 + `":{"new":{"name":"a","n":0,"set":["set",["y","x"]],"opt":1,"map":["map",[["k",1],["l",2]]]}}}}`,
			"update", `3,`,
			`{"new":{"name":"b","n":-9223372036854775808,"set":["set",[]],"opt":["set",[]],"map":["map",[]]}}`,
			`{"old":{"set":["set",["x","y"]]},"new":{"name":"a","n":0,"set":["set",["x","z"]],"opt":["set",[]],"map":["map",[["l",3],["m",4]]]}}`,
			`{"old":{"name":"a"}}`, `{"old":{"name":"a"}}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			script := ovsdbtest.NewScript(t)
			c := startScripted(t, script)
			result := monitorAsync(t, c, tinySpec)
			p := script.Accept()
			p.Handshake(tinySchema)
			for _, m := range tt.methods {
				p.Fail(p.Expect(m), `"unknown method"`)
			}
			r, err := p.Next()
			if err != nil {
				t.Fatal(err)
			}
			p.Reply(r, tt.first)
			rep := mustReplica(t)(result())
			sub := rep.Subscribe(0)
			want(t, describe(next(t, sub)), `insert "a"`)
			want(t, dump(rep.Snapshot()), "\"a\" n=0 set=[\"x\", \"y\"] opt=1 map={\"k\"=1, \"l\"=2}\n")

			p.Notify(tt.update, "["+tt.params+`{"T":{"`+u1+`":`+tt.modify+`,"`+u2+`":`+tt.insert+"}}]")
			want(t, describe(next(t, sub)), `modify "a" set opt map, insert "b"`)
			want(t, dump(rep.Snapshot()), "\"a\" n=0 set=[\"x\", \"z\"] opt=[] map={\"l\"=3, \"m\"=4}\n\"b\" n=-9223372036854775808 set=[] opt=[] map={}\n")

			// In any order of members.
			p.Send(`{"params":[` + tt.params + `{"T":{"` + u1 + `":` + tt.remove + `}}],"extra":{},"method":"` + tt.update + `","id":null}`)
			want(t, describe(next(t, sub)), `delete "a"`)

			// What does not fit is copied anew.
			p.Notify(tt.update, "["+tt.params+`{"T":{"`+u2+`":`+tt.remove+`,"`+u1+`":`+tt.misfit+`}}]`)
			p.Expect("monitor_cancel")
			if r, err = p.Next(); err != nil || r.Method[:7] != "monitor" {
				t.Fatalf("%v %v", r, err)
			}
			p.Notify(tt.update, "["+tt.params+`{"T":{"`+u2+`":`+tt.remove+`}}]`) // of the monitor that was cancelled
			p.Reply(r, tt.first)
			want(t, describe(next(t, sub)), `insert "a", delete "b" (resync)`)
			if got := c.Stats(); got.Resyncs != 1 || got.StrayUpdates != 0 {
				t.Errorf("stats: %+v", got)
			}

			// After a reconnect: the best known method at once, and only true
			// differences.
			p.Cut()
			p = script.Accept()
			p.Handshake(tinySchema)
			if r, err = p.Next(); err != nil {
				t.Fatal(err)
			}
			want(t, r.Method, []string{"monitor_cond_since", "monitor_cond", "monitor"}[len(tt.methods)])
			p.Reply(r, tt.first)
			again := p
			p.Cut()
			p = script.Accept()
			p.Handshake(tinySchema)
			r, _ = p.Next()
			p.Reply(r, strings.Replace(tt.first, `"name":"a"`, `"name":"c"`, 1))
			want(t, describe(next(t, sub)), `modify "c" name (resync)`)
			again.Cut()
			n := 0
			for range rep.Snapshot().Find("T", "name", ovsdb.String("c")) {
				n++
			}
			if n != 1 {
				t.Errorf("the index finds %d rows", n)
			}
		})
	}
}

func TestPositionIsKept(t *testing.T) {
	script := ovsdbtest.NewScript(t)
	c := startScripted(t, script)
	result := monitorAsync(t, c, tinySpec)
	p := script.Accept()
	p.Handshake(tinySchema)
	p.Reply(p.Expect("monitor_cond_since"), `[false,"`+u1+`",{"T":{"`+u1+`":{"initial":{"name":"a"}},"`+u2+`":{"initial":{"name":"b"}}}}]`)
	sub := mustReplica(t)(result()).Subscribe(0)
	want(t, describe(next(t, sub)), `insert "a", insert "b"`)
	p.Notify("update3", `[1,"`+u2+`",{"T":{"`+u1+`":{"modify":{"n":1}}}}]`)
	want(t, describe(next(t, sub)), `modify "a" n`)
	p.Cut()

	p = script.Accept()
	p.Handshake(tinySchema)
	r := p.Expect("monitor_cond_since")
	if !strings.Contains(string(r.Params), u2) {
		t.Errorf("position not sent: %s", r.Params)
	}
	p.Reply(r, `[true,"`+u3+`",{"T":{"`+u2+`":{"delete":null},"`+u3+`":{"insert":{"name":"c"}}}}]`)
	want(t, describe(next(t, sub)), `delete "b", insert "c" (resync)`)
	p.Cut()

	// Another schema: the position is of no use.
	p = script.Accept()
	p.Handshake(strings.Replace(tinySchema, `"n":{"type":"integer"}`, `"n":{"type":"real"}`, 1))
	r = p.Expect("monitor_cond_since")
	if !strings.Contains(string(r.Params), u0) {
		t.Errorf("position sent for another schema: %s", r.Params)
	}
	p.Reply(r, `[false,"`+u0+`",{"T":{"`+u1+`":{"initial":{"name":"a","n":1.5}}}}]`)
	want(t, describe(next(t, sub)), `modify "a" n, delete "c" (resync)`)
	_ = c
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

// Each of these ends the connection once, and the next attempt waits.
func TestGarbageIsMetWithBackoff(t *testing.T) {
	deep := strings.Repeat("[", 100_000)
	for name, garbage := range map[string]string{
		"syntax": `{"id":}`, "not an object": `[]`, "truncated": `{"id":`, "utf-8": "{\"\xff\":1}",
		"nesting": `{"id":1,"result":` + deep, "nested params": `{"method":"x","params":` + deep,
		"nested update": `{"id":null,"method":"update2","params":[` + deep,
		"huge string":   `{"method":"x","params":["` + strings.Repeat("x", 2<<20),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				script := ovsdbtest.NewScript(t)
				c := startScripted(t, script, func(c *ovsdb.Config) { c.MaxMessage = 1 << 20 })
				var times []time.Time
				for range 12 {
					p := script.Accept()
					times = append(times, time.Now())
					p.Handshake(tinySchema)
					if p.TrySend(garbage) == nil && name == "truncated" {
						p.Cut()
					}
					p.ExpectGone()
				}
				c.Close()
				if last := times[11].Sub(times[10]); last < 4*time.Second || last > 8*time.Second {
					t.Errorf("the last wait was %v", last)
				}
				if first := times[1].Sub(times[0]); first > 100*time.Millisecond {
					t.Errorf("the first wait was %v", first)
				}
			})
		})
	}
}

func TestSilentServerIsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		script := ovsdbtest.NewScript(t)
		c := startScripted(t, script)
		p := script.Accept()
		p.Handshake(tinySchema)
		began := time.Now()
		p.Reply(p.Expect("echo"), "[]")
		p.Expect("echo")
		p.ExpectGone()
		if took := time.Since(began); took != 30*time.Second {
			t.Errorf("given up after %v", took)
		}
		// One that never answers the handshake.
		p = script.Accept()
		began = time.Now()
		p.ExpectGone()
		if took := time.Since(began); took != 5*time.Second {
			t.Errorf("given up after %v", took)
		}
		synctest.Wait()
		if st, _ := c.State(); st.Connected || st.Reason == nil || !strings.Contains(st.Reason.Error(), "list_dbs: no answer within 5s") {
			t.Errorf("state: %+v", st)
		}
		c.Close()
	})
}

// A server that floods the client without reading must not block its reader,
// nor make it grow.
func TestServerThatDoesNotRead(t *testing.T) {
	script := ovsdbtest.NewScript(t)
	c := startScripted(t, script)
	p := script.Accept()
	p.Handshake(tinySchema)
	echo := `{"method":"echo","id":1,"params":["` + strings.Repeat("x", 1<<20) + `"]}`
	for i := 0; ; i++ {
		if p.TrySend(echo) != nil {
			break
		}
		if i > 100 {
			t.Fatal("the client queues answers without end")
		}
	}
	for {
		st, changed := c.State()
		if st.Reason != nil {
			if !strings.Contains(st.Reason.Error(), "does not read") {
				t.Error(st.Reason)
			}
			break
		}
		<-changed
	}
}

func TestSlowConsumerSkips(t *testing.T) {
	script := ovsdbtest.NewScript(t)
	c := startScripted(t, script)
	result := monitorAsync(t, c, tinySpec)
	p := script.Accept()
	p.Handshake(tinySchema)
	p.Reply(p.Expect("monitor_cond_since"), `[false,"`+u0+`",{}]`)
	rep := mustReplica(t)(result())
	slow, quick := rep.Subscribe(10), rep.Subscribe(0)
	notify := func(row, what string) { p.Notify("update3", `[1,"`+u0+`",{"T":{"`+row+`":`+what+`}}]`) }
	notify(u1, `{"insert":{"name":"a"}}`)
	want(t, describe(next(t, slow)), `insert "a"`)
	want(t, describe(next(t, quick)), `insert "a"`)
	for n := range 100 {
		notify(u2, `{"insert":{"name":"b"}}`)
		notify(u1, fmt.Sprintf(`{"modify":{"n":%d}}`, n+1))
		notify(u2, `{"delete":null}`)
	}
	for n := range 100 {
		want(t, describe(next(t, quick)), `insert "b"`)
		b := next(t, quick)
		if got, _ := b.Snapshot.Row("T", b.Changes[0].UUID).Get("n").AsInteger(); got != int64(n+1) {
			t.Fatalf("n is %d after update %d", got, n)
		}
		want(t, describe(next(t, quick)), `delete "b"`)
	}
	want(t, describe(next(t, slow)), `modify "a" n (skipped)`)
	notify(u2, `{"insert":{"name":"b"}}`)
	want(t, describe(next(t, slow)), `insert "b"`)
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

// A long reply is decoded as it comes, and its buffers do not stay.
func TestHugeReply(t *testing.T) {
	script := ovsdbtest.NewScript(t)
	c := startScripted(t, script)
	p := script.Accept()
	p.Handshake(tinySchema)
	if err := c.Ready(t.Context()); err != nil {
		t.Fatal(err)
	}
	heap := func() uint64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before := heap()
	done := make(chan int, 1)
	go func() {
		res, err := c.Transact(t.Context(), ovsdb.Select{Table: "T", Columns: []string{"name"}})
		if err != nil {
			t.Error(err)
		}
		s, _ := res[0].Rows[0].Get("name").AsString()
		done <- len(s)
	}()
	r := p.Expect("transact")
	p.Send(`{"id":` + string(r.ID) + `,"result":[{"rows":[{"name":"`)
	chunk := strings.Repeat("x", 1<<20)
	for range 60 {
		p.Send(chunk)
	}
	p.Send(`\n"}]}],"error":null}`)
	if n := <-done; n != 60<<20+1 {
		t.Errorf("got %d bytes", n)
	}
	p.Send(`{"method":"echo","params":[],"id":1}`) // the next message lets go of the buffers
	if _, err := p.NextRaw(); err != nil {
		t.Fatal(err)
	}
	p.Send(`{"method":"echo","params":[],"id":2}`)
	if _, err := p.NextRaw(); err != nil {
		t.Fatal(err)
	}
	if after := heap(); after > before+8<<20 {
		t.Errorf("%d MB stay", (after-before)>>20)
	}
	// One byte too many is refused as early.
	go c.Transact(t.Context(), ovsdb.Comment{})
	p.Expect("transact")
	for range 66 {
		if p.TrySend(`"`+chunk+`"`) != nil {
			break
		}
	}
	p.ExpectGone()
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

func TestConditionsAreMonitored(t *testing.T) {
	script := ovsdbtest.NewScript(t)
	c := startScripted(t, script)
	n1 := ovsdb.Is("n", ovsdb.Integer(1))
	spec := func(columns ...string) ovsdb.MonitorSpec {
		return ovsdb.MonitorSpec{Tables: []ovsdb.TableSpec{{Table: "T", Columns: columns, Where: []ovsdb.Condition{n1}}}}
	}
	result := monitorAsync(t, c, spec("name"))
	p := script.Accept()
	p.Handshake(tinySchema)
	if _, err := result(); err == nil || !strings.Contains(err.Error(), "column n, which is not monitored") {
		t.Error(err)
	}
	result = monitorAsync(t, c, spec("name", "n"))
	r := p.Expect("monitor_cond_since")
	want(t, string(r.Params), `["db",1,{"T":[{"columns":["name","n"],"where":[["n","==",1]]}]},"`+u0+`"]`)
	p.Reply(r, `[false,"`+u1+`",{"T":{"`+u1+`":{"initial":{"name":"a","n":1}}}}]`)
	rep := mustReplica(t)(result())

	done := make(chan error, 1)
	go func() { done <- rep.SetConditions(t.Context(), "T", ovsdb.Is("name", ovsdb.String("b")), n1) }()
	r = p.Expect("monitor_cond_change")
	want(t, string(r.Params), `[1,1,{"T":[{"where":[["name","==","b"],["n","==",1]]}]}]`)
	p.Notify("update3", `[1,"`+u2+`",{"T":{"`+u2+`":{"insert":{"name":"b"}}}}]`)
	p.Reply(r, "{}")
	if err := <-done; err != nil || rep.Snapshot().Len("T") != 2 {
		t.Errorf("%v: %s", err, dump(rep.Snapshot()))
	}
	for _, bad := range []ovsdb.Condition{ovsdb.Is("opt", ovsdb.Integer(1)), ovsdb.Is("nope", ovsdb.Integer(1)), ovsdb.Is("n", ovsdb.String("1"))} {
		if err := rep.SetConditions(t.Context(), "T", bad); err == nil {
			t.Errorf("%v was accepted", bad)
		}
	}
	if err := rep.SetConditions(t.Context(), "U"); err == nil {
		t.Error("a table that is not there")
	}
	p.Cut()
	p = script.Accept()
	p.Handshake(tinySchema)
	r = p.Expect("monitor_cond_since")
	if !strings.Contains(string(r.Params), `[["name","==","b"],["n","==",1]]`) {
		t.Errorf("after a reconnect: %s", r.Params)
	}
	p.Reply(r, `[false,"`+u1+`",{}]`)

	// A replica that is closed is cancelled, and one in the middle of its first
	// copy too.
	rep.Close()
	p.Reply(p.Expect("monitor_cancel"), "{}")
	ctx, cancel := context.WithCancel(t.Context())
	go func() { _, err := c.Monitor(ctx, tinySpec); done <- err }()
	r = p.Expect("monitor_cond_since")
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	p.Reply(r, `[false,"`+u1+`",{"T":{"`+u1+`":{"initial":{"name":"a"}}}}]`)
	want(t, string(p.Expect("monitor_cancel").Params), "[2]")
}
