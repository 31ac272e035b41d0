package integration

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"net"
	"net/netip"
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

// sctpVIPs are VIPs with the port that members serve as 8080.
var sctpVIPs = []netip.AddrPort{netip.AddrPortFrom(vips[0], 9000), netip.AddrPortFrom(vips[1], 9000)}

// association is one that stays open between messages.
type association struct {
	net.Conn
	server string
}

// associate opens associations to the VIP, n to each of the servers, from ports
// that begin with first.
func associate(t *testing.T, s *stand.Stand, first, n int) map[string][]association {
	t.Helper()
	slots, err := s.API.Slots(t.Context(), "web")
	must(t, err)
	open := map[string][]association{}
	for port := first; port < first+400; port++ {
		from := netip.AddrPortFrom(s.Client.Addr(), uint16(port))
		owner := stand.OwnerOf(slots, "sctp", from, sctpVIPs[0])
		if len(open[owner]) == n {
			continue
		}
		conn, err := s.Client.Associate(from, sctpVIPs[0])
		must(t, err)
		t.Cleanup(func() { conn.Close() })
		a := association{conn, owner}
		a.mustAnswer(t, "when it is new")
		open[owner] = append(open[owner], a)
	}
	return open
}

// mustAnswer has a message echoed, by the server that the association was opened to.
func (a association) mustAnswer(t *testing.T, when string) {
	t.Helper()
	a.SetDeadline(time.Now().Add(patience))
	if server, err := lab.Echo(a, 1000); err != nil || server != a.server {
		t.Errorf("%s: an association to %s is answered by %q: %v", when, a.server, server, err)
	}
}

// mustEnd has a message echoed, in vain.
func (a association) mustEnd(t *testing.T) {
	t.Helper()
	began := time.Now()
	a.SetDeadline(began.Add(patience))
	if _, err := lab.Echo(a, 1000); !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("an association to %s: %v, want an abort", a.server, err)
	}
	t.Logf("an association to %s is aborted %v after its next packet", a.server, time.Since(began).Round(time.Microsecond))
}

func placedSCTP(t *testing.T, s *stand.Stand, when, pool string, client netip.Addr, vip netip.AddrPort, ports []int, size int) {
	t.Helper()
	want, err := s.PredictAll(t.Context(), pool, "sctp", client, ports, vip.String())
	must(t, err)
	compare(t, when, want, s.Client.AssociateEach(t.Context(), client, vip, ports, size, 8))
}

// Associations land where the table says, and their messages come back, long ones
// too. A drain moves new ones alone; those of members that hang, or are removed, are
// aborted at their clients' next packet. Who is not served is told at once.
func TestSCTP(t *testing.T) {
	if lab.Datapath() == "netdev" {
		t.Skip("Open vSwitch's userspace datapath tracks no SCTP before 3.2 (see TestSCTPUntracked): this runs in a guest, on the kernel's")
	}
	if !lab.HasSCTP() {
		t.Fatal("this machine's kernel has no SCTP: modprobe sctp")
	}
	t.Run("nat", func(t *testing.T) {
		s := start(t, stand.Options{IPv6: true, Config: serve("80/tcp, 9000/sctp")})
		await(t, s, "both pools", stand.SteadyPools(4, 4))
		client, client6 := s.Client.Addr(), netip.MustParseAddr(stand.Client6Address)
		placedSCTP(t, s, "IPv4", "web", client, sctpVIPs[0], sourcePorts(20000, 200), 100)
		placedSCTP(t, s, "IPv4, messages of 20,000 octets", "web", client, sctpVIPs[0], sourcePorts(25000, 20), 20000)
		placedSCTP(t, s, "IPv6", "web6", client6, sctpVIPs[1], sourcePorts(20000, 100), 100)
		placedSCTP(t, s, "IPv6, messages of 20,000 octets", "web6", client6, sctpVIPs[1], sourcePorts(25000, 20), 20000)
		trace, err := s.API.Trace(t.Context(), api.TraceRequest{
			Src: client.String(), SrcPort: 20000, Dst: vips[0].String(), DstPort: 9000, Proto: "sctp", InPort: "p1",
		})
		must(t, err)
		want, err := s.PredictAll(t.Context(), "web", "sctp", client, []int{20000}, sctpVIPs[0].String())
		must(t, err)
		if trace.Member != want[0] || trace.Switch == nil || !trace.Switch.Agrees {
			t.Errorf("trace says %s, not %s; the switch: %+v %s", trace.Member, want[0], trace.Switch, trace.SwitchError)
		}

		open := associate(t, s, 30000, 3)
		answered := func(when string, members ...string) {
			t.Helper()
			for _, member := range members {
				for _, a := range open[member] {
					a.mustAnswer(t, when)
				}
			}
		}
		_, err = s.API.Change(t.Context(), "drain", api.ChangeRequest{Member: "web/be1", Who: "test", WaitSeconds: patience.Seconds()})
		must(t, err)
		settle(t, s)
		placedSCTP(t, s, "while be1 drains", "web", client, sctpVIPs[0], sourcePorts(40000, 100), 100)
		answered("while be1 drains", "be1", "be2", "be3", "be4")

		must(t, s.Servers[1].Process().Pause())
		await(t, s, "be2 down", stand.SteadyPools(2, 4))
		settle(t, s)
		for _, a := range open["be2"] {
			a.mustEnd(t)
		}
		answered("while be2 is down", "be1", "be3", "be4")
		await(t, s, "none left at be2", counted(3, 0, 3, 3))

		reload(t, s, removeMember(s.DefaultConfig(), "be3"))
		settle(t, s)
		for _, a := range open["be3"] {
			a.mustEnd(t)
		}
		answered("while be3 is gone", "be1", "be4")
		must(t, s.Servers[1].Process().Resume())

		reload(t, s, strings.ReplaceAll(s.DefaultConfig(), "    check: web\n", "    check: web\n    on_all_down: reject\n"))
		await(t, s, "all but be1", stand.SteadyPools(3, 4))
		for _, server := range s.Servers {
			must(t, server.SetHealth(503))
		}
		await(t, s, "all sick", stand.SteadyPools(0, 4))
		settle(t, s)
		for _, to := range []netip.AddrPort{sctpVIPs[0], netip.AddrPortFrom(vips[0], 22), netip.AddrPortFrom(vips[1], 22)} {
			from := client
			if to.Addr().Is6() {
				from = client6
			}
			began := time.Now()
			_, err := s.Client.Associate(netip.AddrPortFrom(from, 45000), to)
			if took := time.Since(began); !errors.Is(err, syscall.ECONNREFUSED) || took > atOnce {
				t.Errorf("%s: %v after %v, want a refusal at once", to, err, took)
			}
		}
	})
	t.Run("dsr", func(t *testing.T) {
		s := dsr(t, "")
		placedSCTP(t, s, "dsr", "web", s.Client.Addr(), netip.MustParseAddrPort(dsrVIP), sourcePorts(20000, 100), 1000)
	})
}

