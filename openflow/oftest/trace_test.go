package oftest_test

import (
	"net/netip"
	"slices"
	"strings"
	"testing"

	"brlb/openflow"
	"brlb/openflow/oftest"
)

// program returns a switch with ports 1 to 4 and flows in ovs-ofctl's syntax, one
// a line.
func program(t testing.TB, flows string) *oftest.Switch {
	t.Helper()
	sw := oftest.NewSwitch(oftest.SwitchOptions{Ports: []openflow.Port{
		oftest.NewPort(1, "p1"), oftest.NewPort(2, "p2"), oftest.NewPort(3, "p3"), oftest.NewPort(4, "p4"),
	}})
	t.Cleanup(sw.Close)
	if err := sw.Apply(parse(t, flows)...); err != nil {
		t.Fatal(err)
	}
	return sw
}

// parse reads flows in ovs-ofctl's syntax.
func parse(t testing.TB, flows string) []openflow.Message {
	t.Helper()
	var list []openflow.Message
	for line := range strings.Lines(flows) {
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		f, err := openflow.ParseFlow(line)
		if err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		list = append(list, f)
	}
	return list
}

func packet(t testing.TB, text string) *oftest.Packet {
	t.Helper()
	m, err := openflow.ParseMatch(text)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return oftest.NewPacket(m)
}

func trace(t testing.TB, sw *oftest.Switch, p *oftest.Packet) *oftest.Trace {
	t.Helper()
	tr, err := sw.Trace(p)
	if err != nil {
		t.Fatal(err)
	}
	return tr
}

func TestTraceActions(t *testing.T) {
	const tcp = "in_port=1,tcp,nw_src=10.0.0.1,nw_dst=10.0.0.100,tp_src=12345,tp_dst=80"
	tests := []struct {
		name, flows, packet string
		ports               []openflow.PortNo
		final               string // fields of the final packet, as a match that it must have
	}{
		{"miss", "table=1,actions=output:2", tcp, nil, ""},
		{"drop", "actions=drop", tcp, nil, ""},
		{"priority", "priority=1,actions=output:2\npriority=2,tcp,actions=output:3", tcp, []openflow.PortNo{3}, ""},
		{"goto", "actions=load:5->NXM_NX_REG0[],goto_table:3\ntable=3,reg0=5,actions=output:2", tcp, []openflow.PortNo{2}, "reg0=5"},
		{"back where it came from", "actions=output:1,output:2,in_port", tcp, []openflow.PortNo{2, 1}, ""},
		{"no such port", "actions=output:9,output:3", tcp, []openflow.PortNo{3}, ""},
		{"reserved ports", "actions=NORMAL,controller,LOCAL", tcp, []openflow.PortNo{openflow.PortNormal, openflow.PortController, openflow.PortLocal}, ""},
		{"output_reg", "actions=load:3->NXM_NX_REG4[4..19],output:NXM_NX_REG4[4..19]", tcp, []openflow.PortNo{3}, "reg4=0x30"},
		{"move", "actions=move:NXM_OF_IP_SRC[0..15]->NXM_NX_REG1[16..31],move:NXM_OF_ETH_SRC[]->NXM_OF_ETH_DST[]",
			tcp + ",dl_src=02:00:00:00:00:07", nil, "reg1=0x10000,dl_dst=02:00:00:00:00:07"},
		{"stack", "actions=push:NXM_NX_REG1[],push:NXM_NX_REG2[],set_field:9->reg1,pop:NXM_NX_REG3[],pop:NXM_NX_REG4[]",
			tcp + ",reg1=1,reg2=2", nil, "reg1=9,reg3=2,reg4=1"},
		{"wide registers", "actions=set_field:0x1122334455667788->xreg1,move:NXM_NX_REG3[]->NXM_NX_REG0[]", tcp, nil, "reg2=0x11223344,reg3=0x55667788,reg0=0x55667788"},
		{"resubmit", "actions=resubmit(,2),output:2\ntable=2,actions=load:1->NXM_NX_REG0[],output:3", tcp, []openflow.PortNo{3, 2}, "reg0=1"},
		{"resubmit as of another port", "actions=resubmit(4,2),output:4\ntable=2,in_port=4,actions=output:3", tcp, []openflow.PortNo{3, 4}, ""},
		{"masked match", "table=0,ip,nw_dst=10.0.0.0/24,reg0=0/1,actions=output:2", tcp + ",reg0=2", []openflow.PortNo{2}, ""},
		{"slot of the 5-tuple",
			"actions=push:NXM_OF_ETH_SRC[],push:NXM_OF_ETH_DST[],set_field:00:00:00:00:00:00->eth_src,set_field:00:00:00:00:00:00->eth_dst," +
				"multipath(symmetric_l4,7,modulo_n,1024,0,NXM_NX_REG1[]),pop:NXM_OF_ETH_DST[],pop:NXM_OF_ETH_SRC[]",
			tcp + ",dl_src=02:00:00:00:00:01,dl_dst=02:00:00:00:00:02", nil, "reg1=250,dl_src=02:00:00:00:00:01,dl_dst=02:00:00:00:00:02"},
		{"ttl", "actions=dec_ttl,output:2", tcp + ",nw_ttl=2", []openflow.PortNo{2}, "ip,nw_ttl=1"},
		{"ttl runs out", "actions=resubmit(,1),output:3\ntable=1,actions=dec_ttl,output:2", tcp + ",nw_ttl=1", []openflow.PortNo{3}, ""},
		{"in_port cleared", "actions=load:0xffff->NXM_OF_IN_PORT[],output:1", tcp, []openflow.PortNo{1}, ""},
		{"vlan", "actions=push_vlan:0x8100,set_field:4196->vlan_vid,output:2,pop_vlan,output:3", tcp, []openflow.PortNo{2, 3}, ""},
		{"clone", "actions=clone(load:1->NXM_NX_REG0[],output:2),output:3", tcp, []openflow.PortNo{2, 3}, "reg0=0"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			tr := trace(t, program(t, test.flows), packet(t, test.packet))
			if got := tr.Ports(); !slices.Equal(got, test.ports) {
				t.Errorf("went to %v, want %v\n%v", got, test.ports, tr)
			}
			want, err := openflow.ParseMatch(test.final)
			if err != nil {
				t.Fatal(err)
			}
			for _, o := range want {
				if got := tr.Final.OXM(o.Field); got != o {
					t.Errorf("in the end %v, want %v\n%v", got, o, tr)
				}
			}
		})
	}
}

