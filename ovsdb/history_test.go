package ovsdb

import (
	"context"
	"fmt"
	"net"
	"slices"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"brlb/ovsdb/ovsdbtest"
)

// cutter dials, and can cut what it has dialled.
type cutter struct {
	mu    sync.Mutex
	conns []net.Conn
}

func (c *cutter) dial(ctx context.Context, network, address string) (net.Conn, error) {
	var d net.Dialer
	nc, err := d.DialContext(ctx, network, address)
	if err == nil {
		c.mu.Lock()
		c.conns = append(c.conns, nc)
		c.mu.Unlock()
	}
	return nc, err
}

func (c *cutter) cut() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, nc := range c.conns {
		nc.Close()
	}
	c.conns = nil
}

// follower is a replica under test, and what its stream has told so far.
type follower struct {
	rep   *Replica
	sub   *Subscription
	spec  TableSpec
	where []Condition
	seen  map[UUID]*Row
}

// history runs random changes of one database, and follows them.
type history struct {
	*rapid.T
	ctx       context.Context
	writer    *Client // changes the database
	reader    *Client // is cut at times
	cutter    *cutter
	bridges   []UUID
	followers []*follower
	names     *int // of bridges, across histories
	conds     bool // the server is asked for conditions
}

// The tables that are followed: rows come and go by references, and have
// integers, sets, maps and optional columns.
var historyColumns = map[string][]string{
	"Bridge":    {"name", "ports", "fail_mode", "stp_enable", "flood_vlans", "external_ids", "other_config"},
	"Port":      {"name", "interfaces", "tag", "trunks", "external_ids", "bond_updelay"},
	"Interface": {"name", "type", "ofport_request", "options", "external_ids"},
}

func TestHistories(t *testing.T) {
	for _, f := range []format{formatSince, formatCond, formatRFC} {
		t.Run(f.method(), func(t *testing.T) {
			srv := ovsdbtest.StartServer(t)
			writer, err := Dial(t.Context(), Config{Endpoints: []string{srv.Endpoint()}})
			if err != nil {
				t.Fatal(err)
			}
			defer writer.Close()
			cut := &cutter{}
			reader, err := Dial(t.Context(), Config{Endpoints: []string{srv.Endpoint()}, Dial: cut.dial, MinBackoff: time.Microsecond, MaxBackoff: time.Millisecond})
			if err != nil {
				t.Fatal(err)
			}
			defer reader.Close()
			st, _ := reader.State()
			reader.mu.Lock()
			reader.formats[srv.Endpoint()] = serverFormat{st.Server, f}
			reader.mu.Unlock()
			names := 0
			rapid.Check(t, func(rt *rapid.T) {
				h := &history{T: rt, ctx: t.Context(), writer: writer, reader: reader, cutter: cut, names: &names, conds: f != formatRFC}
				defer h.cleanUp()
				h.follow()
				for range rapid.IntRange(1, 12).Draw(rt, "steps") {
					h.step()
					for _, f := range h.followers {
						h.check(f)
					}
				}
			})
			if got := reader.Stats(); got != (Stats{}) {
				t.Errorf("the server did not behave: %+v", got)
			}
		})
	}
}

func (h *history) step() {
	switch rapid.IntRange(0, 11).Draw(h.T, "step") {
	case 0, 1:
		h.addBridge()
	case 2:
		h.dropBridge()
	case 3:
		h.follow()
	case 4:
		h.unfollow()
	case 5:
		h.cutter.cut()
	case 6:
		h.setConditions()
	default:
		h.change()
	}
}

func (h *history) transact(c *Client, ops ...Op) []Result {
	res, err := c.Transact(h.ctx, ops...)
	if err != nil {
		h.Fatal(err)
	}
	return res
}

func (h *history) smallMap() Value {
	keys := rapid.SliceOfDistinct(rapid.SampledFrom([]string{"a", "b", "c", "d"}), rapid.ID).Draw(h.T, "keys")
	m := make(map[string]string)
	for _, k := range keys {
		m[k] = rapid.SampledFrom([]string{"", "1", "2", "ü\"\n"}).Draw(h.T, "value")
	}
	return StringMap(m)
}

func (h *history) vlans(most int) Value {
	return Integers(rapid.SliceOfNDistinct(rapid.Int64Range(0, 6), 0, most, rapid.ID).Draw(h.T, "vlans")...)
}

