package ovsdb_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"testing"
	"time"

	"brlb/ovsdb"
	"brlb/ovsdb/ovsdbtest"
)

// endpoint is where the examples find ovsdb-server.
var endpoint = "unix:/run/openvswitch/db.sock"

// Follow the bridges of the local Open vSwitch for a while. The first batch has
// those that are there, each later one what a transaction changed.
func Example() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	client, err := ovsdb.Dial(ctx, ovsdb.Config{Endpoints: []string{endpoint}})
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	bridges, err := client.Monitor(ctx, ovsdb.MonitorSpec{Tables: []ovsdb.TableSpec{
		{Table: "Bridge", Columns: []string{"name", "external_ids"}, Indexes: [][]string{{"name"}}},
	}})
	if err != nil {
		log.Fatal(err)
	}
	for br := range bridges.Snapshot().Find("Bridge", "name", ovsdb.String("br0")) {
		fmt.Println("br0 is", br.UUID())
	}

	changes := bridges.Subscribe(0)
	defer changes.Close()
	for {
		batch, err := changes.Next(ctx)
		if errors.Is(err, context.DeadlineExceeded) {
			return
		}
		if err != nil {
			log.Fatal(err)
		}
		for _, ch := range batch.Changes {
			switch {
			case ch.Old == nil:
				fmt.Println("new:", ch.New.Get("name"))
			case ch.New == nil:
				fmt.Println("gone:", ch.Old.Get("name"))
			case ch.Changed("external_ids"):
				fmt.Println(ch.New.Get("name"), "has", ch.New.Get("external_ids"))
			}
		}
	}
}

// Add a bridge with its internal port: rows refer to each other by the names of
// their inserts, and a row of the root table refers to the bridge, else nothing
// of it would stay.
func ExampleClient_Transact() {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	client, err := ovsdb.Dial(ctx, ovsdb.Config{Endpoints: []string{endpoint}})
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	name := ovsdb.String("br-example")
	results, err := client.Transact(ctx,
		ovsdb.Insert{Table: "Interface", Name: "i", Row: ovsdb.Columns{"name": name, "type": ovsdb.String("internal")}},
		ovsdb.Insert{Table: "Port", Name: "p", Row: ovsdb.Columns{"name": name, "interfaces": ovsdb.NamedRef("i")}},
		ovsdb.Insert{Table: "Bridge", Name: "b", Row: ovsdb.Columns{"name": name, "ports": ovsdb.NamedRef("p")}},
		ovsdb.Mutate{Table: "Open_vSwitch", Mutations: []ovsdb.Mutation{{Column: "bridges", Mutator: ovsdb.MutateInsert, Value: ovsdb.NamedRef("b")}}},
	)
	switch ovsdb.OutcomeOf(err) {
	case ovsdb.Committed:
		fmt.Println("added", results[2].UUID)
	case ovsdb.Refused:
		fmt.Println("the server says why:", err)
	case ovsdb.Unknown:
		fmt.Println("read the database before trying again:", err)
	case ovsdb.NotSent:
		fmt.Println("nothing has happened:", err)
	}
}

// Write as the one active client among several.
func ExampleClient_Lock() {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	client, err := ovsdb.Dial(ctx, ovsdb.Config{Endpoints: []string{endpoint}})
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	lock, err := client.Lock("example")
	if err != nil {
		log.Fatal(err)
	}
	for {
		state, changed := lock.State()
		if state.Held {
			break
		}
		select {
		case <-changed:
		case <-ctx.Done():
			fmt.Println("somebody else is active; the lock is", state.Reason)
			return
		}
	}
	_, err = client.Transact(ctx, lock.Assert(), ovsdb.Mutate{
		Table:     "Open_vSwitch",
		Mutations: []ovsdb.Mutation{{Column: "external_ids", Mutator: ovsdb.MutateInsert, Value: ovsdb.StringMap(map[string]string{"active": "me"})}},
	})
	if errors.Is(err, ovsdb.ErrNotOwner) {
		fmt.Println("the lock was stolen a moment ago; nothing was written")
	} else if err != nil {
		log.Fatal(err)
	}
}

// The examples do on a real server what they say.
func TestExamples(t *testing.T) {
	srv := ovsdbtest.StartServer(t)
	local := endpoint
	defer func() { endpoint = local }()
	endpoint = srv.Endpoint()
	ExampleClient_Transact()
	ExampleClient_Lock()
	Example()
	c := dial(t, srv)
	if name, _ := transact(t, c, ovsdb.Select{Table: "Bridge"})[0].Rows[0].Get("name").AsString(); name != "br-example" {
		t.Errorf("the bridge is %q", name)
	}
	ids := transact(t, c, ovsdb.Select{Table: "Open_vSwitch"})[0].Rows[0].Get("external_ids")
	if ids.String() != `{"active"="me"}` {
		t.Errorf("external_ids are %v", ids)
	}
}
