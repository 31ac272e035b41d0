package unixctl

import (
	"errors"
	"strings"
	"testing"

	"brlb/ovsdb/ovsdbtest"
)

// The commands that brlb's users need, on a real switch: what it answers, and
// what it says of arguments that make no sense.
func TestSwitchCommands(t *testing.T) {
	sw := ovsdbtest.StartSwitch(t)
	sw.Vsctl("add-br", "br-lb", "--", "set", "bridge", "br-lb", "datapath_type=dummy", "fail_mode=secure",
		"--", "add-port", "br-lb", "p1", "--", "set", "interface", "p1", "type=dummy", "ofport_request=1")
	c := Daemon(sw.Dir, "ovs-vswitchd")
	defer c.Close()
	// A call returns when ovs-vswitchd's main loop is at rest, so the bridge is
	// there after some.
	for {
		out, err := c.Call(t.Context(), "dpif/show")
		if err == nil && strings.Contains(out, "p1 1/") {
			break
		}
	}
	for _, tt := range []struct {
		call []string
		want string // in the output, or in the error's text after "!"
	}{
		{[]string{"list-commands"}, "ofproto/trace"},
		{[]string{"ofproto/trace", "br-lb", "in_port=1,tcp,nw_src=10.0.0.1,nw_dst=10.0.0.2,tp_src=1000,tp_dst=80"}, "Datapath actions: drop"},
		{[]string{"ofproto/trace", "br-lb", "in_port=no such port"}, "!in_port"},
		{[]string{"ofproto/trace", "no-bridge", "in_port=1"}, "!no-bridge"},
		{[]string{"dpctl/dump-flows", "dummy@ovs-dummy"}, ""},
		{[]string{"dpctl/dump-flows", "dummy@nothing"}, "!datapath not found"},
		{[]string{"dpctl/dump-conntrack", "dummy@ovs-dummy"}, ""},
		{[]string{"dpctl/flush-conntrack", "zone=5"}, ""},
		{[]string{"dpctl/flush-conntrack", "zone=5", "ct_nw_src=10.0.0.1,ct_nw_proto=6,ct_tp_src=1"}, ""},
		{[]string{"dpctl/flush-conntrack", "zone=x"}, "!zone"},
		{[]string{"coverage/read-counter", "netlink_sent"}, "\n"},
		{[]string{"coverage/read-counter", "no_such_counter"}, "!No such counter"},
	} {
		out, err := c.Call(t.Context(), tt.call[0], tt.call[1:]...)
		text, refused := strings.CutPrefix(tt.want, "!")
		var e *Error
		switch {
		case refused && (!errors.As(err, &e) || e.Method != tt.call[0] || !strings.Contains(e.Text, text)):
			t.Errorf("%v: got %q, %v; want a refusal that speaks of %q", tt.call, out, err, text)
		case !refused && (err != nil || !strings.Contains(out, text)):
			t.Errorf("%v: got %q, %v; want %q", tt.call, out, err, text)
		}
	}
}
