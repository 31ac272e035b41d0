package integration

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"brlb/controller/api"
	"brlb/controller/packet"
	"brlb/integration/lab"
	"brlb/integration/stand"
	"brlb/openflow"
)

// vips are the stand's VIPs, one of each family.
var vips = []netip.Addr{netip.MustParseAddr(stand.VIPAddress), netip.MustParseAddr(stand.VIP6Address)}

// ownMAC reads out of the switch's rows which MAC address brlb has.
func ownMAC(t *testing.T, s *stand.Stand) openflow.MAC {
	t.Helper()
	flows, err := s.API.Flows(t.Context(), "actual")
	must(t, err)
	for _, f := range flows.Flows {
		if _, text, found := strings.Cut(f.Text, "arp,dl_dst="); found {
			mac, err := net.ParseMAC(text[:17])
			must(t, err)
			return openflow.MAC(mac)
		}
	}
	t.Fatal("no row for answers to brlb's own questions")
	return openflow.MAC{}
}

func tap(t *testing.T, host *lab.Host) *lab.Tap {
	t.Helper()
	tap, err := host.Tap(host.Interface().Name)
	must(t, err)
	return tap
}

// Taking over a VIP is announced, in all forms that hosts heed, more than once,
// and not before the switch answers for it.
func TestAnnouncements(t *testing.T) {
	s := build(t, stand.Options{IPv6: true})
	client := tap(t, s.Client)
	must(t, s.Start())
	await(t, s, "both pools", stand.SteadyPools(4, 4))
	mac := ownMAC(t, s)
	times := map[string]int{}
	names := map[string]string{}
	for _, vip := range vips {
		for i, frame := range packet.Announce(mac, vip, false) {
			names[string(frame)] = fmt.Sprintf("%s, form %d", vip, i)
		}
	}
	eventually(t, "four announcements of each form", func() bool {
		for _, frame := range client.Frames() {
			if name, ok := names[string(frame)]; ok {
				times[name]++
			}
		}
		return len(times) == 3 && times[names[string(packet.Announce(mac, vips[1], false)[0])]] >= 4
	})
	t.Logf("announced: %v", times)
	time.Sleep(2 * time.Second)
	for _, frame := range client.Frames() {
		if name, ok := names[string(frame)]; ok {
			times[name]++
		}
	}
	for name, n := range times {
		if n != 4 {
			t.Errorf("%s is announced %d times, want 4", name, n)
		}
	}
}

// Many VIPs are announced one after another, not in a burst, and all of them.
func TestManyVIPsAreAnnounced(t *testing.T) {
	const n, rounds = 120, 4
	list := make([]string, n)
	for i := range list {
		list[i] = fmt.Sprintf("10.20.1.%d", i)
	}
	s := build(t, stand.Options{Config: func(text string) string {
		return strings.Replace(text, "address: "+stand.VIPAddress, "address: ["+strings.Join(list, ", ")+"]", 1)
	}})
	client := tap(t, s.Client)
	must(t, s.Start())
	await(t, s, "all members active", stand.Steady(4))
	heard := map[netip.Addr]int{}
	var first, last time.Time
	eventually(t, "all VIPs are announced", func() bool {
		for _, frame := range client.Frames() {
			if neighbour, err := packet.ReadNeighbour(frame); err == nil && strings.HasPrefix(neighbour.Addr.String(), "10.20.1.") {
				if last = time.Now(); first.IsZero() {
					first = last
				}
				heard[neighbour.Addr]++
			}
		}
		complete := 0
		for _, times := range heard {
			if times == 2*rounds {
				complete++
			}
		}
		return complete == n
	})
	t.Logf("%d VIPs, %d frames in %v", n, n*2*rounds, last.Sub(first).Round(time.Millisecond))
	// 100 a second after the first 50, but for what was held up on its way.
	if took := last.Sub(first); took < 6*time.Second {
		t.Errorf("%d announcements came within %v", n*2*rounds, took)
	}
}

