package session_test

import (
	"context"
	"errors"
	"fmt"

	"brlb/openflow"
	"brlb/openflow/oftest"
	"brlb/openflow/session"
)

// A bundle has three outcomes, and the caller minds each of them.
func ExampleSession_Bundle() {
	ctx := context.Background()
	sw := oftest.NewSwitch(oftest.SwitchOptions{})
	defer sw.Close()
	conn, err := sw.Dial(ctx) // or net.Dial("unix", "/var/run/openvswitch/br-lb.mgmt")
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

	add := openflow.NewFlowMod(openflow.FlowAdd)
	add.Table, add.Priority = 11, 100
	add.Match = openflow.Match{openflow.Reg0.Exact(1), openflow.Reg1.Exact(5)}
	add.Instructions = openflow.Instructions{openflow.GotoTable(12)}
	back := openflow.NewFlowMod(openflow.FlowAdd)
	back.Table = 12
	back.Instructions = openflow.Instructions{openflow.GotoTable(3)}

	for _, bundle := range [][]openflow.Message{{add}, {add, back}} {
		r := s.Bundle(ctx, bundle)
		switch r.Outcome {
		case session.Applied:
			fmt.Println("the switch has all of it")
		case session.Rejected:
			fmt.Println("the switch has none of it:", r.Errors[0].Index, r.Errors[0].Err.Code)
		case session.Unknown:
			fmt.Println("read the switch:", r.Err)
		}
	}
	// Output:
	// the switch has all of it
	// the switch has none of it: 1 openflow: OFPBIC_BAD_TABLE_ID
}

// Every call on a session that has ended says why it ended.
func ExampleClosedError() {
	ctx := context.Background()
	sw := oftest.NewSwitch(oftest.SwitchOptions{})
	conn, _ := sw.Dial(ctx)
	s, err := session.Open(ctx, conn, session.Options{Peer: "br-lb"})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer s.Close()
	sw.Close()
	<-s.Done()
	err = s.Barrier(ctx)
	fmt.Println(errors.Is(err, session.ErrHangup), err)
	// Output: true openflow session with br-lb: the connection was lost: the peer closed it
}
