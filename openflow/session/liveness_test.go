package session_test

import (
	"context"
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"brlb/openflow"
	"brlb/openflow/oftest"
	"brlb/openflow/session"
)

func TestSilencePeerEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := play(t, session.Options{Idle: 3 * time.Second}, untilClosed())
		start := time.Now()
		<-s.Done()
		if d := time.Since(start); d != 6*time.Second || !errors.Is(s.Err(), session.ErrSilent) {
			t.Errorf("after %v: %v", d, s.Err())
		}
		if n := s.Counters().Probes; n != 1 {
			t.Errorf("%d probes", n)
		}
	})
}

func TestQuietPeerLives(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := play(t, session.Options{}, answerEchoes())
		time.Sleep(time.Minute)
		if err := s.Err(); err != nil {
			t.Error(err)
		}
		if c := s.Counters(); c.Probes < 28 || c.Probes > 30 || c.UnknownReplies != 0 {
			t.Errorf("%+v", c)
		}
	})
}

// Any octet is a sign of life, also in the middle of a message.
func TestSlowPeerLives(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, err := openflow.Append(nil, 0, &openflow.PacketIn{BufferID: openflow.NoBuffer, Data: make([]byte, 100)})
		if err != nil {
			t.Fatal(err)
		}
		s := play(t, session.Options{}, oftest.Do(func(p *oftest.Peer) error {
			go untilClosed()(p)
			for i := range b {
				time.Sleep(1500 * time.Millisecond)
				if err := oftest.Octets(b[i : i+1])(p); err != nil {
					return err
				}
			}
			return nil
		}))
		if e := <-s.Events(); e.Message == nil || e.Message.Type() != openflow.TypePacketIn {
			t.Errorf("%+v, %v", e, s.Err())
		}
	})
}

// A peer that takes much has no time to speak. When it takes no more, it is
// silent.
func TestBusyPeerLives(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const much = 4 << 20
		s := play(t, session.Options{}, oftest.Do(func(p *oftest.Peer) error {
			buf := make([]byte, 200<<10)
			for {
				n, err := p.Conn().Read(buf)
				if err != nil {
					return nil
				}
				time.Sleep(time.Duration(n) * 5 * time.Microsecond) // 200 kB a second
			}
		}))
		start := time.Now()
		data := make([]byte, 60<<10)
		for range much / len(data) {
			if err := s.Send(context.Background(), &openflow.PacketOut{BufferID: openflow.NoBuffer, Data: data}); err != nil {
				t.Fatal(err)
			}
		}
		<-s.Done()
		if d := time.Since(start); d < 20*time.Second || d > 30*time.Second || !errors.Is(s.Err(), session.ErrSilent) {
			t.Errorf("after %v: %v", d, s.Err())
		}
	})
}

// A peer that takes nothing ends the session; one that takes a little does not.
func TestStalledWrites(t *testing.T) {
	for name, test := range map[string]struct {
		gap  time.Duration // between octets that the peer reads
		want session.Reason
	}{
		"stalled": {time.Hour, session.ErrStalled},
		"slow":    {4 * time.Second, ""},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := play(t, session.Options{}, oftest.Do(func(p *oftest.Peer) error {
					var reader sync.WaitGroup
					reader.Go(func() {
						for time.Sleep(test.gap); ; time.Sleep(test.gap) {
							if _, err := p.Conn().Read(make([]byte, 1)); err != nil {
								return
							}
						}
					})
					defer reader.Wait()
					for oftest.Send(&openflow.PortStatus{})(p) == nil { // signs of life
						time.Sleep(time.Second)
					}
					return nil
				}))
				if err := s.Send(context.Background(), slots(10)...); err != nil {
					t.Fatal(err)
				}
				time.Sleep(time.Minute)
				if test.want == "" {
					if err := s.Err(); err != nil {
						t.Error(err)
					}
				} else if !errors.Is(s.Err(), test.want) {
					t.Errorf("%v", s.Err())
				}
			})
		})
	}
}

// While the queue is full, calls wait for room, as long as their context allows.
func TestFullQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := play(t, session.Options{MaxQueued: 1000, WriteStall: time.Minute}, oftest.Do(func(p *oftest.Peer) error {
			for range 20 { // signs of life, while nothing is read
				if err := oftest.Send(&openflow.PortStatus{})(p); err != nil {
					return err
				}
				time.Sleep(time.Second)
			}
			return untilClosed()(p)
		}))
		ctx := context.Background()
		if err := s.Send(ctx, slots(100)...); err != nil { // one call is never split
			t.Fatal(err)
		}
		short, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		if err := s.Send(short, slots(1)...); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("with a full queue: %v", err)
		}
		start := time.Now()
		if err := s.Send(ctx, slots(1)...); err != nil || time.Since(start) < 10*time.Second {
			t.Errorf("after %v: %v", time.Since(start), err)
		}
	})
}

// A peer that asks for echoes and reads none of them costs no memory to speak
// of.
func TestEchoFlood(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const requests = 10_000
		flooded := make(chan struct{})
		s := play(t, session.Options{WriteStall: time.Minute}, oftest.Do(func(p *oftest.Peer) error {
			for range requests {
				if err := oftest.Send(&openflow.EchoRequest{Data: make([]byte, 1000)})(p); err != nil {
					return err
				}
			}
			close(flooded)
			return untilClosed()(p)
		}))
		<-flooded
		synctest.Wait()
		c := s.Counters()
		if c.EchoesIgnored < requests*9/10 || c.EchoesIgnored+c.Sent[openflow.TypeEchoReply] != requests {
			t.Errorf("%d answered, %d ignored", c.Sent[openflow.TypeEchoReply], c.EchoesIgnored)
		}
	})
}

// What a peer said before it went is read, although nothing can be written to it
// any more.
func TestLastWordsAreRead(t *testing.T) {
	near, far := net.Pipe()
	conn := &deafConn{Conn: near}
	script := make(chan error, 1)
	go func() {
		script <- oftest.Script{
			oftest.Greet(), oftest.Expect(openflow.TypeBarrierRequest),
			oftest.Do(func(*oftest.Peer) error {
				conn.deaf.Store(true)
				return nil
			}),
			oftest.Send(&openflow.EchoRequest{}), // the answer cannot be written
			oftest.Reply(&openflow.BarrierReply{}),
		}.Run(far)
	}()
	s, err := session.Open(context.Background(), conn, session.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if err := s.Barrier(context.Background()); err != nil {
		t.Error(err)
	}
	<-s.Done()
	if err := <-script; err != nil {
		t.Error(err)
	}
	if err := s.Barrier(context.Background()); !errors.Is(err, session.ErrHangup) {
		t.Error(err)
	}
}

// deafConn is a connection whose writes fail once it is deaf.
type deafConn struct {
	net.Conn
	deaf atomic.Bool
}

func (c *deafConn) Write(b []byte) (int, error) {
	if c.deaf.Load() {
		return 0, syscall.EPIPE
	}
	return c.Conn.Write(b)
}