func (h *history) addBridge() {
	var ops []Op
	var ports []string
	for range rapid.IntRange(1, 3).Draw(h.T, "ports") {
		*h.names++
		name := fmt.Sprintf("p%d", *h.names)
		ports = append(ports, name)
		ops = append(ops,
			Insert{Table: "Interface", Name: "i" + name, Row: Columns{"name": String(name), "external_ids": h.smallMap()}},
			Insert{Table: "Port", Name: name, Row: Columns{"name": String(name), "interfaces": NamedRef("i" + name), "trunks": h.vlans(4)}})
	}
	*h.names++
	ops = append(ops,
		Insert{Table: "Bridge", Name: "b", Row: Columns{"name": String(fmt.Sprintf("br%d", *h.names)), "ports": NamedRefs(ports...), "external_ids": h.smallMap()}},
		Mutate{Table: "Open_vSwitch", Mutations: []Mutation{{"bridges", MutateInsert, NamedRef("b")}}})
	res := h.transact(h.writer, ops...)
	h.bridges = append(h.bridges, res[len(res)-2].UUID)
}

func (h *history) dropBridge() {
	if len(h.bridges) == 0 {
		return
	}
	i := rapid.IntRange(0, len(h.bridges)-1).Draw(h.T, "bridge")
	h.transact(h.writer, Mutate{Table: "Open_vSwitch", Mutations: []Mutation{{"bridges", MutateDelete, Ref(h.bridges[i])}}})
	h.bridges = slices.Delete(h.bridges, i, i+1)
}

// change does up to four random updates in one transaction.
func (h *history) change() {
	var ops []Op
	for range rapid.IntRange(1, 4).Draw(h.T, "updates") {
		var op Op
		switch rapid.IntRange(0, 7).Draw(h.T, "update") {
		case 0:
			op = Update{Table: "Bridge", Row: Columns{"flood_vlans": h.vlans(5)}}
		case 1:
			op = Update{Table: "Port", Where: []Condition{{"tag", Excludes, Integer(1)}}, Row: Columns{"tag": h.vlans(1), "external_ids": h.smallMap()}}
		case 2:
			op = Mutate{Table: "Bridge", Mutations: []Mutation{{"external_ids", MutateDelete, Strings("a", "b")}, {"external_ids", MutateInsert, h.smallMap()}}}
		case 3:
			op = Mutate{Table: "Port", Mutations: []Mutation{{"trunks", MutateInsert, h.vlans(3)}, {"bond_updelay", MutateAdd, Integer(1 << 60)}}}
		case 4:
			op = Update{Table: "Interface", Row: Columns{"options": h.smallMap(), "ofport_request": EmptySet()}}
		case 5:
			op = Update{Table: "Port", Row: Columns{"bond_updelay": Integer(-1 << 63)}}
		case 6:
			op = Update{Table: "Bridge", Row: Columns{"fail_mode": String("secure"), "stp_enable": Boolean(rapid.Bool().Draw(h.T, "stp"))}}
		default:
			op = Update{Table: "Bridge", Row: Columns{"fail_mode": EmptySet(), "other_config": h.smallMap()}}
		}
		ops = append(ops, op)
	}
	res, err := h.writer.Transact(h.ctx, ops...)
	if err != nil && OutcomeOf(err) != Refused { // adding may leave the range of integers
		h.Fatalf("%v %v", res, err)
	}
}

func (h *history) follow() {
	if len(h.followers) >= 4 {
		return
	}
	table := rapid.SampledFrom([]string{"Bridge", "Port", "Interface"}).Draw(h.T, "table")
	columns := rapid.SliceOfNDistinct(rapid.SampledFrom(historyColumns[table]), 1, 7, rapid.ID).Draw(h.T, "columns")
	f := &follower{seen: make(map[UUID]*Row), spec: TableSpec{
		Table: table, Columns: columns, OptionalColumns: []string{"no_such_column"}, Indexes: [][]string{columns[:1]}}}
	if h.conds {
		f.where = h.conditions(columns)
		f.spec.Where = f.where
	}
	var err error
	if f.rep, err = h.reader.Monitor(h.ctx, MonitorSpec{Tables: []TableSpec{f.spec}}); err != nil {
		h.Fatal(err)
	}
	f.sub = f.rep.Subscribe(rapid.SampledFrom([]int{0, 1, 3}).Draw(h.T, "queue"))
	h.followers = append(h.followers, f)
}

