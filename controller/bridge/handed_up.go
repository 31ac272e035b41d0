package bridge

import (
	"context"
	"net/netip"
	"time"

	"brlb/controller/packet"
	"brlb/controller/pipeline"
	"brlb/controller/state"
	"brlb/openflow"
)

// packetIn handles a packet that one of brlb's flows sent up: an answer to a
// question, or a packet of a connection whose tuple conntrack still ties to
// another one.
func (v *serving) packetIn(ctx context.Context, m *openflow.PacketIn) error {
	if !pipeline.IsOwn(m.Cookie) {
		return nil
	}
	switch m.Table {
	case pipeline.TableClassify:
		n, err := packet.ReadNeighbour(m.Data)
		if err != nil || !v.neighbours.Wanted(n.Addr) {
			return nil
		}
		v.neighbours.Learned(n.Addr, time.Now())
		v.bridge.opts.Emit(NextHopFound{Addr: n.Addr, Hop: state.NextHop{MAC: n.MAC, Port: uint32(m.InPort()), Source: source(n.Addr)}})
	case pipeline.TableVIP:
		if !v.wants.Lead {
			return nil // the brlb that leads is told too
		}
		messages, err := putBack(m, v.wants.Zone)
		if err != nil {
			v.bridge.opts.Logger.Debug("packet not put back", "bridge", v.bridge.opts.Bridge, "err", err)
			return nil
		}
		v.bridge.mu.Lock()
		v.bridge.resent++
		v.bridge.mu.Unlock()
		return v.session.Send(ctx, messages...)
	}
	return nil
}

// source says how an address was found.
func source(addr netip.Addr) string {
	if addr.Is4() {
		return "arp"
	}
	return "nd"
}

// putBack flushes the conntrack entry that stands in the way of a packet, and
// sends the packet through the tables again.
func putBack(m *openflow.PacketIn, zone uint16) ([]openflow.Message, error) {
	ends, err := packet.ReadTuple(m.Data)
	if err != nil {
		return nil, err
	}
	frame := m.Data
	if orig, ok := originalTuple(m.Match, ends.Proto); ok && orig.Dst != ends.Dst {
		// The entry has translated the packet already: undo that.
		if frame, err = packet.SetDestination(frame, orig.Dst); err != nil {
			return nil, err
		}
		ends = orig
	}
	flush := &openflow.CTFlush{
		Proto: ends.Proto, HasZone: true, Zone: zone,
		Orig: openflow.CTTuple{
			Src: ends.Src.Addr(), SrcPort: ends.Src.Port(),
			Dst: ends.Dst.Addr(), DstPort: ends.Dst.Port(),
		},
	}
	again := &openflow.PacketOut{
		BufferID: openflow.NoBuffer, InPort: m.InPort(),
		Actions: pipeline.Resend(), Data: frame,
	}
	return []openflow.Message{flush, again}, nil
}

// originalTuple reads the tuple of the connection's first packet, which the
// switch tells of packets whose entry it has found. What it says of another
// protocol is that of a connection to which an ICMP error is related.
func originalTuple(m openflow.Match, proto uint8) (packet.Tuple, bool) {
	said, ok := m.Get(openflow.CTNwProto)
	if !ok || uint8(said.Uint64()) != proto {
		return packet.Tuple{}, false
	}
	t := packet.Tuple{Proto: proto}
	for _, family := range []struct{ src, dst openflow.Field }{
		{openflow.CTNwSrc, openflow.CTNwDst}, {openflow.CTIPv6Src, openflow.CTIPv6Dst},
	} {
		src, hasSrc := m.Get(family.src)
		dst, hasDst := m.Get(family.dst)
		if hasSrc && hasDst && !dst.IP().IsUnspecified() {
			t.Src, t.Dst = netip.AddrPortFrom(src.IP(), port16(m, openflow.CTTpSrc)), netip.AddrPortFrom(dst.IP(), port16(m, openflow.CTTpDst))
			return t, true
		}
	}
	return packet.Tuple{}, false
}

func port16(m openflow.Match, field openflow.Field) uint16 {
	value, _ := m.Get(field)
	return uint16(value.Uint64())
}