// Where the switch does not track SCTP, that is told; what needs no conntrack works:
// refusals, and placement by hash alone.
func TestSCTPUntracked(t *testing.T) {
	t.Run("nat", func(t *testing.T) {
		s := start(t, stand.Options{IPv6: true, Config: serve("80/tcp, 9000/sctp")})
		st := await(t, s, "both pools", stand.SteadyPools(4, 4))
		if told := strings.Contains(strings.Join(st.Degraded, " "), "does not know SCTP's ports"); told != (lab.Datapath() == "netdev") {
			t.Errorf("degraded: %q", st.Degraded)
		}
		client := tap(t, s.Client)
		for i, from := range []netip.Addr{s.Client.Addr(), netip.MustParseAddr(stand.Client6Address)} {
			init := initChunk(openflow.MAC(s.Client.Interface().MAC), ownMAC(t, s), netip.AddrPortFrom(from, 40000), netip.AddrPortFrom(vips[i], 22))
			must(t, client.Send(init))
			eventually(t, "an ABORT", func() bool {
				for _, frame := range client.Frames() {
					ends, err := packet.ReadTuple(frame)
					if err == nil && ends.Proto == 132 && ends.Src == netip.AddrPortFrom(vips[i], 22) && ends.Dst == netip.AddrPortFrom(from, 40000) {
						return bytes.Contains(frame, []byte{0xb7, 0x1b, 0, 1}) // the tag of the INIT
					}
				}
				return false
			})
		}
	})
	t.Run("dsr", func(t *testing.T) {
		s := dsr(t, "")
		vip, ports := netip.MustParseAddrPort(dsrVIP), sourcePorts(20000, 200)
		client := tap(t, s.Client)
		want, err := s.PredictAll(t.Context(), "web", "sctp", s.Client.Addr(), ports, dsrVIP)
		must(t, err)
		members := make([]*lab.Tap, len(s.Hosts))
		for i, host := range s.Hosts {
			members[i] = tap(t, host)
		}
		mac := ownMAC(t, s)
		for _, port := range ports {
			must(t, client.Send(initChunk(openflow.MAC(s.Client.Interface().MAC), mac, netip.AddrPortFrom(s.Client.Addr(), uint16(port)), vip)))
		}
		got := map[int]string{}
		eventually(t, "every INIT at a member", func() bool {
			for i, member := range members {
				for _, frame := range member.Frames() {
					if ends, err := packet.ReadTuple(frame); err == nil && ends.Proto == 132 && ends.Dst == vip {
						got[int(ends.Src.Port())] = s.Servers[i].Name()
					}
				}
			}
			return len(got) == len(ports)
		})
		for i, port := range ports {
			if got[port] != want[i] {
				t.Errorf("port %d: at %s, predicted %s", port, got[port], want[i])
			}
		}
	})
}

// initChunk is the frame of an INIT with initiate tag b71b0001.
func initChunk(from, to openflow.MAC, src, dst netip.AddrPort) []byte {
	frame := append(append(bytes.Clone(to[:]), from[:]...), 0x08, 0x00)
	sctp := []byte{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 20, 0xb7, 0x1b, 0, 1, 0, 1, 0, 0, 0, 10, 0, 10, 0, 0, 0, 1}
	binary.BigEndian.PutUint16(sctp, src.Port())
	binary.BigEndian.PutUint16(sctp[2:], dst.Port())
	binary.LittleEndian.PutUint32(sctp[8:], crc32.Checksum(sctp, crc32.MakeTable(crc32.Castagnoli)))
	if dst.Addr().Is6() {
		frame[12], frame[13] = 0x86, 0xdd
		frame = append(frame, 0x60, 0, 0, 0, 0, byte(len(sctp)), 132, 64)
		return append(append(append(frame, src.Addr().AsSlice()...), dst.Addr().AsSlice()...), sctp...)
	}
	ip := append([]byte{0x45, 0, 0, byte(20 + len(sctp)), 0, 0, 0, 0, 64, 132, 0, 0}, src.Addr().AsSlice()...)
	ip = append(ip, dst.Addr().AsSlice()...)
	binary.BigEndian.PutUint16(ip[10:], internetSum(ip))
	return append(append(frame, ip...), sctp...)
}