func TestTraceGroups(t *testing.T) {
	sw := program(t, "")
	bucket := func(port openflow.PortNo) openflow.Bucket {
		return openflow.Bucket{WatchPort: port, WatchGroup: openflow.GroupAny, Actions: []openflow.Action{openflow.Output{Port: port}}}
	}
	failover := &openflow.GroupMod{Kind: openflow.GroupTypeFF, ID: 7, Buckets: []openflow.Bucket{bucket(2), bucket(3)}}
	everywhere := &openflow.GroupMod{Kind: openflow.GroupTypeAll, ID: 8, Buckets: []openflow.Bucket{bucket(2), bucket(4)}}
	uses := parse(t, "priority=5,reg0=1,actions=group:7\npriority=5,reg0=2,actions=group:8")
	if err := sw.Apply(uses...); err != openflow.BadActionBadOutGroup {
		t.Errorf("a flow of a group that is not there: %v", err)
	}
	if err := sw.Apply(append([]openflow.Message{failover, everywhere}, uses...)...); err != nil {
		t.Fatal(err)
	}
	ports := func(text string) []openflow.PortNo { return trace(t, sw, packet(t, text)).Ports() }
	if got := ports("in_port=1,reg0=1"); !slices.Equal(got, []openflow.PortNo{2}) {
		t.Errorf("failover: %v", got)
	}
	down := oftest.NewPort(2, "p2")
	down.State = openflow.PortLinkDown
	sw.SetPort(down)
	if got := ports("in_port=1,reg0=1"); !slices.Equal(got, []openflow.PortNo{3}) {
		t.Errorf("failover with a port down: %v", got)
	}
	if got := ports("in_port=1,reg0=2"); !slices.Equal(got, []openflow.PortNo{2, 4}) {
		t.Errorf("everywhere: %v", got)
	}
	if err := sw.Apply(&openflow.GroupMod{Command: openflow.GroupDelete, ID: openflow.GroupAll}); err != nil || len(sw.Flows()) != 0 {
		t.Errorf("%v, %d flows left of groups that are gone", err, len(sw.Flows()))
	}
}

