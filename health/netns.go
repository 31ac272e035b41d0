package health

import (
	"errors"
	"fmt"
	"runtime"

	"golang.org/x/sys/unix"
)

// inNetns runs f on a thread that is in the network namespace at path, such as
// /run/netns/probes: sockets that f opens and programs that it starts belong to
// it. The path is opened each time, so a namespace that is made anew is found.
func inNetns(path string, f func() error) (err error) {
	runtime.LockOSThread()
	home, err := openNetns("/proc/thread-self/ns/net")
	if err != nil {
		runtime.UnlockOSThread()
		return err
	}
	defer unix.Close(home)
	if err := enterNetns(path); err != nil {
		runtime.UnlockOSThread()
		return err
	}
	defer func() {
		if back := unix.Setns(home, unix.CLONE_NEWNET); back != nil {
			err = errors.Join(err, fmt.Errorf("return to the first network namespace: %w", back))
			return // the thread stays locked, and so ends with its goroutine
		}
		runtime.UnlockOSThread()
	}()
	return f()
}

func enterNetns(path string) error {
	there, err := openNetns(path)
	if err != nil {
		return err
	}
	defer unix.Close(there)
	if err := unix.Setns(there, unix.CLONE_NEWNET); err != nil {
		return fmt.Errorf("enter network namespace %s: %w", path, err)
	}
	return nil
}

func openNetns(path string) (int, error) {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, fmt.Errorf("network namespace %s: %w", path, err)
	}
	return fd, nil
}

// moveSocket puts a socket of the same kind in the network namespace at path in
// the place of fd, which must not be bound or connected yet. A connection then
// holds its thread only while the socket is made, not until it is open.
func moveSocket(fd int, path string) error {
	var kind [3]int
	for i, option := range []int{unix.SO_DOMAIN, unix.SO_TYPE, unix.SO_PROTOCOL} {
		var err error
		if kind[i], err = unix.GetsockoptInt(fd, unix.SOL_SOCKET, option); err != nil {
			return fmt.Errorf("getsockopt: %w", err)
		}
	}
	return inNetns(path, func() error {
		moved, err := unix.Socket(kind[0], kind[1]|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, kind[2])
		if err != nil {
			return fmt.Errorf("socket in network namespace %s: %w", path, err)
		}
		defer unix.Close(moved)
		if err := unix.Dup3(moved, fd, unix.O_CLOEXEC); err != nil {
			return fmt.Errorf("dup3: %w", err)
		}
		return nil
	})
}
