package bridge

import (
	"context"
	"fmt"
	"net/netip"
	"time"

	"brlb/controller/packet"
	"brlb/controller/pipeline"
	"brlb/controller/state"
	"brlb/openflow"
)

// packetIn handles a packet that one of brlb's flows sent up: an answer to a
// question; a packet of a connection whose tuple conntrack still ties to another
// one; an ICMP error; or one that brlb answers itself. All brlbs are told, and the one that
// leads acts.
func (v *serving) packetIn(ctx context.Context, m *openflow.PacketIn) error {
	if !pipeline.IsOwn(m.Cookie) {
		return nil
	}
	if m.Table == pipeline.TableClassify {
		v.learn(m)
		return nil
	}
	if !v.wants.Lead {
		return nil
	}
	var messages []openflow.Message
	var err error
	switch m.Table {
	case pipeline.TableVIP, pipeline.TableReuse, pipeline.TableHairpin:
		if replies, echo := packet.Echo(m.Data, v.wants.MAC); echo == nil {
			messages = backTo(m, replies...)
			v.bridge.count(&v.bridge.answered)
			break
		}
		if quoted, quotes := packet.Quoted(m.Data); quotes == nil {
			if messages = sendOn(m, quoted, v.bridge.picture.Load()); len(messages) > 0 {
				v.bridge.count(&v.bridge.resent)
			}
			break
		}
		if messages, err = putBack(m, pipeline.ZoneIn(m.Match, v.wants.Zone)); err == nil {
			v.bridge.count(&v.bridge.resent)
		}
	case pipeline.TableOwn, pipeline.TableRest, pipeline.TableSlots, pipeline.TableMember, pipeline.TableToMember:
		if messages, err = answer(m, &v.wants); err == nil {
			v.bridge.count(&v.bridge.answered)
		}
	case pipeline.TableToClient:
		if messages, err = expiredAnswer(m, &v.wants, v.bridge.picture.Load()); err == nil {
			v.bridge.count(&v.bridge.answered)
		}
	}
	if err != nil {
		v.bridge.opts.Logger.Debug("nothing done about a packet", "table", m.Table, "err", err)
		return nil
	}
	return v.session.Send(ctx, messages...)
}

// learn takes the answer to a question for a next hop.
func (v *serving) learn(m *openflow.PacketIn) {
	n, err := packet.ReadNeighbour(m.Data)
	if err != nil || !v.neighbours.Wanted(n.Addr) {
		return
	}
	v.neighbours.Learned(n.Addr, time.Now())
	v.bridge.opts.Emit(NextHopFound{Addr: n.Addr, Hop: state.NextHop{MAC: n.MAC, Port: uint32(m.InPort()), VLAN: n.VLAN, Source: source(n.Addr)}})
}

// answer answers what the switch cannot: a neighbour solicitation without the
// asker's MAC, a packet that nobody serves, one whose time to live has run out, one
// that is too long, and one of an SCTP association that must end. All but the last
// answer leave by the port where the packet came in.
func answer(m *openflow.PacketIn, w *Wants) ([]openflow.Message, error) {
	var frame []byte
	var err error
	switch m.Table {
	case pipeline.TableOwn:
		frame, err = packet.Advertise(m.Data, w.MAC, w.routes)
	case pipeline.TableMember, pipeline.TableToMember:
		if pipeline.Aborts(m.Match) {
			return end(m, w)
		}
		if room, yes := pipeline.TooBig(m.Match); yes {
			frame, err = tooBig(m, w, room)
			break
		}
		frame, err = expired(m, w)
	default:
		frame, err = packet.Reject(m.Data, w.MAC)
	}
	if err != nil {
		return nil, err
	}
	return backTo(m, frame), nil
}

// backTo sends frames out where another one came in.
func backTo(m *openflow.PacketIn, frames ...[]byte) []openflow.Message {
	var messages []openflow.Message
	for _, frame := range frames {
		messages = append(messages, &openflow.PacketOut{
			BufferID: openflow.NoBuffer, InPort: openflow.PortController,
			Actions: []openflow.Action{openflow.Output{Port: m.InPort()}}, Data: frame,
		})
	}
	return messages
}

// expired says that the time to live of a packet has run out.
func expired(m *openflow.PacketIn, w *Wants) ([]byte, error) {
	frame, ends, err := asSent(m)
	if err != nil {
		return nil, err
	}
	return packet.Expired(packet.Tag(frame, pipeline.StrippedTag(m.Match)), w.MAC, w.speaker(ends.Dst.Addr()))
}

