package ovsdb

import (
	"errors"
	"fmt"
	"slices"
)

// This file deals with what ovsdb-server says of itself: the databases it has,
// and, in its database _Server, whether a clustered one is usable here
// (ovsdb-server(5)).

// serverSpec is what is monitored of _Server.
func serverSpec() MonitorSpec {
	return MonitorSpec{Tables: []TableSpec{{
		Table:           "Database",
		Columns:         []string{"name", "model", "connected", "leader"},
		OptionalColumns: []string{"cid", "index"},
	}}}
}

// serverStatus is how a server stands with a database.
type serverStatus struct {
	// clustered: the database is one server's copy of a cluster's. distant: it is
	// that, or what a relay passes on of another server's.
	clustered, distant bool
	connected, leader  bool
	cluster            UUID
	// index is the newest entry of the cluster's log that the server has.
	index int64
}

func serverStatusOf(snap *Snapshot, database string) (serverStatus, bool) {
	for r := range snap.Rows("Database") {
		if name, _ := r.Get("name").AsString(); name != database {
			continue
		}
		var st serverStatus
		model, _ := r.Get("model").AsString()
		st.clustered = model == "clustered"
		st.distant = st.clustered || model == "relay"
		st.connected, _ = r.Get("connected").AsBoolean()
		st.leader, _ = r.Get("leader").AsBoolean()
		st.cluster, _ = r.Get("cid").AsUUID()
		st.index, _ = r.Get("index").AsInteger()
		return st, true
	}
	return serverStatus{}, false
}

// identify learns which server this is and which databases it has.
func (s *session) identify() error {
	db := s.client.config.Database
	var databases []string
	err := s.call("list_dbs", []byte("[]"), func(r *reader) (err error) {
		databases, err = r.texts()
		return err
	})
	if err != nil {
		return err
	}
	if !slices.Contains(databases, db) {
		return fmt.Errorf("ovsdb: the server has no database %s, only %s", quoteCut(db), quoteCut(fmt.Sprint(databases)))
	}
	err = s.call("get_server_id", []byte("[]"), func(r *reader) (err error) {
		s.id, err = r.uuid()
		return err
	})
	if err != nil && !errors.Is(err, errUnknownMethod) {
		return err
	}
	if !slices.Contains(databases, "_Server") {
		return nil
	}
	// A server that does not know that we notice changes of its databases cuts
	// the connection when one is converted; one that knows cancels the monitors.
	err = s.call("set_db_change_aware", []byte("[true]"), skipResult)
	if err != nil && !errors.Is(err, errUnknownMethod) {
		return err
	}
	schema, err := s.readSchema("_Server")
	if err != nil {
		return err
	}
	s.status = newReplica(s.client, "_Server", serverSpec())
	if err := s.startMonitor(s.status, schema); err != nil {
		return err
	}
	select {
	case err := <-s.status.first:
		if err != nil {
			return err
		}
	default:
		return errors.New("ovsdb: the server does not say how its databases are")
	}
	return s.checkStatus()
}

// checkStatus fails if the server is of no use for the database, now or any
// more.
func (s *session) checkStatus() error {
	c := s.client
	st, ok := serverStatusOf(s.status.Snapshot(), c.config.Database)
	switch {
	case !ok:
		return fmt.Errorf("ovsdb: the server has no database %s any more", c.config.Database)
	case st.distant && !st.connected:
		return errors.New("ovsdb: the server has lost its cluster, or the server that it relays")
	case !st.clustered:
		return nil
	case c.config.LeaderOnly && !st.leader:
		return errors.New("ovsdb: the server is not the leader of its cluster")
	}
	// A server that lags behind what has been seen elsewhere would turn time
	// back.
	if c.cluster == st.cluster && st.index < c.clusterIndex {
		return fmt.Errorf("ovsdb: the server is behind: it has entry %d of the cluster's log, and %d was seen before", st.index, c.clusterIndex)
	}
	c.cluster, c.clusterIndex = st.cluster, st.index
	return nil
}

// texts reads an array of strings.
func (r *reader) texts() ([]string, error) {
	if _, err := r.enter('['); err != nil {
		return nil, err
	}
	var out []string
	for {
		more, err := r.more()
		if err != nil || !more {
			return out, err
		}
		text, err := r.ownText()
		if err != nil {
			return nil, err
		}
		out = append(out, text)
	}
}