// Who comes later hears of the VIPs, too: by a port that is new, in its VLAN, and
// by one whose carrier comes back.
func TestNewcomersHear(t *testing.T) {
	s := start(t, stand.Options{IPv6: true})
	await(t, s, "both pools", stand.SteadyPools(4, 4))
	mac := ownMAC(t, s)
	heard := func(tap *lab.Tap, when string) {
		t.Helper()
		missing := map[string]bool{}
		for _, vip := range vips {
			for _, frame := range packet.Announce(mac, vip, false) {
				missing[string(frame)] = true
			}
		}
		eventually(t, when+" all VIPs are announced", func() bool {
			for _, frame := range tap.Frames() {
				delete(missing, string(frame))
			}
			return len(missing) == 0
		})
	}
	quiet := func(tap *lab.Tap) {
		t.Helper()
		for since := time.Now(); time.Since(since) < 5*time.Second; time.Sleep(50 * time.Millisecond) {
			for _, frame := range tap.Frames() {
				if bytes.Equal(frame[6:12], mac[:]) && (frame[12] == 0x08 && frame[13] == 0x06) && bytes.Equal(frame[28:32], vips[0].AsSlice()) {
					since = time.Now()
				}
			}
		}
	}
	client := tap(t, s.Client)
	quiet(client)
	late, err := s.Lab.AddHost("late", "10.20.0.31/24", lab.HostOptions{VLAN: 31})
	must(t, err)
	newcomer := tap(t, late)
	heard(newcomer, "at a new port")
	quiet(newcomer)
	run(t, late, "ip", "link", "set", late.Interface().Name, "down")
	await(t, s, "a port without carrier", func(st *api.Status) bool {
		return slices.ContainsFunc(st.Switch.Ports, func(p api.Port) bool { return p.Name == "late" && !p.Live })
	})
	run(t, late, "ip", "link", "set", late.Interface().Name, "up")
	heard(newcomer, "after the carrier has come back")
}

// What asks for an address of brlb's gets its answer from the switch, also while
// there is no controller; who asks whether it is free, from brlb.
func TestNeighboursAreAnswered(t *testing.T) {
	onBothWith(t, stand.Options{IPv6: true}, func(t *testing.T, s *stand.Stand) {
		await(t, s, "both pools", stand.SteadyPools(4, 4))
		mac := ownMAC(t, s)
		client := tap(t, s.Client)
		own := openflow.MAC(s.Client.Interface().MAC)
		four, six := s.Client.Addr(), netip.MustParseAddr(stand.Client6Address)
		arp := packet.Ask(own, four, vips[0])
		solicit := packet.Ask(own, netip.Addr{}, vips[1]) // from the link-local address
		to := func(frame []byte) []byte { return append(bytes.Clone(mac[:]), frame[6:]...) }
		answered := func(question []byte) bool {
			t.Helper()
			client.Frames()
			must(t, client.Send(question))
			for deadline := time.Now().Add(5 * time.Second); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
				for _, frame := range client.Frames() {
					n, err := packet.ReadNeighbour(frame)
					if err == nil && n.MAC == mac && (n.Addr == vips[0] || n.Addr == vips[1]) {
						return true
					}
				}
			}
			return false
		}
		check := func(when string, questions map[string][]byte) {
			t.Helper()
			for name, question := range questions {
				if !answered(question) {
					t.Errorf("%s: %s is not answered", when, name)
				}
			}
		}
		bySwitch := map[string][]byte{
			"ARP": arp, "ARP to brlb alone": to(arp), "a solicitation": solicit, "a solicitation to brlb alone": to(solicit),
		}
		check("brlb runs", bySwitch)
		check("brlb runs", map[string][]byte{
			"a solicitation without a MAC": withoutOption(solicit, six), "duplicate address detection": withoutOption(solicit, netip.IPv6Unspecified()),
		})
		for _, vip := range vips {
			if took, err := ping(t, s.Client, vip); err != nil || took > atOnce {
				t.Errorf("ping of %s: %v after %v", vip, err, took)
			}
		}
		// In fragments, too.
		for _, size := range []int{4000, 20000} {
			for from, addrs := range map[*lab.Host][]netip.Addr{
				s.Client:   vips,
				s.Hosts[0]: {netip.MustParseAddr(stand.Gateway), netip.MustParseAddr(stand.Gateway6)},
			} {
				for _, to := range addrs {
					if took, err := longPing(t, from, to, size); err != nil {
						t.Errorf("ping of %s with %d octets: %v after %v", to, size, err, took)
					}
				}
			}
		}
		// One that is longer than fits into a packet-in does no harm.
		longPing(t, s.Client, vips[0], 65400)
		events, err := s.API.Events(t.Context(), 0)
		must(t, err)
		if strings.Contains(fmt.Sprint(events.Events), "disconnected") {
			t.Errorf("a long ping has ended the session: %v", events.Events)
		}
		// The members' gateway, as their kernels see it.
		if _, err := ping(t, s.Hosts[0], netip.MustParseAddr(stand.Gateway6)); err != nil {
			t.Errorf("ping of the gateway: %v", err)
		}
		out, err := s.Hosts[0].Output(t.Context(), "ip", "-6", "neigh", "show", stand.Gateway6)
		must(t, err)
		if !strings.Contains(out, fmt.Sprint(net.HardwareAddr(mac[:]))) || !strings.Contains(out, "router") {
			t.Errorf("the gateway is seen as %q", out)
		}
		must(t, s.Kill())
		if lab.Datapath() != "netdev" {
			// A kernel's datapath cannot make advertisements: brlb does.
			delete(bySwitch, "a solicitation")
			delete(bySwitch, "a solicitation to brlb alone")
		}
		check("brlb is dead", bySwitch)
		for _, vip := range vips {
			if _, err := ping(t, s.Client, vip); err != nil {
				t.Errorf("without brlb, ping of %s: %v", vip, err)
			}
		}
	})
}

