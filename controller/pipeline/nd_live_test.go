package pipeline

import (
	"strings"
	"testing"
)

const dualStack = `
mac: 02:00:5e:00:01:02
gateways: ["2001:db8:30::1/64"]
pools:
  web6: {id: 6, slots: 64, members: {be1: "[2001:db8:30::11]:8080"}}
services:
  web: {address: "2001:db8:20::100", ports: [80/tcp], pool: web6}
`

// How the switch answers neighbour discovery, by its own account.
func TestLiveNeighbourDiscovery(t *testing.T) {
	r := startReal(t)
	r.hold(t, serving(t, dualStack).Snapshot())
	const (
		asks     = "in_port=1,icmp6,dl_src=02:00:00:00:00:aa,dl_dst=33:33:ff:00:01:00,ipv6_src=2001:db8:20::a,ipv6_dst=ff02::1:ff00:100,icmpv6_type=135,icmpv6_code=0"
		withMAC  = ",nd_sll=02:00:00:00:00:aa"
		vip      = ",nd_target=2001:db8:20::100"
		answered = "set(eth(src=02:00:5e:00:01:02,dst=02:00:00:00:00:aa))"
	)
	for _, c := range []struct {
		name, flow string
		want       []string // what the last step does, in part
	}{
		{"for the VIP", asks + ",nw_ttl=255" + withMAC + vip,
			[]string{answered, "src=2001:db8:20::100,dst=2001:db8:20::a", "icmpv6(type=136", "nd_ext(nd_reserved=0x60000000,nd_options_type=2", "tll=02:00:5e:00:01:02", ",1"}},
		{"for the gateway", asks + ",nw_ttl=255" + withMAC + ",nd_target=2001:db8:30::1",
			[]string{answered, "src=2001:db8:30::1,dst=2001:db8:20::a", "nd_reserved=0xe0000000", ",1"}},
		{"for where brlb asks from", asks + ",nw_ttl=255" + withMAC + ",nd_target=fe80::5eff:fe00:102",
			[]string{answered, "src=fe80::5eff:fe00:102", "nd_reserved=0xe0000000", ",1"}},
		{"for somebody else", asks + ",nw_ttl=255" + withMAC + ",nd_target=2001:db8:20::101", []string{"2"}},
		{"from another network", asks + ",nw_ttl=254" + withMAC + vip, []string{"2"}},
		{"without a MAC", asks + ",nw_ttl=255" + vip, []string{"meter(", "controller("}},
		{"an answer to brlb", "in_port=2,icmp6,dl_src=02:00:00:00:01:01,dl_dst=02:00:5e:00:01:02,ipv6_src=2001:db8:30::11,ipv6_dst=fe80::5eff:fe00:102,nw_ttl=255,icmpv6_type=136,icmpv6_code=0,nd_target=2001:db8:30::11",
			[]string{"controller("}},
	} {
		t.Run(c.name, func(t *testing.T) {
			trace := r.trace(c.flow, "")
			last := trace[strings.LastIndex(trace, "Datapath actions: "):]
			for _, part := range c.want {
				if !strings.Contains(last, part) {
					t.Errorf("%q is not in %q", part, last)
				}
			}
			if len(c.want) == 1 && strings.Contains(last, "set(") {
				t.Errorf("answered: %q", last)
			}
			if t.Failed() {
				t.Log(trace)
			}
		})
	}
}
