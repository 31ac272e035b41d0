package integration

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"brlb/integration/lab"
	"brlb/integration/stand"
)

// How the bytes of a transfer go. Members get packets on the port that the client
// used.
const (
	givePort   = 9000 // from the member
	takePort   = 9001 // to the member, which says how many have come
	closedPort = 9003 // no member listens

	transferSize = 4 << 20
	smallMTU     = 1280
)

// transferring are the ports of the service in these tests.
var transferring = serve("80/tcp, 53/udp, 9000-9003/tcp, 9000-9003/udp")

// transferFrom serves givePort and takePort on a member.
func transferFrom(t *testing.T, host *lab.Host) {
	t.Helper()
	for port, handle := range map[int]func(net.Conn){
		givePort: func(conn net.Conn) { conn.Write(make([]byte, transferSize)) },
		takePort: func(conn net.Conn) {
			n, _ := io.Copy(io.Discard, conn)
			fmt.Fprint(conn, n)
		},
	} {
		listener, err := host.Listen("tcp", fmt.Sprintf(":%d", port))
		must(t, err)
		t.Cleanup(func() { listener.Close() })
		go func() {
			for {
				conn, err := listener.Accept()
				if err != nil {
					return
				}
				go func() {
					defer conn.Close()
					handle(conn)
				}()
			}
		}()
	}
}

// download reads all that a member gives.
func download(t *testing.T, client *lab.Host, vip netip.Addr) {
	t.Helper()
	conn, err := client.DialContext(withTimeout(t, patience), "tcp", netip.AddrPortFrom(vip, givePort).String())
	must(t, err)
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(patience))
	n, err := io.Copy(io.Discard, conn)
	if err != nil || n != transferSize {
		t.Errorf("download through %s: %d octets of %d, %v", vip, n, transferSize, err)
	}
}

// upload sends to a member.
func upload(t *testing.T, client *lab.Host, vip netip.Addr) {
	t.Helper()
	conn, err := client.DialContext(withTimeout(t, patience), "tcp", netip.AddrPortFrom(vip, takePort).String())
	must(t, err)
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(patience))
	_, err = conn.Write(make([]byte, transferSize))
	must(t, err)
	must(t, conn.(*net.TCPConn).CloseWrite())
	answer, err := io.ReadAll(conn)
	if err != nil || string(answer) != fmt.Sprint(transferSize) {
		t.Errorf("upload through %s: the member got %q octets of %d, %v", vip, answer, transferSize, err)
	}
}

// leaks watch what the bridge sends to both sides: no packet may show a VIP to
// the members, nor a member to the clients, not even inside an ICMP error.
type leaks map[string]*side

// side is one of them, where some addresses must not be seen.
type side struct {
	tap    *lab.Tap
	hidden []netip.Addr
}

func watchLeaks(t *testing.T, s *stand.Stand) leaks {
	t.Helper()
	members := []netip.Addr{netip.MustParseAddr("10.40.0.14"), netip.MustParseAddr("2001:db8:40::14")}
	for i, host := range s.Hosts {
		members = append(members, host.Addr(), netip.MustParseAddr(fmt.Sprintf("2001:db8:30::%x", 0x11+i)))
	}
	watch := func(segment string, hidden []netip.Addr) *side {
		tap, err := s.Lab.Switch.Tap(segment + "-up")
		must(t, err)
		return &side{tap, hidden}
	}
	return leaks{"clients": watch("p1", members), "members": watch("p2", vips)}
}

// prober are the addresses that probes come from. The bridge sends those everywhere
// while it has not learned where a member is.
var prober = []netip.Addr{netip.MustParseAddr("10.30.0.2"), netip.MustParseAddr("2001:db8:30::2")}

// shows tells whether one of the addresses is found in an IP packet that is no probe.
func shows(frame []byte, addrs []netip.Addr) bool {
	if len(frame) < 34 || neighbourTalk(frame) {
		return false
	}
	ends := frame[26:34]
	if frame[12] == 0x86 {
		ends = frame[22:min(len(frame), 54)]
	}
	if slices.ContainsFunc(prober, func(addr netip.Addr) bool { return bytes.Contains(ends, addr.AsSlice()) }) {
		return false
	}
	return slices.ContainsFunc(addrs, func(addr netip.Addr) bool { return bytes.Contains(frame[14:], addr.AsSlice()) })
}

