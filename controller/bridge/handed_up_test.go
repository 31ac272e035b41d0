package bridge

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"net/netip"
	"strings"
	"testing"

	"brlb/controller/config"
	"brlb/controller/packet"
	"brlb/controller/pipeline"
	"brlb/controller/state"
	"brlb/openflow"
)

var ownMAC = openflow.MAC{2, 0, 0x5e, 0, 1, 2}

func unhex(t testing.TB, text string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.Join(strings.Fields(text), ""))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

const arpReplyFrame = "02005e000102 02000000000b 0806  0001 0800 06 04 0002  02000000000b 0a1e000b  02005e000102 0a1e0001"

var (
	client  = netip.MustParseAddrPort("10.20.0.10:40000")
	vip     = netip.MustParseAddrPort("10.20.0.100:80")
	member  = netip.MustParseAddrPort("10.30.0.11:8080")
	client6 = netip.MustParseAddrPort("[2001:db8:20::10]:40000")
	vip6    = netip.MustParseAddrPort("[2001:db8:20::100]:80")
	member6 = netip.MustParseAddrPort("[2001:db8:30::11]:8080")
)

// segment is the frame of an IP packet whose checksums are those of its
// destination's: packet.SetDestination makes it from one without any.
func segment(t testing.TB, proto uint8, src, dst netip.AddrPort) []byte {
	t.Helper()
	frame := unhex(t, "02005e000102 0200000000aa")
	transport := make([]byte, 20)
	binary.BigEndian.PutUint16(transport, src.Port())
	transport[12] = 5 << 4 // TCP: where the data begins
	if src.Addr().Is4() {
		frame = append(frame, 8, 0, 0x45, 0, 0, 40, 0, 0, 0, 0, 64, proto, 0, 0)
	} else {
		frame = append(frame, 0x86, 0xdd, 0x60, 0, 0, 0, 0, 20, proto, 64)
	}
	frame = append(append(frame, src.Addr().AsSlice()...), make([]byte, len(dst.Addr().AsSlice()))...)
	frame, err := packet.SetDestination(append(frame, transport...), dst)
	if err != nil {
		t.Fatal(err)
	}
	return frame
}

// handedUp is a packet-in about a packet whose connection began as src to dst.
func handedUp(frame []byte, proto uint8, src, dst netip.AddrPort) *openflow.PacketIn {
	from, to := openflow.CTNwSrc, openflow.CTNwDst
	if src.Addr().Is6() {
		from, to = openflow.CTIPv6Src, openflow.CTIPv6Dst
	}
	return &openflow.PacketIn{
		BufferID: openflow.NoBuffer, TotalLen: uint16(len(frame)), Table: 2, Data: frame,
		Match: openflow.Match{
			openflow.InPort.Exact(3), openflow.CTNwProto.Exact(uint64(proto)), from.Addr(src.Addr()), to.Addr(dst.Addr()),
			openflow.CTTpSrc.Exact(uint64(src.Port())), openflow.CTTpDst.Exact(uint64(dst.Port())),
		},
	}
}

