package integration

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"brlb/controller/api"
	"brlb/integration/stand"
)

// serve replaces the ports of the stand's service.
func serve(ports string) func(string) string {
	return func(text string) string { return strings.Replace(text, "ports: [80/tcp]", "ports: ["+ports+"]", 1) }
}

func sourcePorts(first, n int) []int {
	ports := make([]int, n)
	for i := range ports {
		ports[i] = first + i*7
	}
	return ports
}

// Datagrams land on the member that the slot table names for their 5-tuple,
// ports included, and so does every fragment of a long one.
func TestDatagrams(t *testing.T) {
	onBothWith(t, stand.Options{Config: serve("80/tcp, 53/udp")}, datagrams)
}

func datagrams(t *testing.T, s *stand.Stand) {
	vip := stand.VIPAddress + ":53"
	ports := sourcePorts(20000, 1000)
	want, err := s.PredictAll(t.Context(), "web", "udp", s.Client.Addr(), ports, vip)
	must(t, err)
	compare(t, "short datagrams", want, s.Client.AskEach(t.Context(), vip, ports, 100, 8))

	ports = sourcePorts(30000, 100)
	want, err = s.PredictAll(t.Context(), "web", "udp", s.Client.Addr(), ports, vip)
	must(t, err)
	compare(t, "datagrams of 4,000 octets", want, s.Client.AskEach(t.Context(), vip, ports, 4000, 4))
}

// Members of a range get packets on the port that the client used, and those of
// a service for all protocols likewise.
func TestPortRanges(t *testing.T) {
	ports := "80/tcp, 8000-8090/udp, 8000-8090/tcp"
	s := start(t, stand.Options{Config: func(text string) string { return serve(ports)(text) }})
	askBoth(t, s, "range")

	ports = "any"
	must(t, s.WriteConfig(s.DefaultConfig()))
	_, err := s.API.Reload(t.Context(), api.ReloadRequest{})
	must(t, err)
	await(t, s, "all ports", stand.Steady(4))
	askBoth(t, s, "any")
	for _, size := range []int{0, 4000} {
		_, err = longPing(t, s.Client, vips[0], size)
		must(t, err)
	}
}

func askBoth(t *testing.T, s *stand.Stand, when string) {
	t.Helper()
	vip, from := stand.VIPAddress+":8080", sourcePorts(20000, 100)
	want, err := s.PredictAll(t.Context(), "web", "tcp", s.Client.Addr(), from, vip)
	must(t, err)
	compare(t, when+", tcp", want, s.Client.ConnectEach(t.Context(), vip, from, 8))
	want, err = s.PredictAll(t.Context(), "web", "udp", s.Client.Addr(), from, vip)
	must(t, err)
	compare(t, when+", udp", want, s.Client.AskEach(t.Context(), vip, from, 100, 8))
}

// With affinity a client has one member, whatever its ports and protocols, and has
// it again after a restart.
func TestAffinity(t *testing.T) {
	s := start(t, stand.Options{Config: func(text string) string {
		return serve("80/tcp, 53/udp")(strings.Replace(text, "    check: web\n", "    check: web\n    affinity: source\n", 1))
	}})
	trace, err := s.API.Trace(t.Context(), api.TraceRequest{Src: s.Client.Addr().String(), SrcPort: 1, DstPort: 80})
	must(t, err)
	want := make([]string, 200)
	for i := range want {
		want[i] = trace.Member
	}
	all := func(when string) {
		t.Helper()
		compare(t, when+", tcp", want, s.Client.ConnectEach(t.Context(), stand.VIP, sourcePorts(20000, 200), 8))
		compare(t, when+", udp", want, s.Client.AskEach(t.Context(), stand.VIPAddress+":53", sourcePorts(20000, 200), 100, 8))
	}
	all("fresh")
	if trace.Switch == nil || !trace.Switch.Agrees {
		t.Errorf("the switch disagrees: %+v, %s", trace.Switch, trace.SwitchError)
	}
	must(t, s.Kill())
	must(t, s.Start())
	await(t, s, "brlb back", stand.Steady(4))
	all("after a restart")
}

// With affinity port, the switch's cache has one flow for the new connections of a
// slot, however many there are and whoever opens them, and they go where brlb says.
func TestAffinityPort(t *testing.T) {
	const slots = 64
	onBothWith(t, stand.Options{Config: func(text string) string {
		return serve("80/tcp, 53/udp")(strings.Replace(text, "    check: web\n", fmt.Sprintf("    check: web\n    slots: %d\n    affinity: port\n", slots), 1))
	}}, func(t *testing.T, s *stand.Stand) {
		await(t, s, "the pool", stand.Steady(4))
		table, err := s.API.Slots(t.Context(), "web")
		must(t, err)
		from := sourcePorts(20000, 600)
		want := make([]string, len(from))
		for i, port := range from {
			want[i] = table.Members[table.Owner[port/2%slots]]
		}
		compare(t, "tcp", want, s.Client.ConnectEach(t.Context(), stand.VIP, from, 8))
		flows, err := s.Lab.Appctl("dpctl/dump-flows")
		must(t, err)
		cached := 0
		for line := range strings.Lines(flows) {
			if strings.Contains(line, "nat(dst=") {
				cached++
			}
		}
		if cached == 0 || cached > slots {
			t.Errorf("the switch's cache has %d flows for new connections, want no more than there are slots, %d:\n%s", cached, slots, flows)
		}
		compare(t, "udp", want, s.Client.AskEach(t.Context(), stand.VIPAddress+":53", from, 100, 8))
		for _, port := range []uint16{20001, 20096} { // slots 16 and 0
			trace, err := s.API.Trace(t.Context(), api.TraceRequest{Src: s.Client.Addr().String(), SrcPort: port, DstPort: 80})
			must(t, err)
			if trace.Slot != int(port)/2%slots || trace.Switch == nil || !trace.Switch.Agrees {
				t.Errorf("port %d: slot %d; the switch disagrees: %+v, %s", port, trace.Slot, trace.Switch, trace.SwitchError)
			}
		}
	})
}