// neighbourTalk tells ARP and neighbour discovery.
func neighbourTalk(frame []byte) bool {
	switch binary.BigEndian.Uint16(frame[12:]) {
	case 0x0800:
		return false
	case 0x86dd:
		const icmpv6 = 58
		return len(frame) > 54 && frame[20] == icmpv6 && frame[54] >= 133 && frame[54] <= 137
	}
	return true
}

// check fails the test if a packet was not translated, or none was sent.
func (l leaks) check(t *testing.T) {
	t.Helper()
	for name, side := range l {
		frames, leaked := side.tap.Frames(), 0
		for _, frame := range frames {
			if !shows(frame, side.hidden) {
				continue
			}
			if leaked++; leaked <= 3 {
				t.Errorf("to the %s: not translated: %x", name, frame[:min(len(frame), 120)])
			}
		}
		t.Logf("to the %s: %d frames, %d not translated", name, len(frames), leaked)
		if len(frames) == 0 {
			t.Errorf("to the %s: nothing was sent", name)
		}
	}
}

// addRouter adds a router between a segment of the bridge and one of its own,
// named behind, whose link has a smaller MTU, and gives it addresses of both
// families.
func addRouter(t *testing.T, s *stand.Stand, name, port, addr, addr6, behind, far, far6 string) *lab.Host {
	t.Helper()
	router, err := s.Lab.AddHost(name, addr, lab.HostOptions{Port: port})
	must(t, err)
	must(t, router.AddAddress(addr6, ""))
	must(t, router.Forward())
	must(t, s.Lab.AddSegment(behind, lab.SegmentOptions{Isolated: true}))
	_, err = router.Attach(far, lab.HostOptions{Port: behind})
	must(t, err)
	run(t, router, "ip", "address", "add", far6, "dev", "eth1", "nodad")
	run(t, router, "ip", "link", "set", "eth1", "mtu", fmt.Sprint(smallMTU))
	return router
}

func run(t *testing.T, host *lab.Host, name string, args ...string) string {
	t.Helper()
	out, err := host.Output(t.Context(), name, args...)
	must(t, err)
	return out
}

// knowsMTU says whether a host has learned the smaller MTU on its way to addr.
func knowsMTU(t *testing.T, host *lab.Host, addr string) bool {
	t.Helper()
	return strings.Contains(run(t, host, "ip", "route", "get", addr), fmt.Sprintf("mtu %d", smallMTU))
}

// farClient adds a client behind a router on the clients' side.
func farClient(t *testing.T, s *stand.Stand) (client, router *lab.Host) {
	t.Helper()
	router = addRouter(t, s, "r1", "p1", "10.20.0.251/24", "2001:db8:20::251/64", "outside", "192.0.2.1/24", "2001:db8:99::1/64")
	client, err := s.Lab.AddHost("far", "192.0.2.10/24", lab.HostOptions{Port: "outside", Gateway: "192.0.2.1"})
	must(t, err)
	must(t, client.AddAddress("2001:db8:99::10/64", "2001:db8:99::1"))
	return client, router
}

// A download ends although a router between brlb and the client has a smaller
// MTU: what the router says of that reaches the member.
func TestDownloadAcrossSmallerMTU(t *testing.T) {
	onBothWith(t, stand.Options{IPv6: true, Config: transferring}, downloadAcrossSmallerMTU)
}

func downloadAcrossSmallerMTU(t *testing.T, s *stand.Stand) {
	await(t, s, "both pools", stand.SteadyPools(4, 4))
	client, _ := farClient(t, s)
	for _, host := range s.Hosts {
		transferFrom(t, host)
	}
	leaks := watchLeaks(t, s)
	for _, vip := range vips {
		download(t, client, vip)
	}
	for _, addr := range []string{"192.0.2.10", "2001:db8:99::10"} {
		learned := 0
		for _, host := range s.Hosts {
			if knowsMTU(t, host, addr) {
				learned++
			}
		}
		if learned != 1 {
			t.Errorf("%d members have learned the MTU on the way to %s, not one", learned, addr)
		}
	}
	leaks.check(t)
}