func TestPutBack(t *testing.T) {
	bare := func(frame []byte) *openflow.PacketIn {
		m := handedUp(frame, 6, client, vip)
		m.Match = m.Match[:1]
		return m
	}
	zero := netip.AddrPortFrom(netip.IPv4Unspecified(), 0)
	moved, err := packet.SetSource(segment(t, 6, client, member), netip.AddrPortFrom(client.Addr(), 1024))
	if err != nil {
		t.Fatal(err)
	}
	cases := []struct {
		name  string
		proto uint8
		in    *openflow.PacketIn
		src   netip.AddrPort
		dst   netip.AddrPort
	}{
		{"invalid: no entry was found", 6, bare(segment(t, 6, client, vip)), client, vip},
		{"invalid: the tuple is told as zero", 6, handedUp(segment(t, 6, client, vip), 6, zero, zero), client, vip},
		{"the tuple is that of another protocol", 6, handedUp(segment(t, 6, client, vip), 17, client, member), client, vip},
		{"stale and translated", 6, handedUp(segment(t, 6, client, member), 6, client, vip), client, vip},
		{"stale and translated, its source port too", 6, handedUp(moved, 6, client, vip), client, vip},
		{"stale, not translated", 6, handedUp(segment(t, 6, client, vip), 6, client, vip), client, vip},
		{"stale over IPv6", 6, handedUp(segment(t, 6, client6, member6), 6, client6, vip6), client6, vip6},
		{"a stale datagram", 17, handedUp(segment(t, 17, client, member), 17, client, vip), client, vip},
		{"a stale datagram over IPv6", 17, handedUp(segment(t, 17, client6, member6), 17, client6, vip6), client6, vip6},
		{"stale SCTP", 132, handedUp(segment(t, 132, client, member), 132, client, vip), client, vip},
		{"stale SCTP over IPv6", 132, handedUp(segment(t, 132, client6, member6), 132, client6, vip6), client6, vip6},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			was := bytes.Clone(c.in.Data)
			messages, err := putBack(c.in, 5)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(was, c.in.Data) {
				t.Error("the packet-in was changed")
			}
			flush, ok := messages[0].(*openflow.CTFlush)
			want := openflow.CTTuple{Src: c.src.Addr(), Dst: c.dst.Addr(), SrcPort: c.src.Port(), DstPort: c.dst.Port()}
			if !ok || flush.Orig != want || flush.Reply != (openflow.CTTuple{}) || !flush.HasZone || flush.Zone != 5 || flush.Proto != c.proto {
				t.Errorf("flush %+v", messages[0])
			}
			out, ok := messages[1].(*openflow.PacketOut)
			if frame := segment(t, c.proto, c.src, c.dst); !ok || len(messages) != 2 || !bytes.Equal(out.Data, frame) || out.InPort != 3 || out.BufferID != openflow.NoBuffer {
				t.Errorf("out %+v\nwant %x", messages[1], frame)
			}
			if len(out.Actions) != 2 || out.Actions[1] != openflow.Action(openflow.Output{Port: openflow.PortTable}) {
				t.Errorf("actions %v", out.Actions)
			}
		})
	}
	for name, in := range map[string]*openflow.PacketIn{
		"nothing": bare(nil),
		"ARP":     bare(unhex(t, arpReplyFrame)),
		"ICMPv6":  bare(packet.Ask(ownMAC, netip.Addr{}, vip6.Addr())),
		"GRE":     handedUp(segment(t, 47, client, member), 47, client, vip),
	} {
		if messages, err := putBack(in, 5); err == nil {
			t.Errorf("%s: %v", name, messages)
		}
	}
}

// A member whose answer ends at brlb is told so, about what it has sent.
func TestAnswersExpire(t *testing.T) {
	s := &state.Snapshot{
		Pools:    []state.Pool{{ID: 1, Members: []state.Member{{Number: 7, Address: member}}}},
		Services: []state.Service{{Addresses: []netip.Addr{vip.Addr()}, Ports: []config.Port{{First: 80, Last: 80, Proto: config.ProtoTCP}, {First: 9000, Last: 9009, Proto: config.ProtoTCP}}}},
	}
	for front, from := range map[netip.AddrPort]netip.AddrPort{
		vip:                                  member,
		netip.AddrPortFrom(vip.Addr(), 9003): netip.AddrPortFrom(member.Addr(), 9003),
	} {
		m := handedUp(segment(t, 6, front, client), 6, client, front)
		m.Table, m.Match = pipeline.TableToClient, append(m.Match, openflow.CTMark.Exact(uint64(pipeline.Mark(1, 7))))
		messages, err := expiredAnswer(m, &Wants{MAC: ownMAC, Gateways: gateways()}, s)
		if err != nil {
			t.Fatal(err)
		}
		out := messages[0].(*openflow.PacketOut)
		ends, err := packet.ReadTuple(out.Data)
		if err != nil || ends.Src.Addr() != gateways()[0].Addr() || ends.Dst.Addr() != from.Addr() || out.Data[34] != 11 {
			t.Errorf("%x, %v", out.Data, err)
		}
		quoted, err := packet.ReadTuple(append(bytes.Clone(out.Data[:14]), out.Data[42:]...))
		if err != nil || quoted != (packet.Tuple{Proto: 6, Src: from, Dst: client}) {
			t.Errorf("the error is about %+v, %v", quoted, err)
		}
		if messages, err := expiredAnswer(m, &Wants{MAC: ownMAC}, &state.Snapshot{}); err == nil {
			t.Errorf("of a member that is not known: %v", messages)
		}
	}
}