// withoutOption makes a solicitation one from another address and without the
// asker's MAC.
func withoutOption(frame []byte, src netip.Addr) []byte {
	frame = bytes.Clone(frame[:14+40+24])
	copy(frame[14+8:], src.AsSlice())
	frame[14+5] = 24
	message := frame[54:]
	message[2], message[3] = 0, 0
	sum := uint32(24 + 58)
	for _, part := range [][]byte{frame[22:54], message} {
		for i := 0; i < len(part); i += 2 {
			sum += uint32(binary.BigEndian.Uint16(part[i:]))
		}
	}
	sum = sum>>16 + sum&0xffff
	binary.BigEndian.PutUint16(message[2:], ^uint16(sum>>16+sum&0xffff))
	return frame
}

// ping sends an echo request and waits for its reply.
func ping(t *testing.T, host *lab.Host, to netip.Addr) (took time.Duration, err error) {
	t.Helper()
	return longPing(t, host, to, 0)
}

// longPing sends an echo request with so many octets of data, in fragments if need
// be, and waits for its reply, whole.
func longPing(t *testing.T, host *lab.Host, to netip.Addr, size int) (took time.Duration, err error) {
	t.Helper()
	data := bytes.Repeat([]byte("ping"), size/4)
	network, request, reply := "ip4:icmp", append([]byte{8, 0, 0, 0, 0, 1, 0, 1}, data...), byte(0)
	binary.BigEndian.PutUint16(request[2:], internetSum(request))
	if to.Is6() {
		network, request, reply = "ip6:ipv6-icmp", append([]byte{128, 0, 0, 0, 0, 1, 0, 1}, data...), 129 // the kernel has the sum
	}
	start := time.Now()
	conn, err := host.DialContext(t.Context(), network, to.String())
	if err != nil {
		return 0, err
	}
	defer conn.Close()
	conn.SetDeadline(start.Add(5 * time.Second))
	if _, err = conn.Write(request); err != nil {
		return 0, err
	}
	buffer := make([]byte, 1<<16)
	for {
		n, _, err := conn.(*net.IPConn).ReadFrom(buffer)
		if err != nil {
			return time.Since(start), err
		}
		if n >= 8 && buffer[0] == reply && bytes.Equal(buffer[4:n], request[4:]) {
			return time.Since(start), nil
		}
	}
}

// internetSum is the checksum of RFC 1071.
func internetSum(octets []byte) uint16 {
	sum := uint32(0)
	for i := 0; i+1 < len(octets); i += 2 {
		sum += uint32(binary.BigEndian.Uint16(octets[i:]))
	}
	sum = sum>>16 + sum&0xffff
	return ^uint16(sum>>16 + sum&0xffff)
}

// Who comes to a port that no service has is told at once, or not at all, as
// the service says; nothing of it is forwarded.
func TestOtherPorts(t *testing.T) {
	onBothWith(t, stand.Options{IPv6: true}, func(t *testing.T, s *stand.Stand) {
		await(t, s, "both pools", stand.SteadyPools(4, 4))
		elsewhere := []*lab.Tap{tap(t, s.Hosts[0]), tap(t, s.Hosts[1])}
		for _, vip := range vips {
			for _, network := range []string{"tcp", "udp"} {
				if took, err := knock(t, s, network, netip.AddrPortFrom(vip, 22), patience); !errors.Is(err, syscall.ECONNREFUSED) || took > atOnce {
					t.Errorf("%s to port 22 of %s: %v after %v, want a refusal at once", network, vip, err, took)
				}
			}
		}
		must(t, s.WriteConfig(strings.Replace(s.DefaultConfig(), "pool6: web6}", "pool6: web6, other_ports: drop}", 1)))
		_, err := s.API.Reload(t.Context(), api.ReloadRequest{})
		must(t, err)
		await(t, s, "both pools", stand.SteadyPools(4, 4))
		settle(t, s)
		for _, vip := range vips {
			for _, network := range []string{"tcp", "udp"} {
				if _, err := knock(t, s, network, netip.AddrPortFrom(vip, 22), silence); !isTimeout(err) {
					t.Errorf("%s to port 22 of %s: %v, want silence", network, vip, err)
				}
			}
		}
		for _, tap := range elsewhere {
			for _, frame := range tap.Frames() {
				if tuple, err := packet.ReadTuple(frame); err == nil && tuple.Dst.Port() == 22 {
					t.Errorf("a packet to %s was forwarded", tuple.Dst)
				}
			}
		}
	})
}

