package oftest_test

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"

	"brlb/openflow"
	"brlb/openflow/oftest"
	"brlb/openflow/session"
)

// Random pipelines and packets go through a real switch as the in-memory one
// says. The seed is printed, so that a failure can be repeated.
func TestLiveTrace(t *testing.T) {
	const (
		pipelines = 60
		packets   = 20
		ports     = 4
	)
	ovs := oftest.StartOVS(t, ports)
	s, err := session.Open(context.Background(), ovs.Dial(), session.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 0))
	datapathPorts := datapathPorts(ovs)
	for range pipelines {
		flows := randomPipeline(rnd)
		sw := program(t, flows)
		clear := openflow.NewFlowMod(openflow.FlowDelete)
		clear.Table = openflow.TableAll
		mustApply(t, s.Bundle(context.Background(), append([]openflow.Message{clear}, parse(t, flows)...)))
		for range packets {
			p := randomPacket(rnd, ports)
			tr := trace(t, sw, packet(t, p))
			out := ovs.Appctl("ofproto/trace", oftest.Bridge, p)
			if got, want := slices.Sorted(slices.Values(tr.Ports())), outputs(t, out, datapathPorts); !slices.Equal(got, want) {
				t.Fatalf("%s\ngoes to %v, the switch says %v\n%v\n%s\nflows:\n%s", p, got, want, tr, out, flows)
			}
			final := finalFlow(t, out, p)
			for _, o := range append(tr.Final.Fields(), final.Fields()...) {
				if got, want := tr.Final.OXM(o.Field), final.OXM(o.Field); got != want && o.Field != openflow.InPort {
					t.Fatalf("%s\nends with %v, the switch says %v\n%v\n%s\nflows:\n%s", p, got, want, tr, out, flows)
				}
			}
		}
	}
}

// randomPipeline returns flows of six tables, in ovs-ofctl's syntax.
func randomPipeline(rnd *rand.Rand) string {
	pick := func(list ...string) string { return list[rnd.IntN(len(list))] }
	var b strings.Builder
	const last = 5
	for table := range last + 1 {
		for n := range 1 + rnd.IntN(5) {
			match := pick("tcp", "tcp,tp_dst=80", "tcp,nw_dst=10.0.0.0/31", "tcp,reg0=0/1", "tcp,reg1=0x1/0x3", "tcp,in_port=1", "tcp,dl_src=02:00:00:00:00:01", "tcp,nw_ttl=1")
			var actions []string
			for range rnd.IntN(6) {
				actions = append(actions, pick(
					"load:3->NXM_NX_REG0[4..11]", "load:1->NXM_NX_REG1[]", "set_field:10.0.0.1->ip_dst", "set_field:81->tcp_dst",
					"set_field:02:00:00:00:00:09->eth_dst", "set_field:0x123456789abc->xreg1",
					"move:NXM_OF_IP_DST[0..7]->NXM_NX_REG1[3..10]", "move:NXM_NX_REG1[0..15]->NXM_OF_TCP_SRC[]", "move:NXM_OF_ETH_SRC[]->NXM_OF_ETH_DST[]",
					"move:NXM_NX_REG3[0..7]->NXM_NX_REG0[24..31]",
					"push:NXM_NX_REG1[]", "push:NXM_OF_ETH_DST[]", "pop:NXM_NX_REG0[]", "pop:NXM_OF_ETH_SRC[]",
					fmt.Sprintf("multipath(%s,%d,modulo_n,%d,0,NXM_NX_REG1[0..15])", pick("symmetric_l4", "symmetric_l3l4", "nw_src", "eth_src", "symmetric_l3"), rnd.IntN(1000), 1+rnd.IntN(5000)),
					fmt.Sprintf("output:%d", 1+rnd.IntN(5)), "in_port", "output:NXM_NX_REG1[0..1]", "dec_ttl", "load:0xffff->NXM_OF_IN_PORT[]",
					"set_field:5->metadata", "clone(load:7->NXM_NX_REG0[],output:2)",
				))
				if table < last && rnd.IntN(4) == 0 {
					actions = append(actions, fmt.Sprintf("resubmit(%s,%d)", pick("", "2"), table+1+rnd.IntN(last-table)))
				}
			}
			if table < last && rnd.IntN(3) > 0 {
				actions = append(actions, fmt.Sprintf("goto_table:%d", table+1+rnd.IntN(last-table)))
			}
			if len(actions) == 0 {
				actions = []string{"drop"}
			}
			fmt.Fprintf(&b, "table=%d,priority=%d,%s,actions=%s\n", table, 100+n, match, strings.Join(actions, ","))
		}
	}
	return b.String()
}

// randomPacket returns a packet in the syntax of ofproto/trace.
func randomPacket(rnd *rand.Rand, ports int) string {
	return fmt.Sprintf("in_port=%d,tcp,dl_src=02:00:00:00:00:0%d,dl_dst=02:00:00:00:00:0%d,nw_src=10.0.0.%d,nw_dst=10.0.0.%d,nw_ttl=%d,tp_src=%d,tp_dst=%d",
		1+rnd.IntN(ports), rnd.IntN(3), rnd.IntN(3), rnd.IntN(4), rnd.IntN(4), 1+rnd.IntN(4), rnd.IntN(65536), 80+rnd.IntN(2))
}

// datapathPorts maps the datapath's port numbers to OpenFlow's.
func datapathPorts(ovs *oftest.OVS) map[string]openflow.PortNo {
	m := map[string]openflow.PortNo{}
	for _, found := range regexp.MustCompile(`p\d+ (\d+)/(\d+):`).FindAllStringSubmatch(ovs.Appctl("dpif/show"), -1) {
		port, _ := openflow.ParsePort(found[1])
		m[found[2]] = port
	}
	return m
}

// outputs returns the ports of a trace's datapath actions, sorted.
func outputs(t *testing.T, out string, ports map[string]openflow.PortNo) []openflow.PortNo {
	t.Helper()
	_, actions, ok := strings.Cut(out, "Datapath actions: ")
	if !ok {
		t.Fatal(out)
	}
	actions, _, _ = strings.Cut(actions, "\n")
	actions = regexp.MustCompile(`\([^()]*\)`).ReplaceAllString(actions, "") // set(eth(...)) and the like
	actions = regexp.MustCompile(`\([^()]*\)`).ReplaceAllString(actions, "")
	actions = regexp.MustCompile(`\([^()]*\)`).ReplaceAllString(actions, "")
	var list []openflow.PortNo
	for a := range strings.SplitSeq(actions, ",") {
		if port, ok := ports[a]; ok {
			list = append(list, port)
		}
	}
	slices.Sort(list)
	return list
}

// finalFlow returns the packet as a trace leaves it.
func finalFlow(t *testing.T, out, unchanged string) *oftest.Packet {
	t.Helper()
	_, flow, ok := strings.Cut(out, "Final flow: ")
	if !ok {
		t.Fatal(out)
	}
	flow, _, _ = strings.Cut(flow, "\n")
	if flow == "unchanged" {
		flow = unchanged
	}
	fields := map[string]string{}
	for _, field := range strings.Split(flow, ",") {
		name, _, _ := strings.Cut(field, "=")
		fields[name] = field
	}
	for _, zero := range []string{"tcp", "vlan_tci", "nw_tos", "nw_ecn", "nw_frag", "tcp_flags"} {
		delete(fields, zero)
	}
	kept := slices.Sorted(maps.Values(fields))
	return packet(t, strings.Join(append([]string{"tcp"}, kept...), ","))
}
