package controller

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"brlb/controller/conntrack"
	"brlb/openflow"
	"brlb/openflow/oftest"
	"brlb/openflow/session"
)

// TestFlushOnARealSwitch: one entry, and no other, goes by its tuple, over
// OpenFlow and over the control socket; and all of a member's by where its
// answers come from. ICMPv6 is the one that the switch would not survive.
func TestFlushOnARealSwitch(t *testing.T) {
	ovs := oftest.StartOVS(t, 2)
	for _, flow := range []string{
		"ip,ip_proto=%d,actions=ct(commit,zone=7,nat(dst=10.30.0.11:8080)),2",
		"ipv6,ip_proto=%d,actions=ct(commit,zone=7,nat(dst=[fd00::11]:8080)),2",
	} {
		for _, proto := range flushable {
			ovs.Ofctl("add-flow", fmt.Sprintf(flow, proto))
		}
	}
	ovs.Ofctl("add-flow", "icmp6,actions=ct(commit,zone=7,nat(dst=fd00::11)),2")
	s, err := session.Open(t.Context(), ovs.Dial(), session.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()

	read := func() (entries []conntrack.Entry) {
		t.Helper()
		for line := range strings.Lines(ovs.Appctl("dpctl/dump-conntrack", "-m", "zone=7")) {
			e, err := conntrack.Parse([]byte(strings.TrimSpace(line)))
			if err != nil {
				t.Fatal(err)
			}
			entries = append(entries, e)
		}
		return entries
	}
	const ethernet = "in_port(1),eth(src=02:00:00:00:00:01,dst=02:00:00:00:00:02),"
	v4 := ethernet + "eth_type(0x0800),ipv4(src=10.20.0.10,dst=10.20.0.100,tos=0,ttl=64,frag=no,proto="
	v6 := ethernet + "eth_type(0x86dd),ipv6(src=2001:db8::1,dst=2001:db8::100,label=0,tclass=0,hlimit=64,frag=no,proto="
	fill := func() []conntrack.Entry {
		t.Helper()
		ovs.Appctl("dpctl/flush-conntrack")
		packets := []string{
			v4 + "6),tcp(src=40000,dst=80),tcp_flags(syn)", v4 + "6),tcp(src=40001,dst=80),tcp_flags(syn)",
			v4 + "17),udp(src=40000,dst=53)", v6 + "6),tcp(src=40000,dst=80),tcp_flags(syn)",
			v6 + "17),udp(src=40000,dst=53)", v6 + "58),icmpv6(type=128,code=0)",
		}
		for _, packet := range packets {
			ovs.Appctl("netdev-dummy/receive", "p1", packet)
		}
		for end := time.Now().Add(20 * time.Second); ; {
			if entries := read(); len(entries) == len(packets) {
				return entries
			} else if time.Now().After(end) {
				t.Fatalf("%d entries of %d packets: %+v", len(entries), len(packets), entries)
			}
		}
	}
	has := func(e conntrack.Entry) bool {
		for _, other := range read() {
			if other.Proto == e.Proto && other.Orig == e.Orig {
				return true
			}
		}
		return false
	}

	for name, flush := range map[string]func(*openflow.CTFlush){
		"OpenFlow": func(f *openflow.CTFlush) {
			if err := s.Transact(t.Context(), f); err != nil {
				t.Fatal(err)
			}
		},
		"control socket": func(f *openflow.CTFlush) { ovs.Appctl("dpctl/flush-conntrack", "zone=7", tupleText(f)) },
	} {
		entries := fill()
		left := len(entries)
		for _, e := range entries {
			if e.Proto == conntrack.ProtoICMPv6 {
				continue
			}
			flush(exactly(&e))
			if left--; has(e) || len(read()) != left {
				t.Errorf("%s: of %d left after the flush of %+v there are %d", name, left, e.Orig, len(read()))
			}
		}
	}

	fill()
	for _, f := range (&standing{flushable: flushable}).allOf(&place{addr: netip.MustParseAddr("10.30.0.11"), port: 8080, zone: 7}) {
		if err := s.Transact(t.Context(), &f); err != nil {
			t.Fatal(err)
		}
	}
	if left := read(); len(left) != 3 || left[0].Orig.Src.Is4() || left[1].Orig.Src.Is4() || left[2].Orig.Src.Is4() {
		t.Errorf("after the flush of all of 10.30.0.11:8080: %+v", left)
	}
}
