package integration

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"
	"testing"
	"time"

	"brlb/controller/api"
	"brlb/integration/lab"
	"brlb/integration/stand"
)

// Flags of TCP.
const (
	fin = 0x01
	rst = 0x04
	psh = 0x08
	ack = 0x10
	syn = 0x02
)

// segment is a frame with a TCP segment over IPv4, whose sequence numbers are of
// no window.
func segment(from, to net.HardwareAddr, src, dst netip.AddrPort, flags byte) []byte {
	payload := []byte("out of window")
	payload = append(payload, 0) // an even number of octets
	tcp := binary.BigEndian.AppendUint16(nil, src.Port())
	tcp = binary.BigEndian.AppendUint16(tcp, dst.Port())
	tcp = append(tcp, 0x12, 0x34, 0x56, 0x78, 0x87, 0x65, 0x43, 0x21, 5<<4, flags, 0xff, 0xff, 0, 0, 0, 0)
	tcp = append(tcp, payload...)
	addrs := append(src.Addr().AsSlice(), dst.Addr().AsSlice()...)
	pseudo := append(bytes.Clone(addrs), 0, 6, 0, byte(len(tcp)))
	binary.BigEndian.PutUint16(tcp[16:], checksum(append(pseudo, tcp...)))
	ip := append([]byte{0x45, 0, 0, byte(20 + len(tcp)), 0, 1, 0x40, 0, 64, 6, 0, 0}, addrs...)
	binary.BigEndian.PutUint16(ip[10:], checksum(ip))
	frame := append(bytes.Clone(to), from...)
	frame = append(frame, 0x08, 0x00)
	return append(append(frame, ip...), tcp...)
}

// A segment out of the window, of either end, is translated like any other, and
// the connection that it seems to be of goes on.
func TestSegmentsOutOfTheWindow(t *testing.T) {
	onBoth(t, func(t *testing.T, s *stand.Stand) {
		own := ownMAC(t, s)
		mac := net.HardwareAddr(own[:])
		leaks := watchLeaks(t, s)
		client := tap(t, s.Client)
		vip := netip.MustParseAddrPort(stand.VIP)
		open := keep(t, s, 36000, 1)
		for i, host := range s.Hosts {
			k := open[s.Servers[i].Name()][0]
			end := netip.MustParseAddrPort(k.conn.LocalAddr().String())
			member := tap(t, host)
			for _, flags := range []byte{ack, ack | psh, fin | ack, syn | ack, rst | ack, rst} {
				must(t, client.Send(segment(s.Client.Interface().MAC, mac, end, vip, flags)))
				must(t, member.Send(segment(host.Interface().MAC, mac, netip.AddrPortFrom(host.Addr(), 8080), end, flags)))
				was := k.server
				if err := k.ask(patience); err != nil || k.server != was {
					t.Errorf("after segments with flags %#02x: %s answers instead of %s, %v", flags, k.server, was, err)
				}
			}
		}
		leaks.check(t)
	})
}

// What conntrack calls invalid is dropped neither between hosts that have nothing
// to do with brlb nor between such a host and a member's service port.
func TestOddSegmentsOfOthers(t *testing.T) {
	onBoth(t, func(t *testing.T, s *stand.Stand) {
		one, err := s.Lab.AddHost("one", "10.30.0.91/24", lab.HostOptions{})
		must(t, err)
		other, err := s.Lab.AddHost("other", "10.30.0.92/24", lab.HostOptions{})
		must(t, err)
		receiver := tap(t, other)
		for _, host := range []*lab.Host{one, s.Hosts[0]} {
			sender := tap(t, host)
			sent := map[string]bool{}
			for _, flags := range []byte{0, ack, ack | psh, fin, fin | ack, syn | fin, syn | ack, syn | rst, rst, rst | ack, 0xff} {
				frame := segment(host.Interface().MAC, other.Interface().MAC,
					netip.AddrPortFrom(host.Addr(), 8080), netip.AddrPortFrom(other.Addr(), 9999), flags)
				sent[string(frame)] = true
				must(t, sender.Send(frame))
			}
			all := len(sent)
			eventually(t, fmt.Sprintf("all segments from %s", host.Addr()), func() bool {
				for _, frame := range receiver.Frames() {
					delete(sent, string(frame))
				}
				return len(sent) == 0
			})
			t.Logf("%d odd segments from %s arrive as they were sent", all, host.Addr())
		}
	})
}

// Connections without packets for longer than the switch's caches last stay with
// their members, whatever has become of other members meanwhile; those of a
// member to its own VIP too.
func TestIdleConnectionsStay(t *testing.T) {
	onUserspace(t, func(t *testing.T, s *stand.Stand) {
		idle := []map[string][]*kept{keep(t, s, 36000, 2), keepFrom(t, s, s.Hosts[0], 36000, 2)}
		for _, change := range []string{"drain", "enable", "drain"} {
			_, err := s.API.Change(t.Context(), change, api.ChangeRequest{Member: "be2", Who: "test", WaitSeconds: patience.Seconds()})
			must(t, err)
			time.Sleep(6 * time.Second)
		}
		for _, open := range idle {
			for server, connections := range open {
				mustAnswer(t, "after 18 s", connections)
				for _, k := range connections {
					if k.server != server {
						t.Errorf("a connection to %s is with %s", server, k.server)
					}
				}
			}
		}
	})
}
