package pipeline

import (
	"slices"
	"strings"
	"testing"

	"brlb/controller/state"
	"brlb/openflow"
)

// TestHostBesideDrop: with miss: drop the bridge's own host still sends and gets.
func TestHostBesideDrop(t *testing.T) {
	local := state.Port{Number: uint32(openflow.PortLocal), Name: "br-lb", Live: true, MAC: openflow.MAC{2, 0, 0, 0, 0, 1}}
	for _, c := range []struct {
		name, settings string
		ports          []state.Port
		want           int
	}{
		{"drop", "miss: drop", []state.Port{local}, 3},
		{"the device is not known yet", "miss: drop", nil, 0},
		{"normal", "", []state.Port{local}, 0},
	} {
		s := state.New(parse(t, c.settings+small), start)
		s.SetPorts(c.ports, start)
		var rows []string
		for _, f := range render(t, s.Snapshot()).Flows() {
			if strings.Contains(Explain(s.Snapshot(), f), "the bridge's own host") {
				rows = append(rows, f.Match.String())
			}
		}
		if len(rows) != c.want {
			t.Errorf("%s: %d rows: %q", c.name, len(rows), rows)
		}
	}
}

// TestLiveHostBesideDrop: what becomes of a probe, its answer and other packets,
// by the switch's own account.
func TestLiveHostBesideDrop(t *testing.T) {
	r := startReal(t)
	s := serving(t, "miss: drop"+small)
	host := state.Port{Number: uint32(openflow.PortLocal), Name: "br-lb", Live: true, MAC: openflow.MAC{2, 0, 0, 0, 0, 1}}
	s.SetPorts(append([]state.Port{host}, s.Snapshot().Ports...), start)
	r.hold(t, s.Snapshot())
	const fromBe1 = "in_port=2,tcp,dl_src=02:00:00:00:01:01,nw_src=10.30.0.11,tp_src=8080,tp_dst=40000,tcp_flags=0x012"
	for _, c := range []struct{ name, flow, ct, want string }{
		{"a probe", "in_port=LOCAL,tcp,dl_src=02:00:00:00:00:01,dl_dst=02:00:00:00:01:01,nw_src=10.30.0.2,nw_dst=10.30.0.11,tp_dst=8080", "", "1,2"},
		{"its answer", fromBe1 + ",dl_dst=02:00:00:00:00:01,nw_dst=10.30.0.2", "trk,new", "100"},
		{"an answer to ARP", "in_port=2,arp,dl_src=02:00:00:00:01:01,dl_dst=02:00:00:00:00:01,arp_op=2,arp_spa=10.30.0.11,arp_tpa=10.30.0.2", "", "100"},
		{"a member's to somebody else", fromBe1 + ",dl_dst=02:00:00:00:00:bb,nw_dst=10.30.0.9", "trk,new", "drop"},
		{"anybody's", "in_port=1,tcp,dl_src=02:00:00:00:00:aa,dl_dst=02:00:00:00:00:bb,nw_src=10.20.0.10,nw_dst=10.20.0.11,tp_dst=80", "", "drop"},
	} {
		trace := r.trace(c.flow, c.ct)
		last := strings.TrimSpace(trace[strings.LastIndex(trace, "Datapath actions: ")+len("Datapath actions: "):])
		ports := strings.Split(last, ",")
		slices.Sort(ports) // a flood leaves in any order
		if strings.Join(ports, ",") != c.want {
			t.Errorf("%s: %q, want %q\n%s", c.name, last, c.want, trace)
		}
	}
}
