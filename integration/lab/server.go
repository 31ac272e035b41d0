package lab

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"
)

// serverTimeout bounds the start of a server and its answer to a command.
const serverTimeout = 10 * time.Second

// Server is an HTTP server on a host, a process of its own. Every response
// names it in the Server header. It answers
//
//	/            its name; X-Client is who asked
//	/healthz     its name with status 200, or the one set by SetHealth
//	/stream?ms=N a byte every N ms, without end
//
// with keep-alive as the client likes. A datagram to the same port comes back
// with the name before it, and so does an SCTP message where the kernel has SCTP.
type Server struct {
	name, addr string
	host       *Host

	mu      sync.Mutex
	process *Process
	stdin   io.Writer
	answers *bufio.Reader
	stderr  *bytes.Buffer // read only once the process has ended
}

// StartServer starts a server called name on addr, such as
// "10.30.0.11:8080", and returns when it accepts connections.
func (h *Host) StartServer(ctx context.Context, name, addr string) (*Server, error) {
	s := &Server{name: name, addr: addr, host: h}
	if err := s.Restart(ctx); err != nil {
		return nil, err
	}
	return s, nil
}

// Restart starts the server again after a Kill, with health 200.
func (s *Server) Restart(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.process != nil && !ended(s.process) {
		return fmt.Errorf("lab: start server %s: it runs already", s.name)
	}
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("lab: start server %s: %w", s.name, err)
	}
	// Pipes of our own: those of exec.Cmd are closed by Wait, which would
	// race with the reading of the last answer.
	stdinReader, stdin, err := os.Pipe()
	if err != nil {
		return fmt.Errorf("lab: start server %s: %w", s.name, err)
	}
	defer stdinReader.Close()
	stdout, stdoutWriter, err := os.Pipe()
	if err != nil {
		return errors.Join(fmt.Errorf("lab: start server %s: %w", s.name, err), stdin.Close())
	}
	defer stdoutWriter.Close()
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), echoNameEnv+"="+s.name, echoAddrEnv+"="+s.addr)
	s.stderr = new(bytes.Buffer)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = stdinReader, stdoutWriter, s.stderr
	process, err := s.host.Start(cmd)
	if err != nil {
		return errors.Join(err, stdin.Close(), stdout.Close())
	}
	go func() {
		<-process.Done()
		stdin.Close()
		stdout.Close()
	}()
	s.process, s.stdin, s.answers = process, stdin, bufio.NewReader(stdout)
	ctx, cancel := context.WithTimeout(ctx, serverTimeout)
	defer cancel()
	return s.await(ctx, "ready")
}

// await reads the server's next line, which must be want. When ctx ends first
// it kills the server, which ends the read.
func (s *Server) await(ctx context.Context, want string) error {
	stop := context.AfterFunc(ctx, func() { s.process.Signal(os.Kill) })
	defer stop()
	line, err := s.answers.ReadString('\n')
	line = strings.TrimSpace(line)
	if err == nil && line == want {
		return nil
	}
	if err == nil {
		return fmt.Errorf("lab: server %s said %q, not %q", s.name, line, want)
	}
	waitErr := s.process.Wait()
	return fmt.Errorf("lab: server %s ended (%v): %s", s.name, waitErr, bytes.TrimSpace(s.stderr.Bytes()))
}

// Name returns the server's name.
func (s *Server) Name() string { return s.name }

// Addr returns the address it listens on.
func (s *Server) Addr() string { return s.addr }

// Process returns the server's process, to kill, pause or signal it.
func (s *Server) Process() *Process {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.process
}

// Kill ends the server with SIGKILL. The kernel of its host then refuses new
// connections; see Process().Pause for one that just falls silent.
func (s *Server) Kill() error { return s.Process().Kill() }

// SetHealth sets the HTTP status that /healthz answers with from now on.
func (s *Server) SetHealth(status int) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, err := fmt.Fprintf(s.stdin, "health %d\n", status); err != nil {
		return fmt.Errorf("lab: set health of server %s: %w", s.name, err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), serverTimeout)
	defer cancel()
	return s.await(ctx, "ok")
}
