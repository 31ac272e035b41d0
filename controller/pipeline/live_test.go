package pipeline

import (
	"context"
	"fmt"
	"net/netip"
	"regexp"
	"strings"
	"testing"

	"brlb/controller/state"
	"brlb/openflow"
	"brlb/openflow/oftest"
	"brlb/openflow/session"
)

// real is a real switch that holds the flows of a state.
type real struct {
	ovs     *oftest.OVS
	session *session.Session
}

func startReal(t testing.TB) *real {
	t.Helper()
	ovs := oftest.StartOVS(t, 2)
	s, err := session.Open(context.Background(), ovs.Dial(), session.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	for _, meter := range Meters() {
		if err := s.Transact(context.Background(), meter); err != nil {
			t.Fatal(err)
		}
	}
	return &real{ovs: ovs, session: s}
}

// read returns what the switch holds of brlb's.
func (r *real) read(t testing.TB) Set {
	t.Helper()
	flows, err := r.session.Flows(context.Background(), openflow.FlowStatsRequest(openflow.AllFlows()))
	if err != nil {
		t.Fatal(err)
	}
	set, err := FromSwitch(flows)
	if err != nil {
		t.Fatal(err)
	}
	return set
}

// hold makes the switch hold a snapshot's flows, and demands that it tells of
// them just as they were sent.
func (r *real) hold(t testing.TB, s *state.Snapshot) Set {
	t.Helper()
	desired := render(t, s)
	plan := Diff(r.read(t), desired, nothingHeld)
	if result := r.session.Bundle(context.Background(), plan.Mods); result.Outcome != session.Applied {
		t.Fatalf("%v: %v", result.Outcome, result.Err)
	}
	for _, m := range Diff(r.read(t), desired, nothingHeld).Mods {
		t.Errorf("the switch tells otherwise of %s", m.(*openflow.FlowMod))
	}
	return desired
}

// The switch writes matches and actions in its own way: a restart must find no
// difference.
func TestLiveSwitchTellsWhatWasSent(t *testing.T) {
	r := startReal(t)
	s := serving(t, small)
	for _, change := range []func(){
		func() {},
		func() { judge(s, state.Down, byTCP("10.30.0.12:8080")) },
		func() { s.SetNoMeters(true) },
		func() { s.SetNoMeters(false) },
		func() { s.SetConfig(parse(t, "miss: drop"+small), start) },
		func() { s.SetConfig(parse(t, variants[2]), start); judge(s, state.Up, s.Probes()...) },
	} {
		change()
		r.hold(t, s.Snapshot())
	}
	if complaints := r.ovs.Complaints(); strings.Contains(complaints, "ofp_actions") || strings.Contains(complaints, "ofproto") {
		t.Error(complaints)
	}
}

// Where the switch sends a packet, by its own account.
func TestLiveWhereDoesThisPacketGo(t *testing.T) {
	r := startReal(t)
	s := serving(t, small)
	judge(s, state.Down, byTCP("10.30.0.11:8443")) // all of tls
	s.SetOverride(state.MemberID{Pool: "web", Key: "10.30.0.12:8080"}, state.Override{State: state.Draining, At: start})
	snap := s.Snapshot()
	r.hold(t, snap)

	web := snap.Pool("web")
	be1, be2 := web.Member("10.30.0.11:8080"), web.Member("10.30.0.12:8080")
	const client = "in_port=1,tcp,dl_src=02:00:00:00:00:aa,dl_dst=02:00:5e:00:01:02,nw_src=10.20.0.10,nw_ttl=64,tp_src=40000"
	const syn, ack = ",tcp_flags=0x002", ",tcp_flags=0x010"
	toVIP := client + ",nw_dst=10.20.0.100,tp_dst=80"
	fromBe1 := "in_port=2,tcp,dl_src=02:00:00:00:01:01,dl_dst=02:00:5e:00:01:02,nw_src=10.30.0.11,nw_dst=10.20.0.10,nw_ttl=64,tp_src=8080,tp_dst=40000"

	cases := []struct {
		name, flow, ct string
		want           []string // what the last step does, in part
		not            []string // what no step may do
	}{
		{"an established connection", toVIP + ack + mark(be1), "trk,est",
			[]string{"src=02:00:5e:00:01:02,dst=02:00:00:00:01:01", "ttl=63", ",2"}, []string{"ct(commit"}},
		{"an established connection of a member that drains", toVIP + ack + mark(be2), "trk,est",
			[]string{"dst=02:00:00:00:01:02", ",2"}, nil},
		{"a packet whose time to live ends", strings.Replace(toVIP, "nw_ttl=64", "nw_ttl=1", 1) + ack + mark(be1), "trk,est",
			[]string{"meter(", "controller("}, []string{",2"}},
		{"an answer", fromBe1 + ack + mark(be1) + ",ct_label=0x10200000000aa", "trk,est,rpl",
			[]string{"src=02:00:5e:00:01:02,dst=02:00:00:00:00:aa", "ttl=63", ",1"}, nil},
		{"an answer that goes out of the port by which it came", fromBe1 + ack + mark(be1) + ",ct_label=0x20200000000aa", "trk,est,rpl",
			[]string{"dst=02:00:00:00:00:aa", ",2"}, nil},
		{"a SYN on an entry of an active member", toVIP + syn + mark(be1), "trk,est",
			[]string{"dst=02:00:00:00:01:01", ",2"}, []string{"userspace"}},
		{"a SYN on an entry of a member that drains", toVIP + syn + mark(be2), "trk,est", []string{"userspace(pid=", "controller("}, []string{",2"}},
		{"the same, sent again", toVIP + syn + mark(be2) + ",reg3=1", "trk,est", []string{"drop"}, nil},
		{"a SYN on an entry of nobody", toVIP + syn + ",ct_mark=0x10063", "trk,est", []string{"controller("}, nil},
		{"a SYN that conntrack calls invalid", toVIP + syn, "trk,inv", []string{"controller("}, nil},
		{"the same, sent again", toVIP + syn + ",reg3=1", "trk,inv", []string{"drop"}, nil},
		{"an ACK that conntrack calls invalid", toVIP + ack, "trk,inv", []string{"drop"}, nil},
		{"a pool without active members", client + ",nw_dst=10.20.0.101,tp_dst=443" + syn, "trk,new", []string{"drop"}, nil},
		{"a port that nobody serves", client + ",nw_dst=10.20.0.100,tp_dst=22" + syn, "", []string{"meter(", "controller("}, []string{"ct("}},
		{"UDP to a VIP", "in_port=1,udp,dl_src=02:00:00:00:00:aa,dl_dst=02:00:5e:00:01:02,nw_src=10.20.0.10,nw_dst=10.20.0.100,udp_src=1,udp_dst=80", "", []string{"meter(", "controller("}, nil},
		{"ARP for a VIP", "in_port=1,arp,dl_src=02:00:00:00:00:aa,dl_dst=ff:ff:ff:ff:ff:ff,arp_op=1,arp_sha=02:00:00:00:00:aa,arp_spa=10.20.0.10,arp_tpa=10.20.0.100", "",
			[]string{"set(eth(src=02:00:5e:00:01:02,dst=02:00:00:00:00:aa))", "set(arp(sip=10.20.0.100,tip=10.20.0.10,op=2", "sha=02:00:5e:00:01:02,tha=02:00:00:00:00:aa", ",1"}, nil},
		{"ARP for a VIP that nobody serves", "in_port=1,arp,dl_src=02:00:00:00:00:aa,dl_dst=ff:ff:ff:ff:ff:ff,arp_op=1,arp_spa=10.20.0.10,arp_tpa=10.20.0.101", "",
			[]string{"2"}, []string{"set("}},
		{"ping", "in_port=1,icmp,dl_src=02:00:00:00:00:aa,dl_dst=02:00:5e:00:01:02,nw_src=10.20.0.10,nw_dst=10.20.0.100,icmp_type=8,nw_ttl=7", "",
			[]string{"src=10.20.0.100,dst=10.20.0.10", "ttl=64", "icmp(type=0", ",1"}, nil},
		{"an answer to brlb's ARP request", "in_port=2,arp,dl_src=02:00:00:00:01:01,dl_dst=02:00:5e:00:01:02,arp_op=2,arp_spa=10.30.0.11,arp_tpa=10.30.0.1", "",
			[]string{"controller("}, []string{",1"}},
		{"what is none of brlb's business", "in_port=1,tcp,dl_src=02:00:00:00:00:aa,dl_dst=02:00:00:00:00:bb,nw_src=10.20.0.10,nw_dst=10.20.0.11,tp_dst=80", "",
			[]string{"2"}, []string{"ct("}},
		{"a member that answers somebody directly", strings.Replace(fromBe1, "dl_dst=02:00:5e:00:01:02", "dl_dst=02:00:00:00:00:bb", 1) + ack, "trk,new",
			[]string{"1"}, nil},
		{"a member that answers nobody known, by way of brlb", fromBe1 + ack, "trk,new", []string{"drop"}, nil},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			trace := r.trace(c.flow, c.ct)
			last := trace[strings.LastIndex(trace, "Datapath actions: "):]
			for _, part := range c.want {
				if !strings.Contains(last, part) {
					t.Errorf("%q is not in %q", part, last)
				}
			}
			for _, part := range c.not {
				for _, step := range datapathActions.FindAllString(trace, -1) {
					if strings.Contains(step, part) {
						t.Errorf("%q is in %q", part, step)
					}
				}
			}
			if t.Failed() {
				t.Log(trace)
			}
		})
	}
}

