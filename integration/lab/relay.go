package lab

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"strings"
	"sync"
)

// OpenFlow 1.4 message types that the relay knows by name; the counts have
// all of them.
const (
	TypeFlowMod          = 14
	typePacketIn         = 10
	TypeBundleControl    = 33
	TypeBundleAddMessage = 34
)

// Sizes and offsets in OpenFlow 1.4 messages.
const (
	headerSize    = 8  // version, type, length (2), xid (4)
	packetInTotal = 12 // PACKET_IN has the packet's own length there
	// A bundle message's inner message follows the header, bundle id (4),
	// padding (2) and flags (2).
	innerOffset = headerSize + 8
	// BUNDLE_CONTROL has bundle id (4), type (2) and flags (2) there.
	bundleControlType = headerSize + 4
	bundleCommitReply = 5
	// FLOW_MOD's flags, from the start of the message.
	flowModFlags = 44
)

// Direction is the way a message goes.
type Direction string

// The two directions.
const (
	ToSwitch     Direction = "to switch"
	ToController Direction = "to controller"
)

// Relay stands between the switch and its controller and copies OpenFlow
// messages both ways, unchanged unless told otherwise. It reads no more of a
// message than it must.
type Relay struct {
	ns       *Namespace
	listener net.Listener
	dial     string
	pairs    sync.WaitGroup

	mu          sync.Mutex
	unstalled   sync.Cond // signalled when stalled or closed changes
	stalled     bool
	closed      bool
	conns       map[net.Conn]struct{}
	counts      map[Direction]map[uint8]int
	inBundles   map[uint8]int
	dropCommits int
	corruptIn   int // BUNDLE_ADD messages until the one to corrupt; 0 = none
	echoes      *echoes
	controller  *outlet // of the session that began last; nil: there is none
}

// NewRelay listens on one address for the switch and connects to the other,
// the controller's, for each connection of the switch. Addresses are
// "unix:PATH" or "tcp:IP:PORT", as in Open vSwitch, in the switch namespace.
// Open vSwitch accepts a unix path only below its run directory, [Lab.Dir].
// Close of the lab closes the relay.
func (l *Lab) NewRelay(listen, controller string) (*Relay, error) {
	network, addr, err := splitEndpoint(listen)
	if err != nil {
		return nil, err
	}
	if _, _, err := splitEndpoint(controller); err != nil {
		return nil, err
	}
	listener, err := l.Switch.Listen(network, addr)
	if err != nil {
		return nil, fmt.Errorf("lab: relay: %w", err)
	}
	r := &Relay{
		ns:        l.Switch,
		listener:  listener,
		dial:      controller,
		conns:     make(map[net.Conn]struct{}),
		counts:    map[Direction]map[uint8]int{ToSwitch: {}, ToController: {}},
		inBundles: make(map[uint8]int),
	}
	r.unstalled.L = &r.mu
	r.pairs.Go(r.accept)
	l.atClose(r.Close)
	return r, nil
}

// splitEndpoint splits "unix:PATH" or "tcp:IP:PORT" into what package net
// takes.
func splitEndpoint(endpoint string) (network, addr string, err error) {
	network, addr, found := strings.Cut(endpoint, ":")
	if !found || network != "unix" && network != "tcp" {
		return "", "", fmt.Errorf("lab: relay: address %q is neither unix:PATH nor tcp:IP:PORT", endpoint)
	}
	return network, addr, nil
}

// Close cuts all connections and stops listening. A second call does nothing.
func (r *Relay) Close() error {
	r.mu.Lock()
	if r.closed {
		r.mu.Unlock()
		return nil
	}
	r.closed = true
	r.unstalled.Broadcast()
	r.mu.Unlock()
	err := r.listener.Close()
	r.Cut()
	r.pairs.Wait()
	return err
}

// Cut closes the connections there are; the switch may connect again.
func (r *Relay) Cut() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for conn := range r.conns {
		conn.Close()
	}
}

// Stall stops the copying in both directions, with all connections open,
// until Unstall.
func (r *Relay) Stall() { r.setStalled(true) }

// Unstall lets the copying go on.
func (r *Relay) Unstall() { r.setStalled(false) }

func (r *Relay) setStalled(stalled bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.stalled = stalled
	r.unstalled.Broadcast()
}

// DropNextCommitReply keeps the switch's next reply to a bundle commit from
// the controller, which then cannot know whether the bundle was applied.
func (r *Relay) DropNextCommitReply() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.dropCommits++
}

// CorruptBundleAdd sets an undefined flag in the n-th flow mod, counted from
// 1 and from now, that the controller adds to a bundle: the switch refuses it
// with OFPFMFC_BAD_FLAGS. It happens once.
func (r *Relay) CorruptBundleAdd(n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.corruptIn = n
}

// Counts tells how many messages of each OpenFlow type went in a direction.
// Messages inside bundles count as BUNDLE_ADD_MESSAGE alone.
func (r *Relay) Counts(d Direction) map[uint8]int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return maps.Clone(r.counts[d])
}

