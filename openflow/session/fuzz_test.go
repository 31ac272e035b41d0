package session_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"brlb/openflow"
	"brlb/openflow/oftest"
	"brlb/openflow/session"
)

// imp is a peer that says what the fuzzer wants: mostly valid things in the
// wrong order. It keeps account of the bundle that the session sends, so that
// the outcome can be judged.
type imp struct {
	script    []byte
	commit    atomic.Bool // COMMIT has come
	confirmed atomic.Bool // a commit may have been confirmed
	refused   atomic.Bool // the commit may have been refused
}

// The first octet of a step says what it is, the next ones how.
const (
	impRight     = iota // the right reply to the oldest message without one
	impRefuse           // an error for a message that came; which, is the next octet
	impRepeat           // the right reply to a message that came, whether it has one or not
	impEvent            // an event
	impGarble           // the right reply with some bits flipped
	impOctets           // octets as they are, their number first
	impMultipart        // a part of a multipart reply that does not end
	impWait             // nothing for a while
	impSteps
)

func (i *imp) next() byte {
	if len(i.script) == 0 {
		return 0
	}
	b := i.script[0]
	i.script = i.script[1:]
	return b
}

// run plays the script, then what is right until the session hangs up.
func (i *imp) run(p *oftest.Peer) error {
	answered := len(p.Received)
	received := make(chan oftest.Received, 64)
	go func() {
		defer close(received)
		for {
			r, err := oftest.ReadMessage(p.Conn())
			if err != nil {
				return
			}
			received <- r
		}
	}()
	defer func() {
		p.Conn().Close()
		for range received {
		}
	}()
	for {
		patience := time.Duration(0) // while there is a script, do not wait for more
		if len(i.script) == 0 {
			patience = time.Minute
		}
		select {
		case r, ok := <-received:
			if !ok {
				return nil
			}
			p.Received = append(p.Received, r)
			if m, ok := r.Message.(*openflow.BundleControl); ok && m.Kind == openflow.BundleCommitRequest {
				i.commit.Store(true)
			}
			continue
		case <-time.After(patience):
		}
		if len(i.script) == 0 {
			if answered == len(p.Received) {
				return nil
			}
		}
		if i.step(p, &answered) != nil {
			return nil
		}
	}
}

func (i *imp) step(p *oftest.Peer, answered *int) error {
	switch op := i.next(); op % impSteps {
	case impRight:
		if *answered < len(p.Received) {
			*answered++
			return i.send(p, i.right(p.Received[*answered-1]))
		}
		if len(i.script) > 0 { // give the session time to send something
			time.Sleep(time.Millisecond)
		}
	case impRefuse:
		at := int(i.next()) % len(p.Received)
		r := p.Received[at]
		if m, ok := r.Message.(*openflow.BundleControl); ok && m.Kind == openflow.BundleCommitRequest {
			i.refused.Store(true)
		}
		return oftest.ReplyTo(at, &openflow.Error{Code: openflow.FlowModFailedOverlap, Data: r.Octets})(p)
	case impRepeat:
		return i.send(p, i.right(p.Received[int(i.next())%len(p.Received)]))
	case impEvent:
		events := []openflow.Message{
			&openflow.PortStatus{}, &openflow.PacketIn{}, &openflow.FlowRemoved{}, &openflow.EchoRequest{Data: []byte("x")},
			&openflow.MultipartReply{Body: openflow.FlowMonitorReply{{Event: openflow.EventPaused}}},
			&openflow.Hello{Version: 1}, &openflow.BarrierRequest{},
		}
		return oftest.Send(events[int(i.next())%len(events)])(p)
	case impGarble:
		b := bytes.Clone(i.right(p.Received[int(i.next())%len(p.Received)]))
		if len(b) > 0 {
			b[int(i.next())%len(b)] ^= i.next()
		}
		// Bits of the header may turn it into an answer to anything.
		i.refused.Store(true)
		i.confirmed.Store(true)
		return i.send(p, b)
	case impOctets:
		n := min(int(i.next()), len(i.script))
		b := i.script[:n]
		i.script = i.script[n:]
		i.refused.Store(true)
		i.confirmed.Store(true)
		return oftest.Octets(b)(p)
	case impMultipart:
		at := int(i.next()) % len(p.Received)
		return oftest.ReplyTo(at, &openflow.MultipartReply{Flags: openflow.MultipartMore, Body: make(openflow.FlowStatsReply, 100)})(p)
	case impWait:
		time.Sleep(time.Duration(i.next()) * 20 * time.Millisecond)
	}
	return nil
}

func (i *imp) send(p *oftest.Peer, b []byte) error {
	if len(b) >= openflow.HeaderLen+6 && openflow.Type(b[1]) == openflow.TypeBundleControl &&
		openflow.BundleControlType(binary.BigEndian.Uint16(b[12:])) == openflow.BundleCommitReply {
		i.confirmed.Store(true)
	}
	return oftest.Octets(b)(p)
}

