package openflow

import "pgregory.net/rapid"

// genMessage draws messages of all types.
var genMessage = rapid.Custom(func(t *rapid.T) Message {
	switch rapid.IntRange(0, 9).Draw(t, "kind") {
	case 0:
		inner := genPlainMessage.Filter(func(m Message) bool { return m.Type() != TypeBundleControl })
		return &BundleAdd{u32(t), BundleFlags(u16(t)), inner.Draw(t, "message"), genProperties(t)}
	case 1:
		return &RequestForward{u32(t), genPlainMessage.Draw(t, "message")}
	case 2, 3:
		return &MultipartRequest{MultipartFlags(u16(t)), genRequestBody.Draw(t, "body")}
	case 4, 5:
		return &MultipartReply{MultipartFlags(u16(t)), genReplyBody.Draw(t, "body")}
	}
	return genPlainMessage.Draw(t, "message")
})

// genPlainMessage draws messages that hold no message and no statistics.
var genPlainMessage = rapid.Custom(func(t *rapid.T) Message {
	switch rapid.IntRange(0, 38).Draw(t, "type") {
	case 0:
		return &Hello{Version: Version, Versions: u32(t), Elements: genList(rapid.Custom(func(t *rapid.T) RawProperty {
			return RawProperty{2 + u16(t)%9, genBytes(0, 12).Draw(t, "data")}
		}), 2).Draw(t, "elements")}
	case 1:
		return &Error{NewErrorCode(u16(t)%18, u16(t)), genBytes(0, 100).Draw(t, "data")}
	case 2:
		return &Error{NewExperimenterErrorCode(u32(t), u16(t)), genBytes(0, 100).Draw(t, "data")}
	case 3:
		return &EchoRequest{genBytes(0, 50).Draw(t, "data")}
	case 4:
		return &EchoReply{genBytes(0, 50).Draw(t, "data")}
	case 5:
		return &Experimenter{u32(t) | 1, u32(t), genBytes(0, 50).Draw(t, "data")}
	case 6:
		return &FeaturesRequest{}
	case 7:
		return &FeaturesReply{u64(t), u32(t), u8(t), u8(t), Capabilities(u32(t)), u32(t)}
	case 8:
		return &GetConfigRequest{}
	case 9:
		return &GetConfigReply{SwitchConfig{u16(t), u16(t)}}
	case 10:
		return &SetConfig{SwitchConfig{u16(t), u16(t)}}
	case 11:
		return &PacketIn{u32(t), u16(t), PacketInReason(u8(t) % 6), u8(t), u64(t), genMatch.Draw(t, "match"), genBytes(0, 100).Draw(t, "data")}
	case 12:
		return &FlowRemoved{u64(t), u16(t), FlowRemovedReason(u8(t) % 6), u8(t), u32(t), u32(t), u16(t), u16(t), u64(t), u64(t), genMatch.Draw(t, "match")}
	case 13:
		return &PortStatus{PortReason(u8(t) % 3), genPortDesc.Draw(t, "port")}
	case 14:
		return &PacketOut{u32(t), genPort(t), genActions(2).Draw(t, "actions"), genBytes(0, 100).Draw(t, "data")}
	case 15, 16, 17, 18:
		return &FlowMod{u64(t), u64(t), u8(t), FlowModCommand(u8(t) % 5), u16(t), u16(t), u16(t), u32(t), genPort(t), u32(t),
			FlowModFlags(u16(t) & 31), u16(t), genMatch.Draw(t, "match"), genInstructions.Draw(t, "instructions")}
	case 19:
		return &GroupMod{GroupModCommand(u16(t) % 3), GroupType(u8(t) % 4), u32(t), genBuckets(t)}
	case 20:
		return &PortMod{genPort(t), genMAC(t), PortConfig(u32(t)), PortConfig(u32(t)), genList(rapid.Custom(func(t *rapid.T) PortModProperty {
			if rapid.Bool().Draw(t, "ethernet") {
				return PortModProperty{Advertise: u32(t)}
			}
			return PortModProperty{Type: 7, Data: genBytes(0, 12).Draw(t, "data")}
		}), 2).Draw(t, "properties")}
	case 21:
		return &TableMod{u8(t), TableConfig(u32(t)), genTableProperties(t)}
	case 22:
		return &TableStatus{TableReason(u8(t)), genTableDesc(t)}
	case 23:
		return &MeterMod{MeterModCommand(u16(t) % 3), MeterFlags(u16(t)), u32(t), genBands(t)}
	case 24:
		return &BarrierRequest{}
	case 25:
		return &BarrierReply{}
	case 26:
		return &RoleRequest{RoleBody{Role(u32(t)), u64(t)}}
	case 27:
		return &RoleReply{RoleBody{Role(u32(t)), u64(t)}}
	case 28:
		return &RoleStatus{RoleBody{Role(u32(t)), u64(t)}, RoleReason(u8(t)), genProperties(t)}
	case 29:
		return &GetAsyncRequest{genAsync(t)}
	case 30:
		return &GetAsyncReply{genAsync(t)}
	case 31:
		return &SetAsync{genAsync(t)}
	case 32:
		return &BundleControl{u32(t), BundleControlType(u16(t) % 8), BundleFlags(u16(t)), genProperties(t)}
	case 33:
		return &RawMessage{Type(200 + u8(t)%16), genBytes(0, 50).Draw(t, "data")}
	case 34:
		return &CTFlushZone{u16(t)}
	case 35:
		return &CTFlush{u8(t), genTuple(t), genTuple(t), true, u16(t)}
	case 36:
		return genPacketIn2(t)
	case 37:
		return &Resume{*genPacketIn2(t)}
	}
	return genSmallNXT(t)
})

