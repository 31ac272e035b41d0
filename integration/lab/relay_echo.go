package lab

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"io"
	"sync"
	"time"
)

// The version and types of messages, and the octets by which the relay knows its own requests.
const (
	version14       = 5
	typeHello       = 0
	typeEchoRequest = 2
	typeEchoReply   = 3
	echoMark        = "lab relay"
)

// echoes asks the controller for signs of life, as a switch does.
type echoes struct {
	mu      sync.Mutex
	asked   []time.Time // what has not been answered
	longest time.Duration
}

// Echo sends the controller an echo request now and then, beside what the switch
// says on the same session, until stop is called. That returns the longest time
// that an answer took, or that one has been missing for. The switch does not see
// the answers.
func (r *Relay) Echo(every time.Duration) (stop func() time.Duration) {
	e := &echoes{}
	r.mu.Lock()
	r.echoes = e
	r.mu.Unlock()
	end, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		ticker := time.NewTicker(every)
		defer ticker.Stop()
		for {
			select {
			case <-ticker.C:
				r.askEcho(e)
			case <-end:
				return
			}
		}
	}()
	return func() time.Duration {
		close(end)
		<-ended
		e.mu.Lock()
		defer e.mu.Unlock()
		if len(e.asked) > 0 {
			e.longest = max(e.longest, time.Since(e.asked[0]))
		}
		return e.longest
	}
}

// askEcho asks once, if there is a session.
func (r *Relay) askEcho(e *echoes) {
	r.mu.Lock()
	to := r.controller
	r.mu.Unlock()
	if to == nil {
		return
	}
	message := binary.BigEndian.AppendUint16([]byte{version14, typeEchoRequest}, uint16(headerSize+len(echoMark)))
	message = append(append(message, 0, 0, 0, 0), echoMark...)
	e.mu.Lock()
	e.asked = append(e.asked, time.Now())
	e.mu.Unlock()
	to.put(message, true) // a session that has ended answers nothing
}

// answered tells whether a message of the controller's is the answer to a request
// of the relay's, and if so notes how long it took.
func (e *echoes) answered(message []byte) bool {
	if message[1] != typeEchoReply || !bytes.Equal(message[headerSize:], []byte(echoMark)) {
		return false
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.asked) > 0 {
		e.longest = max(e.longest, time.Since(e.asked[0]))
		e.asked = e.asked[1:]
	}
	return true
}

// outlet is where messages go one way. Several may write to it.
type outlet struct {
	mu sync.Mutex
	w  *bufio.Writer
}

func newOutlet(to io.Writer) *outlet { return &outlet{w: bufio.NewWriterSize(to, 64<<10)} }

// put writes a message, now or with those that follow it.
func (o *outlet) put(message []byte, now bool) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if _, err := o.w.Write(message); err != nil || !now {
		return err
	}
	return o.w.Flush()
}

func (o *outlet) flush() error { return o.put(nil, true) }
