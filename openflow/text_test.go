package openflow

import (
	"strings"
	"testing"
	"time"
)

func TestParseTextErrors(t *testing.T) {
	for _, text := range []string{
		"", "table=11", "bogus,actions=drop", "table=256,actions=drop", "table=x,actions=drop", "priority=65536,actions=drop", "delete actions=drop",
		"reg0,actions=drop", "reg0=0x100000000,actions=drop", "reg99=1,actions=drop", "nw_dst=10.0.0,actions=drop", "nw_dst=::1,actions=drop", "nw_dst=10.0.0.1/33,actions=drop",
		"ipv6_dst=fe80::1%eth0,actions=drop", "dl_dst=1:2:3:4:5,actions=drop", "dl_dst=1:2:3:4:5:666,actions=drop", "dl_vlan=4096,actions=drop", "nw_tos=3,actions=drop",
		"ct_state=+bogus,actions=drop", "ct_state=+trk-trk,actions=drop", "nw_frag=maybe,actions=drop", "tcp,tcp,actions=drop", "eth_type=0x800/0xff,actions=drop",
		"in_port=70000,actions=drop", "in_port=bogus,actions=drop", "packet_type=1,actions=drop", "tun_metadata0=zz,actions=drop",
		"actions=bogus", "actions=output:bogus", "actions=output:NXM_BOGUS[]", "actions=output:NXM_NX_REG0[0..99]", "actions=output:NXM_NX_REG0[", "actions=output(port=1", "actions=output:1)",
		"actions=load:5", "actions=load:5->bogus", "actions=load:0x100->NXM_NX_REG0[0..7]", "actions=set_field:5", "actions=set_field:5->bogus", "actions=set_field:zz->reg0",
		"actions=move:NXM_NX_REG0[]->NXM_NX_REG1[0..7]", "actions=move:bogus->NXM_NX_REG1[0..7]", "actions=multipath(symmetric_l4,7)", "actions=multipath(bogus,7,modulo_n,1024,0,NXM_NX_REG1[])",
		"actions=multipath(eth_src,7,bogus,1024,0,NXM_NX_REG1[])", "actions=multipath(eth_src,7,modulo_n,0,0,NXM_NX_REG1[])", "actions=multipath(eth_src,7,modulo_n,65537,0,NXM_NX_REG1[])",
		"actions=resubmit(1,2,bogus)", "actions=resubmit(bogus,2)", "actions=ct(bogus)", "actions=ct(alg=bogus)", "actions=ct(zone=bogus)", "actions=ct(nat(src=bogus))", "actions=ct(nat(src=10.0.0.1:99999))",
		"actions=learn(bogus=1)", "actions=learn(NXM_NX_REG0[]=NXM_NX_REG1[0..7])", "actions=learn(load:0x100->NXM_NX_REG0[0..7])", "actions=conjunction(1,3/2)", "actions=conjunction(1)",
		"actions=note:0", "actions=note:zz", "actions=group:x", "actions=goto_table:256", "actions=write_metadata:x", "actions=meter:x", "actions=bundle(eth_src,1,bogus,ofport,members:1)",
		"actions=bundle(eth_src,1,hrw,ofport)", "actions=sample(bogus=1)", "actions=controller(bogus)", "actions=controller(reason=bogus)", "actions=fin_timeout(bogus=1)", "actions=encap(bogus)", "actions=encap(nsh(bogus=1))",
		"actions=encap(nsh(tlv(1)))", "actions=decap(bogus(ns=1))", "actions=decap(packet_type(bogus=1))", "actions=mod_nw_dst:bogus", "actions=dec_ttl(x)", "actions=check_pkt_larger(x)->NXM_NX_REG0[0]",
		"actions=" + strings.Repeat("clone(", 50) + strings.Repeat(")", 50),
	} {
		if m, err := ParseFlow(text); err == nil {
			if _, err = Append(nil, 1, m); err == nil {
				t.Errorf("ParseFlow(%q) is %v, want an error", text, m)
			}
		} else if len(err.Error()) > 300 {
			t.Errorf("ParseFlow(%.40q): an error of %d octets", text, len(err.Error()))
		}
	}
	if list, err := ParseActions("output:1,goto_table:2"); err == nil {
		t.Errorf("ParseActions took an instruction: %v", list)
	}
	if list, err := ParseActions("drop"); err != nil || list != nil {
		t.Errorf("drop is %v, %v", list, err)
	}
	if list, err := ParseInstructions("output:1,goto_table:2"); err != nil || list.String() != "output:1,goto_table:2" {
		t.Errorf("got %v, %v", list, err)
	}
}

