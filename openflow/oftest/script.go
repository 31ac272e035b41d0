package oftest

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"brlb/openflow"
)

// Script is what a scripted peer does, step by step. It speaks octets: it keeps
// no rule of OpenFlow that its steps do not keep, so that a test can make it
// misbehave in any way.
type Script []Step

// Step is one thing that a scripted peer does.
type Step func(p *Peer) error

// Peer is a scripted peer at work.
type Peer struct {
	conn net.Conn
	// write is where steps put their octets: the connection, or what a step
	// such as Garble makes of it.
	write func(b []byte) error
	// Received are the messages that Expect steps have read, in order.
	Received []Received
}

// Received is a message that a scripted peer has read.
type Received struct {
	Header  openflow.Header
	Message openflow.Message
	// Octets are the message as it came.
	Octets []byte
}

// Run does the steps on conn and closes it. The error says which step failed.
func (s Script) Run(conn net.Conn) error {
	defer conn.Close()
	p := &Peer{conn: conn}
	p.write = func(b []byte) error {
		_, err := conn.Write(b)
		return err
	}
	for i, step := range s {
		if err := step(p); err != nil {
			if errors.Is(err, errCut) {
				return nil
			}
			return fmt.Errorf("step %d of the script: %w", i, err)
		}
	}
	return nil
}

// errCut ends a script whose step has cut the connection.
var errCut = errors.New("cut")

// Do is a step that the test writes itself.
func Do(f func(p *Peer) error) Step { return f }

// Steps makes one step of several.
func Steps(steps ...Step) Step {
	return func(p *Peer) error {
		for i, step := range steps {
			if err := step(p); err != nil {
				return fmt.Errorf("part %d: %w", i, err)
			}
		}
		return nil
	}
}

// Expect reads one message for each type, in this order, and fails on others.
func Expect(types ...openflow.Type) Step {
	return func(p *Peer) error {
		for _, want := range types {
			r, err := p.Read()
			if err != nil {
				return fmt.Errorf("while %v was expected: %w", want, err)
			}
			if r.Header.Type != want {
				return fmt.Errorf("%v was expected, %v came: %x", want, r.Header.Type, r.Octets)
			}
		}
		return nil
	}
}

// ExpectOctets reads exactly these octets.
func ExpectOctets(want []byte) Step {
	return func(p *Peer) error {
		got := make([]byte, len(want))
		if n, err := io.ReadFull(p.conn, got); err != nil {
			return fmt.Errorf("while %x was expected, after %x: %w", want, got[:n], err)
		}
		if !bytes.Equal(got, want) {
			return fmt.Errorf("%x was expected, %x came", want, got)
		}
		return nil
	}
}

// Send sends a message with transaction id 0, as a switch sends what nobody
// asked for.
func Send(m openflow.Message) Step { return SendXid(0, m) }

// SendXid sends a message with a transaction id of the test's choice.
func SendXid(xid uint32, m openflow.Message) Step {
	return func(p *Peer) error { return p.send(xid, m) }
}

// Reply answers the message that was expected last.
func Reply(m openflow.Message) Step {
	return func(p *Peer) error { return p.replyTo(len(p.Received)-1, m) }
}

// ReplyTo answers the n-th message that was expected, counted from 0 at the
// beginning of the script: later ones first, or twice.
func ReplyTo(n int, m openflow.Message) Step {
	return func(p *Peer) error { return p.replyTo(n, m) }
}

// Octets sends octets as they are.
func Octets(b []byte) Step {
	return func(p *Peer) error { return p.write(b) }
}

// Stall neither reads nor writes for a time.
func Stall(d time.Duration) Step {
	return func(*Peer) error {
		time.Sleep(d)
		return nil
	}
}

// Cut closes the connection and ends the script.
func Cut() Step { return func(*Peer) error { return errCut } }

// CutAfter does a step, but closes the connection after the first n octets that
// it writes.
func CutAfter(n int, step Step) Step {
	return bent(step, func(b []byte, write func([]byte) error) error {
		if len(b) < n {
			n -= len(b)
			return write(b)
		}
		if err := write(b[:n]); err != nil {
			return err
		}
		return errCut
	})
}

// InPieces does a step, but writes its octets n at a time.
func InPieces(n int, step Step) Step {
	return bent(step, func(b []byte, write func([]byte) error) error {
		for len(b) > 0 {
			k := min(n, len(b))
			if err := write(b[:k]); err != nil {
				return err
			}
			b = b[k:]
		}
		return nil
	})
}

// Garble does a step, but flips bits in the octet at an offset of each message
// that it writes.
func Garble(offset int, bits byte, step Step) Step {
	return bent(step, func(b []byte, write func([]byte) error) error {
		if offset < len(b) {
			b = bytes.Clone(b)
			b[offset] ^= bits
		}
		return write(b)
	})
}

// bent does a step whose writes go through bend.
func bent(step Step, bend func(b []byte, write func([]byte) error) error) Step {
	return func(p *Peer) error {
		straight := p.write
		defer func() { p.write = straight }()
		p.write = func(b []byte) error { return bend(b, straight) }
		return step(p)
	}
}

// Greet is the switch's side of a session's handshake: HELLO, features and
// description, those of a Switch that was not told otherwise.
func Greet() Step {
	return Steps(
		Send(hello()),
		Expect(openflow.TypeHello, openflow.TypeFeaturesRequest),
		Reply(defaultFeatures()),
		Expect(openflow.TypeMultipartRequest),
		Reply(&openflow.MultipartReply{Body: defaultDesc("3.1.0")}),
	)
}

// Read reads one message. A step that Do makes may use it.
func (p *Peer) Read() (Received, error) {
	r, err := ReadMessage(p.conn)
	if err == nil {
		p.Received = append(p.Received, r)
	}
	return r, err
}

// ReadMessage reads one message. If it was read and is malformed, its octets come
// with the error.
func ReadMessage(r io.Reader) (Received, error) {
	head := make([]byte, openflow.HeaderLen)
	if _, err := io.ReadFull(r, head); err != nil {
		return Received{}, err
	}
	h, err := openflow.ParseHeader(head)
	if err != nil {
		return Received{}, err
	}
	b := append(head, make([]byte, int(h.Length)-len(head))...)
	if _, err := io.ReadFull(r, b[len(head):]); err != nil {
		return Received{}, err
	}
	_, m, err := openflow.Parse(b)
	return Received{Header: h, Message: m, Octets: b}, err
}

// Conn is the peer's end of the connection, for steps that Do makes.
func (p *Peer) Conn() net.Conn { return p.conn }

func (p *Peer) send(xid uint32, m openflow.Message) error {
	b, err := openflow.Append(nil, xid, m)
	if err != nil {
		return err
	}
	return p.write(b)
}

func (p *Peer) replyTo(n int, m openflow.Message) error {
	if n < 0 || n >= len(p.Received) {
		return fmt.Errorf("reply to message %d, of %d that came", n, len(p.Received))
	}
	return p.send(p.Received[n].Header.Xid, m)
}
