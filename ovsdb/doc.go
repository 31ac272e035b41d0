// Package ovsdb is a client of the Open vSwitch Database Management Protocol
// (RFC 7047) and of the extensions that ovsdb-server(7) adds to it.
//
// A [Client] owns the connection: it reads the schema, sets up locks and
// monitors, and does so again after each loss. A [Replica] is a copy of some
// tables that follows the database; it gives an immutable [Snapshot] to read
// from any goroutine, and each [Subscription] an ordered stream of changes
// without gaps, across reconnects too. [Client.Transact] changes the database,
// and says whether it was changed, was not, or may have been. A [Lock] makes one
// client the active one.
//
// Invariants: a replica is what one transaction left, never half of one; what
// its subscribers have been told leads exactly to its snapshot; when Transact
// returns, the replicas show what it did; the goroutine that reads from the
// server never waits for anyone.
//
// The package knows nothing of what is in a database. Package vswitch has the
// tables of Open vSwitch.
package ovsdb