func TestNames(t *testing.T) {
	for _, c := range []struct{ got, want string }{
		{TypeFlowMod.String(), "OFPT_FLOW_MOD"},
		{Type(99).String(), "OFPT(99)"},
		{MultipartFlow.String(), "OFPMP_FLOW"},
		{MultipartExperimenter.String(), "OFPMP_EXPERIMENTER"},
		{MultipartType(99).String(), "OFPMP(99)"},
		{PortNo(5).String(), "5"},
		{PortNormal.String(), "NORMAL"},
		{RoleMaster.String(), "master"},
		{Role(9).String(), "unknown"},
		{PacketInReason(9).String(), "9"},
		{HashFields(99).String(), "hash(99)"},
		{LinkAlgorithm(9).String(), "algorithm(9)"},
		{BundleAlgorithm(9).String(), "algorithm(9)"},
		{BadRequestIsSlave.String(), "OFPBRC_IS_SLAVE"},
		{NewErrorCode(99, 1).String(), "error type 99 code 1"},
		{NewExperimenterErrorCode(0x1234, 7).String(), "error 7 of experimenter 0x1234"},
		{(&ParseError{Kind: ErrTruncated, Offset: 8, What: "OFPT_HELLO: x"}).Error(), "openflow: OFPT_HELLO: x: cut short (at octet 8)"},
		{(&Error{Code: HelloFailedIncompatible, Data: []byte("no\x00way")}).Error(), `openflow: OFPHFC_INCOMPATIBLE: "no\x00way"`},
		{RawAction{Type: 9, Data: []byte{1, 2, 3, 4}}.String(), "action(9:01020304)"},
		{RawInstruction{Type: 9, Data: []byte{1}}.String(), "instruction(9:01)"},
		{Instructions(nil).String(), "drop"},
		{WriteMetadataAction{1, 2}.String(), "write_metadata:0x1/0x2"},
		{PushPBB(5).String() + CopyTTLIn{}.String() + CopyTTLOut{}.String() + PopPBB{}.String(), "push_pbb:0x0005copy_ttl_incopy_ttl_outpop_pbb"},
		{(&FlowStats{DurationSec: 1, DurationNSec: 5e8}).Duration().String(), "1.5s"},
		{(&FlowRemoved{DurationSec: 1}).Duration().String(), "1s"},
	} {
		if c.got != c.want {
			t.Errorf("got %s, want %s", c.got, c.want)
		}
	}
	if (&GroupStats{DurationSec: 1}).Duration() != time.Second || (&MeterStatistics{DurationSec: 1}).Duration() != time.Second ||
		(&PortStats{DurationSec: 1}).Duration() != time.Second || (&QueueStats{DurationSec: 1}).Duration() != time.Second {
		t.Error("durations are wrong")
	}
	port := Port{State: PortLive, Properties: []PortProperty{RawPortProperty{Type: 9}, PortEthernet{MaxSpeed: 5}}}
	if e, ok := port.Ethernet(); !ok || e.MaxSpeed != 5 || !port.IsLive() {
		t.Errorf("port %+v", port)
	}
	if (&PacketIn{}).InPort() != PortAny {
		t.Error("a packet of no port has one")
	}
}
