package integration

import (
	"net/netip"
	"testing"

	"brlb/integration/stand"
)

// Members in a VLAN of the bridge, on access ports, are found by ARP and by
// neighbour discovery, and get what the slot table says.
func TestMembersInAVLAN(t *testing.T) {
	s := build(t, stand.Options{IPv6: true})
	for _, port := range []string{"p2", s.Lab.Bridge()} { // probes come from the bridge itself
		_, err := s.Lab.Vsctl("set", "Port", port, "tag=30")
		must(t, err)
	}
	must(t, s.Start())
	await(t, s, "both pools", stand.SteadyPools(4, 4))
	ports := sourcePorts(20000, 200)
	for _, c := range []struct{ pool, client, vip string }{
		{"web", s.Client.Addr().String(), stand.VIP},
		{"web6", stand.Client6Address, "[" + stand.VIP6Address + "]:80"},
	} {
		want, err := s.PredictAll(t.Context(), c.pool, "tcp", netip.MustParseAddr(c.client), ports, c.vip)
		must(t, err)
		compare(t, c.pool+", members in VLAN 30", want, s.Client.ConnectEach(t.Context(), c.vip, ports, 8))
	}
}
