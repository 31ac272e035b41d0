package session_test

import (
	"bufio"
	"context"
	"net"
	"testing"

	"brlb/openflow"
	"brlb/openflow/oftest"
	"brlb/openflow/session"
)

// BenchmarkLiveBundle has a real switch apply 1,024 flow-mods in a bundle: with a
// session, and as octets that were encoded before, written raw.
func BenchmarkLiveBundle(b *testing.B) {
	ovs := oftest.StartOVS(b, 1)
	flows := slots(1024)
	b.Run("session", func(b *testing.B) {
		s := open(b, ovs, session.Options{})
		b.ReportAllocs()
		for b.Loop() {
			if r := s.Bundle(context.Background(), flows); r.Err != nil {
				b.Fatal(r.Err)
			}
		}
	})
	b.Run("raw", func(b *testing.B) {
		conn := ovs.Dial()
		defer conn.Close()
		r := bufio.NewReaderSize(conn, 64<<10)
		hello, _ := encode(b, 1, &openflow.Hello{Versions: openflow.HelloVersionBitmap(openflow.Version)})
		write(b, conn, hello)
		prepare, xid := encode(b, 2, &openflow.BundleControl{ID: 1, Kind: openflow.BundleOpenRequest, Flags: 3})
		for _, f := range flows {
			var add []byte
			add, xid = encode(b, xid, &openflow.BundleAdd{ID: 1, Flags: 3, Message: f})
			prepare = append(prepare, add...)
		}
		barrier, xid := encode(b, xid, &openflow.BarrierRequest{})
		prepare = append(prepare, barrier...)
		commit, _ := encode(b, xid, &openflow.BundleControl{ID: 1, Kind: openflow.BundleCommitRequest, Flags: 3})
		b.ReportAllocs()
		for b.Loop() {
			write(b, conn, prepare)
			await(b, r, openflow.TypeBarrierReply)
			write(b, conn, commit)
			await(b, r, openflow.TypeBundleControl)
		}
	})
}

// encode returns a message and the next transaction id.
func encode(b *testing.B, xid uint32, m openflow.Message) ([]byte, uint32) {
	b.Helper()
	out, err := openflow.Append(nil, xid, m)
	if err != nil {
		b.Fatal(err)
	}
	return out, xid + 1
}

func write(b *testing.B, conn net.Conn, octets []byte) {
	b.Helper()
	if _, err := conn.Write(octets); err != nil {
		b.Fatal(err)
	}
}

// await reads up to a message of a type.
func await(b *testing.B, r *bufio.Reader, want openflow.Type) {
	b.Helper()
	for {
		got, err := oftest.ReadMessage(r)
		if err != nil {
			b.Fatal(err)
		}
		if got.Header.Type == openflow.TypeError {
			b.Fatal(got.Message)
		}
		if got.Header.Type == want {
			return
		}
	}
}
