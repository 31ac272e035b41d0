package integration

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"brlb/controller/api"
	"brlb/integration/lab"
	"brlb/integration/stand"
)

// statelessPorts are what the members of stateless pools serve in these tests.
const statelessPorts = "ports: [8080/tcp, 8080/udp, 8080/sctp, 9000-9003/tcp]"

// tunnelled is a stand whose members have the VIP themselves, get its packets
// through a tunnel, and answer directly.
func tunnelled(t *testing.T, options stand.Options, settings string, unwrap func(t *testing.T, host *lab.Host)) *stand.Stand {
	t.Helper()
	options.Config = func(text string) string {
		text = strings.ReplaceAll(text, "    check: web\n", "    check: web\n    mode: tunnel\n"+settings)
		return strings.Replace(text, "ports: [80/tcp]", statelessPorts, 1)
	}
	s := build(t, options)
	for i, host := range s.Hosts {
		has(t, host, stand.VIPAddress+"/32", fmt.Sprintf("be%d", i+1))
		shell(t, host, "ip route add 10.20.0.0/24 dev eth0")
		unwrap(t, host)
		must(t, host.Sysctl("net/ipv4/conf/all/rp_filter", "0"))
		must(t, host.Sysctl("net/ipv4/conf/tunnel0/rp_filter", "0"))
		transferFrom(t, host)
	}
	return s
}

// has gives a member a VIP, for which it answers no ARP, and a server there.
func has(t *testing.T, host *lab.Host, vip, name string) {
	t.Helper()
	shell(t, host, "ip address add "+vip+" dev lo nodad") // usable at once
	must(t, host.Sysctl("net/ipv4/conf/all/arp_ignore", "1"))
	must(t, host.Sysctl("net/ipv4/conf/all/arp_announce", "2"))
	addr := netip.MustParsePrefix(vip).Addr()
	_, err := host.StartServer(t.Context(), name, netip.AddrPortFrom(addr, 8080).String())
	must(t, err)
}

func shell(t *testing.T, host *lab.Host, command string) string {
	t.Helper()
	words := strings.Fields(command)
	return run(t, host, words[0], words[1:]...)
}

func unwrapVXLAN(t *testing.T, host *lab.Host) {
	t.Helper()
	shell(t, host, "ip link add tunnel0 address 02:62:72:6c:62:00 type vxlan id 0 dstport 4789 local "+host.Addr().String())
	shell(t, host, "ip link set tunnel0 up")
}

// placed demands that connections land where the slot table says.
func placed(t *testing.T, s *stand.Stand, what, pool, vip string, from netip.Addr, n int) {
	t.Helper()
	ports := sourcePorts(20000, n)
	for _, proto := range []string{"tcp", "udp"} {
		want, err := s.PredictAll(t.Context(), pool, proto, from, ports, vip)
		must(t, err)
		if proto == "tcp" {
			compare(t, what+", tcp", want, s.Client.ConnectEach(t.Context(), vip, ports, 8))
		} else {
			compare(t, what+", udp", want, s.Client.AskEach(t.Context(), vip, ports, 100, 8))
		}
	}
}

func TestTunnel(t *testing.T) {
	s := tunnelled(t, stand.Options{}, "", unwrapVXLAN)
	must(t, s.Start())
	await(t, s, "four members", stand.Steady(4))
	placed(t, s, "vxlan", "", dsrVIP, s.Client.Addr(), 500)

	upload(t, s.Client, netip.MustParseAddr(stand.VIPAddress))
	if route := shell(t, s.Client, "ip route get "+stand.VIPAddress); !strings.Contains(route, "mtu 1450") {
		t.Errorf("the client has not been told that 1450 octets fit into the tunnel: %s", route)
	}
	trace, err := s.API.Trace(t.Context(), api.TraceRequest{Src: s.Client.Addr().String(), SrcPort: 20000, Dst: stand.VIPAddress, DstPort: 8080, InPort: "p1"})
	must(t, err)
	if trace.Switch == nil || !trace.Switch.Agrees {
		t.Errorf("the switch says otherwise: %+v", trace)
	}

	restart(t, s, 4)

	// Somebody deletes the port.
	_, err = s.Lab.Vsctl("del-port", "brlb-vxlan")
	must(t, err)
	eventually(t, "a port that is made anew", func() bool { return hasPort(s, "brlb-vxlan") })
	await(t, s, "four members by the new port", stand.Steady(4))
	placed(t, s, "a new port", "", dsrVIP, s.Client.Addr(), 20)
	verified(t, s)
	report, err := s.API.Verify(t.Context())
	must(t, err)
	if want := "4 members by br-lb"; lab.Datapath() == "netdev" && !slices.ContainsFunc(report.Checks, func(c api.VerifyCheck) bool { return c.Detail == want }) {
		t.Errorf("%q is not in %+v", want, report.Checks)
	}

	// The pool is tunnelled no more: the port goes.
	must(t, s.WriteConfig(strings.Replace(s.DefaultConfig(), "    check: web\n", "    check: web \n    mode: dsr\n", 1)))
	_, err = s.API.Reload(t.Context(), api.ReloadRequest{})
	must(t, err)
	eventually(t, "that the port is removed", func() bool { return !hasPort(s, "brlb-vxlan") })
	// The members are looked for as neighbours now, and slots move as they are found.
	await(t, s, "mode dsr", func(st *api.Status) bool { return stand.Steady(4)(st) && !st.Pools[0].MovingSoon })
	verified(t, s)
}

