package ovsdb_test

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"brlb/ovsdb"
	"brlb/ovsdb/ovsdbtest"
)

// Every operation, function and mutator, as the real server understands them.
func TestEveryOperation(t *testing.T) {
	srv := ovsdbtest.StartServer(t)
	c := dial(t, srv)
	port := transact(t, c, addBridge("br0")...)[1].UUID
	is := []ovsdb.Condition{ovsdb.IsRow(port)}
	get := func(column string) ovsdb.Value {
		t.Helper()
		rows := transact(t, c, ovsdb.Select{Table: "Port", Where: is, Columns: []string{column}})[0].Rows
		if len(rows) != 1 || rows[0].Table() != "Port" {
			t.Fatalf("select: %v", rows)
		}
		return rows[0].Get(column)
	}
	mutate := func(column string, m ovsdb.Mutator, v ovsdb.Value) ovsdb.Op {
		return ovsdb.Mutate{Table: "Port", Where: is, Mutations: []ovsdb.Mutation{{Column: column, Mutator: m, Value: v}}}
	}
	set := func(column string, v ovsdb.Value) ovsdb.Op {
		return ovsdb.Update{Table: "Port", Where: is, Row: ovsdb.Columns{column: v}}
	}
	const n, ids, vlans = "bond_updelay", "external_ids", "trunks"
	abc := ovsdb.StringMap(map[string]string{"a": "1", "b": "2", "c": "3"})
	for _, tt := range []struct {
		name   string
		ops    []ovsdb.Op
		column string
		want   ovsdb.Value
	}{
		{"greatest", []ovsdb.Op{set(n, ovsdb.Integer(math.MaxInt64))}, n, ovsdb.Integer(math.MaxInt64)},
		{"least", []ovsdb.Op{set(n, ovsdb.Integer(math.MinInt64))}, n, ovsdb.Integer(math.MinInt64)},
		{"arithmetic", []ovsdb.Op{set(n, ovsdb.Integer(7)), mutate(n, ovsdb.MutateAdd, ovsdb.Integer(3)), mutate(n, ovsdb.MutateSubtract, ovsdb.Integer(1)),
			mutate(n, ovsdb.MutateMultiply, ovsdb.Integer(5)), mutate(n, ovsdb.MutateDivide, ovsdb.Integer(2)), mutate(n, ovsdb.MutateRemainder, ovsdb.Integer(6))}, n, ovsdb.Integer(4)},
		{"set", []ovsdb.Op{set(vlans, ovsdb.Integers(1, 2, 3)), mutate(vlans, ovsdb.MutateInsert, ovsdb.Integers(3, 4)), mutate(vlans, ovsdb.MutateDelete, ovsdb.Integer(1))}, vlans, ovsdb.Integers(2, 3, 4)},
		{"map insert leaves keys", []ovsdb.Op{set(ids, abc), mutate(ids, ovsdb.MutateInsert, ovsdb.StringMap(map[string]string{"a": "9", "d": "4"}))}, ids,
			ovsdb.StringMap(map[string]string{"a": "1", "b": "2", "c": "3", "d": "4"})},
		{"map delete keys", []ovsdb.Op{set(ids, abc), mutate(ids, ovsdb.MutateDelete, ovsdb.Strings("a", "x"))}, ids, ovsdb.StringMap(map[string]string{"b": "2", "c": "3"})},
		{"map delete pairs", []ovsdb.Op{set(ids, abc), mutate(ids, ovsdb.MutateDelete, ovsdb.StringMap(map[string]string{"a": "1", "b": "x"}))}, ids, ovsdb.StringMap(map[string]string{"b": "2", "c": "3"})},
		{"text", []ovsdb.Op{set(ids, ovsdb.StringMap(map[string]string{"\"\\/\b\f\n\r\t\x01\x7f": "é☃😀\u2028"}))}, ids, ovsdb.StringMap(map[string]string{"\"\\/\b\f\n\r\t\x01\x7f": "é☃😀\u2028"})},
		{"wait that holds", []ovsdb.Op{set(n, ovsdb.Integer(8)), ovsdb.Wait{Table: "Port", Where: is, Columns: []string{n, "name"}, Until: ovsdb.UntilEqual,
			Rows: []ovsdb.Columns{{n: ovsdb.Integer(8), "name": ovsdb.String("br0")}}}, ovsdb.Comment{Text: "waited\n"}}, n, ovsdb.Integer(8)},
	} {
		if res := transact(t, c, tt.ops...); len(res) != len(tt.ops) || res[0].Count != 1 {
			t.Errorf("%s: results %+v", tt.name, res)
		}
		if got := get(tt.column); !got.Equal(tt.want) {
			t.Errorf("%s: %v, want %v", tt.name, got, tt.want)
		}
	}

	transact(t, c, set(n, ovsdb.Integer(5)), set(vlans, ovsdb.Integers(1, 2)))
	for _, tt := range []struct {
		column   string
		function ovsdb.Function
		v        ovsdb.Value
		count    int64
	}{
		{n, ovsdb.Less, ovsdb.Integer(5), 0}, {n, ovsdb.LessEqual, ovsdb.Integer(5), 1}, {n, ovsdb.Equal, ovsdb.Integer(5), 1},
		{n, ovsdb.NotEqual, ovsdb.Integer(5), 0}, {n, ovsdb.GreaterEqual, ovsdb.Integer(5), 1}, {n, ovsdb.Greater, ovsdb.Integer(4), 1},
		{vlans, ovsdb.Includes, ovsdb.Integer(2), 1}, {vlans, ovsdb.Excludes, ovsdb.Integer(2), 0}, {vlans, ovsdb.Equal, ovsdb.Integers(2, 1), 1},
	} {
		res := transact(t, c, ovsdb.Update{Table: "Port", Where: []ovsdb.Condition{{Column: tt.column, Function: tt.function, Value: tt.v}}, Row: ovsdb.Columns{"bond_downdelay": ovsdb.Integer(1)}})
		if res[0].Count != tt.count {
			t.Errorf("%s %s %v selects %d rows", tt.column, tt.function, tt.v, res[0].Count)
		}
	}

	for _, tt := range []struct {
		op   ovsdb.Op
		code string
	}{
		{ovsdb.Abort{}, "aborted"},
		{ovsdb.Assert{Lock: "nobody"}, "not owner"},
		{ovsdb.Wait{Table: "Port", Where: is, Columns: []string{n}, Until: ovsdb.UntilNotEqual, Rows: []ovsdb.Columns{{n: ovsdb.Integer(5)}}, Timeout: time.Millisecond}, "timed out"},
		{mutate(n, ovsdb.MutateMultiply, ovsdb.Integer(math.MaxInt64)), "range error"},
		{mutate(n, ovsdb.MutateDivide, ovsdb.Integer(0)), "domain error"},
		{set("tag", ovsdb.Integer(4096)), "constraint violation"},
		{set("name", ovsdb.String("x")), "constraint violation"}, // immutable
		{mutate(n, "?", ovsdb.Integer(0)), "unknown mutator"},
		{set("qos", ovsdb.Ref(ovsdb.UUID{1})), "referential integrity violation"},
	} {
		_, err := c.Transact(t.Context(), ovsdb.Comment{Text: "first"}, tt.op)
		var refused *ovsdb.TransactError
		if !errors.As(err, &refused) || refused.Code != tt.code {
			t.Errorf("%#v: %v, want %s", tt.op, err, tt.code)
		} else if refused.Index != 1 && refused.Code != "referential integrity violation" {
			t.Errorf("%#v: operation %d is blamed", tt.op, refused.Index)
		}
	}

	// A transaction that waits is cancelled, and nothing of it is done.
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err := c.Transact(ctx, ovsdb.Wait{Table: "Port", Where: is, Columns: []string{n}, Until: ovsdb.UntilEqual, Rows: []ovsdb.Columns{{n: ovsdb.Integer(6)}}, Timeout: -1}, set(vlans, ovsdb.Integers(9)))
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("cancelled: %v", err)
	}
	transact(t, c, set(n, ovsdb.Integer(6)))
	if got := get(vlans); !got.Equal(ovsdb.Integers(1, 2)) {
		t.Errorf("a cancelled transaction was done: %v", got)
	}
	// One that waits for another is done in the end, and order is kept.
	done := make(chan error, 1)
	go func() {
		_, err := c.Transact(t.Context(), ovsdb.Wait{Table: "Port", Where: is, Columns: []string{n}, Until: ovsdb.UntilEqual, Rows: []ovsdb.Columns{{n: ovsdb.Integer(7)}}, Timeout: -1}, set(vlans, ovsdb.Integers(9)))
		done <- err
	}()
	for get(n); ; time.Sleep(time.Millisecond) {
		select {
		case err := <-done:
			if err != nil || !get(vlans).Equal(ovsdb.Integers(9)) {
				t.Errorf("%v, %v", err, get(vlans))
			}
		default:
			transact(t, c, set(n, ovsdb.Integer(7)))
			continue
		}
		break
	}

	// The whole row, and none.
	all := transact(t, c, ovsdb.Select{Table: "Port", Where: is}, ovsdb.Select{Table: "Port", Where: []ovsdb.Condition{ovsdb.Is("name", ovsdb.String("none"))}})
	row := all[0].Rows[0]
	columns := 0
	for range row.Columns() {
		columns++
	}
	if row.UUID() != port || columns != len(c.Schema().Tables["Port"].Columns)+2 || len(all[1].Rows) != 0 {
		t.Errorf("select: %d columns of %v, %d rows", columns, row.UUID(), len(all[1].Rows))
	}
	if res := transact(t, c, ovsdb.Mutate{Table: "Open_vSwitch", Mutations: []ovsdb.Mutation{{Column: "bridges", Mutator: ovsdb.MutateDelete, Value: ovsdb.Refs(ref(t, c, "Bridge"))}}},
		ovsdb.Delete{Table: "Controller"}); res[0].Count != 1 || res[1].Count != 0 {
		t.Errorf("delete: %+v", res)
	}
	if rows := transact(t, c, ovsdb.Select{Table: "Port"})[0].Rows; len(rows) != 0 {
		t.Errorf("%d ports are left of no bridge", len(rows))
	}
}

