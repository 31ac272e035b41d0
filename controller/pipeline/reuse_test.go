package pipeline

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"brlb/controller/state"
)

// flushing is the snapshot of a switch that needs entries flushed.
func flushing(t *testing.T, cfg string) *state.Snapshot {
	t.Helper()
	s := serving(t, cfg)
	s.SetFlushReused(true)
	return s.Snapshot()
}

// What a switch gets that needs the entries of ports flushed before they are
// used again, and no other.
func TestReuseRows(t *testing.T) {
	plain := map[string]bool{}
	for _, f := range render(t, serving(t, small).Snapshot()).Flows() {
		plain[f.String()] = true
	}
	more := "\n"
	s := flushing(t, small)
	for _, f := range render(t, s).Flows() {
		if !plain[f.String()] {
			more += "# " + Explain(s, f) + "\n" + f.String() + "\n"
		}
		delete(plain, f.String())
	}
	for row := range plain {
		t.Errorf("gone: %s", row)
	}
	const want = `
# pool web: SYNs and FINs to the VIP: their ports are remembered
ADD priority=32005,tcp,nw_dst=10.20.0.100,tp_dst=80,tcp_flags=+fin-syn-rst cookie:0xb71b030001000000 actions=ct(commit,zone=32773,exec(set_field:0x1->ct_mark)),ct(table=2,zone=5,nat)
# pool web: SYNs and FINs to the VIP: their ports are remembered
ADD priority=32005,tcp,nw_dst=10.20.0.100,tp_dst=80,tcp_flags=+syn-ack cookie:0xb71b030001000000 actions=ct(table=7,zone=32773)
# pool tls: SYNs and FINs to the VIP: their ports are remembered
ADD priority=32005,tcp,nw_dst=10.20.0.100,tp_dst=443,tcp_flags=+fin-syn-rst cookie:0xb71b030002000000 actions=ct(commit,zone=32773,exec(set_field:0x1->ct_mark)),ct(table=2,zone=5,nat)
# pool tls: SYNs and FINs to the VIP: their ports are remembered
ADD priority=32005,tcp,nw_dst=10.20.0.100,tp_dst=443,tcp_flags=+syn-ack cookie:0xb71b030002000000 actions=ct(table=7,zone=32773)
# pool tls: SYNs and FINs to the VIP: their ports are remembered
ADD priority=32005,tcp,nw_dst=10.20.0.100,tp_dst=8443,tcp_flags=+fin-syn-rst cookie:0xb71b030002000000 actions=ct(commit,zone=32773,exec(set_field:0x1->ct_mark)),ct(table=2,zone=5,nat)
# pool tls: SYNs and FINs to the VIP: their ports are remembered
ADD priority=32005,tcp,nw_dst=10.20.0.100,tp_dst=8443,tcp_flags=+syn-ack cookie:0xb71b030002000000 actions=ct(table=7,zone=32773)
# pool tls: SYNs and FINs to the VIP: their ports are remembered
ADD priority=32005,tcp,nw_dst=10.20.0.101,tp_dst=443,tcp_flags=+fin-syn-rst cookie:0xb71b030002000000 actions=ct(commit,zone=32773,exec(set_field:0x1->ct_mark)),ct(table=2,zone=5,nat)
# pool tls: SYNs and FINs to the VIP: their ports are remembered
ADD priority=32005,tcp,nw_dst=10.20.0.101,tp_dst=443,tcp_flags=+syn-ack cookie:0xb71b030002000000 actions=ct(table=7,zone=32773)
# pool tls: SYNs and FINs to the VIP: their ports are remembered
ADD priority=32005,tcp,nw_dst=10.20.0.101,tp_dst=8443,tcp_flags=+fin-syn-rst cookie:0xb71b030002000000 actions=ct(commit,zone=32773,exec(set_field:0x1->ct_mark)),ct(table=2,zone=5,nat)
# pool tls: SYNs and FINs to the VIP: their ports are remembered
ADD priority=32005,tcp,nw_dst=10.20.0.101,tp_dst=8443,tcp_flags=+syn-ack cookie:0xb71b030002000000 actions=ct(table=7,zone=32773)
# a SYN from a port used a moment ago: flush its old entry, try again
ADD table:7 priority=110,ct_mark=0x1,tcp,reg3=0 cookie:0xb71b010000000000 actions=ct(commit,zone=32773,exec(set_field:0x2->ct_mark)),CONTROLLER:65535
# a SYN from a port used a moment ago: flush its old entry, try again
ADD table:7 priority=110,ct_mark=0x1,tcp6,reg3=0 cookie:0xb71b010000000000 actions=ct(commit,zone=32773,exec(set_field:0x2->ct_mark)),CONTROLLER:65535
# any other SYN, through conntrack
ADD table:7 priority=100,tcp cookie:0xb71b010000000000 actions=ct(commit,zone=32773,exec(set_field:0x1->ct_mark)),ct(table=2,zone=5,nat)
# any other SYN, through conntrack
ADD table:7 priority=100,tcp6 cookie:0xb71b010000000000 actions=ct(commit,zone=32773,exec(set_field:0x1->ct_mark)),ct(table=2,zone=5,nat)
`
	if diff := cmp.Diff(want, more); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// The SYNs of a service for all protocols come after those of services for one
// port.
func TestReuseRowsOfAllProtocols(t *testing.T) {
	cfg := strings.Replace(small, "80/tcp", "any", 1)
	var found []string
	for _, f := range render(t, flushing(t, cfg)).Flows() {
		if f.Table == TableClassify && (f.Priority == prioWatch || f.Priority == prioWatchAny) {
			found = append(found, f.String())
		}
	}
	for _, row := range []string{
		"ADD priority=31995,tcp,nw_dst=10.20.0.100,tcp_flags=+syn-ack cookie:0xb71b030001000000 actions=ct(table=7,zone=32773)",
		"ADD priority=32005,tcp,nw_dst=10.20.0.100,tp_dst=443,tcp_flags=+syn-ack cookie:0xb71b030002000000 actions=ct(table=7,zone=32773)",
	} {
		if !slices.Contains(found, row) {
			t.Errorf("no row %s\nin %v", row, found)
		}
	}
}

func TestReuseZone(t *testing.T) {
	for zone, want := range map[uint16]uint16{18200: 50968, 1: 32769, 32768: 1, 65535: 32767} {
		if got := (frame{zone: zone}).reuseZone(); got != want {
			t.Errorf("zone %d: %d, want %d", zone, got, want)
		}
	}
}
