package inventory

import (
	"testing"

	"brlb/ovsdb"
	"brlb/ovsdb/ovsdbtest"
	"brlb/ovsdb/vswitch"
)

// viewOf reads what a server holds now.
func viewOf(t *testing.T, srv *ovsdbtest.Server) vswitch.View {
	t.Helper()
	client, err := ovsdb.Dial(t.Context(), ovsdb.Config{Endpoints: []string{srv.Endpoint()}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	replica, err := client.Monitor(t.Context(), vswitch.Monitor())
	if err != nil {
		t.Fatal(err)
	}
	return vswitch.View{Snapshot: replica.Snapshot()}
}
