package oftest

import (
	"fmt"
	"strings"

	"brlb/openflow"
	"brlb/openflow/multipath"
)

// Trace is what became of a packet.
type Trace struct {
	// Lookups are the tables that were searched, in order.
	Lookups []Lookup
	// Deliveries are where copies of the packet went, in order: none if it was
	// dropped.
	Deliveries []Delivery
	// Final is the packet as the pipeline left it.
	Final *Packet
}

// Lookup is one search of a table.
type Lookup struct {
	Table uint8
	// Flow is what the packet matched, nil if nothing.
	Flow *openflow.FlowStats
}

// Delivery is one copy of the packet that left the tables.
type Delivery struct {
	// Port is a port of the switch, or openflow.PortNormal, PortFlood, PortAll,
	// PortLocal or PortController.
	Port openflow.PortNo
	// MaxLen is how much of the packet a controller gets.
	MaxLen uint16
	// Packet is the packet as it left.
	Packet *Packet
}

// Ports returns where the packet went.
func (t *Trace) Ports() []openflow.PortNo {
	var ports []openflow.PortNo
	for _, d := range t.Deliveries {
		ports = append(ports, d.Port)
	}
	return ports
}

// String lists the flows that the packet matched and where it went.
func (t *Trace) String() string {
	var b strings.Builder
	for _, l := range t.Lookups {
		if l.Flow == nil {
			fmt.Fprintf(&b, "table %d: no match\n", l.Table)
		} else {
			fmt.Fprintf(&b, "%v\n", l.Flow)
		}
	}
	for _, d := range t.Deliveries {
		fmt.Fprintf(&b, "-> %v: %v\n", d.Port, d.Packet)
	}
	if len(t.Deliveries) == 0 {
		b.WriteString("-> dropped\n")
	}
	return b.String()
}

// Trace says where a packet would go. Nothing is counted; the connection tracker
// is asked as if the packet were real. The error says what the switch cannot
// execute.
func (sw *Switch) Trace(p *Packet) (*Trace, error) {
	return sw.run(p, nil, false)
}

// Inject is Trace for a packet that is real: the flows that it matches count it
// and its octets.
func (sw *Switch) Inject(p *Packet, octets uint64) (*Trace, error) {
	t, err := sw.run(p, nil, false)
	if err != nil {
		return nil, err
	}
	sw.mu.Lock()
	defer sw.mu.Unlock()
	for _, l := range t.Lookups {
		if l.Flow == nil {
			continue
		}
		if f := sw.tables.find(l.Flow); f != nil {
			f.PacketCount++
			f.ByteCount += octets
		}
	}
	return t, nil
}

// Execute is Trace for a packet that a controller sends out with actions.
func (sw *Switch) Execute(p *Packet, actions ...openflow.Action) (*Trace, error) {
	return sw.run(p, actions, true)
}

func (sw *Switch) run(p *Packet, actions []openflow.Action, packetOut bool) (*Trace, error) {
	sw.mu.Lock()
	defer sw.mu.Unlock()
	r := &run{sw: sw, trace: &Trace{}}
	p = p.Clone()
	var err error
	if packetOut {
		err = r.actions(p, actions, 0)
	} else {
		err = r.table(p, 0)
	}
	if err != nil && err != errExit && err != errStop {
		return nil, fmt.Errorf("oftest: %w in\n%v", err, r.trace)
	}
	r.trace.Final = p
	return r.trace, nil
}

// Bounds of a run, as Open vSwitch has them.
const (
	maxDepth    = 64
	maxSearches = 4096
)

// run is one packet's way. Switch.mu is held.
type run struct {
	sw       *Switch
	trace    *Trace
	depth    int
	searches int
}

// table searches a table and does what the flow says. A miss drops the packet.
func (r *run) table(p *Packet, table uint8) error {
	return r.tableFrom(p, table, openflow.PortNo(p.Uint64(openflow.InPort)))
}

// tableFrom is table, but the first search takes the packet as one that came in
// by another port.
func (r *run) tableFrom(p *Packet, table uint8, in openflow.PortNo) error {
	if r.depth >= maxDepth || r.searches >= maxSearches {
		return fmt.Errorf("over %d nested or %d searches", maxDepth, maxSearches)
	}
	r.depth++
	r.searches++
	defer func() { r.depth-- }()
	looked := p.With(openflow.InPort.Exact(uint64(in)))
	for {
		f := r.sw.tables.lookup(table, looked)
		if f == nil {
			r.trace.Lookups = append(r.trace.Lookups, Lookup{Table: table})
			return nil
		}
		seen := *f
		r.trace.Lookups = append(r.trace.Lookups, Lookup{Table: table, Flow: &seen})
		next, err := r.instructions(p, f.Instructions, table)
		if err == errStop {
			return nil
		}
		if err != nil || next <= int(table) {
			return err
		}
		table, looked = uint8(next), p
	}
}

// instructions does what a flow says and returns the table to go on in, or -1.
func (r *run) instructions(p *Packet, list openflow.Instructions, table uint8) (next int, err error) {
	next = -1
	for _, i := range list {
		switch i := i.(type) {
		case openflow.ApplyActions:
			err = r.actions(p, i, table)
		case openflow.WriteMetadata:
			p.Set(openflow.Metadata.Masked(i.Metadata, i.Mask))
		case openflow.GotoTable:
			next = int(i)
		default:
			err = fmt.Errorf("cannot execute instruction %v", i)
		}
		if err != nil {
			return -1, err
		}
	}
	return next, nil
}

// output hands a copy of the packet to a port, if there is such a port and the
// packet did not come from there.
func (r *run) output(p *Packet, port openflow.PortNo, maxLen uint16) error {
	in := openflow.PortNo(p.Uint64(openflow.InPort))
	switch port {
	case openflow.PortTable:
		return r.table(p, 0)
	case openflow.PortInPort:
		port = in
	case openflow.PortNormal, openflow.PortFlood, openflow.PortAll, openflow.PortLocal, openflow.PortController:
	default:
		if port == in {
			return nil
		}
	}
	if _, ok := r.sw.ports[port]; !ok && port < openflow.PortMax {
		return nil
	}
	if port == openflow.PortAny {
		return nil
	}
	r.trace.Deliveries = append(r.trace.Deliveries, Delivery{Port: port, MaxLen: maxLen, Packet: p.Clone()})
	return nil
}

// multipath does the multipath action.
func (r *run) multipath(p *Packet, a openflow.Multipath) {
	build := r.sw.opts.Build
	hash := build.Hash(multipath.Fields(a.Fields), a.Basis, p.hashed())
	link := build.Link(multipath.Algorithm(a.Algorithm), hash, int(a.MaxLink)+1, a.Arg)
	p.write(a.Dst, bits128{lo: uint64(link)})
}