// conditions are such that a select, where all must hold, can check them: there
// is at most one.
func (h *history) conditions(columns []string) []Condition {
	if rapid.Bool().Draw(h.T, "all rows") {
		return nil
	}
	var possible []Condition
	for _, c := range []Condition{
		{"external_ids", Includes, StringMap(map[string]string{"a": "1"})},
		{"name", NotEqual, String("p1")},
		{"external_ids", Excludes, StringMap(map[string]string{"b": ""})},
	} {
		if slices.Contains(columns, c.Column) {
			possible = append(possible, c)
		}
	}
	if len(possible) == 0 {
		return nil
	}
	return []Condition{rapid.SampledFrom(possible).Draw(h.T, "condition")}
}

func (h *history) setConditions() {
	if !h.conds || len(h.followers) == 0 {
		return
	}
	f := h.followers[rapid.IntRange(0, len(h.followers)-1).Draw(h.T, "follower")]
	f.where = h.conditions(f.spec.Columns)
	// If the connection has just been cut they hold on the next one.
	if err := f.rep.SetConditions(h.ctx, f.spec.Table, f.where...); err != nil {
		if st, _ := h.reader.State(); st.Connected {
			if err := h.reader.Ready(h.ctx); err != nil {
				h.Fatal(err)
			}
		}
	}
}

func (h *history) unfollow() {
	if len(h.followers) == 0 {
		return
	}
	i := rapid.IntRange(0, len(h.followers)-1).Draw(h.T, "follower")
	h.followers[i].rep.Close()
	h.followers = slices.Delete(h.followers, i, i+1)
}

func (h *history) cleanUp() {
	for _, f := range h.followers {
		f.rep.Close()
	}
	if len(h.bridges) > 0 {
		h.transact(h.writer, Mutate{Table: "Open_vSwitch", Mutations: []Mutation{{"bridges", MutateDelete, Refs(h.bridges...)}}})
	}
}

// check compares a replica with what the server answers on the same connection,
// and with what the stream has told.
func (h *history) check(f *follower) {
	var rows []*Row
	for {
		if err := h.reader.Ready(h.ctx); err != nil {
			h.Fatal(err)
		}
		res, err := h.reader.Transact(h.ctx, Select{Table: f.spec.Table, Where: f.where, Columns: append([]string{"_uuid"}, f.spec.Columns...)})
		if err == nil {
			rows = res[0].Rows
			break
		}
		if OutcomeOf(err) == Refused {
			h.Fatal(err)
		}
	}
	snap := f.rep.Snapshot()
	if snap.Len(f.spec.Table) != len(rows) {
		h.Fatalf("%v where %v: the replica has %d rows, the server %d", f.rep, f.where, snap.Len(f.spec.Table), len(rows))
	}
	for _, r := range rows {
		have := snap.Row(f.spec.Table, r.UUID())
		for _, c := range f.spec.Columns {
			if have.Get(c) != r.Get(c) {
				h.Fatalf("%v: row %v: %s is %v in the replica, %v on the server", f.rep, r.UUID(), c, have.Get(c), r.Get(c))
			}
		}
		found := 0
		for x := range snap.Find(f.spec.Table, f.spec.Columns[0], r.Get(f.spec.Columns[0])) {
			if x == have {
				found++
			}
		}
		if found != 1 {
			h.Fatalf("%v: the index finds row %v %d times", f.rep, r.UUID(), found)
		}
	}
	if rapid.IntRange(0, 3).Draw(h.T, "slow") == 0 {
		return // the consumer is busy
	}
	for {
		b, ok := f.sub.take()
		if !ok {
			break
		}
		for _, c := range b.Changes {
			if old := f.seen[c.UUID]; (old == nil) != (c.Old == nil) || old != nil && !old.equal(c.Old) {
				h.Fatalf("%v: the stream changes %v, which was told as %v", f.rep, c, old)
			}
			if c.New == nil {
				delete(f.seen, c.UUID)
				continue
			}
			if c.Old != nil && c.Old.equal(c.New) {
				h.Fatalf("%v: the stream tells of a change that is none: %v", f.rep, c)
			}
			f.seen[c.UUID] = c.New
		}
	}
	if len(f.seen) != len(rows) {
		h.Fatalf("%v: the stream told of %d rows, the server has %d", f.rep, len(f.seen), len(rows))
	}
	for u, r := range f.seen {
		if have := snap.Row(f.spec.Table, u); have == nil || !have.equal(r) {
			h.Fatalf("%v: the stream led to %v, the replica has %v", f.rep, r, have)
		}
	}
}
