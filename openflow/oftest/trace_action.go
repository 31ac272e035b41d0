package oftest

import (
	"errors"
	"fmt"

	"brlb/openflow"
)

// errExit ends a packet's way, errStop only what the flow at hand does with it.
var (
	errExit = errors.New("exit")
	errStop = errors.New("stop")
)

// actions does actions of a flow of a table, in order.
func (r *run) actions(p *Packet, list []openflow.Action, table uint8) error {
	for _, a := range list {
		if err := r.action(p, a, table); err != nil {
			return err
		}
	}
	return nil
}

func (r *run) action(p *Packet, a openflow.Action, table uint8) error {
	switch a := a.(type) {
	case openflow.Output:
		return r.output(p, a.Port, a.MaxLen)
	case openflow.OutputReg:
		return r.output(p, openflow.PortNo(port32(p.read(a.Src).lo)), a.MaxLen)
	case openflow.Controller:
		return r.output(p, openflow.PortController, a.MaxLen)
	case openflow.Controller2:
		return r.output(p, openflow.PortController, a.MaxLen)
	case openflow.Group:
		return r.group(p, uint32(a), table)
	case openflow.Resubmit:
		return r.resubmit(p, a, table)
	case openflow.Multipath:
		r.multipath(p, a)
		return nil
	case openflow.CT:
		return r.conntrack(p, a)
	case openflow.DecNwTTL:
		return decTTL(p)
	case openflow.Clone:
		return r.apart(p, a, table)
	case openflow.Exit:
		return errExit
	}
	return p.Apply(a)
}

// apart does actions to a copy of the packet. What ends the copy's way does not
// end the packet's.
func (r *run) apart(p *Packet, list []openflow.Action, table uint8) error {
	if err := r.actions(p.Clone(), list, table); err != errExit && err != errStop {
		return err
	}
	return nil
}

// resubmit searches a table with the packet as if it had come from a port.
func (r *run) resubmit(p *Packet, a openflow.Resubmit, table uint8) error {
	if a.Table != openflow.TableAll {
		table = a.Table
	}
	if a.CT {
		return fmt.Errorf("cannot execute %v", a)
	}
	if a.Port != openflow.PortInPort {
		return r.tableFrom(p, table, a.Port)
	}
	return r.table(p, table)
}

// decTTL decrements the TTL. The flow does nothing more with a packet whose TTL
// runs out.
func decTTL(p *Packet) error {
	ttl := p.Uint64(openflow.IPTTL)
	if ttl <= 1 {
		return errStop
	}
	p.Set(openflow.IPTTL.Exact(ttl - 1))
	return nil
}

// conntrack sends the packet through the connection tracker. With a table, a
// copy that knows its connection goes on there; what follows in the flow is for
// the packet itself, of which only addresses and ports may have changed.
func (r *run) conntrack(p *Packet, a openflow.CT) error {
	if r.sw.tracker == nil {
		return errors.New("ct without SetTracker")
	}
	zone := a.Zone
	if a.ZoneSrc != (openflow.Subfield{}) {
		zone = uint16(p.read(a.ZoneSrc).lo)
	}
	tracked := p.Clone()
	if err := r.sw.tracker.Track(tracked, a, zone); err != nil {
		return err
	}
	for _, source := range []bool{true, false} {
		addr, port := p.endpoint(source)
		p.put(addr, tracked.get(addr))
		p.put(port, tracked.get(port))
	}
	if a.Table == openflow.CTNoTable {
		return nil
	}
	if err := r.table(tracked, a.Table); err != errExit {
		return err
	}
	return nil
}

// Apply does actions that change nothing but the packet.
func (p *Packet) Apply(actions ...openflow.Action) error {
	for _, a := range actions {
		switch a := a.(type) {
		case openflow.SetField:
			p.Set(a.OXM)
		case openflow.RegLoad2:
			p.Set(a.OXM)
		case openflow.RegLoad:
			p.write(a.Dst, bits128{lo: a.Value})
		case openflow.RegMove:
			p.write(a.Dst, p.read(a.Src))
		case openflow.StackPush:
			p.stack = append(p.stack, p.read(a.Src))
		case openflow.StackPop:
			if n := len(p.stack); n > 0 {
				p.write(a.Dst, p.stack[n-1])
				p.stack = p.stack[:n-1]
			}
		case openflow.PushVLAN:
			p.pushVLAN()
		case openflow.PopVLAN:
			p.popVLAN()
		case openflow.SetNwTTL:
			p.Set(openflow.IPTTL.Exact(uint64(a)))
		case openflow.SetTunnel:
			p.Set(openflow.TunnelID.Exact(uint64(a)))
		case openflow.SetTunnel64:
			p.Set(openflow.TunnelID.Exact(uint64(a)))
		case openflow.CTClear:
			for _, f := range []openflow.Field{openflow.CTState, openflow.CTZone, openflow.CTMark, openflow.CTLabel} {
				p.put(f, bits128{})
			}
		case openflow.Note:
		default:
			return fmt.Errorf("cannot execute %v", a)
		}
	}
	return nil
}