func genSmallNXT(t *rapid.T) Message {
	maps := genList(rapid.Custom(func(t *rapid.T) TLVMap { return TLVMap{u16(t), u8(t), u8(t), u16(t)} }), 4)
	switch rapid.IntRange(0, 5).Draw(t, "type") {
	case 0:
		return &SetControllerID{u16(t)}
	case 1:
		return &SetPacketInFormat{PacketInFormat(u32(t) % 3)}
	case 2:
		return &SetAsync2{genAsync(t)}
	case 3:
		return &TLVTableMod{TLVTableCommand(u16(t) % 3), maps.Draw(t, "maps")}
	case 4:
		return &TLVTableRequest{}
	}
	return &TLVTableReply{u32(t), u16(t), maps.Draw(t, "maps")}
}

func genTuple(t *rapid.T) CTTuple {
	a := CTTuple{SrcPort: u16(t), DstPort: u16(t)}
	if rapid.Bool().Draw(t, "addresses") {
		a.Src, a.Dst = genAddr(t), genAddr(t)
	}
	if rapid.Bool().Draw(t, "icmp") {
		a.HasICMP, a.ICMPID, a.ICMPType, a.ICMPCode = true, u16(t), u8(t), u8(t)
	}
	return a
}

func genPacketIn2(t *rapid.T) *PacketIn2 {
	data := genBytes(0, 30)
	return &PacketIn2{data.Draw(t, "packet"), u32(t), u32(t), u8(t), u64(t), PacketInReason(u8(t) % 6), genMatch.Draw(t, "metadata"),
		data.Draw(t, "user data"), data.Draw(t, "continuation"), genProperties(t)}
}

func genAsync(t *rapid.T) AsyncProperties {
	return genList(rapid.Custom(func(t *rapid.T) AsyncProperty {
		return AsyncProperty{Type: AsyncType(u16(t) % 12), Mask: u32(t)}
	}), 5).Draw(t, "properties")
}

var genPortDesc = rapid.Custom(func(t *rapid.T) Port {
	return Port{genPort(t), genMAC(t), genText(16).Draw(t, "name"), PortConfig(u32(t)), PortState(u32(t)),
		genList(rapid.Custom(func(t *rapid.T) PortProperty {
			switch rapid.IntRange(0, 2).Draw(t, "property") {
			case 0:
				return PortEthernet{u32(t), u32(t), u32(t), u32(t), u32(t), u32(t)}
			case 1:
				return PortOptical{u32(t), u32(t), u32(t), u32(t), u32(t), u32(t), u32(t), u16(t), u16(t)}
			}
			return RawPortProperty{9, genBytes(0, 9).Draw(t, "data")}
		}), 3).Draw(t, "properties")}
})

func genBuckets(t *rapid.T) []Bucket {
	return genList(rapid.Custom(func(t *rapid.T) Bucket {
		return Bucket{u16(t), genPort(t), u32(t), genActions(1).Draw(t, "actions")}
	}), 3).Draw(t, "buckets")
}

func genBands(t *rapid.T) []MeterBand {
	return genList(rapid.Custom(func(t *rapid.T) MeterBand {
		switch rapid.IntRange(0, 2).Draw(t, "band") {
		case 0:
			return MeterBand{Kind: BandDrop, Rate: u32(t), Burst: u32(t)}
		case 1:
			return MeterBand{Kind: BandDSCPRemark, Rate: u32(t), Burst: u32(t), PrecLevel: u8(t)}
		}
		return MeterBand{Kind: BandExperimenter, Rate: u32(t), Burst: u32(t), Data: genBytes(4, 12).Draw(t, "data")}
	}), 3).Draw(t, "bands")
}

