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
	hash := multipath.Hash(multipath.SymmetricL4, slots.ID, &multipath.Packet{
		EthType: 0x0800, Src: s.Client.Addr(), Dst: netip.MustParseAddr(VIPAddress),
		Proto: 6, SrcPort: uint16(port), DstPort: 80,
	})
	owner := slots.Owner[hash%uint32(slots.Slots)]
	if owner < 0 {
		return ""
	}
	return slots.Members[owner]
}