var datapathActions = regexp.MustCompile(`Datapath actions: .*`)

// mark is the ct_mark of a member's connection.
func mark(m *state.Member) string { return fmt.Sprintf(",ct_mark=%#x", Mark(1, m.Number)) }

func (r *real) trace(flow, ct string) string {
	args := []string{oftest.Bridge, flow}
	if ct != "" {
		args = append(args, "--ct-next", ct)
	}
	return r.ovs.Appctl("ofproto/trace", args...)
}

// New connections land on the member that Slot names, whichever router they
// come through.
func TestLiveNewConnections(t *testing.T) {
	r := startReal(t)
	snap := serving(t, strings.Replace(small, "slots: 64", "slots: 1024", 1)).Snapshot()
	r.hold(t, snap)
	nat := regexp.MustCompile(`ct\(commit,zone=5,mark=0x([0-9a-f]+)/0xffffffff,label=(0x[0-9a-f]+)/0x[0-9a-f]+,nat\(dst=([0-9.:]+)\)\)`)
	seen := map[string]bool{}
	for i := range 40 {
		src, dst := addrPort(fmt.Sprintf("10.20.%d.10:%d", i%3, 40000+i)), addrPort("10.20.0.100:80")
		web := snap.Pool("web")
		_, slot := Slot(web, Tuple{Proto: protoTCP, Src: src, Dst: dst})
		owner := web.Owner(slot)
		for _, router := range []string{"02:00:00:00:00:aa", "02:00:00:00:00:bb"} {
			trace := r.trace(fmt.Sprintf("in_port=1,tcp,dl_src=%s,dl_dst=02:00:5e:00:01:02,nw_src=%s,nw_dst=%s,nw_ttl=64,tp_src=%d,tp_dst=%d,tcp_flags=0x002",
				router, src.Addr(), dst.Addr(), src.Port(), dst.Port()), "trk,new")
			found := nat.FindStringSubmatch(trace)
			if found == nil {
				t.Fatalf("no NAT in\n%s", trace)
			}
			if found[3] != owner.Key() || found[1] != fmt.Sprintf("%x", Mark(web.ID, owner.Number)) {
				t.Errorf("%v through %s lands on %s with mark %s, want %s in slot %d", src, router, found[3], found[1], owner.Key(), slot)
			}
			if want := "0x1" + strings.ReplaceAll(router, ":", ""); found[2] != want {
				t.Errorf("label %s, want %s: port 1 and the router's MAC", found[2], want)
			}
			seen[owner.Name] = true
		}
	}
	if len(seen) != 3 {
		t.Errorf("connections landed on %v only", seen)
	}
}

