package stand

import (
	"context"
	"net/netip"

	"brlb/controller/api"
	"brlb/openflow/multipath"
)

// Predict names the member that a connection from each of the client's source
// ports lands on, from the slot table and the hash alone.
func (s *Stand) Predict(ctx context.Context, ports []int) ([]string, error) {
	slots, err := s.API.Slots(ctx, "")
	if err != nil {
		return nil, err
	}
	names := make([]string, len(ports))
	for i, port := range ports {
		names[i] = s.Owner(slots, port)
	}
	return names, nil
}

// Owner names the member that a slot table has for a source port of the
// client; "" for none.
func (s *Stand) Owner(slots *api.Slots, port int) string {
	return OwnerOf(slots, "tcp", netip.AddrPortFrom(s.Client.Addr(), uint16(port)), netip.MustParseAddrPort(VIP))
}

// PredictAll names the member that a connection, or a datagram, from each of a
// client's ports to a VIP lands on.
func (s *Stand) PredictAll(ctx context.Context, pool, proto string, src netip.Addr, ports []int, dst string) ([]string, error) {
	slots, err := s.API.Slots(ctx, pool)
	if err != nil {
		return nil, err
	}
	names := make([]string, len(ports))
	for i, port := range ports {
		names[i] = OwnerOf(slots, proto, netip.AddrPortFrom(src, uint16(port)), netip.MustParseAddrPort(dst))
	}
	return names, nil
}

// OwnerOf names the member that a slot table has for a connection; "" for none.
func OwnerOf(slots *api.Slots, proto string, src, dst netip.AddrPort) string {
	packet := multipath.Packet{EthType: 0x0800, Src: src.Addr(), Dst: dst.Addr(), SrcPort: src.Port(), DstPort: dst.Port(), Proto: 6}
	if dst.Addr().Is6() {
		packet.EthType = 0x86dd
	}
	switch proto {
	case "sctp":
		packet.Proto = 132
	case "udp":
		// symmetric_l4 has no ports of UDP; the pipeline puts them into the MAC.
		packet.Proto = 17
		packet.EthSrc = [6]byte{2: byte(dst.Port() >> 8), 3: byte(dst.Port()), 4: byte(src.Port() >> 8), 5: byte(src.Port())}
	}
	owner := slots.Owner[multipath.Hash(multipath.SymmetricL4, slots.ID, &packet)%uint32(slots.Slots)]
	if owner < 0 {
		return ""
	}
	return slots.Members[owner]
}
