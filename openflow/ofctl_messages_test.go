package openflow

import (
	"net/netip"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// messageCases are messages of all types, as a switch or a controller would
// send them, and words of what ovs-ofctl prints of them.
func messageCases() []messageCase {
	flow := &FlowMod{
		Cookie: 0x1234, Table: 11, Priority: 100, BufferID: NoBuffer, OutPort: PortAny, OutGroup: GroupAny, Importance: 3, Flags: FlowSendFlowRem,
		Match:        Match{Reg0.Exact(1), Reg1.Exact(5)},
		Instructions: Instructions{ApplyActions{RegLoad{Dst: Reg2.Whole(), Value: 6}}, GotoTable(12)},
	}
	port := Port{No: 2, HWAddr: MAC{2, 0, 0, 0, 0, 9}, Name: "veth2", Config: PortNoFwd, State: PortLive, Properties: []PortProperty{
		PortEthernet{Current: 0x2820, Advertised: 0x282a, Supported: 0x282a, CurrentSpeed: 1000000, MaxSpeed: 1000000}}}
	group := &GroupMod{Command: GroupAdd, Kind: GroupTypeSelect, ID: 9, Buckets: []Bucket{
		{Weight: 7, WatchPort: PortAny, WatchGroup: GroupAny, Actions: []Action{Output{Port: 3}}}}}
	table := TableDesc{Table: 4, Config: TableEviction | TableVacancyEvents, Properties: []TableProperty{
		{Type: TablePropertyEviction, EvictionFlags: 4}, {Type: TablePropertyVacancy, VacancyDown: 10, VacancyUp: 20, Vacancy: 30}}}
	bands := []MeterBand{{Kind: BandDrop, Rate: 1000, Burst: 10}, {Kind: BandDSCPRemark, Rate: 2000, Burst: 20, PrecLevel: 1}}
	async := AsyncProperties{{Type: AsyncPacketInMaster, Mask: 0x3b}, {Type: AsyncPortStatusSlave, Mask: 7}, {Type: AsyncRequestForwardMaster, Mask: 3}}
	matchArp := Match{EthType.Exact(etherTypeARP), ARPTPA.Addr(netip.MustParseAddr("10.0.0.100"))}
	selector := FlowSelector{Table: 11, OutPort: 7, OutGroup: GroupAny, Cookie: 0x1200, CookieMask: 0xff00, Match: matchArp}
	stats := FlowStats{Table: 11, DurationSec: 5, DurationNSec: 7e6, Priority: 100, IdleTimeout: 60, Flags: FlowSendFlowRem, Importance: 2, Cookie: 0x55,
		PacketCount: 10, ByteCount: 1000, Match: flow.Match, Instructions: flow.Instructions}
	packetIn2 := PacketIn2{Packet: make([]byte, 64), FullLen: 100, BufferID: NoBuffer, Table: 3, Cookie: 0x99, Reason: PacketInAction,
		Metadata: Match{InPort.Exact(1), Reg0.Exact(5)}, UserData: []byte{1, 2}}
	request := func(body MultipartRequestBody) Message { return &MultipartRequest{Body: body} }
	reply := func(body MultipartReplyBody) Message { return &MultipartReply{Flags: MultipartMore, Body: body} }

	return []messageCase{
		{&Hello{Versions: HelloVersionBitmap(4, 5)}, "version bitmap: 0x04, 0x05"},
		{&Error{Code: BadRequestIsSlave}, "OFPBRC_IS_SECONDARY"},
		{&EchoRequest{Data: []byte("abc")}, "3 bytes of payload"},
		{&EchoReply{Data: []byte("abcd")}, "4 bytes of payload"},
		{&FeaturesRequest{}, "OFPT_FEATURES_REQUEST"},
		{&FeaturesReply{DatapathID: 0x123456789a, Tables: 254, Capabilities: CapFlowStats | CapBundles}, "dpid:000000123456789a|n_tables:254|FLOW_STATS|BUNDLES"},
		{&GetConfigRequest{}, "OFPT_GET_CONFIG_REQUEST"},
		{&GetConfigReply{SwitchConfig{0, 128}}, "miss_send_len=128"},
		{&SetConfig{SwitchConfig{1, 65535}}, "frags=drop miss_send_len=65535"},
		{&PacketIn{BufferID: NoBuffer, TotalLen: 60, Reason: PacketInAction, Table: 3, Cookie: 0x77, Match: Match{InPort.Exact(2), Metadata.Exact(9)}, Data: make([]byte, 42)},
			"table_id=3 cookie=0x77 total_len=60 metadata=0x9,in_port=2 (via action) data_len=42"},
		{&FlowRemoved{Cookie: 5, Priority: 10, Reason: RemovedIdleTimeout, Table: 2, DurationSec: 3, IdleTimeout: 60, PacketCount: 8, ByteCount: 800, Match: matchArp},
			"priority=10,arp,arp_tpa=10.0.0.100 reason=idle table_id=2 cookie:0x5 duration3s idle60 pkts8 bytes800"},
		{&PortStatus{PortModified, port}, "MOD: 2(veth2): addr:02:00:00:00:00:09|config:     NO_FWD|state:      LIVE|1GB-FD"},
		{&PacketOut{BufferID: NoBuffer, InPort: PortController, Actions: []Action{Output{Port: 2}}, Data: make([]byte, 20)}, "in_port=CONTROLLER actions=output:2 data_len=20"},
		{flow, "ADD table:11 priority=100,reg0=0x1,reg1=0x5 cookie:0x1234 importance:3 send_flow_rem actions=load:0x6->NXM_NX_REG2[],goto_table:12"},
		{group, "ADD group_id=9,type=select,bucket=weight:7,actions=output:3"},
		{&PortMod{No: 2, HWAddr: MAC{2}, Config: PortDown, Mask: PortDown | PortNoFwd, Properties: []PortModProperty{{Advertise: 0x20}}}, "port: 2: addr:02:00:00:00:00:00|config: PORT_DOWN|mask:   PORT_DOWN NO_FWD|advertise: 1GB-FD"},
		{&TableMod{Table: 4, Config: TableEviction, Properties: []TableProperty{{Type: TablePropertyEviction, EvictionFlags: 4}}}, "table_id=4"},
		{&MeterMod{Command: MeterAdd, Flags: MeterKbps | MeterBurst, ID: 3, Bands: bands}, "ADD meter=3 kbps burst bands=|type=drop rate=1000 burst_size=10|type=dscp_remark rate=2000 burst_size=20 prec_level=1"},
		{&BarrierRequest{}, "OFPT_BARRIER_REQUEST"},
		{&BarrierReply{}, "OFPT_BARRIER_REPLY"},
		{&RoleRequest{RoleBody{RoleMaster, 7}}, "role=primary generation_id=7"},
		{&RoleReply{RoleBody{RoleSlave, 8}}, "role=secondary generation_id=8"},
		{&RoleStatus{RoleBody: RoleBody{RoleSlave, 8}, Reason: RoleConfig}, "role=secondary generation_id=8 reason=configuration_changed"},
		{&GetAsyncRequest{}, "OFPT_GET_ASYNC_REQUEST"},
		{&GetAsyncReply{async}, "PACKET_IN: no_match action action_set group packet_out|PORT_STATUS: add delete modify"},
		{&SetAsync{async}, "PACKET_IN: no_match action action_set group packet_out|PORT_STATUS: add delete modify|REQUESTFORWARD: group_mod_request meter_mod_request"},
		{&TableStatus{TableVacancyDown, table}, "reason=VACANCY_DOWN|table 4:|vacancy=on vacancy_down=10% vacancy_up=20% vacancy=30%"},
		{&RequestForward{8, group}, "reason=group_mod|group_id=9"},
		{&BundleControl{ID: 5, Kind: BundleOpenRequest, Flags: BundleAtomic | BundleOrdered}, "bundle_id=0x5 type=OPEN_REQUEST flags=atomic ordered"},
		{&BundleAdd{ID: 5, Flags: BundleAtomic, Message: flow}, "bundle_id=0x5 flags=atomic|OFPT_FLOW_MOD|ADD table:11"},

		{request(DescRequest{}), "OFPST_DESC request"},
		{request(FlowStatsRequest(selector)), "OFPST_FLOW request|table=11 out_port=7 arp,arp_tpa=10.0.0.100"},
		{request(AggregateRequest(selector)), "OFPST_AGGREGATE request|table=11 out_port=7 arp,arp_tpa=10.0.0.100"},
		{request(TableStatsRequest{}), "OFPST_TABLE request"},
		{request(PortStatsRequest{3}), "OFPST_PORT request|port_no=3"},
		{request(QueueStatsRequest{PortAny, QueueAll}), "OFPST_QUEUE request|port=ANY queue=ALL"},
		{request(GroupStatsRequest{4}), "OFPST_GROUP request|group_id=4"},
		{request(GroupDescRequest{}), "OFPST_GROUP_DESC request"},
		{request(GroupFeaturesRequest{}), "OFPST_GROUP_FEATURES request"},
		{request(MeterStatsRequest{4}), "OFPST_METER request|meter=4"},
		{request(MeterConfigRequest{MeterAll}), "OFPST_METER_CONFIG request|meter=all"},
		{request(MeterFeaturesRequest{}), "OFPST_METER_FEATURES request"},
		{request(TableFeaturesRequest{}), "OFPST_TABLE_FEATURES request"},
		{request(PortDescRequest{}), "OFPST_PORT_DESC request"},
		{request(TableDescRequest{}), "OFPST_TABLE_DESC request"},
		{request(QueueDescRequest{2, QueueAll}), "OFPST_QUEUE_DESC request|port=2"},
		{request(FlowMonitorRequest{{ID: 1, OutPort: PortAny, OutGroup: GroupAny, Flags: 0x1f, Table: 11, Match: matchArp}}), "OFPST_FLOW_MONITOR request|id=1 flags=initial,add,delete,modify,actions table=11|arp_tpa=10.0.0.100"},

		{reply(Desc{"brlb", "none", "3.1.0", "None", "br-lb"}), "Manufacturer: brlb|Software: 3.1.0|DP Description: br-lb"},
		{reply(FlowStatsReply{stats, stats}), "cookie=0x55, duration=5.007s, table=11, n_packets=10, n_bytes=1000, idle_timeout=60, send_flow_rem importance=2, priority=100,reg0=0x1,reg1=0x5 actions=load:0x6->NXM_NX_REG2[],goto_table:12"},
		{reply(AggregateReply{10, 2000, 3}), "packet_count=10 byte_count=2000 flow_count=3"},
		{reply(TableStatsReply{{11, 1024, 50, 40}}), "table 11|active=1024, lookup=50, matched=40"},
		{reply(PortStatsReply{{Port: 2, DurationSec: 3, RxPackets: 1, TxPackets: 2, RxBytes: 3, TxBytes: 4, RxDropped: 5, TxDropped: 6, RxErrors: 7, TxErrors: 8, Ethernet: &EthernetStats{9, 10, 11, 12}}}),
			"rx pkts=1, bytes=3, drop=5, errs=7, frame=9, over=10, crc=11|tx pkts=2, bytes=4, drop=6, errs=8, coll=12|duration=3s"},
		{reply(QueueStatsReply{{Port: 2, Queue: 7, TxBytes: 1, TxPackets: 2, TxErrors: 3, DurationSec: 4}}), "port 2 queue 7: bytes=1, pkts=2, errors=3, duration=4s"},
		{reply(GroupStatsReply{{ID: 9, RefCount: 1, PacketCount: 5, ByteCount: 500, DurationSec: 4, Buckets: []BucketCounter{{5, 500}}}}), "group_id=9,duration=4s,ref_count=1,packet_count=5,byte_count=500,bucket0:packet_count=5,byte_count=500"},
		{reply(GroupDescReply{{GroupTypeSelect, 9, group.Buckets}}), "group_id=9,type=select,bucket=weight:7,actions=output:3"},
		{reply(GroupFeatures{Types: 15, Capabilities: 7, MaxGroups: [4]uint32{1, 2, 3, 4}, Actions: [4]uint32{1, 1, 1, 1}}), "Types:  0xf|Capabilities:  0x7|all group|max_groups=0x1"},
		{reply(MeterStatsReply{{ID: 3, FlowCount: 1, PacketCount: 2, ByteCount: 3, DurationSec: 4, Bands: []BucketCounter{{5, 6}}}}), "meter:3 flow_count:1 packet_in_count:2 byte_in_count:3 duration:4s bands:|0: packet_count:5 byte_count:6"},
		{reply(MeterConfigReply{{MeterKbps | MeterBurst, 3, bands}}), "meter=3 kbps burst bands=|type=drop rate=1000 burst_size=10"},
		{reply(MeterFeatures{100, 6, 15, 8, 3}), "max_meter:100 max_bands:8 max_color:3|band_types: drop dscp_remark|capabilities: kbps pktps burst stats"},
		{reply(PortDescReply{port}), "2(veth2): addr:02:00:00:00:00:09|speed: 1000 Mbps now"},
		{reply(TableDescReply{table}), "table 4:|eviction=on eviction_flags=LIFETIME|vacancy=on vacancy_down=10% vacancy_up=20% vacancy=30%"},
		{reply(QueueDescReply{{1, 17, []QueueProperty{{Type: QueueMinRate, Rate: 500}, {Type: QueueMaxRate, Rate: 700}}}}), "queue 17: min_rate:50.0% max_rate:70.0%"},
		{reply(FlowMonitorReply{
			{Event: EventAdded, Table: 11, Priority: 100, Cookie: 0x55, Match: flow.Match, Instructions: flow.Instructions},
			{Event: EventRemoved, Table: 11, Reason: RemovedDelete, Match: matchArp}, {Event: EventAbbrev, Xid: 0x123}, {Event: EventPaused}, {Event: EventResumed}}),
			"event=ADDED table=11 cookie=0x55 reg0=0x1,reg1=0x5 actions=load|event=DELETED reason=delete|event=ABBREV xid=0x123|event=PAUSED"},

		{&SetControllerID{5}, "id=5"},
		{&SetPacketInFormat{PacketInNXT2}, "format=nxt_packet_in2"},
		{&packetIn2, "NXT_PACKET_IN2|table_id=3 cookie=0x99 total_len=100 reg0=0x5,in_port=1 (via action) data_len=64|userdata=01.02"},
		{&TLVTableMod{TLVTableAdd, []TLVMap{{0xffff, 1, 8, 2}}}, "ADD mapping table:|0xffff|tun_metadata2"},
		{&TLVTableRequest{}, "NXT_TLV_TABLE_REQUEST"},
		{&TLVTableReply{256, 64, []TLVMap{{0xffff, 1, 8, 2}}}, "max option space=256 max fields=64|tun_metadata2"},
		{&CTFlushZone{5}, "zone_id=5"},
		{&CTFlush{Proto: 6, Reply: CTTuple{Src: netip.MustParseAddr("10.1.0.10"), SrcPort: 8080}, HasZone: true, Zone: 5}, "zone=5|'ct_nw_src=10.1.0.10,ct_nw_dst=::,ct_tp_src=8080"},
		{&CTFlush{Proto: 1, Orig: CTTuple{Src: netip.MustParseAddr("10.1.0.10"), HasICMP: true, ICMPID: 5, ICMPType: 8, ICMPCode: 1}}, "icmp_id=5,icmp_type=8,icmp_code=1"},
		{&CTFlush{Proto: 6, Orig: CTTuple{Dst: netip.MustParseAddr("2001:db8::1"), DstPort: 80}}, "ct_ipv6_dst=2001:db8::1|ct_tp_dst=80"},
	}
}

type messageCase struct {
	message Message
	words   string // separated by |
}

func TestOfctlReadsMessages(t *testing.T) {
	needOfctl(t)
	cases := messageCases()
	var messages [][]byte
	for _, c := range cases {
		b, err := Append(nil, 7, c.message)
		if err != nil {
			t.Fatalf("%v: %v", c.message, err)
		}
		messages = append(messages, b)
	}
	for i, got := range ofpParse(t, messages) {
		if strings.Contains(got, "***decode error") {
			t.Errorf("%T: %s", cases[i].message, got)
			continue
		}
		for word := range strings.SplitSeq(cases[i].words, "|") {
			if !strings.Contains(got, word) {
				t.Errorf("%T %x: want %q in\n%s", cases[i].message, messages[i], word, got)
			}
		}
	}
}

// TestOfctlReadsRandomMessages has ovs-ofctl print messages with random values,
// of the types in which it takes whatever value. It complains of none.
func TestOfctlReadsRandomMessages(t *testing.T) {
	needOfctl(t)
	random := genMessage.Filter(takesAnyValue)
	var messages [][]byte
	rapid.Check(t, func(t *rapid.T) {
		m := random.Draw(t, "message")
		switch m := m.(type) { // it knows one flag
		case *MultipartRequest:
			m.Flags &= MultipartMore
		case *MultipartReply:
			m.Flags &= MultipartMore
		}
		b, err := Append(nil, 7, m)
		if err != nil {
			t.Fatal(err)
		}
		messages = append(messages, b)
	})
	for i, got := range ofpParse(t, messages) {
		if strings.Contains(got, "***") {
			t.Errorf("%x: %s", messages[i], got)
		}
	}
}

// takesAnyValue says whether Open vSwitch takes all values that the generators
// draw for messages of this type: not where there are fields, actions, bands or
// properties, of which it knows some only, and not roles and tables.
func takesAnyValue(m Message) bool {
	switch m := m.(type) {
	case *Hello, *EchoRequest, *EchoReply, *FeaturesRequest, *FeaturesReply, *GetConfigRequest, *GetConfigReply, *PortStatus, *PortMod,
		*BarrierRequest, *BarrierReply, *GetAsyncReply, *BundleControl, *CTFlushZone, *SetControllerID, *TLVTableRequest:
		return true
	case *MultipartRequest:
		switch m.Body.(type) {
		case FlowStatsRequest, AggregateRequest, FlowMonitorRequest, TableFeaturesRequest, ExperimenterMultipart, RawMultipart:
			return false
		}
		return true
	case *MultipartReply:
		switch m.Body.(type) {
		case Desc, AggregateReply, TableStatsReply, PortStatsReply, QueueStatsReply, GroupStatsReply, GroupFeatures, MeterStatsReply, MeterFeatures, PortDescReply:
			return true
		}
	}
	return false
}