// Packets through the switch's own connection tracker.
func TestLiveConnections(t *testing.T) {
	r := startReal(t)
	s := serving(t, small)
	snap := s.Snapshot()
	r.hold(t, snap)
	if err := r.session.Send(context.Background(), &openflow.SetConfig{SwitchConfig: openflow.SwitchConfig{MissSendLen: openflow.MaxLenAll}},
		&openflow.SetControllerID{ID: ControllerID}); err != nil {
		t.Fatal(err)
	}
	r.ovs.Appctl("dpctl/ct-disable-tcp-seq-chk") // the segments below have no numbers
	src, vip := addrPort("10.20.0.10:40000"), addrPort("10.20.0.100:80")
	_, slot := Slot(snap.Pool("web"), Tuple{Proto: protoTCP, Src: src, Dst: vip})
	owner := snap.Pool("web").Owner(slot)
	send := func(port int, src, dst netip.AddrPort, flags string) {
		r.ovs.Appctl("netdev-dummy/receive", fmt.Sprintf("p%d", port), fmt.Sprintf(
			"in_port(%d),eth(src=02:00:00:00:00:aa,dst=02:00:5e:00:01:02),eth_type(0x0800),ipv4(src=%s,dst=%s,proto=6,tos=0,ttl=64,frag=no),tcp(src=%d,dst=%d),tcp_flags(%s)",
			port, src.Addr(), dst.Addr(), src.Port(), dst.Port(), flags))
	}
	reached := func(step string, table uint8, cookie uint64, want uint64) {
		t.Helper()
		r.ovs.Appctl("revalidator/wait") // counters of cached flows come late
		selector := openflow.AllFlows()
		selector.Table, selector.Cookie, selector.CookieMask = table, cookie, ^uint64(0)
		flows, err := r.session.Flows(context.Background(), openflow.FlowStatsRequest(selector))
		if err != nil {
			t.Fatal(err)
		}
		var got uint64
		for _, f := range flows {
			got += f.PacketCount
		}
		if got != want {
			t.Errorf("%s: %d packets have come to table %d, want %d", step, got, table, want)
		}
	}
	toMember := Cookie(KindMember, 1, uint32(owner.Number))

	send(1, src, vip, "syn")
	reached("SYN", TableToMember, toMember, 1)
	send(1, src, vip, "syn")
	reached("SYN again, before the answer", TableToMember, toMember, 2)
	send(2, owner.Address, src, "syn|ack")
	reached("SYN and ACK", TableToClient, Cookie(KindBase, 0, 0), 1)
	send(1, src, vip, "syn")
	reached("SYN again, after the answer", TableToMember, toMember, 3)
	send(1, src, vip, "ack")
	reached("ACK", TableToMember, toMember, 4)

	// A second connection is never answered, and its member goes down.
	other := netip.AddrPortFrom(src.Addr(), src.Port())
	for snap.Pool("web").Owner(slot).Key() != owner.Key() || other == src {
		other = netip.AddrPortFrom(src.Addr(), other.Port()+1)
		_, slot = Slot(snap.Pool("web"), Tuple{Proto: protoTCP, Src: other, Dst: vip})
	}
	send(1, other, vip, "syn")
	reached("SYN of the second", TableToMember, toMember, 5)
	judge(s, state.Down, state.ProbeID{Address: owner.Address, Check: "tcp"})
	r.hold(t, s.Snapshot())
	send(1, src, vip, "ack")
	reached("ACK to a member that is down", TableToMember, toMember, 6)
	send(1, other, vip, "syn")
	reached("SYN to a member that is down", TableToMember, toMember, 6)
	// The controller gets it, with what it needs to put it back on its way.
	event := <-r.session.Events()
	in, ok := event.Message.(*openflow.PacketIn)
	if !ok {
		t.Fatalf("not a packet-in: %+v", event)
	}
	dst, _ := in.Match.Get(openflow.CTNwDst)
	port, _ := in.Match.Get(openflow.CTTpDst)
	if in.Table != TableVIP || !IsOwn(in.Cookie) || in.InPort() != 1 || netip.AddrPortFrom(dst.IP(), uint16(port.Uint64())) != vip {
		t.Errorf("%+v", in)
	}
}