func genTableProperties(t *rapid.T) []TableProperty {
	return genList(rapid.Custom(func(t *rapid.T) TableProperty {
		switch rapid.IntRange(0, 2).Draw(t, "property") {
		case 0:
			return TableProperty{Type: TablePropertyEviction, EvictionFlags: u32(t)}
		case 1:
			return TableProperty{Type: TablePropertyVacancy, VacancyDown: u8(t), VacancyUp: u8(t), Vacancy: u8(t)}
		}
		return TableProperty{Type: 0xffff, Data: genBytes(0, 12).Draw(t, "data")}
	}), 3).Draw(t, "properties")
}

func genTableDesc(t *rapid.T) TableDesc {
	return TableDesc{u8(t), TableConfig(u32(t)), genTableProperties(t)}
}

func genSelector(t *rapid.T) FlowSelector {
	return FlowSelector{u8(t), genPort(t), u32(t), u64(t), u64(t), genMatch.Draw(t, "match")}
}

var genRequestBody = rapid.Custom(func(t *rapid.T) MultipartRequestBody {
	switch rapid.IntRange(0, 19).Draw(t, "body") {
	case 0:
		return DescRequest{}
	case 1:
		return FlowStatsRequest(genSelector(t))
	case 2:
		return AggregateRequest(genSelector(t))
	case 3:
		return TableStatsRequest{}
	case 4:
		return PortStatsRequest{genPort(t)}
	case 5:
		return QueueStatsRequest{genPort(t), u32(t)}
	case 6:
		return GroupStatsRequest{u32(t)}
	case 7:
		return GroupDescRequest{}
	case 8:
		return GroupFeaturesRequest{}
	case 9:
		return MeterStatsRequest{u32(t)}
	case 10:
		return MeterConfigRequest{u32(t)}
	case 11:
		return MeterFeaturesRequest{}
	case 12:
		return TableFeaturesRequest(genTableFeatures(t))
	case 13:
		return PortDescRequest{}
	case 14:
		return TableDescRequest{}
	case 15:
		return QueueDescRequest{genPort(t), u32(t)}
	case 16:
		return FlowMonitorRequest(genList(rapid.Custom(func(t *rapid.T) FlowMonitor {
			return FlowMonitor{u32(t), genPort(t), u32(t), FlowMonitorFlags(u16(t)), u8(t), FlowMonitorCommand(u8(t) % 3), genMatch.Draw(t, "match")}
		}), 3).Draw(t, "monitors"))
	case 17:
		return ExperimenterMultipart{u32(t), u32(t), genBytes(0, 20).Draw(t, "data")}
	}
	return RawMultipart{100, genBytes(0, 20).Draw(t, "data")}
})

func genTableFeatures(t *rapid.T) []TableFeatures {
	return genList(rapid.Custom(func(t *rapid.T) TableFeatures {
		return TableFeatures{u8(t), genText(32).Draw(t, "name"), u64(t), u64(t), u32(t), u32(t),
			genList(rapid.Custom(func(t *rapid.T) TableFeature {
				return TableFeature{TableFeatureType(u16(t) % 17), genBytes(0, 20).Draw(t, "data")}
			}), 4).Draw(t, "features")}
	}), 3).Draw(t, "tables")
}

func genCounters(t *rapid.T) []BucketCounter {
	return genList(rapid.Custom(func(t *rapid.T) BucketCounter { return BucketCounter{u64(t), u64(t)} }), 3).Draw(t, "counters")
}

func genFlowStats(t *rapid.T) FlowStats {
	return FlowStats{u8(t), u32(t), u32(t), u16(t), u16(t), u16(t), FlowModFlags(u16(t) & 31), u16(t), u64(t), u64(t), u64(t),
		genMatch.Draw(t, "match"), genInstructions.Draw(t, "instructions")}
}

func genFlowUpdate(t *rapid.T) FlowUpdate {
	switch event := FlowEvent(rapid.IntRange(0, 7).Draw(t, "event")); event {
	case EventAbbrev:
		return FlowUpdate{Event: event, Xid: u32(t)}
	case EventPaused, EventResumed:
		return FlowUpdate{Event: event}
	case 7:
		return FlowUpdate{Event: event, Data: genBytes(4, 4).Draw(t, "data")}
	default:
		u := FlowUpdate{event, u8(t), FlowRemovedReason(u8(t)), u16(t), u16(t), u16(t), u64(t), genMatch.Draw(t, "match"), nil, 0, nil}
		if rapid.Bool().Draw(t, "actions") {
			u.Instructions = Instructions{ApplyActions(genActions(1).Draw(t, "actions"))}
		}
		return u
	}
}

