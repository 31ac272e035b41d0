package session_test

import (
	"bufio"
	"context"
	"net"
	"slices"
	"testing"
	"time"

	"brlb/openflow"
	"brlb/openflow/oftest"
	"brlb/openflow/session"
)

// BenchmarkLiveBundle has a real switch apply 1,024 flow-mods in a bundle, in
// turn with a session and as octets that were encoded before and are written
// raw. Beside the time of both it reports the medians and their ratio.
func BenchmarkLiveBundle(b *testing.B) {
	ovs := oftest.StartOVS(b, 1)
	flows := slots(1024)
	s := open(b, ovs, session.Options{})
	raw := newRawBundle(b, ovs.Dial(), flows)
	defer raw.conn.Close()
	var withSession, withoutSession []time.Duration
	b.ReportAllocs()
	for b.Loop() {
		start := time.Now()
		if r := s.Bundle(context.Background(), flows); r.Err != nil {
			b.Fatal(r.Err)
		}
		between := time.Now()
		raw.apply(b)
		withSession = append(withSession, between.Sub(start))
		withoutSession = append(withoutSession, time.Since(between))
	}
	slices.Sort(withSession)
	slices.Sort(withoutSession)
	median := len(withSession) / 2
	b.ReportMetric(withSession[median].Seconds()*1e3, "session-ms")
	b.ReportMetric(withoutSession[median].Seconds()*1e3, "raw-ms")
	b.ReportMetric(float64(withSession[median])/float64(withoutSession[median]), "session/raw")
}

// rawBundle is a bundle as octets.
type rawBundle struct {
	conn            net.Conn
	r               *bufio.Reader
	prepare, commit []byte
}

func newRawBundle(b *testing.B, conn net.Conn, flows []openflow.Message) *rawBundle {
	const flags = openflow.BundleAtomic | openflow.BundleOrdered
	raw := &rawBundle{conn: conn, r: bufio.NewReaderSize(conn, 64<<10)}
	hello, xid := encode(b, 1, &openflow.Hello{Versions: openflow.HelloVersionBitmap(openflow.Version)})
	write(b, conn, hello)
	messages := []openflow.Message{&openflow.BundleControl{ID: 1, Kind: openflow.BundleOpenRequest, Flags: flags}}
	for _, f := range flows {
		messages = append(messages, &openflow.BundleAdd{ID: 1, Flags: flags, Message: f})
	}
	for _, m := range append(messages, &openflow.BarrierRequest{}) {
		var octets []byte
		octets, xid = encode(b, xid, m)
		raw.prepare = append(raw.prepare, octets...)
	}
	raw.commit, _ = encode(b, xid, &openflow.BundleControl{ID: 1, Kind: openflow.BundleCommitRequest, Flags: flags})
	return raw
}

func (raw *rawBundle) apply(b *testing.B) {
	write(b, raw.conn, raw.prepare)
	await(b, raw.r, openflow.TypeBarrierReply)
	write(b, raw.conn, raw.commit)
	await(b, raw.r, openflow.TypeBundleControl)
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