func ref(t *testing.T, c *ovsdb.Client, table string) ovsdb.UUID {
	t.Helper()
	rows := transact(t, c, ovsdb.Select{Table: table, Columns: []string{"_uuid"}})[0].Rows
	if len(rows) != 1 {
		t.Fatalf("%d rows in %s", len(rows), table)
	}
	return rows[0].UUID()
}

// An Insert that names a row in a map's values, or weakly, or not at all.
func TestVanishingRows(t *testing.T) {
	srv := ovsdbtest.StartServer(t)
	c := dial(t, srv)
	transact(t, c,
		ovsdb.Insert{Table: "Datapath", Name: "d", Row: ovsdb.Columns{"datapath_version": ovsdb.String("1")}},
		ovsdb.Mutate{Table: "Open_vSwitch", Mutations: []ovsdb.Mutation{{Column: "datapaths", Mutator: ovsdb.MutateInsert,
			Value: ovsdb.MapOf(ovsdb.Pair{Key: ovsdb.StringAtom("netdev"), Value: ovsdb.NamedUUIDAtom("d")})}}})
	if rows := transact(t, c, ovsdb.Select{Table: "Datapath"})[0].Rows; len(rows) != 1 {
		t.Fatalf("%d datapaths", len(rows))
	}
	port := ovsdb.Insert{Table: "Port", Name: "p", Row: ovsdb.Columns{"name": ovsdb.String("p"), "interfaces": ovsdb.NamedRef("i")}}
	iface := ovsdb.Insert{Table: "Interface", Name: "i", Row: ovsdb.Columns{"name": ovsdb.String("p")}}
	for _, ops := range [][]ovsdb.Op{
		{iface},
		{ovsdb.Insert{Table: "Interface", Row: iface.Row}},
		{iface, port},
		{iface, port, ovsdb.Mutate{Table: "Bridge", Mutations: []ovsdb.Mutation{{Column: "ports", Mutator: ovsdb.MutateDelete, Value: ovsdb.NamedRef("p")}}}},
		{ovsdb.Insert{Table: "Port", Name: "p", Row: ovsdb.Columns{"name": ovsdb.String("p")}}, // a mirror's reference is weak
			ovsdb.Update{Table: "Mirror", Row: ovsdb.Columns{"select_src_port": ovsdb.NamedRef("p")}}},
	} {
		_, err := c.Transact(t.Context(), ops...)
		if ovsdb.OutcomeOf(err) != ovsdb.NotSent || !strings.Contains(err.Error(), "would delete it at commit") {
			t.Errorf("%#v: %v", ops, err)
		}
	}
}

