package session

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"

	"brlb/openflow"
)

// readBuffer is the reader's buffer: one system call for the many small replies
// of a bundle.
const readBuffer = 64 << 10

// Open does the handshake on conn and returns the session: HELLO both ways with
// OpenFlow 1.4 as the only version, then the switch's features and description.
// It does not matter which end dialled. ctx bounds Open alone, as Options.
// Handshake does. Open owns conn, also when it fails: then conn is closed and
// the error is a *ClosedError.
func Open(ctx context.Context, conn net.Conn, opts Options) (*Session, error) {
	opts = opts.withDefaults(conn)
	s := &Session{
		conn:     conn,
		opts:     opts,
		events:   make(chan Event, opts.Events+1), // one place is for the mark of a gap
		done:     make(chan struct{}),
		wake:     make(chan struct{}, 1),
		written:  make(chan struct{}),
		monitors: make(map[uint32]bool),
	}
	s.loops.Add(1)
	go s.writeLoop()

	ctx, cancel := context.WithTimeoutCause(ctx, opts.Handshake, fmt.Errorf("not within %v", opts.Handshake))
	defer cancel()
	stop := context.AfterFunc(ctx, func() { s.end(ErrHandshake, context.Cause(ctx)) })
	defer stop()

	if err := s.handshake(ctx); err != nil {
		s.Close()
		return nil, s.Err()
	}
	if !stop() { // the time ran out at the last moment, and the session with it
		s.Close()
		return nil, s.Err()
	}
	return s, nil
}

// handshake starts the reader after HELLO, for from then on the switch may send
// anything. Whatever fails ends the session.
func (s *Session) handshake(ctx context.Context) error {
	hello := &openflow.Hello{Versions: openflow.HelloVersionBitmap(openflow.Version)}
	if err := s.enqueue(ctx, nil, 1, 1, func(int) openflow.Message { return hello }); err != nil {
		return err
	}
	live := &liveReader{conn: s.conn, probe: s.sendProbe, taken: s.pieces.Load, count: s.countRead}
	r := bufio.NewReaderSize(live, readBuffer)
	if err := s.readHello(ctx, r); err != nil {
		return err
	}
	live.idle = s.opts.Idle
	s.loops.Add(1)
	go s.readLoop(r)
	err := s.askWho(ctx)
	if closed := (*ClosedError)(nil); errors.As(err, &closed) {
		return s.fail(closed.Reason, closed.Err)
	}
	if err != nil {
		return s.fail(ErrHandshake, err)
	}
	return nil
}

// readHello reads the peer's first message and ends the session unless it is a
// HELLO that has OpenFlow 1.4 in it (OF1.4 section 6.3.1).
func (s *Session) readHello(ctx context.Context, r *bufio.Reader) error {
	head, err := r.Peek(openflow.HeaderLen)
	if len(head) > 0 && !looksLikeHello(head) {
		more, _ := r.Peek(r.Buffered())
		return s.fail(ErrNotOpenFlow, fmt.Errorf("it sent %s where HELLO belongs", quote(more)))
	}
	if err != nil {
		return s.fail(readFailure(err))
	}
	frame, err := readFrame(r)
	if err != nil {
		return s.fail(readFailure(err))
	}
	h, m, err := openflow.Parse(frame)
	switch m := m.(type) {
	case *openflow.Hello:
		if !offers14(h, m) {
			s.refuse(ctx)
			return s.fail(ErrVersion, fmt.Errorf("its HELLO has version %d and bitmap %#x; allow OpenFlow14 in the bridge's protocols", h.Version, m.Versions))
		}
		return nil
	case *openflow.Error:
		return s.fail(ErrVersion, fmt.Errorf("it answers %v: %s", m.Code, quote(m.Data)))
	}
	return s.fail(ErrNotOpenFlow, fmt.Errorf("%w in %s", err, quote(frame)))
}

// looksLikeHello says whether the first octets of a peer may begin a HELLO or an
// error, of whatever version.
func looksLikeHello(b []byte) bool {
	const newest = 6 // OpenFlow 1.5, the last version there is
	if b[0] < 1 || b[0] > newest {
		return false
	}
	return len(b) < 2 || openflow.Type(b[1]) == openflow.TypeHello || openflow.Type(b[1]) == openflow.TypeError
}

// offers14 says whether OpenFlow 1.4 can be agreed on: it is in the bitmap, or
// there is none and the peer's greatest version is not less.
func offers14(h openflow.Header, m *openflow.Hello) bool {
	if m.Versions != 0 {
		return m.Versions&openflow.HelloVersionBitmap(openflow.Version) != 0
	}
	return h.Version >= openflow.Version
}

// refuse tells the peer why the session ends, if it takes the message at once.
func (s *Session) refuse(ctx context.Context) {
	m := &openflow.Error{Code: openflow.HelloFailedIncompatible, Data: []byte("only OpenFlow 1.4 is spoken here")}
	if s.enqueue(ctx, nil, 1, 1, func(int) openflow.Message { return m }) != nil {
		return
	}
	s.flush(ctx)
}

// askWho asks for the switch's features and description.
func (s *Session) askWho(ctx context.Context) error {
	reply, err := s.Call(ctx, &openflow.FeaturesRequest{})
	if err != nil {
		return err
	}
	s.features = reply.(*openflow.FeaturesReply)
	return s.Multipart(ctx, openflow.DescRequest{}, func(part openflow.MultipartReplyBody) error {
		s.desc = part.(openflow.Desc)
		return nil
	})
}

// SoftwareVersion reads the version of Open vSwitch from the description, such
// as 3, 1 from "3.1.0". Vendors may have ported later features back. ok is false
// if the switch is another, or its version cannot be read.
func (s *Session) SoftwareVersion() (major, minor int, ok bool) {
	if s.desc.Hardware != "Open vSwitch" {
		return 0, 0, false
	}
	parts := strings.SplitN(s.desc.Software, ".", 3)
	if len(parts) < 2 {
		return 0, 0, false
	}
	major, err1 := strconv.Atoi(parts[0])
	minor, err2 := strconv.Atoi(parts[1])
	return major, minor, err1 == nil && err2 == nil
}

// sendProbe asks a silent peer for a sign of life. The reader calls it, so it
// never waits.
func (s *Session) sendProbe() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.probe = s.reserve(1)
	s.counters.c.Probes++
	if err := s.appendLocked(s.probe, 1, func(int) openflow.Message { return &openflow.EchoRequest{} }); err != nil {
		panic(err) // an echo request without data always fits
	}
}

// countRead counts octets received.
func (s *Session) countRead(n int) {
	s.mu.Lock()
	s.counters.c.OctetsReceived += uint64(n)
	s.mu.Unlock()
}
