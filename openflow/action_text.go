package openflow

import (
	"fmt"
	"strings"
)

func (a Output) String() string {
	switch {
	case a.Port == PortController:
		return fmt.Sprintf("CONTROLLER:%d", a.MaxLen)
	case a.Port < PortMax:
		return fmt.Sprintf("output:%d", uint32(a.Port))
	}
	return a.Port.String()
}

func (a Group) String() string      { return fmt.Sprintf("group:%d", uint32(a)) }
func (a SetQueue) String() string   { return fmt.Sprintf("set_queue:%d", uint32(a)) }
func (a PushVLAN) String() string   { return fmt.Sprintf("push_vlan:%#04x", uint16(a)) }
func (PopVLAN) String() string      { return "pop_vlan" }
func (a PushMPLS) String() string   { return fmt.Sprintf("push_mpls:%#04x", uint16(a)) }
func (a PopMPLS) String() string    { return fmt.Sprintf("pop_mpls:%#04x", uint16(a)) }
func (a SetMPLSTTL) String() string { return fmt.Sprintf("set_mpls_ttl(%d)", uint8(a)) }
func (DecMPLSTTL) String() string   { return "dec_mpls_ttl" }
func (a SetNwTTL) String() string   { return fmt.Sprintf("mod_nw_ttl:%d", uint8(a)) }
func (DecNwTTL) String() string     { return "dec_ttl" }
func (CopyTTLOut) String() string   { return "copy_ttl_out" }
func (CopyTTLIn) String() string    { return "copy_ttl_in" }
func (a PushPBB) String() string    { return fmt.Sprintf("push_pbb:%#04x", uint16(a)) }
func (PopPBB) String() string       { return "pop_pbb" }

func (a SetField) String() string { return setFieldText(a.OXM) }
func (a RegLoad2) String() string { return setFieldText(a.OXM) }

func (a SetTunnelOption) String() string {
	name, value, _ := strings.Cut(Match(a).String(), "=")
	return "set_field:" + value + "->" + name
}

func setFieldText(o OXM) string {
	var s strings.Builder
	s.WriteString("set_field:")
	if o.Field.info().format == formatBytes {
		text := o.String()
		s.WriteString(text[strings.IndexByte(text, '=')+1:])
	} else {
		writeValue(&s, o)
	}
	name := o.Field.String()
	if o.Field == InPort {
		name = "in_port_oxm"
	}
	s.WriteString("->" + name)
	return s.String()
}

func (a SetTunnel) String() string   { return fmt.Sprintf("set_tunnel:%#x", uint32(a)) }
func (a SetTunnel64) String() string { return fmt.Sprintf("set_tunnel64:%#x", uint64(a)) }
func (PopQueue) String() string      { return "pop_queue" }
func (Exit) String() string          { return "exit" }
func (DecNSHTTL) String() string     { return "dec_nsh_ttl" }

func (a FinTimeout) String() string {
	var parts []string
	if a.Idle != 0 {
		parts = append(parts, fmt.Sprintf("idle_timeout=%d", a.Idle))
	}
	if a.Hard != 0 {
		parts = append(parts, fmt.Sprintf("hard_timeout=%d", a.Hard))
	}
	return "fin_timeout(" + strings.Join(parts, ",") + ")"
}

func (a WriteMetadataAction) String() string { return WriteMetadata(a).String() }

func (a DecTTLCntIDs) String() string {
	parts := make([]string, len(a))
	for i, id := range a {
		parts[i] = fmt.Sprint(id)
	}
	return "dec_ttl(" + strings.Join(parts, ",") + ")"
}

func (a Conjunction) String() string {
	return fmt.Sprintf("conjunction(%d,%d/%d)", a.ID, int(a.Clause)+1, a.Clauses)
}

func (a OutputTrunc) String() string {
	return fmt.Sprintf("output(port=%v,max_len=%d)", a.Port, a.MaxLen)
}

