package oftest

import (
	"fmt"
	"net/netip"

	"brlb/openflow"
)

// Bits of CTState.
const (
	CTNew         = 0x01
	CTEstablished = 0x02
	CTRelated     = 0x04
	CTReply       = 0x08
	CTInvalid     = 0x10
	CTTracked     = 0x20
	CTSrcNAT      = 0x40
	CTDstNAT      = 0x80
)

// Tracker is the connection tracker of a Switch.
type Tracker interface {
	// Track does a ct action: it sets the packet's CTState, CTZone, CTMark and
	// CTLabel, and translates its addresses where the action says so.
	Track(p *Packet, a openflow.CT, zone uint16) error
}

// SetTracker gives the switch a connection tracker. Without one it cannot execute
// ct.
func (sw *Switch) SetTracker(t Tracker) {
	sw.mu.Lock()
	defer sw.mu.Unlock()
	sw.tracker = t
}

// Connections is a simple Tracker. A connection is new until a packet has come
// the other way; there are no timeouts, no sequence numbers, no related packets.
// It is not safe for concurrent use with itself.
type Connections struct {
	// List holds the connections in the order in which they were committed.
	// Tests may change it.
	List []*Connection
}

// Connection is one connection that was committed.
type Connection struct {
	Zone uint16
	// Src and Dst are those of its first packet; ToSrc and ToDst what they are
	// translated to.
	Proto                  uint8
	Src, Dst, ToSrc, ToDst netip.AddrPort
	Mark                   uint32
	Label                  [2]uint64 // high and low half
	// Replied says that a packet has come the other way.
	Replied bool
}

// Track implements Tracker.
func (c *Connections) Track(p *Packet, a openflow.CT, zone uint16) error {
	conn, reply := c.find(p, zone)
	state := uint64(CTTracked)
	switch {
	case conn == nil:
		state |= CTNew
		conn = &Connection{Zone: zone, Proto: uint8(p.Uint64(openflow.IPProto)), Src: p.Source(), Dst: p.Destination()}
		conn.ToSrc, conn.ToDst = conn.Src, conn.Dst
	case reply:
		conn.Replied = true
		state |= CTEstablished | CTReply
	case conn.Replied:
		state |= CTEstablished
	default:
		state |= CTNew
	}
	nat, hasNAT := natOf(a)
	if a.Commit && c.isNew(conn) {
		if err := conn.translate(nat); err != nil {
			return err
		}
		c.List = append(c.List, conn)
	}
	if hasNAT {
		conn.apply(p, reply)
		if conn.Src != conn.ToSrc {
			state |= CTSrcNAT
		}
		if conn.Dst != conn.ToDst {
			state |= CTDstNAT
		}
	}
	p.Set(openflow.CTState.Exact(state))
	p.Set(openflow.CTZone.Exact(uint64(zone)))
	p.Set(openflow.CTMark.Exact(uint64(conn.Mark)))
	p.Set(openflow.CTLabel.Exact128(conn.Label[0], conn.Label[1]))
	if !a.Commit {
		return nil
	}
	for _, exec := range a.Exec {
		if _, ok := exec.(openflow.NAT); ok {
			continue
		}
		if err := p.Apply(exec); err != nil {
			return err
		}
	}
	conn.Mark = uint32(p.Uint64(openflow.CTMark))
	conn.Label[0], conn.Label[1] = p.OXM(openflow.CTLabel).Uint128()
	return nil
}

// find returns the connection of a packet and whether it goes the other way.
func (c *Connections) find(p *Packet, zone uint16) (conn *Connection, reply bool) {
	proto, src, dst := uint8(p.Uint64(openflow.IPProto)), p.Source(), p.Destination()
	for _, conn := range c.List {
		if conn.Zone != zone || conn.Proto != proto {
			continue
		}
		switch {
		case conn.Src == src && conn.Dst == dst:
			return conn, false
		case conn.ToDst == src && conn.ToSrc == dst:
			return conn, true
		}
	}
	return nil, false
}

func (c *Connections) isNew(conn *Connection) bool {
	for _, known := range c.List {
		if known == conn {
			return false
		}
	}
	return true
}

// natOf returns the NAT action within a ct action.
func natOf(a openflow.CT) (nat openflow.NAT, ok bool) {
	for _, exec := range a.Exec {
		if nat, ok := exec.(openflow.NAT); ok {
			return nat, true
		}
	}
	return openflow.NAT{}, false
}

// translate decides how a new connection is translated.
func (conn *Connection) translate(nat openflow.NAT) error {
	if nat.MaxAddr.IsValid() && nat.MaxAddr != nat.MinAddr || nat.MaxPort > nat.MinPort {
		return fmt.Errorf("cannot tell what a switch chooses from the range of %v", nat)
	}
	to := func(old netip.AddrPort) netip.AddrPort {
		addr, port := old.Addr(), old.Port()
		if nat.MinAddr.IsValid() {
			addr = nat.MinAddr
		}
		if nat.MinPort != 0 {
			port = nat.MinPort
		}
		return netip.AddrPortFrom(addr, port)
	}
	switch {
	case nat.Flags&openflow.NATDst != 0:
		conn.ToDst = to(conn.Dst)
	case nat.Flags&openflow.NATSrc != 0:
		conn.ToSrc = to(conn.Src)
	}
	return nil
}

// apply translates a packet of the connection.
func (conn *Connection) apply(p *Packet, reply bool) {
	src, dst := conn.ToSrc, conn.ToDst
	if reply {
		src, dst = conn.Dst, conn.Src
	}
	for _, end := range []struct {
		source bool
		to     netip.AddrPort
	}{{true, src}, {false, dst}} {
		addr, port := p.endpoint(end.source)
		p.Set(addr.Addr(end.to.Addr()))
		if port != openflow.FieldUnknown {
			p.Set(port.Exact(uint64(end.to.Port())))
		}
	}
}
