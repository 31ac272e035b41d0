package oftest_test

import (
	"context"
	"fmt"
	"net"
	"net/netip"

	"brlb/openflow"
	"brlb/openflow/oftest"
	"brlb/openflow/session"
)

// A test has its code program a switch in memory, and asks where a packet goes.
func ExampleSwitch() {
	sw := oftest.NewSwitch(oftest.SwitchOptions{Ports: []openflow.Port{oftest.NewPort(1, "client"), oftest.NewPort(2, "member")}})
	defer sw.Close()
	ctx := context.Background()
	conn, err := sw.Dial(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	s, err := session.Open(ctx, conn, session.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer s.Close()

	mod, err := openflow.ParseFlow("priority=100,tcp,nw_dst=10.0.0.100,tp_dst=80,actions=set_field:10.1.0.7->ip_dst,output:2")
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := s.Transact(ctx, mod); err != nil {
		fmt.Println(err)
		return
	}

	const syn = 0x002
	trace, err := sw.Trace(oftest.TCPPacket(1, netip.MustParseAddrPort("10.20.0.10:40000"), netip.MustParseAddrPort("10.0.0.100:80"), syn))
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, d := range trace.Deliveries {
		fmt.Println("port", d.Port, "to", d.Packet.Destination())
	}
	// Output: port 2 to 10.1.0.7:80
}

// A script is a peer that misbehaves: this one hangs up in the middle of its
// answer.
func ExampleScript() {
	script := oftest.Script{
		oftest.Greet(),
		oftest.Expect(openflow.TypeBarrierRequest),
		oftest.CutAfter(5, oftest.Reply(&openflow.BarrierReply{})),
	}
	near, far := net.Pipe()
	ended := make(chan error, 1)
	go func() { ended <- script.Run(far) }()

	s, err := session.Open(context.Background(), near, session.Options{Peer: "br-lb"})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer s.Close()
	fmt.Println(s.Barrier(context.Background()))
	fmt.Println(<-ended)
	// Output:
	// openflow session with br-lb: the connection was lost: the peer closed it in the middle of a message
	// <nil>
}
