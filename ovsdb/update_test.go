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
	// What the server refuses has changed nothing.
	go func() { done <- rep.SetConditions(t.Context(), "T", ovsdb.Is("n", ovsdb.Integer(9))) }()
	p.Fail(p.Expect("monitor_cond_change"), `{"error":"internal error"}`)
	if err := <-done; err == nil || !strings.Contains(err.Error(), "internal error") {
		t.Error(err)
	}
	for _, bad := range []ovsdb.Condition{ovsdb.Is("opt", ovsdb.Integer(1)), ovsdb.Is("nope", ovsdb.Integer(1)), ovsdb.Is("n", ovsdb.String("1")),
		ovsdb.Is("name", ovsdb.String("\x00")), {Column: "n", Function: "~", Value: ovsdb.Integer(1)}} {
		if err := rep.SetConditions(t.Context(), "T", bad); err == nil {
			t.Errorf("%v was accepted", bad)
		}
	}
	if err := rep.SetConditions(t.Context(), "U"); err == nil {
		t.Error("a table that is not there")
	}
	p.Notify("update3", `[1,"`+u3+`",{"T":{"`+u2+`":{"modify":{"n":1}}}}]`)
	p.Cut()
	p = script.Accept()
	p.Handshake(tinySchema)
	r = p.Expect("monitor_cond_since")
	want(t, string(r.Params), `["db",1,{"T":[{"columns":["name","n"],"where":[["name","==","b"],["n","==",1]]}]},"`+u3+`"]`)
	p.Reply(r, `[true,"`+u1+`",{}]`)

	// Cut before the server has confirmed: what is held has no position, though
	// an update came meanwhile.
	if err := c.Ready(t.Context()); err != nil {
		t.Fatal(err)
	}
	go func() { done <- rep.SetConditions(t.Context(), "T") }()
	p.Expect("monitor_cond_change")
	p.Notify("update3", `[1,"`+u2+`",{"T":{"`+u2+`":{"modify":{"n":2}}}}]`)
	p.Cut()
	if err := <-done; err == nil {
		t.Error("confirmed by nobody")
	}
	p = script.Accept()
	p.Handshake(tinySchema)
	r = p.Expect("monitor_cond_since")
	want(t, string(r.Params), `["db",1,{"T":[{"columns":["name","n"]}]},"`+u0+`"]`)

	// What was accepted before and is refused now is tried again.
	p.Fail(r, `{"error":"internal error"}`)
	p.ExpectGone()
	p = script.Accept()
	p.Handshake(tinySchema)
	p.Reply(p.Expect("monitor_cond_since"), `[false,"`+u1+`",{}]`)

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
	if err := rep.SetConditions(t.Context(), "T"); !errors.Is(err, ovsdb.ErrClosed) {
		t.Errorf("conditions of a closed replica: %v", err)
	}
	if err := rep.Wait(t.Context(), func(*ovsdb.Snapshot) bool { return true }); !errors.Is(err, ovsdb.ErrClosed) {
		t.Errorf("waiting on a closed replica: %v", err)
	}
}

// A replica must not stand still unnoticed because the next server's schema
// lacks a column: the client is not connected, and says why.
func TestSchemaLacksWhatIsFollowed(t *testing.T) {
	script := ovsdbtest.NewScript(t)
	c := startScripted(t, script)
	result := monitorAsync(t, c, tinySpec)
	p := script.Accept()
	p.Handshake(tinySchema)
	p.Reply(p.Expect("monitor_cond_since"), `[false,"`+u0+`",{"T":{"`+u1+`":{"initial":{"name":"a"}}}}]`)
	sub := mustReplica(t)(result()).Subscribe(0)
	want(t, describe(next(t, sub)), `insert "a"`)
	p.Cut()
	p = script.Accept()
	p.Handshake(strings.Replace(tinySchema, `"opt":`, `"other":`, 1))
	p.ExpectGone()
	p = script.Accept()
	if st, _ := c.State(); st.Connected || !strings.Contains(st.Reason.Error(), "no column T.opt in its schema") {
		t.Errorf("state: %+v", st)
	}
	p.Handshake(tinySchema)
	p.Reply(p.Expect("monitor_cond_since"), `[false,"`+u0+`",{"T":{"`+u2+`":{"initial":{"name":"b"}}}}]`)
	want(t, describe(next(t, sub)), `delete "a", insert "b" (resync)`)
}