// right returns the reply that a request should have; nothing for messages
// without one.
func (i *imp) right(r oftest.Received) []byte {
	var reply openflow.Message
	switch m := r.Message.(type) {
	case *openflow.EchoRequest:
		reply = &openflow.EchoReply{Data: m.Data}
	case *openflow.BarrierRequest:
		reply = &openflow.BarrierReply{}
	case *openflow.RoleRequest:
		reply = &openflow.RoleReply{RoleBody: m.RoleBody}
	case *openflow.MultipartRequest:
		reply = &openflow.MultipartReply{Body: openflow.FlowStatsReply{{Cookie: 1}, {Cookie: 2}}}
	case *openflow.BundleControl:
		reply = &openflow.BundleControl{ID: m.ID, Kind: m.Kind + 1}
	default:
		return nil
	}
	b, err := openflow.Append(nil, r.Header.Xid, reply)
	if err != nil {
		panic(err)
	}
	return b
}

// FuzzSession lets a session do a bundle and some requests with a peer that
// misbehaves. Whatever it does, every call ends, and the bundle's outcome is
// never more than the peer has said.
func FuzzSession(f *testing.F) {
	f.Add([]byte{})
	f.Add([]byte{impRefuse, 5, impRefuse, 6})
	f.Add([]byte{impWait, 1, impRefuse, 4, impRight, impRight, impRight, impRight, impRight, impRefuse, 5, impRefuse, 7})
	f.Add([]byte{impRight, impRepeat, 3, impRepeat, 3, impEvent, 0, impEvent, 3, impEvent, 4, impEvent, 5})
	f.Add([]byte{impGarble, 3, 1, 0x12, impGarble, 6, 4, 0xff})
	f.Add([]byte{impOctets, 8, 5, 1, 0, 8, 0, 0, 0, 4})
	f.Add([]byte{impOctets, 8, 1, 1, 0xff, 0xff, 0, 0, 0, 4})
	f.Add([]byte{impWait, 255, impWait, 255, impWait, 255})
	f.Add([]byte{impMultipart, 8, impMultipart, 8, impMultipart, 8, impMultipart, 8, impMultipart, 8})
	f.Fuzz(func(t *testing.T, script []byte) {
		synctest.Test(t, func(t *testing.T) {
			p := &imp{script: script}
			s := play(t, session.Options{MaxReply: 20_000, Events: 4}, oftest.Do(p.run))
			ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
			defer cancel()
			if err := judge(p, s.Bundle(ctx, slots(2))); err != nil {
				t.Error(err)
			}
			s.Barrier(ctx)
			s.TakeRole(ctx, openflow.RoleMaster)
			if flows, err := s.Flows(ctx, openflow.FlowStatsRequest(openflow.AllFlows())); err == nil && len(flows) > 300 {
				t.Errorf("%d flows within 20,000 octets", len(flows))
			}
			s.Close()
			events := 0
			for range s.Events() {
				events++
			}
			if events > 5 {
				t.Errorf("%d events were kept", events)
			}
		})
	})
}

// judge says what is wrong with the outcome of a bundle, if anything.
func judge(p *imp, r session.BundleResult) error {
	switch {
	case r.Outcome == session.Applied && !p.confirmed.Load():
		return errors.New("applied, though nobody confirmed it")
	case r.Outcome == session.Rejected && p.commit.Load() && !p.refused.Load():
		return fmt.Errorf("rejected, though the commit was sent and not refused: %w", r.Err)
	case (r.Err == nil) != (r.Outcome == session.Applied):
		return fmt.Errorf("%v with error %v", r.Outcome, r.Err)
	}
	return nil
}

// FuzzHandshake opens a session with a peer that sends anything.
func FuzzHandshake(f *testing.F) {
	hello, _ := openflow.Append(nil, 1, &openflow.Hello{Version: 6, Versions: 0x72})
	features, _ := openflow.Append(nil, 2, &openflow.FeaturesReply{})
	desc, _ := openflow.Append(nil, 3, &openflow.MultipartReply{Body: openflow.Desc{Hardware: "Open vSwitch", Software: "3.1.0"}})
	for cut := 1; cut < len(hello); cut += 3 {
		f.Add(hello[:cut])
	}
	f.Add(append(append(bytes.Clone(hello), features...), desc...))
	f.Add([]byte("HTTP/1.1 400 Bad Request\r\n\r\n"))
	f.Add([]byte(`{"id":0,"method":"echo","params":[]}`))
	f.Fuzz(func(t *testing.T, octets []byte) {
		synctest.Test(t, func(t *testing.T) {
			near, far := net.Pipe()
			var peer sync.WaitGroup
			defer peer.Wait()
			peer.Go(func() { io.Copy(io.Discard, far) })
			peer.Go(func() {
				defer far.Close()
				// One message at a time: later ones may need a request first.
				for rest := octets; len(rest) > 0; {
					n := len(rest)
					if h, err := openflow.ParseHeader(rest); err == nil {
						n = min(n, int(h.Length))
					}
					if _, err := far.Write(rest[:n]); err != nil {
						return
					}
					rest = rest[n:]
					time.Sleep(time.Millisecond)
				}
				time.Sleep(time.Second)
			})
			s, err := session.Open(t.Context(), near, session.Options{})
			if err == nil {
				s.SoftwareVersion()
				s.Close()
			} else if !errors.As(err, new(*session.ClosedError)) {
				t.Errorf("%v", err)
			}
		})
	})
}
