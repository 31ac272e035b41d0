package integration

import (
	"bytes"
	"net"
	"net/netip"
	"strings"
	"testing"

	"brlb/controller/api"
	"brlb/controller/packet"
	"brlb/integration/lab"
	"brlb/integration/stand"
	"brlb/openflow"
)

// asksOften has brlb look every second whether next hops are still where they
// were.
func asksOften(text string) string { return "neighbour_refresh: 1s\n" + text }

// Members and clients in VLANs of a trunk: members get untagged clients' packets
// with their tag, and tagged clients get theirs back.
func TestTaggedMembersAndClients(t *testing.T) {
	for _, m := range machines() {
		t.Run(m.name, func(t *testing.T) {
			options := m.options
			options.Config = func(text string) string {
				text = strings.Replace(text, "gateways: [", "gateways: [10.31.0.1/24, ", 1)
				return strings.Replace(text, "be4: 10.30.0.14:8080\n", "be4: 10.30.0.14:8080\n      be5: 10.31.0.15:8080\n", 1)
			}
			s := build(t, options)
			must(t, s.Lab.AddSegment("trunk", lab.SegmentOptions{Trunk: true}))
			be5, err := s.Lab.AddHost("be5", "10.31.0.15/24", lab.HostOptions{Port: "trunk", VLAN: 31, Gateway: "10.31.0.1"})
			must(t, err)
			_, err = be5.StartServer(t.Context(), "be5", "10.31.0.15:8080")
			must(t, err)
			tagged, err := s.Lab.AddHost("tagged", "10.20.0.44/24", lab.HostOptions{Port: "trunk", VLAN: 20})
			must(t, err)
			// Probes to the VLAN.
			_, err = s.Lab.Vsctl("add-port", s.Lab.Bridge(), "probe31", "tag=31", "--", "set", "Interface", "probe31", "type=internal")
			must(t, err)
			for _, args := range [][]string{{"address", "add", "10.31.0.2/24", "dev", "probe31"}, {"link", "set", "probe31", "up"}} {
				_, err := s.Lab.Switch.Output(t.Context(), "ip", args...)
				must(t, err)
			}
			must(t, s.Start())
			await(t, s, "five members", stand.Steady(5))
			for name, client := range map[string]*lab.Host{"untagged": s.Client, "tagged": tagged} {
				ports := sourcePorts(20000, 200)
				want, err := s.PredictAll(t.Context(), "web", "tcp", client.Addr(), ports, stand.VIP)
				must(t, err)
				compare(t, "client is "+name, want, client.ConnectEach(t.Context(), stand.VIP, ports, 8))
			}
		})
	}
}

// astray watches for packets that a host would take for its own although they
// are for another one.
type astray map[*lab.Host]*lab.Tap

func watchAstray(t *testing.T, hosts ...*lab.Host) astray {
	t.Helper()
	taps := astray{}
	for _, host := range hosts {
		taps[host] = tap(t, host)
	}
	return taps
}

func (a astray) check(t *testing.T) {
	t.Helper()
	for host, tap := range a {
		own, mac := host.Addr().AsSlice(), host.Interface().MAC
		frames := tap.Frames()
		for _, frame := range frames {
			const etherIPv4, dst = "\x08\x00", 30
			if len(frame) > dst+4 && string(frame[12:14]) == etherIPv4 && bytes.Equal(frame[:6], mac) && !bytes.Equal(frame[dst:dst+4], own) {
				t.Errorf("%s got a packet that is not for it: %x", host.Name, frame[:min(len(frame), 60)])
				break
			}
		}
		t.Logf("%s: %d frames, all for it", host.Name, len(frames))
	}
}

// settled is the condition that all is well and a member is found at a port and a
// MAC address.
func settled(active, index int, port string, mac net.HardwareAddr) func(*api.Status) bool {
	return func(st *api.Status) bool {
		m := st.Pools[0].Members[index]
		return stand.Steady(active)(st) && m.Port == port && m.MAC == mac.String()
	}
}

// setMAC gives a host another MAC address, which those that probe it learn at
// once.
func setMAC(t *testing.T, s *stand.Stand, host *lab.Host) net.HardwareAddr {
	t.Helper()
	other := net.HardwareAddr{2, 0xaa, 0xbb, 0xcc, 0xdd, 0xee}
	run(t, host, "ip", "link", "set", "eth0", "address", other.String())
	_, err := s.Lab.Switch.Output(t.Context(), "ip", "neighbour", "flush", "dev", s.Lab.Bridge())
	must(t, err)
	return other
}