// A whole connection through a pipeline like brlb's: to the VIP, translated, and
// back the way it came.
func TestTraceConnection(t *testing.T) {
	sw := program(t, `
		table=0,priority=100,tcp,nw_dst=10.20.0.100,tp_dst=80,actions=ct(table=2,zone=5,nat)
		table=0,priority=90,tcp,nw_src=10.30.0.11,tp_src=8080,actions=ct(table=3,zone=5,nat)
		table=2,priority=200,ct_state=+trk+est,ip,actions=move:NXM_NX_CT_MARK[0..15]->NXM_NX_REG2[0..15],goto_table:13
		table=2,priority=100,ct_state=+trk+new,ip,actions=load:6->NXM_NX_REG2[],goto_table:12
		table=12,reg2=6,tcp,actions=ct(commit,zone=5,nat(dst=10.30.0.11:8080),exec(move:NXM_NX_REG2[0..15]->NXM_NX_CT_MARK[0..15],move:NXM_OF_ETH_SRC[]->NXM_NX_CT_LABEL[0..47],move:NXM_OF_IN_PORT[]->NXM_NX_CT_LABEL[48..63])),goto_table:13
		table=13,reg2=6,ip,actions=set_field:02:00:00:00:00:66->eth_dst,dec_ttl,output:2
		table=3,ct_state=+trk+est+rpl,ip,actions=goto_table:14
		table=14,ip,actions=move:NXM_NX_CT_LABEL[0..47]->NXM_OF_ETH_DST[],load:0xffff->NXM_OF_IN_PORT[],output:NXM_NX_CT_LABEL[48..63]
	`)
	client, vip := netip.MustParseAddrPort("10.0.0.1:12345"), netip.MustParseAddrPort("10.20.0.100:80")
	member := netip.MustParseAddrPort("10.30.0.11:8080")
	if _, err := sw.Trace(oftest.TCPPacket(1, client, vip, 2)); err == nil {
		t.Error("ct was done without a tracker")
	}
	conns := &oftest.Connections{}
	sw.SetTracker(conns)
	there := oftest.TCPPacket(1, client, vip, 2).With(openflow.EthSrc.MAC(openflow.MAC{2, 0, 0, 0, 0, 1}))
	for _, step := range []string{"new", "new again", "established"} {
		tr := trace(t, sw, there)
		if len(tr.Deliveries) != 1 {
			t.Fatalf("%s: %v", step, tr)
		}
		d := tr.Deliveries[0]
		if d.Port != 2 || d.Packet.Source() != client || d.Packet.Destination() != member || d.Packet.Uint64(openflow.IPTTL) != 63 {
			t.Errorf("%s: %v", step, tr)
		}
		back := trace(t, sw, oftest.TCPPacket(2, member, client, 0x12))
		if len(back.Deliveries) != 1 || back.Deliveries[0].Port != 1 {
			t.Fatalf("%s, back: %v", step, back)
		}
		p := back.Deliveries[0].Packet
		if p.Source() != vip || p.Destination() != client || p.OXM(openflow.EthDst).MAC() != (openflow.MAC{2, 0, 0, 0, 0, 1}) {
			t.Errorf("%s, back: %v", step, back)
		}
	}
	if len(conns.List) != 1 || conns.List[0].Mark != 6 {
		t.Errorf("%+v", conns.List)
	}
}

func TestInjectCounts(t *testing.T) {
	sw := program(t, "actions=goto_table:1\ntable=1,actions=output:2\ntable=1,priority=40000,udp,actions=drop")
	for range 3 {
		if _, err := sw.Inject(packet(t, "in_port=1,tcp"), 100); err != nil {
			t.Fatal(err)
		}
	}
	for _, f := range sw.Flows() {
		want := uint64(3)
		if len(f.Match) > 0 {
			want = 0
		}
		if f.PacketCount != want || f.ByteCount != 100*want {
			t.Errorf("%v", &f)
		}
	}
}

// What the switch cannot execute is an error, never a wrong answer.
func TestTraceRefuses(t *testing.T) {
	for _, flow := range []string{
		"actions=resubmit(,0)",
		"actions=write_actions(output:2)",
		"actions=ct(table=1)",
		"actions=learn(table=1,NXM_OF_ETH_DST[]=NXM_OF_ETH_SRC[])",
	} {
		if tr, err := program(t, flow).Trace(packet(t, "in_port=1,tcp")); err == nil {
			t.Errorf("%s: %v", flow, tr)
		}
	}
}
