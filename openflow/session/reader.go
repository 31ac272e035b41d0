package session

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"time"

	"brlb/openflow"
)

// liveReader reads from the connection and watches its silence: after idle
// without an octet it calls probe, after as long again it gives up. Each wait is
// measured from when it begins, so that time during which this process itself
// did not run is not held against the peer. Neither is the time in which the
// peer takes much: what it says will be about that, and the probe waits in line.
type liveReader struct {
	conn  net.Conn
	idle  time.Duration // 0: wait for ever, without probes
	probe func()
	taken func() uint64 // how many pieces the peer has taken
	// count is told of every successful read.
	count func(n int)
}

// errSilent is what liveReader gives up with.
var errSilent = errors.New("not even after an echo request")

func (r *liveReader) Read(p []byte) (int, error) {
	taken := r.taken()
	for probed := false; ; {
		if r.idle > 0 {
			if err := r.conn.SetReadDeadline(time.Now().Add(r.idle)); err != nil {
				return 0, err
			}
		}
		n, err := r.conn.Read(p)
		if n > 0 {
			r.count(n)
			return n, nil // an error will come again
		}
		if !errors.Is(err, os.ErrDeadlineExceeded) {
			return 0, err
		}
		switch now := r.taken(); {
		case now != taken:
			taken, probed = now, false
		case probed:
			return 0, fmt.Errorf("nothing for %v, %w", 2*r.idle, errSilent)
		default:
			r.probe()
			probed = true
		}
	}
}

// readLoop distributes messages until the session ends.
func (s *Session) readLoop(r *bufio.Reader) {
	defer s.loops.Done()
	defer close(s.events)
	for {
		frame, err := readFrame(r)
		if err != nil {
			s.end(readFailure(err))
			return
		}
		if err := s.dispatch(frame); err != nil {
			s.end(ErrMalformed, err)
			return
		}
	}
}

// readFailure says what a failed read means for the session.
func readFailure(err error) (Reason, error) {
	var malformed *openflow.ParseError
	switch {
	case errors.As(err, &malformed):
		return ErrMalformed, err
	case errors.Is(err, errSilent):
		return ErrSilent, err
	case errors.Is(err, io.EOF):
		return ErrHangup, errors.New("the peer closed it")
	case errors.Is(err, io.ErrUnexpectedEOF):
		return ErrHangup, errors.New("the peer closed it in the middle of a message")
	}
	return ErrHangup, err
}

// readFrame reads one message, header included, into memory of its own. Packet-ins
// that are longer than they say are left out.
func readFrame(r *bufio.Reader) ([]byte, error) {
	head, err := r.Peek(openflow.HeaderLen)
	for err == nil && openflow.Type(head[1]) == openflow.TypePacketIn {
		octets := overlong(r)
		if _, err = r.Discard(octets); err == nil {
			head, err = r.Peek(openflow.HeaderLen)
		}
		if octets == 0 {
			break
		}
	}
	if err != nil {
		if err == io.EOF && len(head) > 0 {
			err = io.ErrUnexpectedEOF
		}
		return nil, err
	}
	h, err := openflow.ParseHeader(head)
	if err != nil {
		return nil, err
	}
	frame := make([]byte, h.Length)
	if _, err := io.ReadFull(r, frame); err != nil {
		if err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
		return nil, err
	}
	return frame, nil
}

// overlong returns the true length of a packet-in that is longer than its header can
// say; 0 of any other. A kernel's datapath can put fragments together to such a
// packet, and Open vSwitch sends it whole, whatever it was told: the length that it
// says is then too small by 65,536.
func overlong(r *bufio.Reader) int {
	const (
		totalLen  = 12    // where the packet's own length is
		longest   = 64000 // of packets that fit with all that is said of them
		remainder = 2048  // below this is what is left of the lengths of others
	)
	head, err := r.Peek(totalLen + 2)
	if err != nil {
		return 0 // whoever reads on meets it again
	}
	length, total := int(binary.BigEndian.Uint16(head[2:])), binary.BigEndian.Uint16(head[totalLen:])
	if length >= remainder || total < longest {
		return 0
	}
	return 1<<16 + length
}

// dispatch hands a message to whom it belongs: the request it answers, the
// consumer of events, or nobody. It never waits. Replies are handed over as
// octets and parsed by the caller they wake, so that the reader stays quick.
func (s *Session) dispatch(frame []byte) error {
	h, err := openflow.ParseHeader(frame)
	if err != nil {
		return err
	}
	if h.Version != openflow.Version && h.Type != openflow.TypeError && h.Type != openflow.TypeHello {
		return fmt.Errorf("%v with version %d and xid %#x, where %d was agreed: %s",
			h.Type, h.Version, h.Xid, openflow.Version, quote(frame))
	}
	s.mu.Lock()
	s.counters.received(h.Type)
	if answers(h.Type) {
		if in := s.ownerLocked(h.Xid); in != nil {
			fits := in.deliverLocked(frame)
			s.mu.Unlock()
			if !fits {
				s.end(ErrLimit, fmt.Errorf("over %d octets for one request", s.opts.MaxReply))
			}
			return nil
		}
	}
	known := h.Type == openflow.TypeEchoReply && h.Xid == s.probe
	s.mu.Unlock()

	switch {
	case h.Type == openflow.TypeEchoRequest:
		s.answerEcho(frame)
	case isEvent(h, frame):
		_, m, err := openflow.Parse(frame)
		if err != nil {
			return fmt.Errorf("%w in %s", err, quote(frame))
		}
		s.deliverEvent(Event{Xid: h.Xid, Message: m})
	case !known:
		s.countUnknown(1)
	}
	return nil
}

// answers says whether messages of a type can answer a request. Others never do,
// whatever transaction id they carry.
func answers(t openflow.Type) bool {
	switch t {
	case openflow.TypeError, openflow.TypeEchoReply, openflow.TypeExperimenter, openflow.TypeFeaturesReply,
		openflow.TypeGetConfigReply, openflow.TypeMultipartReply, openflow.TypeBarrierReply,
		openflow.TypeRoleReply, openflow.TypeGetAsyncReply, openflow.TypeBundleControl:
		return true
	}
	return false
}

// isEvent says whether a message that answers nobody is for the consumer of
// events. Late replies are not.
func isEvent(h openflow.Header, frame []byte) bool {
	switch h.Type {
	case openflow.TypePacketIn, openflow.TypeFlowRemoved, openflow.TypePortStatus, openflow.TypeRoleStatus,
		openflow.TypeTableStatus, openflow.TypeRequestForward, openflow.TypeExperimenter, openflow.TypeError:
		return true
	case openflow.TypeMultipartReply:
		// Updates of flow monitors are multipart replies that nobody asked for.
		const kind = openflow.HeaderLen
		return h.Xid == 0 && len(frame) >= kind+2 &&
			openflow.MultipartType(binary.BigEndian.Uint16(frame[kind:])) == openflow.MultipartFlowMonitor
	}
	return false
}