func hasPort(s *stand.Stand, name string) bool {
	bridge, err := s.Lab.Vsctl("port-to-br", name)
	return err == nil && strings.TrimSpace(bridge) == s.Lab.Bridge()
}

// Tunnels of other types. Not every kernel has devices for them: then the test
// unwraps their frames itself.
func TestTunnelTypes(t *testing.T) {
	for _, c := range []struct {
		kind, device string
		inner        func(frame []byte) []byte
	}{
		{"geneve", "geneve id 77 remote 10.30.0.2", insideGeneve},
		{"gre", "gretap key 77 local ", insideGRE},
	} {
		t.Run(c.kind, func(t *testing.T) {
			s := tunnelled(t, stand.Options{}, "    tunnel: {type: "+c.kind+", key: 77}\n", func(t *testing.T, host *lab.Host) {
				device := c.device
				if c.kind == "gre" {
					device += host.Addr().String()
				}
				words := strings.Fields("link add tunnel0 address 02:62:72:6c:62:00 type " + device)
				if _, err := host.Output(t.Context(), "ip", words...); err != nil {
					t.Logf("the test unwraps frames itself: %v", err)
					unwrapByHand(t, host, c.inner)
					return
				}
				shell(t, host, "ip link set tunnel0 up")
			})
			must(t, s.Start())
			await(t, s, "four members", stand.Steady(4))
			placed(t, s, c.kind, "", dsrVIP, s.Client.Addr(), 50)
			upload(t, s.Client, netip.MustParseAddr(stand.VIPAddress))
			verified(t, s)
		})
	}
}

// unwrapByHand gives a member a device tunnel0 that receives what comes to eth0 in
// a tunnel.
func unwrapByHand(t *testing.T, host *lab.Host, inner func(frame []byte) []byte) {
	t.Helper()
	shell(t, host, "ip link add tunnel0 mtu 9000 address 02:62:72:6c:62:00 type veth peer name tunnel1 mtu 9000")
	shell(t, host, "ip link set tunnel0 up")
	shell(t, host, "ip link set tunnel1 up")
	outside, err := host.Tap("eth0")
	must(t, err)
	inside, err := host.Tap("tunnel1")
	must(t, err)
	stop := make(chan struct{})
	t.Cleanup(func() { close(stop) })
	go func() {
		for {
			select {
			case <-stop:
				return
			case <-time.After(time.Millisecond):
			}
			inside.Frames()
			for _, frame := range outside.Frames() {
				if found := inner(frame); found != nil {
					inside.Send(found)
				}
			}
		}
	}()
}

const outerSize = 14 + 20 // Ethernet and IPv4

// insideGeneve returns what a Geneve packet with key 77 carries (RFC 8926).
func insideGeneve(frame []byte) []byte {
	const headers = outerSize + 8 + 8
	if len(frame) < headers || frame[23] != 17 || binary.BigEndian.Uint16(frame[outerSize+2:]) != 6081 {
		return nil
	}
	geneve := frame[outerSize+8:]
	if geneve[0] != 0 || binary.BigEndian.Uint16(geneve[2:]) != 0x6558 || binary.BigEndian.Uint32(geneve[4:])>>8 != 77 {
		return nil
	}
	return frame[headers:]
}

// insideGRE returns what a GRE packet with key 77 carries (RFC 2890).
func insideGRE(frame []byte) []byte {
	const headers = outerSize + 8
	if len(frame) < headers || frame[23] != 47 {
		return nil
	}
	gre := frame[outerSize:]
	if binary.BigEndian.Uint32(gre) != 0x20006558 || binary.BigEndian.Uint32(gre[4:]) != 77 {
		return nil
	}
	return frame[headers:]
}

// IPv6 within IPv6, beside IPv4 within IPv4.
func TestTunnelIPv6(t *testing.T) {
	s := tunnelled(t, stand.Options{IPv6: true}, "", unwrapVXLAN)
	for i, host := range s.Hosts {
		has(t, host, stand.VIP6Address+"/128", fmt.Sprintf("be%d", i+1))
		shell(t, host, "ip route add 2001:db8:20::/64 dev eth0")
		shell(t, host, "ip link del tunnel0")
		shell(t, host, fmt.Sprintf("ip link add tunnel0 address 02:62:72:6c:62:00 type vxlan id 0 dstport 4789 local 2001:db8:30::%x", 0x11+i))
		shell(t, host, "ip link set tunnel0 up")
	}
	must(t, s.Start())
	await(t, s, "both pools", stand.SteadyPools(4, 4))
	vip := netip.MustParseAddr(stand.VIP6Address)
	placed(t, s, "vxlan, IPv6", "web6", netip.AddrPortFrom(vip, 8080).String(), netip.MustParseAddr(stand.Client6Address), 200)
	upload(t, s.Client, vip)
	if route := shell(t, s.Client, "ip -6 route get "+stand.VIP6Address); !strings.Contains(route, "mtu 1430") {
		t.Errorf("the client has not been told that 1430 octets fit into the tunnel: %s", route)
	}
	verified(t, s)
}
