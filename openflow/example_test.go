package openflow_test

import (
	"errors"
	"fmt"
	"net/netip"

	"brlb/openflow"
)

// A flow that gives packets for a virtual address a slot, and goes on in the
// table of slots.
func ExampleAppend() {
	mod := openflow.NewFlowMod(openflow.FlowAdd)
	mod.Table, mod.Priority, mod.Cookie = 10, 100, 0x1234
	mod.Match = openflow.Match{
		openflow.EthType.Exact(0x0800),
		openflow.IPv4Dst.Addr(netip.MustParseAddr("10.0.0.100")),
		openflow.IPProto.Exact(6),
		openflow.TCPDst.Exact(80),
	}
	mod.Instructions = openflow.Instructions{
		openflow.ApplyActions{openflow.Multipath{
			Fields: openflow.HashSymmetricL4, Basis: 7, Algorithm: openflow.LinkModuloN, MaxLink: 1023, Dst: openflow.Reg1.Whole(),
		}},
		openflow.GotoTable(11),
	}
	b, err := openflow.Append(nil, 1, mod)
	fmt.Println(len(b), err)
	fmt.Println(mod)
	// Output:
	// 128 <nil>
	// ADD table:10 priority=100,tcp,nw_dst=10.0.0.100,tp_dst=80 cookie:0x1234 actions=multipath(symmetric_l4,7,modulo_n,1024,0,NXM_NX_REG1[]),goto_table:11
}

// What came is told apart by type.
func ExampleParse() {
	b, err := openflow.Append(nil, 9, &openflow.PortStatus{
		Reason: openflow.PortModified,
		Port:   openflow.Port{No: 2, Name: "veth2", State: openflow.PortLinkDown},
	})
	if err != nil {
		fmt.Println(err)
		return
	}

	header, message, err := openflow.Parse(b)
	if err != nil {
		fmt.Println(err)
		return
	}
	switch m := message.(type) {
	case *openflow.PortStatus:
		fmt.Println(header.Xid, m.Port.Name, m.Port.IsLive())
	case *openflow.PacketIn:
		fmt.Println(m.InPort(), len(m.Data))
	default:
		fmt.Println("something else:", header.Type)
	}
	// Output: 9 veth2 false
}

// Errors of the switch are told apart by type and code.
func ExampleError() {
	var err error = fmt.Errorf("commit: %w", &openflow.Error{Code: openflow.BundleFailedMsgFailed})
	fmt.Println(errors.Is(err, openflow.BundleFailedMsgFailed), errors.Is(err, openflow.BadRequestIsSlave))
	fmt.Println(err)
	// Output:
	// true false
	// commit: openflow: OFPBFC_MSG_FAILED
}

// Flows can be written as for ovs-ofctl.
func ExampleParseFlow() {
	mod, err := openflow.ParseFlow("table=12,ip,reg2=3,actions=ct(commit,zone=5,nat(dst=10.1.0.7:8080),exec(set_field:3->ct_mark)),goto_table:13")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(mod.Match)
	fmt.Println(mod.Instructions)
	_, err = openflow.ParseFlow("table=12,reg99=3,actions=drop")
	fmt.Println(err)
	// Output:
	// ip,reg2=0x3
	// ct(commit,zone=5,nat(dst=10.1.0.7:8080),exec(set_field:0x3->ct_mark)),goto_table:13
	// openflow: flow "reg99=3": not a field, protocol or attribute
}

// The statistics of many flows are read one by one.
func ExampleFlowStatsReader() {
	reply := openflow.FlowStatsReply{
		{Table: 11, Priority: 100, PacketCount: 7, Match: openflow.Match{openflow.Reg1.Exact(0)}, Instructions: openflow.Instructions{openflow.GotoTable(12)}},
		{Table: 11, Priority: 100, PacketCount: 9, Match: openflow.Match{openflow.Reg1.Exact(1)}, Instructions: openflow.Instructions{openflow.GotoTable(12)}},
	}
	message, err := openflow.Append(nil, 1, &openflow.MultipartReply{Body: reply})
	if err != nil {
		fmt.Println(err)
		return
	}

	r, err := openflow.NewFlowStatsReader(message)
	if err != nil {
		fmt.Println(err)
		return
	}
	for r.Next() {
		fmt.Println(r.Flow().Match, r.Flow().PacketCount)
	}
	fmt.Println(r.Err())
	// Output:
	// reg1=0 7
	// reg1=0x1 9
	// <nil>
}