func TestSubscriptionEnds(t *testing.T) {
	srv := ovsdbtest.StartServer(t)
	c := dial(t, srv)
	rep, err := c.Monitor(t.Context(), bridgeSpec)
	if err != nil {
		t.Fatal(err)
	}
	sub := rep.Subscribe(0)
	next(t, sub)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if _, err := sub.Next(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
	if err := rep.Wait(ctx, func(*ovsdb.Snapshot) bool { return false }); !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
	waiting := make(chan error, 1)
	go func() { _, err := sub.Next(t.Context()); waiting <- err }()
	sub.Close()
	sub.Close()
	if err := <-waiting; !errors.Is(err, ovsdb.ErrClosed) {
		t.Error(err)
	}
	go func() {
		waiting <- rep.Wait(t.Context(), func(*ovsdb.Snapshot) bool { return false })
	}()
	rep.Close()
	rep.Close()
	if err := <-waiting; !errors.Is(err, ovsdb.ErrClosed) {
		t.Error(err)
	}
	transact(t, c, addBridge("br0")...)
	if rep.Snapshot().Len("Bridge") != 0 || rep.Snapshot().Len("Open_vSwitch") != 1 {
		t.Error("a closed replica went on, or lost what it had")
	}
	c.Close()
	if _, err := c.Monitor(t.Context(), bridgeSpec); !errors.Is(err, ovsdb.ErrClosed) {
		t.Error(err)
	}
	if _, err := c.Lock("x"); !errors.Is(err, ovsdb.ErrClosed) {
		t.Error(err)
	}
	if err := c.Ready(t.Context()); !errors.Is(err, ovsdb.ErrClosed) {
		t.Error(err)
	}
	if st, _ := c.State(); st.Connected || !errors.Is(st.Reason, ovsdb.ErrClosed) {
		t.Errorf("state: %+v", st)
	}
}
