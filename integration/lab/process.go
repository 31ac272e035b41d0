package lab

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"time"
)

// Process is a running program that the lab started.
type Process struct {
	process *os.Process
	done    chan struct{}
	err     error // how it ended; valid once done is closed
}

// WatchProcess returns a handle on a process that another program started on
// the lab's behalf, such as a container engine. It polls, since only a parent
// is told of a process's end.
func WatchProcess(pid int) (*Process, error) {
	process, err := os.FindProcess(pid)
	if err != nil {
		return nil, fmt.Errorf("lab: find process %d: %w", pid, err)
	}
	p := &Process{process: process, done: make(chan struct{})}
	go func() {
		defer close(p.done)
		for p.process.Signal(syscall.Signal(0)) == nil {
			time.Sleep(2 * time.Millisecond)
		}
	}()
	return p, nil
}

// Pid returns the process id as this machine sees it.
func (p *Process) Pid() int { return p.process.Pid }

// Done is closed when the process has ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// Wait waits for the end of the process and returns how it ended, as
// exec.Cmd.Wait does.
func (p *Process) Wait() error {
	<-p.done
	return p.err
}

// Signal sends a signal; a process that has ended is an error.
func (p *Process) Signal(sig os.Signal) error {
	if err := p.process.Signal(sig); err != nil {
		return fmt.Errorf("lab: send %v to process %d: %w", sig, p.Pid(), err)
	}
	return nil
}

// Kill ends the process with SIGKILL and waits until it is gone. A process
// that has ended already is no error.
func (p *Process) Kill() error {
	if err := p.Signal(syscall.SIGKILL); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	<-p.done
	return nil
}

// Pause stops the process where it is (SIGSTOP) until Resume.
func (p *Process) Pause() error { return p.Signal(syscall.SIGSTOP) }

// Resume lets a paused process go on.
func (p *Process) Resume() error { return p.Signal(syscall.SIGCONT) }

// commandError adds to err what the command was and what it wrote to
// standard error.
func commandError(cmd *exec.Cmd, err error) error {
	if err == nil {
		return nil
	}
	var exit *exec.ExitError
	if errors.As(err, &exit) && len(exit.Stderr) > 0 {
		return fmt.Errorf("lab: run %q: %w: %s", cmd.Args, err, bytes.TrimSpace(exit.Stderr))
	}
	return fmt.Errorf("lab: run %q: %w", cmd.Args, err)
}