func (a CheckPktLarger) String() string {
	return fmt.Sprintf("check_pkt_larger(%d)->%v", a.Len, a.Dst)
}

func (a DeleteField) String() string { return "delete_field:" + a.Field.String() }

func (a Decap) String() string {
	if a.PacketType == DecapNextProto {
		return "decap()"
	}
	return fmt.Sprintf("decap(packet_type(ns=%d,type=%s))", a.PacketType>>16, hexText(uint64(a.PacketType&0xffff)))
}

func (a Encap) String() string {
	var parts []string
	for _, p := range a.Properties {
		switch {
		case p.Class == EncapClassNSH && p.Type == EncapNSHMDType && len(p.Data) >= 1:
			parts = append(parts, fmt.Sprintf("md_type=%d", p.Data[0]))
		case p.Class == EncapClassNSH && p.Type == EncapNSHTLV && len(p.Data) >= 4 && len(p.Data) >= 4+int(p.Data[3]):
			parts = append(parts, fmt.Sprintf("tlv(%#x,%d,0x%x)", uint16(p.Data[0])<<8|uint16(p.Data[1]), p.Data[2], p.Data[4:4+int(p.Data[3])]))
		default:
			parts = append(parts, fmt.Sprintf("property(%d,%d,%x)", p.Class, p.Type, p.Data))
		}
	}
	name := fmt.Sprintf("%#x", a.PacketType)
	switch a.PacketType {
	case PacketTypeEthernet:
		name = "ethernet"
	case PacketTypeNSH:
		name = "nsh"
	}
	if len(parts) > 0 {
		name += "(" + strings.Join(parts, ",") + ")"
	}
	return "encap(" + name + ")"
}

func (a Sample) String() string {
	text := fmt.Sprintf("sample(probability=%d,collector_set_id=%d,obs_domain_id=%d,obs_point_id=%d", a.Probability, a.CollectorSetID, a.ObsDomainID, a.ObsPointID)
	if a.SamplingPort != PortAny {
		text += fmt.Sprintf(",sampling_port=%v", a.SamplingPort)
	}
	switch a.Direction {
	case SampleIngress:
		text += ",ingress"
	case SampleEgress:
		text += ",egress"
	}
	return text + ")"
}

func (a LinkBundle) String() string {
	members := make([]string, len(a.Members))
	for i, p := range a.Members {
		members[i] = p.String()
	}
	name, dst := "bundle", ""
	if a.Dst != (Subfield{}) {
		name, dst = "bundle_load", a.Dst.String()+","
	}
	return fmt.Sprintf("%s(%v,%d,%v,ofport,%smembers:%s)", name, a.Fields, a.Basis, a.Algorithm, dst, strings.Join(members, ","))
}

func (a RawAction) String() string { return fmt.Sprintf("action(%d:%x)", a.Type, a.Data) }

func (a RegLoad) String() string {
	return "load:" + hexText(a.Value) + "->" + a.Dst.String()
}

func (a RegMove) String() string { return "move:" + a.Src.String() + "->" + a.Dst.String() }

func (a Multipath) String() string {
	return fmt.Sprintf("multipath(%v,%d,%v,%d,%d,%v)", a.Fields, a.Basis, a.Algorithm, int(a.MaxLink)+1, a.Arg, a.Dst)
}

func (a Resubmit) String() string {
	if !a.CT && a.Table == TableAll {
		return "resubmit:" + a.Port.String()
	}
	port, table, ct := "", "", ""
	if a.Port != PortInPort {
		port = a.Port.String()
	}
	if a.Table != TableAll {
		table = fmt.Sprint(a.Table)
	}
	if a.CT {
		ct = ",ct"
	}
	return "resubmit(" + port + "," + table + ct + ")"
}

func (a OutputReg) String() string { return "output:" + a.Src.String() }
func (a StackPush) String() string { return "push:" + a.Src.String() }
func (a StackPop) String() string  { return "pop:" + a.Dst.String() }

