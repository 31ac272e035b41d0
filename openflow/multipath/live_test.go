package multipath_test

import (
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"brlb/openflow/multipath"
	"brlb/openflow/oftest"
)

// A running switch agrees on random packets, all fields and all algorithms. The
// seed is printed, so that a failure can be repeated.
func TestAgainstRunningSwitch(t *testing.T) {
	const rounds = 3000
	ovs := oftest.StartOVS(t, 1)
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 0))
	build := detectBuild(t, ovs)

	// One flow for each combination, chosen by its own in_port, so that a
	// single trace answers for a packet.
	type action struct {
		fields multipath.Fields
		alg    multipath.Algorithm
		basis  uint16
		n      int
		arg    uint32
	}
	actions := make([]action, 60)
	for i := range actions {
		a := action{
			fields: multipath.Fields(rnd.IntN(int(multipath.SymmetricL3) + 1)),
			alg:    multipath.Algorithm(rnd.IntN(int(multipath.IterHash) + 1)),
			basis:  uint16(rnd.Uint32()),
			n:      1 << rnd.IntN(17),
			arg:    rnd.Uint32N(200_000),
		}
		if rnd.IntN(2) == 0 {
			a.n = 1 + rnd.IntN(65536)
		}
		if i == 0 { // what brlb itself uses
			a = action{multipath.SymmetricL4, multipath.ModuloN, 7, 1024, 0}
		}
		actions[i] = a
		ovs.Ofctl("add-flow", fmt.Sprintf("in_port=%d,actions=multipath(%v,%d,%v,%d,%d,NXM_NX_REG1[0..15]),controller",
			i+1, a.fields, a.basis, a.alg, a.n, a.arg))
	}
	for range rounds {
		i := rnd.IntN(len(actions))
		a := actions[i]
		p, flow := randomPacket(rnd)
		got := build.Link(a.alg, build.Hash(a.fields, a.basis, p), a.n, a.arg)
		if want := traceReg1(t, ovs, fmt.Sprintf("in_port=%d,%s", i+1, flow)); got != want {
			t.Errorf("%s: multipath(%v,%d,%v,%d,%d) gives %d, the switch says %d", flow, a.fields, a.basis, a.alg, a.n, a.arg, got, want)
		}
	}
}

// detectBuild asks the switch for a hash that tells the builds apart.
func detectBuild(t *testing.T, ovs *oftest.OVS) multipath.Build {
	t.Helper()
	ovs.Ofctl("add-flow", "in_port=100,actions=multipath(symmetric_l3l4,0,modulo_n,65536,0,NXM_NX_REG1[0..15]),controller")
	got := traceReg1(t, ovs, "in_port=100,tcp,nw_src=10.0.0.1,nw_dst=10.0.0.100,tp_src=12345,tp_dst=80")
	switch got {
	case 0x4d79:
		return multipath.Murmur
	case 0xa304:
		return multipath.CRC32C
	}
	t.Fatalf("the switch hashes like no build that is known: %#x", got)
	return 0
}

var reg1 = regexp.MustCompile(`Final flow: .*\breg1=(0x[0-9a-f]+)`)

func traceReg1(t *testing.T, ovs *oftest.OVS, flow string) uint16 {
	t.Helper()
	out := ovs.Appctl("ofproto/trace", oftest.Bridge, flow)
	m := reg1.FindStringSubmatch(out)
	if m == nil { // the trace leaves a zero register out
		if strings.Contains(out, "Final flow: ") {
			return 0
		}
		t.Fatalf("trace %s:\n%s", flow, out)
	}
	v, err := strconv.ParseUint(m[1], 0, 16)
	if err != nil {
		t.Fatal(err)
	}
	return uint16(v)
}

// randomPacket returns a packet and its text for ofproto/trace.
func randomPacket(rnd *rand.Rand) (*multipath.Packet, string) {
	var p multipath.Packet
	for i := range p.EthSrc {
		p.EthSrc[i], p.EthDst[i] = byte(rnd.Uint32()), byte(rnd.Uint32())
	}
	text := fmt.Sprintf("dl_src=%v,dl_dst=%v", net.HardwareAddr(p.EthSrc[:]), net.HardwareAddr(p.EthDst[:]))
	if rnd.IntN(3) == 0 {
		vid, pcp := uint16(rnd.IntN(4096)), uint16(rnd.IntN(8))
		p.VLANs = []uint16{pcp<<13 | 0x1000 | vid}
		text += fmt.Sprintf(",dl_vlan=%d,dl_vlan_pcp=%d", vid, pcp)
	}
	randomAddr := func(n int) netip.Addr {
		b := make([]byte, n)
		for i := range b {
			b[i] = byte(rnd.Uint32())
		}
		a, _ := netip.AddrFromSlice(b)
		return a
	}
	v6 := false
	switch rnd.IntN(8) {
	case 0: // neither IP nor ARP
		p.EthType = 0x88cc
		return &p, text + ",dl_type=0x88cc"
	case 1, 2, 3:
		v6 = true
		p.EthType, p.Src, p.Dst = 0x86dd, randomAddr(16), randomAddr(16)
		text += fmt.Sprintf(",ipv6,ipv6_src=%v,ipv6_dst=%v", p.Src, p.Dst)
	default:
		p.EthType, p.Src, p.Dst = 0x0800, randomAddr(4), randomAddr(4)
		text += fmt.Sprintf(",ip,nw_src=%v,nw_dst=%v", p.Src, p.Dst)
	}
	ports := ""
	switch rnd.IntN(4) {
	case 0:
		p.Proto, ports = 17, "udp"
	case 1:
		p.Proto, ports = 132, "sctp"
	case 2:
		p.Proto = 47
	default:
		p.Proto, ports = 6, "tcp"
	}
	text += fmt.Sprintf(",nw_proto=%d", p.Proto)
	switch rnd.IntN(6) {
	case 0:
		p.Frag = multipath.FirstFrag
		text += ",ip_frag=first"
	case 1:
		p.Frag = multipath.LaterFrag
		text += ",ip_frag=later"
	}
	if ports != "" && p.Frag != multipath.LaterFrag {
		p.SrcPort, p.DstPort = uint16(rnd.Uint32()), uint16(rnd.Uint32())
		if v6 {
			text = strings.Replace(text, ",ipv6,", ","+ports+"6,", 1)
		} else {
			text = strings.Replace(text, ",ip,", ","+ports+",", 1)
		}
		text = strings.Replace(text, fmt.Sprintf(",nw_proto=%d", p.Proto), "", 1)
		text += fmt.Sprintf(",%s_src=%d,%s_dst=%d", ports, p.SrcPort, ports, p.DstPort)
	}
	return &p, text
}