var genReplyBody = rapid.Custom(func(t *rapid.T) MultipartReplyBody {
	switch rapid.IntRange(0, 18).Draw(t, "body") {
	case 0:
		s := genText(32)
		return Desc{s.Draw(t, "s"), s.Draw(t, "s"), s.Draw(t, "s"), s.Draw(t, "s"), s.Draw(t, "s")}
	case 1, 2:
		return FlowStatsReply(genList(rapid.Custom(genFlowStats), 4).Draw(t, "flows"))
	case 3:
		return AggregateReply{u64(t), u64(t), u32(t)}
	case 4:
		return TableStatsReply(rapid.SliceOfN(rapid.Custom(func(t *rapid.T) TableStats { return TableStats{u8(t), u32(t), u64(t), u64(t)} }), 0, 4).Draw(t, "tables"))
	case 5:
		return PortStatsReply(genList(rapid.Custom(func(t *rapid.T) PortStats {
			p := PortStats{genPort(t), u32(t), u32(t), u64(t), u64(t), u64(t), u64(t), u64(t), u64(t), u64(t), u64(t), nil, genProperties(t)}
			if rapid.Bool().Draw(t, "ethernet") {
				p.Ethernet = &EthernetStats{u64(t), u64(t), u64(t), u64(t)}
			}
			return p
		}), 3).Draw(t, "ports"))
	case 6:
		return QueueStatsReply(genList(rapid.Custom(func(t *rapid.T) QueueStats {
			return QueueStats{genPort(t), u32(t), u64(t), u64(t), u64(t), u32(t), u32(t), genProperties(t)}
		}), 3).Draw(t, "queues"))
	case 7:
		return GroupStatsReply(genList(rapid.Custom(func(t *rapid.T) GroupStats {
			return GroupStats{u32(t), u32(t), u64(t), u64(t), u32(t), u32(t), genCounters(t)}
		}), 3).Draw(t, "groups"))
	case 8:
		return GroupDescReply(genList(rapid.Custom(func(t *rapid.T) GroupDesc {
			return GroupDesc{GroupType(u8(t) % 4), u32(t), genBuckets(t)}
		}), 3).Draw(t, "groups"))
	case 9:
		return GroupFeatures{u32(t), u32(t), [4]uint32{u32(t), u32(t), u32(t), u32(t)}, [4]uint32{u32(t), u32(t), u32(t), u32(t)}}
	case 10:
		return MeterStatsReply(genList(rapid.Custom(func(t *rapid.T) MeterStatistics {
			return MeterStatistics{u32(t), u32(t), u64(t), u64(t), u32(t), u32(t), genCounters(t)}
		}), 3).Draw(t, "meters"))
	case 11:
		return MeterConfigReply(genList(rapid.Custom(func(t *rapid.T) MeterConfig {
			return MeterConfig{MeterFlags(u16(t)), u32(t), genBands(t)}
		}), 3).Draw(t, "meters"))
	case 12:
		return MeterFeatures{u32(t), u32(t), u32(t), u8(t), u8(t)}
	case 13:
		return TableFeaturesReply(genTableFeatures(t))
	case 14:
		return PortDescReply(genList(genPortDesc, 3).Draw(t, "ports"))
	case 15:
		return TableDescReply(genList(rapid.Custom(genTableDesc), 3).Draw(t, "tables"))
	case 16:
		return QueueDescReply(genList(rapid.Custom(func(t *rapid.T) QueueDesc {
			return QueueDesc{genPort(t), u32(t), genList(rapid.Custom(func(t *rapid.T) QueueProperty {
				if rapid.Bool().Draw(t, "rate") {
					return QueueProperty{Type: 1 + u16(t)%2, Rate: u16(t)}
				}
				return QueueProperty{Type: 0xffff, Data: genBytes(0, 9).Draw(t, "data")}
			}), 3).Draw(t, "properties")}
		}), 3).Draw(t, "queues"))
	case 17:
		return ExperimenterMultipart{u32(t), u32(t), genBytes(0, 20).Draw(t, "data")}
	}
	return FlowMonitorReply(genList(rapid.Custom(genFlowUpdate), 4).Draw(t, "updates"))
})
