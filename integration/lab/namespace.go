package lab

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"runtime"
	"syscall"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
)

// Namespace is a network namespace in which the lab runs code and programs.
// Its methods may be called from any goroutine.
type Namespace struct {
	// Name is what `ip netns exec` calls it; for a container's namespace it
	// is the container's name.
	Name string

	lab    *Lab
	handle netns.NsHandle
	link   *netlink.Handle
}

// newNamespace creates the named namespace with its loopback up.
func newNamespace(l *Lab, name string) (*Namespace, error) {
	handle, err := createNetns(name)
	if err != nil {
		return nil, fmt.Errorf("lab: create network namespace %s: %w", name, err)
	}
	n := &Namespace{Name: name, lab: l, handle: handle}
	if err := n.open(); err != nil {
		return nil, errors.Join(err, n.close(), netns.DeleteNamed(name))
	}
	return n, nil
}

// createNetns makes the namespace from a thread of its own kind: NewNamed
// moves the calling thread into it, and the thread must come back.
func createNetns(name string) (netns.NsHandle, error) {
	var handle netns.NsHandle
	err := onOwnThread(func() (err error) {
		handle, err = netns.NewNamed(name)
		return err
	})
	return handle, err
}

// open prepares a namespace whose handle is set.
func (n *Namespace) open() error {
	link, err := netlink.NewHandleAt(n.handle)
	if err != nil {
		return fmt.Errorf("lab: open netlink in %s: %w", n.Name, err)
	}
	n.link = link
	lo, err := link.LinkByName("lo")
	if err != nil {
		return fmt.Errorf("lab: find lo in %s: %w", n.Name, err)
	}
	if err := link.LinkSetUp(lo); err != nil {
		return fmt.Errorf("lab: set lo up in %s: %w", n.Name, err)
	}
	return nil
}

// close lets go of the namespace; the name, if it has one, stays.
func (n *Namespace) close() error {
	if n.link != nil {
		n.link.Close()
	}
	return n.handle.Close()
}

// onOwnThread runs f on a locked thread that returns to the network namespace
// it had. A thread that cannot return stays locked, so it ends with its
// goroutine instead of serving others in the wrong namespace.
func onOwnThread(f func() error) (err error) {
	runtime.LockOSThread()
	home, err := netns.Get()
	if err != nil {
		runtime.UnlockOSThread()
		return fmt.Errorf("read the thread's network namespace: %w", err)
	}
	defer func() {
		back := netns.Set(home)
		home.Close()
		if back != nil {
			err = errors.Join(err, fmt.Errorf("return to the first network namespace: %w", back))
			return
		}
		runtime.UnlockOSThread()
	}()
	return f()
}

// Do runs f in the namespace: every socket that f itself opens, and every
// program it starts, belongs to it. Goroutines started by f do not. What f
// opened may be used anywhere afterwards.
func (n *Namespace) Do(f func() error) error {
	return onOwnThread(func() error {
		if err := netns.Set(n.handle); err != nil {
			return fmt.Errorf("lab: enter network namespace %s: %w", n.Name, err)
		}
		return f()
	})
}

// Listen opens a listener in the namespace. addr must hold an IP literal.
func (n *Namespace) Listen(network, addr string) (net.Listener, error) {
	var listener net.Listener
	err := n.Do(func() (err error) {
		listener, err = net.Listen(network, addr)
		return err
	})
	return listener, err
}

// DialContext connects from the namespace; it fits http.Transport. addr must
// hold an IP literal: names are not resolved inside namespaces.
func (n *Namespace) DialContext(ctx context.Context, network, addr string) (net.Conn, error) {
	var conn net.Conn
	err := n.Do(func() (err error) {
		conn, err = new(net.Dialer).DialContext(ctx, network, addr)
		return err
	})
	return conn, err
}

// Start starts cmd in the namespace, in a process group of its own so that a
// Ctrl-C on the terminal reaches only this process. The lab kills it on
// Close if it still runs.
func (n *Namespace) Start(cmd *exec.Cmd) (*Process, error) {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Setpgid = true
	if err := n.Do(cmd.Start); err != nil {
		return nil, fmt.Errorf("lab: start %s in %s: %w", cmd.Path, n.Name, err)
	}
	p := &Process{process: cmd.Process, done: make(chan struct{})}
	go func() {
		p.err = cmd.Wait()
		close(p.done)
	}()
	n.lab.track(p)
	return p, nil
}

// Output runs a program in the namespace to its end and returns its standard
// output; its standard error is part of the error.
func (n *Namespace) Output(ctx context.Context, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	var out []byte
	err := n.Do(func() (err error) {
		out, err = cmd.Output()
		return err
	})
	return string(out), commandError(cmd, err)
}

// Sysctl writes a network setting of the namespace, such as
// "net/ipv4/ip_forward".
func (n *Namespace) Sysctl(path, value string) error {
	return n.Do(func() error {
		if err := os.WriteFile("/proc/sys/"+path, []byte(value), 0o644); err != nil {
			return fmt.Errorf("lab: set %s=%s in %s: %w", path, value, n.Name, err)
		}
		return nil
	})
}
