package pipeline

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"brlb/controller/state"
)

const tunnels = `
mac: 02:00:5e:00:01:02
zone: 5
pools:
  web:
    id: 1
    slots: 64
    mode: tunnel
    tunnel: {key: 77}
    members: {be1: 10.30.0.11:80, be2: 192.0.2.12:80}
  web6:
    id: 2
    slots: 64
    mode: tunnel
    tunnel: {type: gre, mtu: 9000}
    members: {be1: "[2001:db8::11]:80"}
services:
  web: {address: [10.20.0.100, "2001:db8:20::100"], ports: [80/tcp], pool: web, pool6: web6}
`

// tunnelling is a state whose bridge has the ports that its tunnels need.
func tunnelling(t testing.TB) *state.State {
	t.Helper()
	s := serving(t, tunnels)
	s.SetPorts([]state.Port{
		{Number: 1, Name: "p1", Live: true}, {Number: 2, Name: "p2", Live: true},
		{Number: 7, Name: "brlb-vxlan", Live: true}, {Number: 8, Name: "brlb-gre", Live: true},
	}, start)
	return s
}

// What a brlb that starts reads out of the flows: who the members are, but no next
// hops, for the tunnel's port says those.
func TestTunnelsAreAdopted(t *testing.T) {
	s := tunnelling(t)
	members := Members(render(t, s.Snapshot()))
	var found []string
	for _, m := range members {
		found = append(found, fmt.Sprintf("%d %s by %s", m.PoolID, m.Address, m.Next.Source))
	}
	slices.Sort(found)
	want := []string{"1 10.30.0.11:80 by tunnel", "1 192.0.2.12:80 by tunnel", "2 [2001:db8::11]:80 by tunnel"}
	if !slices.Equal(found, want) {
		t.Errorf("found %q, want %q", found, want)
	}
	// The pool is of mode dsr now, and its members are neighbours that nobody has found yet.
	dsr := state.New(parse(t, strings.NewReplacer("mode: tunnel", "mode: dsr", "    tunnel: {key: 77}\n", "", "    tunnel: {type: gre, mtu: 9000}\n", "").Replace(tunnels)), start)
	if err := dsr.LoadNumbers(""); err != nil {
		t.Fatal(err)
	}
	dsr.Adopt(members, start)
	for _, p := range dsr.Snapshot().Pools {
		for _, m := range p.Members {
			if m.HasNext {
				t.Errorf("%s of pool %s is taken to be at %+v", m.Name, p.Name, m.Next)
			}
		}
	}
}

// A member stays where it is when the tunnel's port comes back under another
// number.
func TestTunnelPortIsMadeAnew(t *testing.T) {
	s := tunnelling(t)
	if text := text(render(t, s.Snapshot())); !strings.Contains(text, "output:7") || !strings.Contains(text, "in_port=7 ") {
		t.Errorf("nothing goes into the tunnel, or what comes out is not dropped:\n%s", text)
	}
	s.SetPorts([]state.Port{{Number: 1, Name: "p1", Live: true}, {Number: 9, Name: "brlb-vxlan", Live: true}, {Number: 8, Name: "brlb-gre", Live: true}}, start)
	if text := text(render(t, s.Snapshot())); !strings.Contains(text, "output:9") || strings.Contains(text, "output:7") || strings.Contains(text, "in_port=7 ") {
		t.Errorf("port 9 has taken the place of 7:\n%s", text)
	}
}

func TestLiveTunnels(t *testing.T) {
	r := startReal(t)
	r.ovs.Vsctl("add-port", "br0", "brlb-vxlan", "--", "set", "interface", "brlb-vxlan", "type=vxlan", "options:remote_ip=flow", "options:key=flow", "ofport_request=7",
		"--", "add-port", "br0", "brlb-gre", "--", "set", "interface", "brlb-gre", "type=gre", "options:remote_ip=flow", "options:key=flow", "ofport_request=8")
	s := tunnelling(t)
	snap := s.Snapshot()
	r.hold(t, snap)
	if complaints := r.ovs.Complaints(); strings.Contains(complaints, "ofp_actions") || strings.Contains(complaints, "ofproto") {
		t.Error(complaints)
	}
	web := snap.Pool("web")
	_, slot := Slot(web, Tuple{Proto: protoTCP, Src: addrPort("10.20.0.10:40000"), Dst: addrPort("10.20.0.100:80")})
	const client = "in_port=1,dl_src=02:00:00:00:00:aa,dl_dst=02:00:5e:00:01:02"
	for _, c := range []struct {
		name, flow string
		want       []string
	}{
		{"a packet for a member", client + ",tcp,nw_src=10.20.0.10,nw_dst=10.20.0.100,nw_ttl=64,tp_src=40000,tp_dst=80,tcp_flags=0x010",
			[]string{web.Owner(slot).Address.Addr().String() + "->tun_dst", "0x4d->tun_id", "dst=02:62:72:6c:62:00", "reg7=0x5aa", "output:7"}},
		{"one that comes in with a tag", client + ",dl_vlan=20,tcp,nw_src=10.20.0.10,nw_dst=10.20.0.100,nw_ttl=64,tp_src=40000,tp_dst=80,tcp_flags=0x010",
			[]string{web.Owner(slot).Address.Addr().String() + "->tun_dst", "vlan_tci=0x0000", "reg5=0x1014"}},
		{"one of IPv6", client + ",tcp6,ipv6_src=2001:db8::10,ipv6_dst=2001:db8:20::100,nw_ttl=64,tp_src=40000,tp_dst=80,tcp_flags=0x010",
			[]string{"2001:db8::11->tun_ipv6_dst", "output:8"}},
		{"one from a tunnel", "in_port=7,tun_src=192.0.2.66,dl_src=02:00:00:00:00:aa,dl_dst=02:00:5e:00:01:02,tcp,nw_src=10.20.0.10,nw_dst=10.20.0.100,tp_src=40000,tp_dst=80",
			[]string{"Datapath actions: drop"}},
		{"one that is too long", client + ",tcp,nw_src=10.20.0.10,nw_dst=10.20.0.100,nw_ttl=64,tp_src=40000,tp_dst=80,tcp_flags=0x010",
			[]string{"check_pkt_larger(1464)", "meter:", "controller(id="}},
	} {
		trace := r.trace(c.flow, "")
		for _, part := range c.want {
			if !strings.Contains(trace, part) {
				t.Errorf("%s: %q is not in\n%s", c.name, part, trace)
			}
		}
	}
}

