package lab

import (
	"fmt"
	"os"
	"sync"

	"golang.org/x/sys/unix"
)

// snifferBuffer is how many octets may wait until a sniffer reads them.
const snifferBuffer = 32 << 20

// Sniffer looks at the frames that pass an interface, both ways.
type Sniffer struct {
	file *os.File
	keep func(frame []byte) bool
	done chan struct{}

	mu   sync.Mutex
	seen int
	kept [][]byte
}

// Sniff looks at the frames that pass an interface from now on, and keeps those
// that keep chooses. Frames come without their VLAN tag. Close of the lab ends it.
func (n *Namespace) Sniff(device string, keep func(frame []byte) bool) (*Sniffer, error) {
	s := &Sniffer{keep: keep, done: make(chan struct{})}
	err := n.Do(func() error {
		link, err := n.link.LinkByName(device)
		if err != nil {
			return err
		}
		const protocol = unix.ETH_P_ALL<<8&0xff00 | unix.ETH_P_ALL>>8 // in network byte order
		fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
		if err != nil {
			return err
		}
		s.file = os.NewFile(uintptr(fd), "sniffer of "+device)
		if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, snifferBuffer); err != nil {
			s.file.Close()
			return err
		}
		if err := unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: protocol, Ifindex: link.Attrs().Index}); err != nil {
			s.file.Close()
			return err
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("lab: sniff at %s in %s: %w", device, n.Name, err)
	}
	go s.read()
	n.lab.atClose(s.close)
	return s, nil
}

func (s *Sniffer) read() {
	defer close(s.done)
	buffer := make([]byte, 1<<16)
	for {
		n, err := s.file.Read(buffer)
		if err != nil {
			return
		}
		s.look(buffer[:n])
	}
}

func (s *Sniffer) look(frame []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seen++
	if s.keep(frame) {
		s.kept = append(s.kept, append([]byte(nil), frame...))
	}
}

// Frames returns how many frames have passed, and those that were kept.
func (s *Sniffer) Frames() (seen int, kept [][]byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.seen, s.kept[:len(s.kept):len(s.kept)]
}

func (s *Sniffer) close() error {
	err := s.file.Close()
	<-s.done
	return err
}