// The association of a member that must lose it is ended as if the member did so:
// by an ABORT that passes conntrack on its way to the client.
func TestAssociationsAreEnded(t *testing.T) {
	frame, err := packet.SetDestination(append(segment(t, 132, client, member), 0, 0, 0, 0), member)
	if err != nil {
		t.Fatal(err)
	}
	copy(frame[14+20+12:], []byte{4, 0, 0, 8}) // a HEARTBEAT
	m := handedUp(frame, 132, client, vip)
	m.Table, m.Match = pipeline.TableToMember, append(m.Match, openflow.Reg9.Exact(2))
	messages, err := answer(m, &Wants{MAC: ownMAC, Gateways: gateways(), Zone: 5})
	if err != nil || len(messages) != 1 {
		t.Fatal(messages, err)
	}
	out := messages[0].(*openflow.PacketOut)
	ends, err := packet.ReadTuple(out.Data)
	if err != nil || ends.Src != member || ends.Dst != client || out.Data[14+20+12] != 6 {
		t.Errorf("%x, %v", out.Data, err)
	}
	ct, ok := out.Actions[0].(openflow.CT)
	if !ok || ct.Zone != 5 || ct.Table != pipeline.TableReply || ct.Commit {
		t.Errorf("actions %v", out.Actions)
	}
	m.Match = append(m.Match, openflow.Reg10.Exact(7)) // its pool has a zone of its own
	if messages, err = answer(m, &Wants{MAC: ownMAC, Gateways: gateways(), Zone: 5}); err != nil || messages[0].(*openflow.PacketOut).Actions[0].(openflow.CT).Zone != 7 {
		t.Errorf("in another zone: %v, %v", messages, err)
	}
}

// Whatever a switch hands up, nothing panics, what came is not changed, and the
// switch can be sent what comes of it.
func FuzzHandedUp(f *testing.F) {
	for _, proto := range []uint8{6, 17, 132} {
		f.Add(uint8(pipeline.TableVIP), segment(f, proto, client, vip))
		f.Add(uint8(pipeline.TableRest), segment(f, proto, client6, vip6))
		f.Add(uint8(pipeline.TableToMember), segment(f, proto, client, member))
	}
	f.Add(uint8(pipeline.TableOwn), packet.Ask(ownMAC, netip.Addr{}, vip6.Addr()))
	f.Add(uint8(pipeline.TableOwn), make([]byte, 60))
	wants := Wants{MAC: ownMAC, Gateways: gateways(), Zone: 5}
	f.Fuzz(func(t *testing.T, table uint8, frame []byte) {
		was := bytes.Clone(frame)
		src, dst := client, vip
		if ends, err := packet.ReadTuple(frame); err == nil && ends.Dst.Addr().Is6() {
			src, dst = client6, vip6
		}
		m := handedUp(frame, 6, src, dst)
		m.Match = append(m.Match, openflow.CTMark.Exact(1))
		m.Table = table
		again, err := putBack(m, wants.Zone)
		answers, _ := answer(m, &wants)
		expired, _ := expiredAnswer(m, &wants, &state.Snapshot{Pools: []state.Pool{{Members: []state.Member{{Number: 1, Address: member}}}}})
		answers = append(answers, expired...)
		if !bytes.Equal(was, frame) {
			t.Fatal("the packet-in was changed")
		}
		if err == nil {
			if out := again[len(again)-1].(*openflow.PacketOut); len(out.Data) != len(frame) {
				t.Errorf("%d octets came, %d are put back", len(frame), len(out.Data))
			}
		}
		for _, m := range append(again, answers...) {
			if _, err := openflow.Append(nil, 1, m); err != nil && len(frame) < 60000 {
				t.Error(err)
			}
		}
	})
}
