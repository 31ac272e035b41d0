package oftest

import (
	"context"
	"net"
	"slices"
	"sync"

	"brlb/openflow"
	"brlb/openflow/multipath"
)

// SwitchOptions say what kind of switch [NewSwitch] makes. The zero value is an
// Open vSwitch 3.1 that takes its peer for a primary controller.
type SwitchOptions struct {
	// Software is the version in the description; empty means "3.1.0".
	Software string
	// Service makes connections what those to a bridge's .mgmt socket are: no
	// asynchronous messages before SET_CONFIG with a miss_send_len.
	Service bool
	// NoMeters makes it one whose datapath has no meters.
	NoMeters bool
	// Ports are there from the beginning.
	Ports []openflow.Port
	// Build says which hash the multipath action uses.
	Build multipath.Build
}

// Switch is an in-memory switch. It does with flow-mods, bundles and requests
// what Open vSwitch 3.1 does as far as brlb depends on it, keeps flows and their
// counters, counts what it is sent, and can be told to misbehave. Its methods
// may be called at any time, from any goroutine.
type Switch struct {
	opts    SwitchOptions
	serving sync.WaitGroup

	mu         sync.Mutex
	thawed     sync.Cond // on mu: frozen or closed changed
	frozen     bool
	closed     bool
	conns      []*switchConn
	tables     *tables
	tracker    Tracker
	ports      map[openflow.PortNo]openflow.Port
	generation uint64
	generated  bool // generation has been set by a controller
	packetOuts []*openflow.PacketOut
	received   map[openflow.Type]int
	flowMods   int // bundled ones too
	refuseAdd  Refusal
	refuseEnd  Refusal
	cut        cut
}

// Refusal decides about a message: the error with which the switch refuses it,
// or 0.
type Refusal func(m openflow.Message) openflow.ErrorCode

// cut is what is to happen to the next commit.
type cut uint8

const (
	noCut cut = iota
	cutBeforeCommit
	cutAfterCommit
)

// NewSwitch makes a switch. Its owner closes it.
func NewSwitch(opts SwitchOptions) *Switch {
	if opts.Software == "" {
		opts.Software = "3.1.0"
	}
	sw := &Switch{
		opts:     opts,
		tables:   newTables(),
		ports:    map[openflow.PortNo]openflow.Port{},
		received: map[openflow.Type]int{},
	}
	sw.thawed.L = &sw.mu
	for _, p := range opts.Ports {
		sw.ports[p.No] = p
	}
	return sw
}

// NewPort returns a port that is up, live and has a MAC made of its number.
func NewPort(no openflow.PortNo, name string) openflow.Port {
	return openflow.Port{
		No: no, Name: name, State: openflow.PortLive,
		HWAddr: openflow.MAC{0x02, 0, 0, byte(no >> 16), byte(no >> 8), byte(no)},
	}
}

// Dial returns the controller's end of a new connection to the switch. Its
// signature suits whoever dials real switches.
func (sw *Switch) Dial(context.Context) (net.Conn, error) {
	near, far := net.Pipe()
	sw.Go(far)
	return near, nil
}

// Go serves a connection in the background, until it ends or the switch is
// closed.
func (sw *Switch) Go(conn net.Conn) {
	c := newSwitchConn(sw, conn)
	sw.mu.Lock()
	defer sw.mu.Unlock()
	if sw.closed {
		conn.Close()
		return
	}
	sw.conns = append(sw.conns, c)
	sw.serving.Add(2)
	go c.readLoop()
	go c.writeLoop()
}

// Close cuts all connections and returns when the switch's goroutines have
// ended.
func (sw *Switch) Close() {
	sw.mu.Lock()
	sw.closed = true
	sw.cutLocked()
	sw.mu.Unlock()
	sw.thawed.Broadcast()
	sw.serving.Wait()
}

// Restart does what a restart of ovs-vswitchd does: the connections break, the
// flows and the generation id are gone, the ports come back.
func (sw *Switch) Restart() {
	sw.mu.Lock()
	defer sw.mu.Unlock()
	sw.cutLocked()
	sw.tables = newTables()
	sw.generation, sw.generated = 0, false
}

// Disconnect cuts all connections; the flows stay.
func (sw *Switch) Disconnect() {
	sw.mu.Lock()
	defer sw.mu.Unlock()
	sw.cutLocked()
}

func (sw *Switch) cutLocked() {
	for _, c := range sw.conns {
		c.conn.Close()
	}
}

// Freeze stops the switch like SIGSTOP: nothing is read or answered until Thaw.
func (sw *Switch) Freeze() {
	sw.mu.Lock()
	defer sw.mu.Unlock()
	sw.frozen = true
}

// Thaw lets a frozen switch go on.
func (sw *Switch) Thaw() {
	sw.mu.Lock()
	sw.frozen = false
	sw.mu.Unlock()
	sw.thawed.Broadcast()
}

// waitThawLocked waits while the switch is frozen.
func (sw *Switch) waitThawLocked() {
	for sw.frozen && !sw.closed {
		sw.thawed.Wait()
	}
}

