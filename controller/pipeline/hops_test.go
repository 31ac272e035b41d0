package pipeline

import (
	"strings"
	"testing"

	"brlb/openflow"
)

// Each next hop is listened to, once: a router instead of the members behind it.
func TestAnnouncedRows(t *testing.T) {
	var found []string
	for _, f := range render(t, serving(t, small).Snapshot()).Flows() {
		if f.Table == TableClassify && f.Priority == prioAnnounced {
			hop, _ := f.Match.Get(openflow.ARPTPA)
			found = append(found, hop.IP().String())
		}
	}
	if got, want := strings.Join(found, " "), "10.30.0.11 10.30.0.12 10.30.0.254"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