// An upload ends although a router between brlb and the member has a smaller MTU:
// what the router says of that reaches the client, as from the VIP.
func TestUploadAcrossSmallerMTU(t *testing.T) {
	behindRouter := func(text string) string {
		for _, name := range []string{"be1", "be2", "be3"} {
			text = removeMember(text, name)
		}
		text = strings.Replace(text, "be4: 10.30.0.14:8080", "be4: {address: 10.40.0.14:8080, via: 10.30.0.254}", 1)
		text = strings.Replace(text, `be4: "[2001:db8:30::14]:8080"`, `be4: {address: "[2001:db8:40::14]:8080", via: "2001:db8:30::254"}`, 1)
		return transferring(text)
	}
	for _, m := range machines() {
		t.Run(m.name, func(t *testing.T) {
			options := m.options
			options.IPv6, options.Config = true, behindRouter
			s := build(t, options)
			router := addRouter(t, s, "r2", "p2", "10.30.0.254/24", "2001:db8:30::254/64", "inside", "10.40.0.1/24", "2001:db8:40::1/64")
			must(t, router.AddRoute("0.0.0.0/0", stand.Gateway))
			must(t, router.AddRoute("::/0", stand.Gateway6))
			far, err := s.Lab.AddHost("far", "10.40.0.14/24", lab.HostOptions{Port: "inside", Gateway: "10.40.0.1"})
			must(t, err)
			must(t, far.AddAddress("2001:db8:40::14/64", "2001:db8:40::1"))
			for _, addr := range []string{"10.40.0.14:8080", "[2001:db8:40::14]:8080"} {
				_, err = far.StartServer(t.Context(), "be4", addr)
				must(t, err)
			}
			transferFrom(t, far)
			must(t, s.Lab.Switch.AddRoute("10.40.0.0/24", "10.30.0.254"))
			must(t, s.Lab.Switch.AddRoute("2001:db8:40::/64", "2001:db8:30::254"))
			must(t, s.Start())
			await(t, s, "the member of both pools", stand.SteadyPools(1, 1))
			leaks := watchLeaks(t, s)
			for _, vip := range vips {
				upload(t, s.Client, vip)
				if !knowsMTU(t, s.Client, vip.String()) {
					t.Errorf("the client has not learned the MTU on the way to %s", vip)
				}
			}
			leaks.check(t)
		})
	}
}

// A client learns that no program of the member has the port, and traceroute
// ends at the VIP, by every protocol.
func TestErrorsReachClients(t *testing.T) {
	onBothWith(t, stand.Options{IPv6: true, Config: transferring}, errorsReachClients)
}

func errorsReachClients(t *testing.T, s *stand.Stand) {
	await(t, s, "both pools", stand.SteadyPools(4, 4))
	client, _ := farClient(t, s)
	leaks := watchLeaks(t, s)
	for i, vip := range vips {
		closed := netip.AddrPortFrom(vip, closedPort)
		if err := askClosed(t, client, closed); !errors.Is(err, syscall.ECONNREFUSED) {
			t.Errorf("a datagram to %s: %v", closed, err)
		}
		router, gateway := "192.0.2.1", stand.Gateway
		if vip.Is6() {
			router, gateway = "2001:db8:99::1", stand.Gateway6
		}
		for network, target := range map[string]netip.AddrPort{"udp": closed, "tcp": netip.AddrPortFrom(vip, 80), "icmp": netip.AddrPortFrom(vip, 0)} {
			want := []string{router, gateway, vip.String()}
			if network == "icmp" {
				want = []string{router, vip.String()} // brlb answers
			}
			hops, err := client.Hops(t.Context(), network, target)
			if err != nil || fmt.Sprint(hops) != fmt.Sprint(want) {
				t.Errorf("%d: by %s the way to %s is %v, not %v, %v", i, network, vip, hops, want, err)
			}
		}
	}
	leaks.check(t)
}