// atOnce is less than a client would wait if nothing came.
const atOnce = 10 * time.Second

// silence is for how long nothing must come, to be called silence.
const silence = time.Second

// knock connects, or sends a datagram and waits for an answer.
func knock(t *testing.T, s *stand.Stand, network string, to netip.AddrPort, wait time.Duration) (took time.Duration, err error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), wait)
	defer cancel()
	start := time.Now()
	conn, err := s.Client.DialContext(ctx, network, to.String())
	if err != nil {
		return time.Since(start), err
	}
	defer conn.Close()
	if network == "udp" {
		deadline, _ := ctx.Deadline()
		conn.SetDeadline(deadline)
		if _, err = conn.Write([]byte("anybody?")); err == nil {
			_, err = conn.Read(make([]byte, 100))
		}
	}
	return time.Since(start), err
}

func isTimeout(err error) bool {
	var timeout net.Error
	return errors.As(err, &timeout) && timeout.Timeout()
}

// A flood to a port that no service has costs a bounded number of answers.
func TestFloodOfRefusals(t *testing.T) {
	s := start(t, stand.Options{IPv6: true})
	client := tap(t, s.Client)
	conn, err := s.Client.DialContext(t.Context(), "udp", stand.VIPAddress+":9")
	must(t, err)
	defer conn.Close()
	const rate, burst = 1000, 200 // of the meter
	begin := time.Now()
	sent := 0
	for time.Since(begin) < 2*time.Second {
		for range 100 {
			if _, err := conn.Write([]byte("flood")); err == nil || errors.Is(err, syscall.ECONNREFUSED) {
				sent++
			}
		}
		time.Sleep(5 * time.Millisecond)
	}
	time.Sleep(500 * time.Millisecond)
	most := burst + int(rate*time.Since(begin).Seconds())
	answers := 0
	for _, frame := range client.Frames() {
		if tuple, err := packet.ReadTuple(frame); err == nil && tuple.Proto == 1 && tuple.Src.Addr() == vips[0] {
			answers++
		}
	}
	t.Logf("%d datagrams, %d answers, %d at most", sent, answers, most)
	if answers > most || answers < burst {
		t.Errorf("%d answers to %d datagrams, want %d to %d", answers, sent, burst, most)
	}
	if sent < 2*most {
		t.Skipf("the machine sent only %d datagrams: no flood", sent)
	}
	if took, err := knock(t, s, "tcp", netip.MustParseAddrPort(stand.VIP), patience); err != nil {
		t.Errorf("the service itself, after the flood: %v after %v", err, took)
	}
}

