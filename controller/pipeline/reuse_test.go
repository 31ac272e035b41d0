package pipeline

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"brlb/controller/state"
	"brlb/openflow"
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
ADD table:7 priority=110,ct_mark=0x1,tcp,reg3=0 cookie:0xb71b010000000000 actions=ct(commit,zone=32773,exec(set_field:0x2->ct_mark)),controller(id=46875)
# a SYN from a port used a moment ago: flush its old entry, try again
ADD table:7 priority=110,ct_mark=0x1,tcp6,reg3=0 cookie:0xb71b010000000000 actions=ct(commit,zone=32773,exec(set_field:0x2->ct_mark)),controller(id=46875)
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

// A SYN from a port that is known goes up once, also after a connection of it
// was closed; the one after that goes on.
func TestLiveReuse(t *testing.T) {
	r := startReal(t)
	snap := flushing(t, small)
	r.hold(t, snap)
	first := r.trace("in_port=1,tcp,dl_src=02:00:00:00:00:aa,dl_dst=02:00:5e:00:01:02,nw_src=10.20.0.10,nw_dst=10.20.0.100,nw_ttl=64,tp_src=40000,tp_dst=80,tcp_flags=0x002", "trk,new")
	if !strings.Contains(first, "ct(commit,zone=5,mark=") || !strings.Contains(first, "nat(dst=") {
		t.Errorf("a first SYN is not sent on:\n%s", first)
	}
	r.ovs.Appctl("dpctl/ct-disable-tcp-seq-chk") // the segments below have no numbers
	sent := func(flags string) {
		r.ovs.Appctl("netdev-dummy/receive", "p1", fmt.Sprintf(
			"in_port(1),eth(src=02:00:00:00:00:aa,dst=02:00:5e:00:01:02),eth_type(0x0800),ipv4(src=10.20.0.10,dst=10.20.0.100,proto=6,tos=0,ttl=64,frag=no),tcp(src=40000,dst=80),tcp_flags(%s)", flags))
	}
	count := func(table uint8, priority uint16) (packets uint64) {
		selector := openflow.AllFlows()
		selector.Table = table
		flows, err := r.session.Flows(t.Context(), openflow.FlowStatsRequest(selector))
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range flows {
			if f.Priority == priority {
				packets += f.PacketCount
			}
		}
		return packets
	}
	for i, step := range []struct {
		flags    string
		up, sent uint64
	}{
		{"syn", 0, 1}, {"syn", 1, 1}, {"syn", 1, 2}, {"syn", 2, 2}, {"syn", 2, 3},
		{"ack", 2, 4}, {"fin|ack", 2, 5}, {"fin|ack", 2, 6}, {"syn", 3, 6}, {"syn", 3, 7}, {"fin|rst", 3, 7},
	} {
		sent(step.flags)
		r.ovs.Appctl("revalidator/wait") // counters of cached flows come late
		if up, sent := count(TableReuse, prioSpecial), count(TableToMember, prioRow); up != step.up || sent != step.sent {
			t.Errorf("step %d, %s: %d packets to the controller and %d to members, want %d and %d", i, step.flags, up, sent, step.up, step.sent)
		}
	}
}