// Who may have a connection: the slot's owner, and while the slot moves the member
// before.
func TestHolders(t *testing.T) {
	s := tunnelling(t)
	before := s.Snapshot()
	web := before.Pool("web")
	client := addrPort("10.20.0.10:40000")
	for ; ; client = addrPort(fmt.Sprintf("10.20.0.10:%d", client.Port()+1)) {
		if _, slot := Slot(web, Tuple{Proto: protoTCP, Src: client, Dst: addrPort("10.20.0.100:80")}); web.Owner(slot).Name == "be1" {
			break
		}
	}
	to := func(proto uint8, vip string) Tuple {
		return Tuple{Proto: proto, Src: client, Dst: addrPort(vip)}
	}
	if got := Holders(before, to(protoTCP, "10.20.0.100:80")); !slices.Equal(got, []uint16{web.Member("10.30.0.11:80").Number}) {
		t.Errorf("%v may have it, not be1 alone", got)
	}
	for _, other := range []Tuple{to(protoUDP, "10.20.0.100:80"), to(protoTCP, "10.20.0.100:81"), to(protoTCP, "10.20.0.101:80")} {
		if got := Holders(before, other); len(got) > 0 {
			t.Errorf("%v may have %v, which nobody serves", got, other)
		}
	}
	s.SetOverride(state.MemberID{Pool: "web", Key: "10.30.0.11:80"}, state.Override{State: state.Draining, At: start})
	got := Holders(s.Snapshot(), to(protoTCP, "10.20.0.100:80"))
	slices.Sort(got)
	want := []uint16{web.Member("10.30.0.11:80").Number, web.Member("192.0.2.12:80").Number}
	if slices.Sort(want); !slices.Equal(got, want) {
		t.Errorf("while the slot moves %v may have it, want %v", got, want)
	}
}

// What a stateless service of all protocols cannot hash by the packet itself.
func TestLiveStatelessAny(t *testing.T) {
	r := startReal(t)
	r.ovs.Vsctl("add-port", "br0", "brlb-vxlan", "--", "set", "interface", "brlb-vxlan", "type=vxlan", "options:remote_ip=flow", "options:key=flow", "ofport_request=7",
		"--", "add-port", "br0", "brlb-gre", "--", "set", "interface", "brlb-gre", "type=gre", "options:remote_ip=flow", "options:key=flow", "ofport_request=8")
	s := tunnelling(t)
	any := strings.Replace(tunnels, "80/tcp", "any", 1)
	const vip = ",in_port=1,dl_src=02:00:00:00:00:aa,dl_dst=02:00:5e:00:01:02,nw_src=10.20.0.10,nw_dst=10.20.0.100,nw_ttl=64"
	for _, c := range []struct {
		name, config, flow, ct string
		want, not              string
	}{
		{"a datagram", any, "udp" + vip + ",udp_src=1,udp_dst=2", "", "->tun_dst", "ct("},
		{"an ICMP error", any, "icmp" + vip + ",icmp_type=3,icmp_code=4", "trk,inv", "controller(id=", "->tun_dst"},
		{"an ICMP error about a tracked connection", any, "icmp" + vip + ",icmp_type=3,icmp_code=4", "trk,rel", "goto_table:13", "controller(id="},
		{"a fragment", any, "udp" + vip + ",nw_frag=first", "trk,new", "drop", "->tun_dst"},
		{"a fragment, with affinity", strings.Replace(any, "mode: tunnel", "mode: tunnel\n    affinity: source", 1), "udp" + vip + ",nw_frag=later", "", "->tun_dst", "ct("},
		{"a fragment to one port, with affinity", strings.Replace(tunnels, "mode: tunnel", "mode: tunnel\n    affinity: source", 1), "udp" + vip + ",nw_frag=later", "", "->tun_dst", "ct("},
		{"a fragment to one port", tunnels, "udp" + vip + ",nw_frag=later", "trk,new", "drop", "->tun_dst"},
		{"an ICMP error to one port", tunnels, "icmp" + vip + ",icmp_type=3,icmp_code=4", "trk,inv", "controller(id=", "->tun_dst"},
	} {
		s.SetConfig(parse(t, c.config), start)
		judge(s, state.Up, s.Probes()...)
		r.hold(t, s.Snapshot())
		trace := r.trace(c.flow, c.ct)
		if !strings.Contains(trace, c.want) || strings.Contains(trace, c.not) {
			t.Errorf("%s: want %q, and not %q, in\n%s", c.name, c.want, c.not, trace)
		}
	}
}
