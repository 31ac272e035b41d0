package ovsdb_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	"brlb/ovsdb"
)

// Follow the bridges of the local Open vSwitch, and change one of them as the
// holder of a lock.
func Example() {
	ctx := context.Background()
	client, err := ovsdb.Dial(ctx, ovsdb.Config{Endpoints: []string{"unix:/run/openvswitch/db.sock"}})
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	lock, err := client.Lock("example")
	if err != nil {
		log.Fatal(err)
	}
	bridges, err := client.Monitor(ctx, ovsdb.MonitorSpec{Tables: []ovsdb.TableSpec{
		{Table: "Bridge", Columns: []string{"name", "external_ids"}, Indexes: [][]string{{"name"}}},
	}})
	if err != nil {
		log.Fatal(err)
	}

	for br := range bridges.Snapshot().Find("Bridge", "name", ovsdb.String("br0")) {
		_, err := client.Transact(ctx, lock.Assert(), ovsdb.Mutate{
			Table: "Bridge", Where: []ovsdb.Condition{ovsdb.IsRow(br.UUID())},
			Mutations: []ovsdb.Mutation{{Column: "external_ids", Mutator: ovsdb.MutateInsert, Value: ovsdb.StringMap(map[string]string{"seen": "yes"})}},
		})
		switch {
		case errors.Is(err, ovsdb.ErrNotOwner):
			log.Print("somebody else is active")
		case ovsdb.OutcomeOf(err) == ovsdb.Unknown:
			log.Print("read the database before trying again")
		case err != nil:
			log.Fatal(err)
		}
	}

	changes := bridges.Subscribe(0)
	defer changes.Close()
	for {
		batch, err := changes.Next(ctx)
		if err != nil {
			log.Fatal(err)
		}
		for _, ch := range batch.Changes {
			fmt.Println(ch.UUID, ch.Old.Get("name"), ch.New.Get("name"), ch.Changed("external_ids"))
		}
	}
}