// askClosed sends a datagram and returns what its socket learns of it.
func askClosed(t *testing.T, client *lab.Host, to netip.AddrPort) error {
	t.Helper()
	conn, err := client.DialContext(t.Context(), "udp", to.String())
	must(t, err)
	defer conn.Close()
	_, err = conn.Write([]byte{0})
	must(t, err)
	conn.SetReadDeadline(time.Now().Add(patience))
	_, err = conn.Read(make([]byte, 1))
	return err
}

// Errors that quote no more than 8 octets behind the IP header, as RFC 792
// demands at least, reach their ends too.
func TestShortErrors(t *testing.T) { onBothWith(t, stand.Options{Config: transferring}, shortErrors) }

func shortErrors(t *testing.T, s *stand.Stand) {
	const port = 20000
	vip := netip.MustParseAddrPort(stand.VIPAddress + ":53")
	member := s.Hosts[ownerOf(t, s, port, vip)]
	client := netip.AddrPortFrom(s.Client.Addr(), port)
	leaks := watchLeaks(t, s)
	var conn net.Conn
	must(t, s.Client.Do(func() (err error) {
		conn, err = net.DialUDP("udp", net.UDPAddrFromAddrPort(client), net.UDPAddrFromAddrPort(vip))
		return err
	}))
	defer conn.Close()
	_, err := conn.Write([]byte("question"))
	must(t, err)
	conn.SetReadDeadline(time.Now().Add(patience))
	_, err = conn.Read(make([]byte, 100))
	must(t, err)

	// About the answer, by the client's host: the member learns it.
	sendError(t, s.Client, vip.Addr(), 4, smallMTU, quote(vip, client))
	eventually(t, "the member has learned the MTU", func() bool { return knowsMTU(t, member, client.Addr().String()) })
	// About the question, by the member: the client learns it.
	sendError(t, member, client.Addr(), 3, 0, quote(client, netip.AddrPortFrom(member.Addr(), 8080)))
	if _, err = conn.Read(make([]byte, 1)); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("the client's socket says %v", err)
	}
	leaks.check(t)
}

// ownerOf returns the index of the host whose datagrams from a port of the client
// are.
func ownerOf(t *testing.T, s *stand.Stand, port int, vip netip.AddrPort) int {
	t.Helper()
	names, err := s.PredictAll(t.Context(), "web", "udp", s.Client.Addr(), []int{port}, vip.String())
	must(t, err)
	for i, host := range s.Servers {
		if host.Name() == names[0] {
			return i
		}
	}
	t.Fatalf("port %d is of %q", port, names[0])
	return 0
}

// quote is the IPv4 header of a UDP datagram and the 8 octets of UDP's.
func quote(src, dst netip.AddrPort) []byte {
	b := []byte{0x45, 0, 0, 36, 0, 1, 0x40, 0, 63, 17, 0, 0}
	b = append(append(b, src.Addr().AsSlice()...), dst.Addr().AsSlice()...)
	binary.BigEndian.PutUint16(b[10:], checksum(b))
	b = binary.BigEndian.AppendUint16(b, src.Port())
	b = binary.BigEndian.AppendUint16(b, dst.Port())
	return append(b, 0, 16, 0, 0)
}

// sendError sends ICMP's destination unreachable with a code and, where that
// needs one, an MTU.
func sendError(t *testing.T, from *lab.Host, to netip.Addr, code byte, mtu uint16, quoted []byte) {
	t.Helper()
	b := []byte{3, code, 0, 0, 0, 0, byte(mtu >> 8), byte(mtu)}
	b = append(b, quoted...)
	binary.BigEndian.PutUint16(b[2:], checksum(b))
	must(t, from.Do(func() error {
		conn, err := net.ListenPacket("ip4:icmp", "")
		if err != nil {
			return err
		}
		defer conn.Close()
		_, err = conn.WriteTo(b, &net.IPAddr{IP: to.AsSlice()})
		return err
	}))
}

// checksum is that of RFC 1071, over an even number of octets.
func checksum(b []byte) uint16 {
	sum := uint32(0)
	for i := 0; i+1 < len(b); i += 2 {
		sum += uint32(binary.BigEndian.Uint16(b[i:]))
	}
	for sum > 0xffff {
		sum = sum>>16 + sum&0xffff
	}
	return ^uint16(sum)
}