// IPv6, over a service with VIPs of both families.
func TestIPv6(t *testing.T) {
	onBothWith(t, stand.Options{IPv6: true, Config: serve("80/tcp, 53/udp")}, func(t *testing.T, s *stand.Stand) {
		client := netip.MustParseAddr(stand.Client6Address)
		await(t, s, "both pools", stand.SteadyPools(4, 4))
		for _, proto := range []string{"tcp", "udp"} {
			vip, ports := "["+stand.VIP6Address+"]:80", sourcePorts(20000, 1000)
			if proto == "udp" {
				vip = "[" + stand.VIP6Address + "]:53"
			}
			want, err := s.PredictAll(t.Context(), "web6", proto, client, ports, vip)
			must(t, err)
			if proto == "tcp" {
				compare(t, "IPv6, tcp", want, s.Client.ConnectEach(t.Context(), vip, ports, 8))
				continue
			}
			compare(t, "IPv6, udp", want, s.Client.AskEach(t.Context(), vip, ports, 100, 8))
			compare(t, "IPv6, datagrams of 4,000 octets", want[:100], s.Client.AskEach(t.Context(), vip, ports[:100], 4000, 4))
		}
	})
}

// What brlb computes of a connection is what the switch does: every protocol, both
// families, with a VLAN tag and without, by the clients' port and by the members',
// for a first packet and for a later fragment.
func TestTraceAgrees(t *testing.T) {
	s := start(t, stand.Options{IPv6: true, Config: serve("80/tcp, 53/udp, 9/sctp, 8000-8090/tcp")})
	await(t, s, "both pools", stand.SteadyPools(4, 4))
	for _, client := range []struct{ addr, port, seen string }{
		{s.Client.Addr().String(), "p1", ""},
		{stand.Client6Address, "p1", ""},
		{"10.30.0.11", "p2", stand.Gateway},
		{"2001:db8:30::11", "p2", stand.Gateway6},
		{"10.30.0.77", "p1", ""},
		{"192.0.2.1", "p2", ""},
	} {
		for _, to := range []struct {
			proto string
			port  uint16
		}{{"tcp", 80}, {"udp", 53}, {"sctp", 9}, {"tcp", 8042}} {
			for _, vlan := range []uint16{0, 20} {
				for _, from := range sourcePorts(20000, 5) {
					req := api.TraceRequest{Src: client.addr, SrcPort: uint16(from), DstPort: to.port, Proto: to.proto, VLAN: vlan, InPort: client.port}
					trace := agreed(t, s, req)
					if trace.Hairpin != client.seen || trace.Segment != client.port || trace.VLAN != vlan || trace.Fragment != "" {
						t.Errorf("%s by %s in VLAN %d: %+v", trace.Flow, client.port, vlan, trace)
					}
				}
				req := api.TraceRequest{Src: client.addr, SrcPort: 20000, DstPort: to.port, Proto: to.proto, VLAN: vlan, InPort: client.port, Fragment: true}
				if trace := agreed(t, s, req); trace.Fragment != api.FragmentFollows {
					t.Errorf("a fragment of %s: %q", trace.Flow, trace.Fragment)
				}
			}
		}
	}
	// Where a client is, is clear without being told.
	for addr, port := range map[string]string{s.Client.Addr().String(): "p1", "10.30.0.12": "p2", "10.30.0.77": "p2"} {
		if trace := agreed(t, s, api.TraceRequest{Src: addr, SrcPort: 20000, DstPort: 80}); trace.Segment != port {
			t.Errorf("%s is said to come by %q, not %s", addr, trace.Segment, port)
		}
	}
}

// Meters that somebody else has changed are found by verify, and set right again.
func TestMetersAreVerified(t *testing.T) {
	onUserspace(t, func(t *testing.T, s *stand.Stand) {
		verified(t, s)
		failed := func() string {
			verify, err := s.API.Verify(t.Context())
			must(t, err)
			for _, check := range verify.Checks {
				if !check.OK {
					return check.Name + ": " + check.Detail
				}
			}
			return ""
		}
		_, err := s.Lab.Ofctl("-OOpenFlow14", "mod-meter", s.Lab.Bridge(), "meter=46875,pktps,bands=type=drop,rate=5")
		must(t, err)
		if got := failed(); !strings.HasPrefix(got, "meters: meter 46875 is not one of 1000 packets a second") {
			t.Errorf("verify says %q", got)
		}
		// The next look at the switch comes early when a flow is gone.
		_, err = s.Lab.Ofctl("-OOpenFlow14", "--strict", "del-flows", s.Lab.Bridge(), "table=11,priority=100,reg0=1,reg1=5")
		must(t, err)
		eventually(t, "all is well again", func() bool { return failed() == "" })

		// The flows go with a meter.
		_, err = s.Lab.Ofctl("-OOpenFlow14", "del-meter", s.Lab.Bridge(), "meter=46875")
		must(t, err)
		eventually(t, "all is well once more", func() bool { return failed() == "" })
	})
}

// agreed traces a packet, and demands that the switch says the same.
func agreed(t *testing.T, s *stand.Stand, req api.TraceRequest) *api.Trace {
	t.Helper()
	trace, err := s.API.Trace(t.Context(), req)
	must(t, err)
	if trace.Switch == nil || !trace.Switch.Agrees {
		t.Errorf("%+v: %+v; the switch: %+v %s", req, trace, trace.Switch, trace.SwitchError)
	}
	return trace
}