func (a Note) String() string {
	var s strings.Builder
	s.WriteString("note:")
	for i, c := range a {
		if i > 0 {
			s.WriteByte('.')
		}
		fmt.Fprintf(&s, "%02x", c)
	}
	return s.String()
}

var packetInReasons = [...]string{"no_match", "action", "invalid_ttl", "action_set", "group", "packet_out"}

// String returns ovs-ofctl's name of the reason.
func (r PacketInReason) String() string {
	if int(r) < len(packetInReasons) {
		return packetInReasons[r]
	}
	return fmt.Sprint(uint8(r))
}

func (a Controller) String() string {
	if a.Reason == PacketInAction && a.ControllerID == 0 {
		return fmt.Sprintf("CONTROLLER:%d", a.MaxLen)
	}
	return Controller2{MaxLen: a.MaxLen, ControllerID: a.ControllerID, Reason: a.Reason}.String()
}

func (a Controller2) String() string {
	var parts []string
	if a.Reason != PacketInAction {
		parts = append(parts, "reason="+a.Reason.String())
	}
	if a.MaxLen != MaxLenAll {
		parts = append(parts, fmt.Sprintf("max_len=%d", a.MaxLen))
	}
	if a.ControllerID != 0 {
		parts = append(parts, fmt.Sprintf("id=%d", a.ControllerID))
	}
	if len(a.UserData) > 0 {
		parts = append(parts, "userdata="+strings.TrimPrefix(Note(a.UserData).String(), "note:"))
	}
	if a.Pause {
		parts = append(parts, "pause")
	}
	if a.MeterID != 0 {
		parts = append(parts, fmt.Sprintf("meter_id=%d", a.MeterID))
	}
	return "controller(" + strings.Join(parts, ",") + ")"
}

func (a CT) String() string {
	var parts []string
	if a.Commit {
		parts = append(parts, "commit")
	}
	if a.Force {
		parts = append(parts, "force")
	}
	if a.Table != CTNoTable {
		parts = append(parts, fmt.Sprintf("table=%d", a.Table))
	}
	if a.ZoneSrc != (Subfield{}) {
		parts = append(parts, "zone="+a.ZoneSrc.String())
	} else if a.Zone != 0 {
		parts = append(parts, fmt.Sprintf("zone=%d", a.Zone))
	}
	// ovs-ofctl writes nat beside exec, and last what exec sets.
	var exec []string
	for _, nested := range a.Exec {
		if nat, ok := nested.(NAT); ok {
			parts = append(parts, nat.String())
		} else {
			exec = append(exec, nested.String())
		}
	}
	if len(exec) > 0 {
		parts = append(parts, "exec("+strings.Join(exec, ",")+")")
	}
	switch a.ALG {
	case 0:
	case algFTP:
		parts = append(parts, "alg=ftp")
	case algTFTP:
		parts = append(parts, "alg=tftp")
	default:
		parts = append(parts, fmt.Sprintf("alg=%d", a.ALG))
	}
	return "ct(" + strings.Join(parts, ",") + ")"
}

func (CTClear) String() string { return "ct_clear" }

func (a NAT) String() string {
	if a == (NAT{}) {
		return "nat"
	}
	var s strings.Builder
	s.WriteString("nat(")
	if a.Flags&NATSrc != 0 {
		s.WriteString("src")
	} else if a.Flags&NATDst != 0 {
		s.WriteString("dst")
	}
	hasPorts := a.MinPort != 0
	if a.MinAddr.IsValid() || hasPorts {
		s.WriteByte('=')
	}
	if a.MinAddr.IsValid() {
		s.WriteString(addrText(a.MinAddr, hasPorts))
		if a.MaxAddr.IsValid() && a.MaxAddr != a.MinAddr {
			s.WriteString("-" + addrText(a.MaxAddr, hasPorts))
		}
	}
	if hasPorts {
		fmt.Fprintf(&s, ":%d", a.MinPort)
		if a.MaxPort != 0 && a.MaxPort != a.MinPort {
			fmt.Fprintf(&s, "-%d", a.MaxPort)
		}
	}
	for _, f := range []struct {
		flag NATFlags
		name string
	}{{NATPersistent, "persistent"}, {NATHash, "hash"}, {NATRandom, "random"}} {
		if a.Flags&f.flag != 0 {
			s.WriteString("," + f.name)
		}
	}
	s.WriteByte(')')
	return s.String()
}

