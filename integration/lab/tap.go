package lab

import (
	"bytes"
	"fmt"
	"sync"

	"golang.org/x/sys/unix"
)

// Tap is a packet socket: it sees the frames that an interface receives, and
// sends frames.
type Tap struct {
	fd, device int
	stop, done chan struct{}

	mu     sync.Mutex
	frames [][]byte
}

// Tap opens a packet socket on an interface of the namespace. The lab closes it.
func (n *Namespace) Tap(device string) (*Tap, error) {
	link, err := n.link.LinkByName(device)
	if err != nil {
		return nil, fmt.Errorf("lab: tap %s in %s: %w", device, n.Name, err)
	}
	t := &Tap{device: link.Attrs().Index, stop: make(chan struct{}), done: make(chan struct{})}
	if err := n.Do(t.open); err != nil {
		return nil, fmt.Errorf("lab: tap %s in %s: %w", device, n.Name, err)
	}
	go t.read()
	n.lab.atClose(t.close)
	return t, nil
}

func (t *Tap) open() (err error) {
	const everything = unix.ETH_P_ALL>>8 | unix.ETH_P_ALL<<8&0xff00 // in network byte order
	if t.fd, err = unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, everything); err != nil {
		return err
	}
	err = unix.SetsockoptTimeval(t.fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Usec: 100_000})
	if err == nil {
		err = unix.SetsockoptInt(t.fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, 64<<20)
	}
	if err == nil {
		err = unix.Bind(t.fd, &unix.SockaddrLinklayer{Protocol: everything, Ifindex: t.device})
	}
	if err != nil {
		unix.Close(t.fd)
	}
	return err
}

func (t *Tap) read() {
	defer close(t.done)
	buffer := make([]byte, 1<<16)
	for {
		n, from, err := unix.Recvfrom(t.fd, buffer, 0)
		select {
		case <-t.stop:
			return
		default:
		}
		if source, ok := from.(*unix.SockaddrLinklayer); err == nil && ok && source.Pkttype != unix.PACKET_OUTGOING {
			t.mu.Lock()
			t.frames = append(t.frames, bytes.Clone(buffer[:n]))
			t.mu.Unlock()
		}
	}
}

func (t *Tap) close() error {
	close(t.stop)
	<-t.done
	return unix.Close(t.fd)
}

// Frames returns what has been received since the last call, from the Ethernet
// header on.
func (t *Tap) Frames() [][]byte {
	t.mu.Lock()
	defer t.mu.Unlock()
	frames := t.frames
	t.frames = nil
	return frames
}

// Send sends a frame.
func (t *Tap) Send(frame []byte) error {
	return unix.Sendto(t.fd, frame, 0, &unix.SockaddrLinklayer{Ifindex: t.device})
}