// expiredAnswer says so of what a member has answered, which is translated already.
func expiredAnswer(m *openflow.PacketIn, w *Wants, s *state.Snapshot) ([]openflow.Message, error) {
	ends, err := packet.ReadTuple(m.Data)
	if err != nil {
		return nil, err
	}
	var from netip.AddrPort
	known := s != nil
	if known {
		from, known = pipeline.Answerer(s, m.Match, pipeline.Tuple(ends))
	}
	if !known {
		return nil, fmt.Errorf("answer from %s to %s: its member is not known", ends.Src, ends.Dst)
	}
	frame, err := packet.SetSource(m.Data, from)
	if err != nil {
		return nil, err
	}
	if frame, err = packet.Expired(frame, w.MAC, w.speaker(ends.Src.Addr())); err != nil {
		return nil, err
	}
	return backTo(m, frame), nil
}

// end ends an SCTP association in the place of its member.
func end(m *openflow.PacketIn, w *Wants) ([]openflow.Message, error) {
	frame, err := packet.Reject(m.Data, w.MAC)
	if err != nil {
		return nil, err
	}
	return []openflow.Message{through(m, pipeline.AsAnswer(pipeline.ZoneIn(m.Match, w.Zone)), frame)}, nil
}

// tooBig says how long a packet may be on its way to a member.
func tooBig(m *openflow.PacketIn, w *Wants, room uint16) ([]byte, error) {
	vip, err := packet.Destination(m.Data)
	if err != nil {
		return nil, err
	}
	return packet.TooBig(packet.Tag(m.Data, pipeline.StrippedTag(m.Match)), w.MAC, w.speaker(vip), room)
}

// speaker is the address from which a packet's sender is told what a router would
// tell: that of a gateway of the packet's family, or else the VIP.
func (w *Wants) speaker(vip netip.Addr) netip.Addr {
	for _, gateway := range w.Gateways {
		if gateway.Addr().Is6() == vip.Is6() {
			return gateway.Addr()
		}
	}
	return vip
}

// sendOn sends an ICMP error about what a member of a stateless pool has sent a
// client to that member, which the client's way to it tells.
func sendOn(m *openflow.PacketIn, quoted packet.Tuple, s *state.Snapshot) []openflow.Message {
	if s == nil {
		return nil
	}
	var messages []openflow.Message
	for _, number := range pipeline.Holders(s, pipeline.Tuple{Proto: quoted.Proto, Src: quoted.Dst, Dst: quoted.Src}) {
		messages = append(messages, through(m, pipeline.ToMember(number), m.Data))
	}
	return messages
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
	if opening, err := packet.Opening(m.Data); err == nil {
		return putBackFragment(m, opening), nil
	}
	frame, ends, err := asSent(m)
	if err != nil {
		return nil, err
	}
	if ends.Src.Port() == 0 || ends.Dst.Port() == 0 {
		return nil, fmt.Errorf("packet from %s to %s of IP protocol %d: without ports its entry cannot be told from others", ends.Src, ends.Dst, ends.Proto)
	}
	flush := &openflow.CTFlush{
		Proto: ends.Proto, HasZone: true, Zone: zone,
		Orig: openflow.CTTuple{
			Src: ends.Src.Addr(), SrcPort: ends.Src.Port(),
			Dst: ends.Dst.Addr(), DstPort: ends.Dst.Port(),
		},
	}
	return []openflow.Message{flush, through(m, pipeline.Resend(), frame)}, nil
}

// putBackFragment opens the flow of a fragment, if it is the first one, and sends
// it through the tables again. The switch hands up the first one first.
func putBackFragment(m *openflow.PacketIn, opening []byte) []openflow.Message {
	again := through(m, pipeline.Resend(), m.Data)
	if opening == nil {
		return []openflow.Message{again}
	}
	return []openflow.Message{through(m, pipeline.Open(), opening), again}
}

// through sends a frame through the tables, as if it came in where another one did.
func through(m *openflow.PacketIn, actions []openflow.Action, frame []byte) *openflow.PacketOut {
	return &openflow.PacketOut{BufferID: openflow.NoBuffer, InPort: m.InPort(), Actions: actions, Data: frame}
}

// asSent returns a packet as its sender sent it: if its entry has translated it
// already, that is undone.
func asSent(m *openflow.PacketIn) (frame []byte, ends packet.Tuple, err error) {
	frame = m.Data
	if ends, err = packet.ReadTuple(frame); err != nil {
		return nil, ends, err
	}
	orig, ok := originalTuple(m.Match, ends.Proto)
	if !ok || orig.Dst == ends.Dst {
		return frame, ends, nil
	}
	if frame, err = packet.SetDestination(frame, orig.Dst); err != nil {
		return nil, ends, err
	}
	if frame, err = packet.SetSource(frame, orig.Src); err != nil {
		return nil, ends, err
	}
	ends, err = packet.ReadTuple(frame)
	return frame, ends, err
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