// RefuseAdd has the switch refuse messages when they come, alone or in a bundle.
// In a bundle, the rest can still be committed. nil ends it.
func (sw *Switch) RefuseAdd(r Refusal) {
	sw.mu.Lock()
	defer sw.mu.Unlock()
	sw.refuseAdd = r
}

// RefuseCommit has the switch refuse messages of a bundle when it is committed,
// and with them the bundle. nil ends it.
func (sw *Switch) RefuseCommit(r Refusal) {
	sw.mu.Lock()
	defer sw.mu.Unlock()
	sw.refuseEnd = r
}

// LoseCommit has the switch cut the connection when the next bundle is to be
// committed, before or after it is, and say nothing.
func (sw *Switch) LoseCommit(applied bool) {
	sw.mu.Lock()
	defer sw.mu.Unlock()
	sw.cut = cutBeforeCommit
	if applied {
		sw.cut = cutAfterCommit
	}
}

// Apply changes flows as another controller would: all messages or none. The
// error is an openflow.ErrorCode.
func (sw *Switch) Apply(messages ...openflow.Message) error {
	sw.mu.Lock()
	defer sw.mu.Unlock()
	for _, m := range messages {
		if code := checkMessage(m); code != 0 {
			return code
		}
	}
	tables := sw.tables.clone()
	changes, _, code := tables.applyAll(messages, nil)
	if code != 0 {
		return code
	}
	sw.tables = tables
	sw.tellLocked(nil, 0, changes)
	return nil
}

// Flows returns all flows, sorted by table, then descending priority, then
// match.
func (sw *Switch) Flows() []openflow.FlowStats {
	sw.mu.Lock()
	defer sw.mu.Unlock()
	return sw.tables.stats(openflow.AllFlows())
}

// Count adds packets and octets to the counters of the flows that selector
// selects.
func (sw *Switch) Count(selector openflow.FlowSelector, packets, octets uint64) {
	sw.mu.Lock()
	defer sw.mu.Unlock()
	for _, f := range sw.tables.selected(selector) {
		f.PacketCount += packets
		f.ByteCount += octets
	}
}

// SetPort adds a port or changes it, and tells.
func (sw *Switch) SetPort(p openflow.Port) {
	sw.mu.Lock()
	defer sw.mu.Unlock()
	reason := openflow.PortAdded
	if _, ok := sw.ports[p.No]; ok {
		reason = openflow.PortModified
	}
	sw.ports[p.No] = p
	sw.asyncLocked(&openflow.PortStatus{Reason: reason, Port: p})
}

// RemovePort removes a port, and tells.
func (sw *Switch) RemovePort(no openflow.PortNo) {
	sw.mu.Lock()
	defer sw.mu.Unlock()
	p, ok := sw.ports[no]
	if !ok {
		return
	}
	delete(sw.ports, no)
	sw.asyncLocked(&openflow.PortStatus{Reason: openflow.PortDeleted, Port: p})
}

// Async sends an asynchronous message, such as a PacketIn, to every controller
// that gets those.
func (sw *Switch) Async(m openflow.Message) {
	sw.mu.Lock()
	defer sw.mu.Unlock()
	sw.asyncLocked(m)
}

func (sw *Switch) asyncLocked(m openflow.Message) {
	for _, c := range sw.conns {
		if c.async {
			c.send(0, m)
		}
	}
}

// PacketOuts returns the packet-outs since the last call, those in committed
// bundles too.
func (sw *Switch) PacketOuts() []*openflow.PacketOut {
	sw.mu.Lock()
	defer sw.mu.Unlock()
	out := sw.packetOuts
	sw.packetOuts = nil
	return out
}

// Received returns how many messages of a type have come. Those in bundles count
// as BUNDLE_ADD.
func (sw *Switch) Received(t openflow.Type) int {
	sw.mu.Lock()
	defer sw.mu.Unlock()
	return sw.received[t]
}

// FlowMods returns how many flow-mods have come, those in bundles included.
func (sw *Switch) FlowMods() int {
	sw.mu.Lock()
	defer sw.mu.Unlock()
	return sw.flowMods
}

// sortedPortsLocked returns the ports in the order of their numbers.
func (sw *Switch) sortedPortsLocked() []openflow.Port {
	ports := make([]openflow.Port, 0, len(sw.ports))
	for _, p := range sw.ports {
		ports = append(ports, p)
	}
	slices.SortFunc(ports, func(a, b openflow.Port) int { return int(int64(a.No) - int64(b.No)) })
	return ports
}

func hello() *openflow.Hello {
	return &openflow.Hello{Versions: openflow.HelloVersionBitmap(openflow.Version)}
}

func defaultFeatures() *openflow.FeaturesReply {
	return &openflow.FeaturesReply{DatapathID: 0xaa55aa550000, Tables: 254, Capabilities: 0x24f}
}

func defaultDesc(software string) openflow.Desc {
	return openflow.Desc{Manufacturer: "Nicira, Inc.", Hardware: "Open vSwitch", Software: software, SerialNumber: "None", Datapath: "None"}
}
