package lab_test

import (
	"encoding/binary"
	"io"
	"net"
	"testing"

	"brlb/integration/lab"
)

// message builds an OpenFlow 1.4 message around body.
func message(kind uint8, xid uint32, body []byte) []byte {
	m := []byte{5, kind, 0, 0, 0, 0, 0, 0}
	binary.BigEndian.PutUint16(m[2:], uint16(8+len(body)))
	binary.BigEndian.PutUint32(m[4:], xid)
	return append(m, body...)
}

// flowModInBundle is a BUNDLE_ADD_MESSAGE around a flow mod without match.
func flowModInBundle(xid uint32) []byte {
	return message(lab.TypeBundleAddMessage, xid, append(make([]byte, 8), message(lab.TypeFlowMod, xid, make([]byte, 48))...))
}

// bundleControl is a BUNDLE_CONTROL message of the given type.
func bundleControl(xid uint32, kind uint16) []byte {
	body := make([]byte, 8)
	binary.BigEndian.PutUint16(body[4:], kind)
	return message(lab.TypeBundleControl, xid, body)
}

// expect reads exactly want from the connection.
func expect(t *testing.T, conn net.Conn, want []byte) {
	t.Helper()
	got := make([]byte, len(want))
	if _, err := io.ReadFull(conn, got); err != nil {
		t.Fatal(err)
	}
	if string(got) != string(want) {
		t.Fatalf("got % x\nwant % x", got, want)
	}
}

func TestRelay(t *testing.T) {
	l := newLab(t, lab.Options{})
	controller, err := l.Switch.Listen("unix", l.Dir()+"/controller.sock")
	check(t, err)
	defer controller.Close()
	relay, err := l.NewRelay("unix:"+l.Dir()+"/relay.sock", "unix:"+l.Dir()+"/controller.sock")
	check(t, err)

	open := func() (atSwitch, atController net.Conn) {
		t.Helper()
		atSwitch, err := l.Switch.DialContext(t.Context(), "unix", l.Dir()+"/relay.sock")
		check(t, err)
		atController, err = controller.Accept()
		check(t, err)
		return atSwitch, atController
	}
	write := func(conn net.Conn, messages ...[]byte) {
		t.Helper()
		for _, m := range messages {
			_, err := conn.Write(m)
			check(t, err)
		}
	}
	atSwitch, atController := open()

	t.Run("copy and count", func(t *testing.T) {
		hello, flowMod := message(0, 1, nil), message(lab.TypeFlowMod, 2, make([]byte, 48))
		write(atSwitch, hello)
		expect(t, atController, hello)
		write(atController, hello, flowMod, flowModInBundle(3), flowModInBundle(4))
		expect(t, atSwitch, hello)
		expect(t, atSwitch, flowMod)
		expect(t, atSwitch, flowModInBundle(3))
		expect(t, atSwitch, flowModInBundle(4))
		if got := relay.FlowMods(); got != 3 {
			t.Errorf("%d flow mods, want 3", got)
		}
		if got := relay.Counts(lab.ToSwitch); got[0] != 1 || got[lab.TypeFlowMod] != 1 || got[lab.TypeBundleAddMessage] != 2 {
			t.Errorf("counts to switch %v", got)
		}
		relay.ResetCounts()
		if got := relay.FlowMods(); got != 0 {
			t.Errorf("%d flow mods after reset", got)
		}
	})
	t.Run("corrupt", func(t *testing.T) {
		relay.CorruptBundleAdd(2)
		write(atController, flowModInBundle(1), flowModInBundle(2), flowModInBundle(3))
		expect(t, atSwitch, flowModInBundle(1))
		corrupt := flowModInBundle(2)
		corrupt[16+44] = 0x80
		expect(t, atSwitch, corrupt)
		expect(t, atSwitch, flowModInBundle(3))
	})
	t.Run("drop commit reply", func(t *testing.T) {
		const openReply, commitReply = 1, 5
		relay.DropNextCommitReply()
		write(atSwitch, bundleControl(1, openReply), bundleControl(2, commitReply), bundleControl(3, commitReply))
		expect(t, atController, bundleControl(1, openReply))
		expect(t, atController, bundleControl(3, commitReply))
	})
	t.Run("stall", func(t *testing.T) {
		relay.Stall()
		relay.ResetCounts()
		write(atSwitch, message(2, 1, nil))
		relay.Unstall()
		expect(t, atController, message(2, 1, nil))
	})
	t.Run("cut", func(t *testing.T) {
		relay.Cut()
		for _, conn := range []net.Conn{atSwitch, atController} {
			if _, err := conn.Read(make([]byte, 1)); err == nil {
				t.Error("read from a cut connection")
			}
			conn.Close()
		}
		atSwitch, atController = open()
		write(atController, message(3, 1, nil))
		expect(t, atSwitch, message(3, 1, nil))
	})
	t.Run("message shorter than its header", func(t *testing.T) {
		bad := message(0, 1, nil)
		bad[3] = 7
		write(atSwitch, bad)
		if _, err := atController.Read(make([]byte, 1)); err != io.EOF {
			t.Errorf("read: %v, want EOF", err)
		}
	})
	atSwitch.Close()
	atController.Close()

	for _, bad := range []string{"", "unix", "ssl:127.0.0.1:6653", "/run/x"} {
		if r, err := l.NewRelay(bad, "unix:/x"); err == nil {
			r.Close()
			t.Errorf("relay listens on %q", bad)
		}
	}
}