// FlowMods tells how many flow mods went to the switch, on their own and
// inside bundles.
func (r *Relay) FlowMods() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.counts[ToSwitch][TypeFlowMod] + r.inBundles[TypeFlowMod]
}

// ResetCounts sets all counts to 0.
func (r *Relay) ResetCounts() {
	r.mu.Lock()
	defer r.mu.Unlock()
	clear(r.counts[ToSwitch])
	clear(r.counts[ToController])
	clear(r.inBundles)
}

// accept serves the switch's connections until the listener is closed.
func (r *Relay) accept() {
	for {
		fromSwitch, err := r.listener.Accept()
		if err != nil {
			return
		}
		r.pairs.Go(func() { r.serve(fromSwitch) })
	}
}

// serve connects one connection of the switch to the controller, until either
// side closes. Without a controller the switch is hung up on, and tries again.
func (r *Relay) serve(fromSwitch net.Conn) {
	defer fromSwitch.Close()
	network, addr, err := splitEndpoint(r.dial)
	if err != nil {
		return
	}
	toController, err := r.ns.DialContext(context.Background(), network, addr)
	if err != nil {
		return
	}
	defer toController.Close()
	if !r.add(fromSwitch, toController) {
		return
	}
	defer r.remove(fromSwitch, toController)
	var pair sync.WaitGroup
	pair.Go(func() { r.copy(fromSwitch, toController, ToSwitch) })
	r.copy(toController, fromSwitch, ToController)
	pair.Wait()
}

// add remembers connections for Cut; it refuses once the relay is closed.
func (r *Relay) add(conns ...net.Conn) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, conn := range conns {
		r.conns[conn] = struct{}{}
	}
	return !r.closed
}

func (r *Relay) remove(conns ...net.Conn) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, conn := range conns {
		delete(r.conns, conn)
	}
}

// copy moves messages one way until either end closes, then closes both.
func (r *Relay) copy(to, from net.Conn, d Direction) {
	defer to.Close()
	defer from.Close()
	// Messages read together are written together: a bundle of a thousand
	// flow mods is a few large writes, as it was before the relay.
	reader := bufio.NewReaderSize(from, 64<<10)
	out := newOutlet(to)
	if d == ToController {
		defer r.setController(nil)
	}
	var message []byte
	for {
		var err error
		if message, err = readMessage(reader, message); err != nil {
			return
		}
		last := reader.Buffered() == 0
		if r.pass(message, d) {
			err = out.put(message, last)
		} else if last {
			err = out.flush()
		}
		if err != nil {
			return
		}
		if d == ToController && message[1] == typeHello {
			r.setController(out)
		}
	}
}

func (r *Relay) setController(out *outlet) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.controller = out
}

// readMessage reads one message, reusing buffer.
func readMessage(reader io.Reader, buffer []byte) ([]byte, error) {
	var header [packetInTotal + 2]byte
	if _, err := io.ReadFull(reader, header[:headerSize]); err != nil {
		return nil, err
	}
	length := int(binary.BigEndian.Uint16(header[2:4]))
	read := header[:headerSize]
	if header[1] == typePacketIn {
		read = header[:]
		if _, err := io.ReadFull(reader, header[headerSize:]); err != nil {
			return nil, err
		}
		// Open vSwitch sends packets whole that are too long for the length to say.
		if length < 2048 && binary.BigEndian.Uint16(header[packetInTotal:]) > 64000 {
			length += 1 << 16
		}
	}
	if length < len(read) {
		return nil, errors.New("lab: relay: message shorter than its header")
	}
	if cap(buffer) < length {
		buffer = make([]byte, length)
	}
	buffer = buffer[:length]
	copy(buffer, read)
	_, err := io.ReadFull(reader, buffer[len(read):])
	return buffer, err
}

// pass waits while the relay is stalled, counts the message, corrupts it if
// its turn has come, and tells whether it goes on.
func (r *Relay) pass(message []byte, d Direction) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for r.stalled && !r.closed {
		r.unstalled.Wait()
	}
	kind := message[1]
	if d == ToSwitch && r.echoes != nil && r.echoes.answered(message) {
		return false
	}
	r.counts[d][kind]++
	switch {
	case d == ToSwitch && kind == TypeBundleAddMessage && len(message) >= innerOffset+headerSize:
		inner := message[innerOffset:]
		r.inBundles[inner[1]]++
		if r.corruptIn > 0 && inner[1] == TypeFlowMod && len(inner) >= flowModFlags+2 {
			if r.corruptIn--; r.corruptIn == 0 {
				inner[flowModFlags] |= 0x80
			}
		}
	case d == ToController && kind == TypeBundleControl && len(message) >= bundleControlType+2:
		reply := binary.BigEndian.Uint16(message[bundleControlType:])
		if reply == bundleCommitReply && r.dropCommits > 0 {
			r.dropCommits--
			return false
		}
	}
	return true
}