func (a Learn) String() string {
	parts := []string{fmt.Sprintf("table=%d", a.Table)}
	add := func(name string, value uint64) {
		if value != 0 {
			parts = append(parts, fmt.Sprintf("%s=%d", name, value))
		}
	}
	add("idle_timeout", uint64(a.IdleTimeout))
	add("hard_timeout", uint64(a.HardTimeout))
	add("fin_idle_timeout", uint64(a.FinIdleTimeout))
	add("fin_hard_timeout", uint64(a.FinHardTimeout))
	if a.Priority != DefaultPriority {
		parts = append(parts, fmt.Sprintf("priority=%d", a.Priority))
	}
	if a.Flags&LearnSendFlowRem != 0 {
		parts = append(parts, "send_flow_rem")
	}
	if a.Flags&LearnDeleteLearned != 0 {
		parts = append(parts, "delete_learned")
	}
	if a.Cookie != 0 {
		parts = append(parts, "cookie="+hexText(a.Cookie))
	}
	add("limit", uint64(a.Limit))
	if a.Result != (Subfield{}) {
		parts = append(parts, "result_dst="+a.Result.String())
	}
	for _, s := range a.Specs {
		parts = append(parts, s.String())
	}
	return "learn(" + strings.Join(parts, ",") + ")"
}

// String returns the spec as it stands in a printed learn action.
func (s LearnSpec) String() string {
	value := bytesText(string(s.Value))
	switch {
	case s.Kind == LearnOutput:
		return "output:" + s.Src.String()
	case s.Kind == LearnLoad && s.Value != nil:
		return "load:" + value + "->" + s.Dst.String()
	case s.Kind == LearnLoad:
		return "load:" + s.Src.String() + "->" + s.Dst.String()
	case s.Value != nil && s.Dst == s.Dst.Field.Whole():
		var text strings.Builder
		v := uint128{}
		for _, c := range s.Value {
			v = uint128{v.hi<<8 | v.lo>>56, v.lo<<8 | uint64(c)}
		}
		writeValue(&text, OXM{Field: s.Dst.Field, value: v})
		return s.Dst.Field.String() + "=" + text.String()
	case s.Value != nil:
		return s.Dst.String() + "=" + value
	case s.Src == s.Dst:
		return s.Dst.String()
	}
	return s.Dst.String() + "=" + s.Src.String()
}

func (i ApplyActions) String() string { return actionsText(i) }

func (i WriteActions) String() string { return "write_actions(" + nestedText(i) + ")" }
func (a Clone) String() string        { return "clone(" + nestedText(a) + ")" }

// nestedText is actionsText with a word for no actions.
func nestedText(actions []Action) string {
	if len(actions) == 0 {
		return "drop"
	}
	return actionsText(actions)
}

func (ClearActions) String() string { return "clear_actions" }
func (i GotoTable) String() string  { return fmt.Sprintf("goto_table:%d", uint8(i)) }
func (i Meter) String() string      { return fmt.Sprintf("meter:%d", uint32(i)) }

func (i WriteMetadata) String() string {
	text := "write_metadata:" + hexText(i.Metadata)
	if i.Mask != ^uint64(0) {
		text += "/" + hexText(i.Mask)
	}
	return text
}

func (i RawInstruction) String() string { return fmt.Sprintf("instruction(%d:%x)", i.Type, i.Data) }

func actionsText(actions []Action) string {
	parts := make([]string, len(actions))
	for i, a := range actions {
		parts[i] = a.String()
	}
	return strings.Join(parts, ",")
}
