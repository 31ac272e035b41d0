package session_test

import (
	"context"
	"net"
	"testing"

	"go.uber.org/goleak"

	"brlb/openflow/oftest"
	"brlb/openflow/session"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// play opens a session with a scripted peer that begins with a handshake. The
// test fails if the script does. After the script the connection is closed.
func play(t *testing.T, opts session.Options, script ...oftest.Step) *session.Session {
	t.Helper()
	s, err := openScript(t, opts, append(oftest.Script{oftest.Greet()}, script...))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// openScript opens a session with a scripted peer.
func openScript(t *testing.T, opts session.Options, script oftest.Script) (*session.Session, error) {
	t.Helper()
	near, far := net.Pipe()
	ended := make(chan error, 1)
	go func() { ended <- script.Run(far) }()
	s, err := session.Open(context.Background(), near, opts)
	t.Cleanup(func() {
		if s != nil {
			s.Close()
		}
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return s, err
}

// untilClosed is a step that reads until the session hangs up.
func untilClosed() oftest.Step {
	return oftest.Do(func(p *oftest.Peer) error {
		for {
			if _, err := p.Read(); err != nil {
				return nil
			}
		}
	})
}
