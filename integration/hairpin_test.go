package integration

import (
	"net/netip"
	"strings"
	"testing"

	"brlb/integration/lab"
	"brlb/integration/stand"
)

// A member uses the VIP of its own pool, and gets itself or another; and so does
// a client on the members' segment. Both know nothing of it, and the members see
// the gateway.
func TestHairpin(t *testing.T) {
	onBothWith(t, stand.Options{IPv6: true, Config: transferring}, hairpin)
}

func hairpin(t *testing.T, s *stand.Stand) {
	await(t, s, "both pools", stand.SteadyPools(4, 4))
	neighbour, err := s.Lab.AddHost("neighbour", "10.30.0.77/24", lab.HostOptions{Port: "p2", Gateway: stand.Gateway})
	must(t, err)
	must(t, neighbour.AddAddress("2001:db8:30::77/64", stand.Gateway6))
	for _, host := range s.Hosts {
		transferFrom(t, host)
	}
	for name, client := range map[string]*lab.Host{"a member": s.Hosts[0], "a client beside the members": neighbour} {
		for i, vip := range vips {
			pool, own, gateway := "web", client.Addr(), stand.Gateway
			if vip.Is6() {
				pool, gateway = "web6", stand.Gateway6
				if own = netip.MustParseAddr("2001:db8:30::77"); client != neighbour {
					own = netip.MustParseAddr("2001:db8:30::11")
				}
			}
			web, dns := netip.AddrPortFrom(vip, 80).String(), netip.AddrPortFrom(vip, 53).String()
			ports := sourcePorts(20000+i*2000, 100)
			want, err := s.PredictAll(t.Context(), pool, "tcp", own, ports, web)
			must(t, err)
			got := client.ConnectEach(t.Context(), web, ports, 4)
			compare(t, name+", tcp", want, got)
			for _, c := range got {
				if seen, err := netip.ParseAddrPort(c.Seen); c.Err == nil && (err != nil || seen.Addr().String() != gateway) {
					t.Fatalf("%s: %s sees %q, not the gateway", name, c.Server, c.Seen)
				}
			}
			compare(t, name+", tcp, the same ports again", want, client.ConnectEach(t.Context(), web, ports, 4))
			want, err = s.PredictAll(t.Context(), pool, "udp", own, ports, dns)
			must(t, err)
			compare(t, name+", udp", want, client.AskEach(t.Context(), dns, ports, 100, 4))
			compare(t, name+", datagrams of 4,000 octets", want, client.AskEach(t.Context(), dns, ports, 4000, 4))
			download(t, client, vip)
			upload(t, client, vip)
			if err := askClosed(t, client, netip.AddrPortFrom(vip, closedPort)); err == nil || !strings.Contains(err.Error(), "refused") {
				t.Errorf("%s, a port that no program has: %v", name, err)
			}
		}
	}
}

// Clients that come by another port than their member's keep their address, also
// if they are in the network of a gateway.
func TestNoHairpin(t *testing.T) {
	onUserspace(t, func(t *testing.T, s *stand.Stand) {
		other, err := s.Lab.AddHost("other", "10.30.0.78/24", lab.HostOptions{Gateway: stand.Gateway})
		must(t, err)
		for _, c := range other.ConnectEach(t.Context(), stand.VIP, sourcePorts(20000, 20), 4) {
			if !strings.HasPrefix(c.Seen, "10.30.0.78:") || c.Err != nil {
				t.Errorf("%s sees %q, %v", c.Server, c.Seen, c.Err)
			}
		}
	})
}
