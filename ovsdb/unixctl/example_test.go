package unixctl_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"brlb/ovsdb/unixctl"
)

// Ask the switch what it would do with a packet.
func ExampleConn_Call() {
	vswitchd := unixctl.Daemon("/run/openvswitch", "ovs-vswitchd")
	defer vswitchd.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	text, err := vswitchd.Call(ctx, "ofproto/trace", "br0", "in_port=1,tcp,nw_dst=10.0.0.1,tp_dst=80")
	var refused *unixctl.Error
	switch {
	case errors.As(err, &refused):
		fmt.Println("the switch says:", refused.Text)
	case err != nil:
		log.Fatal(err)
	default:
		fmt.Print(text)
	}
}