// Under load, a member moves to another port of the bridge, another gets another
// MAC address, and a port's number goes to a stranger: no packet goes to a wrong
// host, and in the end each connection finds the member that it should.
func TestMembersMove(t *testing.T) {
	onBothWith(t, stand.Options{Config: asksOften}, func(t *testing.T, s *stand.Stand) {
		stranger, err := s.Lab.AddHost("stranger", "10.30.0.66/24", lab.HostOptions{Port: "p6", Gateway: stand.Gateway})
		must(t, err)
		_, err = stranger.StartServer(t.Context(), "stranger", "10.30.0.66:8080")
		must(t, err)
		astray := watchAstray(t, s.Hosts[0], s.Hosts[1], stranger)
		load := s.Client.StartLoad(t.Context(), stand.VIP, lab.LoadOptions{Workers: 4})
		check := func(when string) {
			t.Helper()
			settle(t, s)
			ports := sourcePorts(20000, 200)
			want, err := s.Predict(t.Context(), ports)
			must(t, err)
			compare(t, when, want, connect(t, s, ports))
		}

		be4 := s.Hosts[3]
		run(t, be4, "ip", "link", "delete", "eth0")
		moved, err := be4.Attach("10.30.0.14/24", lab.HostOptions{Port: "p4", Gateway: stand.Gateway, MAC: be4.Interface().MAC.String()})
		must(t, err)
		await(t, s, "be4 at p4", settled(4, 3, "p4", moved.MAC))
		check("be4 has moved")

		await(t, s, "be3 at another MAC address", settled(4, 2, "p2", setMAC(t, s, s.Hosts[2])))
		check("be3 has another MAC address")

		number, err := s.Lab.Vsctl("get", "Interface", "p4", "ofport")
		must(t, err)
		_, err = s.Lab.Vsctl("del-port", "p4", "--", "set", "Interface", "p6", "ofport_request="+strings.TrimSpace(number))
		must(t, err)
		eventually(t, "the stranger has the port's number", func() bool {
			now, err := s.Lab.Vsctl("get", "Interface", "p6", "ofport")
			return err == nil && now == number
		})
		await(t, s, "be4 gone", stand.Steady(3))
		check("a stranger has be4's port number")
		report := load.Stop()
		t.Logf("requests by server: %v, %d failed", report.PerServer, len(report.Failures))
		for server := range report.PerServer {
			if !strings.HasPrefix(server, "be") {
				t.Errorf("%d requests were answered by %s", report.PerServer[server], server)
			}
		}
		astray.check(t)
	})
}

// A member that moves and says so is found at once, long before brlb would ask
// again.
func TestMemberAnnouncesItself(t *testing.T) {
	seldom := func(text string) string { return "neighbour_refresh: 1h\n" + text }
	onBothWith(t, stand.Options{IPv6: true, Config: seldom}, func(t *testing.T, s *stand.Stand) {
		await(t, s, "both pools", stand.SteadyPools(4, 4))
		be4 := s.Hosts[3]
		mac := be4.Interface().MAC
		run(t, be4, "ip", "link", "delete", "eth0")
		_, err := be4.Attach("10.30.0.14/24", lab.HostOptions{Port: "p4", Gateway: stand.Gateway, MAC: mac.String()})
		must(t, err)
		run(t, be4, "ip", "address", "add", "2001:db8:30::14/64", "dev", "eth1", "nodad")
		must(t, be4.AddRoute("::/0", stand.Gateway6))
		port, err := be4.Tap("eth1")
		must(t, err)
		for _, addr := range []string{"10.30.0.14", "2001:db8:30::14"} {
			must(t, port.Send(packet.Announce(openflow.MAC(mac), netip.MustParseAddr(addr), false)[0]))
		}
		await(t, s, "be4 at p4", func(st *api.Status) bool {
			return stand.SteadyPools(4, 4)(st) && st.Pools[0].Members[3].Port == "p4" && st.Pools[1].Members[3].Port == "p4"
		})
		settle(t, s)
		ports := sourcePorts(20000, 100)
		for pool, vip := range map[string]netip.Addr{"web": vips[0], "web6": vips[1]} {
			client, to := s.Client.Addr(), netip.AddrPortFrom(vip, 80).String()
			if vip.Is6() {
				client = netip.MustParseAddr(stand.Client6Address)
			}
			want, err := s.PredictAll(t.Context(), pool, "tcp", client, ports, to)
			must(t, err)
			compare(t, pool, want, s.Client.ConnectEach(t.Context(), to, ports, 8))
		}
	})
}

// A router behind which a member is gets another MAC address.
func TestRouterChanges(t *testing.T) {
	s, router := behindRouter(t, asksOften)
	await(t, s, "the router's MAC address", settled(4, 3, "p2", setMAC(t, s, router)))
	settle(t, s)
	ports := sourcePorts(44000, 200)
	want, err := s.Predict(t.Context(), ports)
	must(t, err)
	compare(t, "the router has another MAC address", want, connect(t, s, ports))
}