// A packet whose time to live ends at brlb is answered by it, as by any router:
// brlb shows in a traceroute as the hop before the member, and as the one after it.
func TestTimeToLive(t *testing.T) {
	s := start(t, stand.Options{IPv6: true, Servers: 1})
	await(t, s, "both pools", stand.SteadyPools(1, 1))
	client, member := tap(t, s.Client), tap(t, s.Hosts[0])
	members := []netip.Addr{s.Hosts[0].Addr(), netip.MustParseAddr("2001:db8:30::11")}
	clients := []netip.Addr{s.Client.Addr(), netip.MustParseAddr(stand.Client6Address)}
	for i, gateway := range []netip.Addr{netip.MustParseAddr(stand.Gateway), netip.MustParseAddr(stand.Gateway6)} {
		level, option, kind, quoted := syscall.IPPROTO_IP, syscall.IP_TTL, byte(11), 14+20+8
		if gateway.Is6() {
			level, option, kind, quoted = syscall.IPPROTO_IPV6, syscall.IPV6_UNICAST_HOPS, 3, 14+40+8
		}
		hop := func(ttl int) error {
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
			defer cancel()
			dialer := net.Dialer{Control: func(_, _ string, c syscall.RawConn) (err error) {
				c.Control(func(fd uintptr) { err = syscall.SetsockoptInt(int(fd), level, option, ttl) })
				return err
			}}
			return s.Client.Do(func() error {
				conn, err := dialer.DialContext(ctx, "tcp", netip.AddrPortFrom(vips[i], 80).String())
				if err == nil {
					conn.Close()
				}
				return err
			})
		}
		// expired says whether somebody is told that the time to live of a segment that
		// they sent has run out.
		expired := func(tap *lab.Tap, sent func(packet.Tuple) bool) bool {
			for _, frame := range tap.Frames() {
				tuple, err := packet.ReadTuple(frame)
				if err != nil || tuple.Src.Addr() != gateway || frame[quoted-8] != kind {
					continue
				}
				inner, err := packet.ReadTuple(append(bytes.Clone(frame[:14]), frame[quoted:]...))
				if err != nil || !sent(inner) || inner.Proto != 6 {
					t.Errorf("%s: the error is about %v, %v", vips[i], inner, err)
				}
				return true
			}
			return false
		}
		client.Frames()
		if err := hop(1); err == nil {
			t.Errorf("%s: connected over one hop", vips[i])
		}
		// The kernel hears of it before the tap is read.
		eventually(t, fmt.Sprintf("an answer that the time to live to %s has run out", vips[i]), func() bool {
			return expired(client, func(sent packet.Tuple) bool { return sent.Dst == netip.AddrPortFrom(vips[i], 80) })
		})
		if err := hop(2); err != nil {
			t.Errorf("%s: over two hops: %v", vips[i], err)
		}

		// What the member answers ends there as well.
		for _, setting := range []string{"net/ipv4/ip_default_ttl", "net/ipv6/conf/eth0/hop_limit"} {
			must(t, s.Hosts[0].Sysctl(setting, "1"))
		}
		member.Frames()
		if err := hop(2); err == nil {
			t.Errorf("%s: connected although what the member sends ends at brlb", vips[i])
		}
		eventually(t, fmt.Sprintf("an answer that the time to live from %s has run out", vips[i]), func() bool {
			return expired(member, func(sent packet.Tuple) bool {
				return sent.Src == netip.AddrPortFrom(members[i], 8080) && sent.Dst.Addr() == clients[i]
			})
		})
		for _, setting := range []string{"net/ipv4/ip_default_ttl", "net/ipv6/conf/eth0/hop_limit"} {
			must(t, s.Hosts[0].Sysctl(setting, "64"))
		}
	}
}

// When no member is left, clients are told or not, as the pool says; a service
// that comes back serves.
func TestNobodyIsLeft(t *testing.T) {
	rules := func(rule string) func(string) string {
		return func(text string) string {
			return strings.ReplaceAll(text, "    check: web\n", "    check: web\n    on_all_down: "+rule+"\n")
		}
	}
	for _, rule := range []string{"reject", "drop"} {
		t.Run(rule, func(t *testing.T) {
			s := start(t, stand.Options{IPv6: true, Servers: 1, Config: rules(rule)})
			await(t, s, "both pools", stand.SteadyPools(1, 1))
			client, server := tap(t, s.Client), tap(t, s.Hosts[0])
			for _, pool := range []string{"web", "web6"} {
				_, err := s.API.Change(t.Context(), "drain", api.ChangeRequest{Member: pool + "/be1", Who: "test", Force: true, WaitSeconds: patience.Seconds()})
				must(t, err)
			}
			settle(t, s)
			server.Frames()
			wait := silence
			if rule == "reject" {
				wait = patience
			}
			for _, vip := range vips {
				took, err := knock(t, s, "tcp", netip.AddrPortFrom(vip, 80), wait)
				if rule == "reject" && !errors.Is(err, syscall.ECONNREFUSED) {
					t.Errorf("%s: %v after %v, want a refusal at once", vip, err, took)
				}
				if rule == "drop" && err == nil {
					t.Errorf("%s: connected", vip)
				}
			}
			for where, frames := range map[string][][]byte{"client": client.Frames(), "member": server.Frames()} {
				for _, frame := range frames {
					tuple, err := packet.ReadTuple(frame)
					if err == nil && tuple.Proto == 6 && (tuple.Dst.Port() == 80 || tuple.Dst.Port() == 8080 && tuple.Src.Port() > 1024 && tuple.Src.Addr() == s.Client.Addr()) {
						t.Errorf("the %s gets a packet to %s", where, tuple.Dst)
					}
				}
			}
			for _, pool := range []string{"web", "web6"} {
				_, err := s.API.Change(t.Context(), "enable", api.ChangeRequest{Member: pool + "/be1", Who: "test", WaitSeconds: patience.Seconds()})
				must(t, err)
			}
			settle(t, s)
			for _, vip := range vips {
				if _, err := knock(t, s, "tcp", netip.AddrPortFrom(vip, 80), patience); err != nil {
					t.Errorf("%s, served again: %v", vip, err)
				}
			}
		})
	}
}
