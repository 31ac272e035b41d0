package integration

import (
	"bufio"
	"bytes"
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
	"brlb/integration/lab"
	"brlb/integration/stand"
)

// The second service of TestPoolZones.
const (
	limitedVIP  = "10.20.0.101"
	limitedZone = 18202
)

// twoPools gives two of the servers to a pool with a conntrack zone, a limit and
// timeouts of its own.
func twoPools(conntrack string) func(string) string {
	return func(text string) string {
		for _, name := range []string{"be3", "be4"} {
			text = removeMember(text, name)
		}
		text = strings.Replace(text, "services:\n", "  dns: {id: 2, check: web, conntrack: "+conntrack+", members: {be3: 10.30.0.13:8080, be4: 10.30.0.14:8080}}\nservices:\n", 1)
		return serve("80/tcp, 53/udp")(text) + "  dns: {address: " + limitedVIP + ", ports: [53/udp, 80/tcp], pool: dns}\n"
	}
}

// TestPoolZones: a flood of connections to a pool with a limit of its own ends at
// that limit, while others take theirs, and its idle connections go by its own
// timeouts. When the pool goes, so does all of that.
func TestPoolZones(t *testing.T) {
	const limit = 20
	limited := fmt.Sprintf("{limit: %d, timeouts: {udp_first: 4s, udp_single: 4s, udp_multiple: 4s}}", limit)
	s := build(t, stand.Options{})
	must(t, s.WriteConfig(twoPools(limited)(s.DefaultConfig())))
	must(t, s.Start())
	await(t, s, "both pools", stand.SteadyPools(2, 2))
	entries := func(zone int) []string {
		t.Helper()
		out, err := s.Lab.Appctl("dpctl/dump-conntrack", fmt.Sprintf("zone=%d", zone))
		must(t, err)
		return strings.FieldsFunc(out, func(r rune) bool { return r == '\n' })
	}
	limits := func(want int) {
		t.Helper()
		eventually(t, "the pool's limit", func() bool {
			out, err := s.Lab.Appctl("dpctl/ct-get-limits", "zone=18202")
			return err == nil && strings.Contains(out, fmt.Sprintf("zone=18202,limit=%d,", want))
		})
		verify, err := s.API.Verify(t.Context())
		must(t, err)
		check := api.VerifyCheck{
			Name: "pool dns: conntrack limit", OK: true,
			Detail: fmt.Sprintf("the switch limits zone 18202 to %d entries, the configuration to %d", want, want),
		}
		if !slices.Contains(verify.Checks, check) {
			t.Errorf("verify does not say that %s: %+v", check.Detail, verify.Checks)
		}
	}
	limits(limit)
	eventually(t, "the pool's timeouts", func() bool {
		out, err := s.Lab.Vsctl("list-zone-tp", lab.Datapath())
		return err == nil && strings.TrimSpace(out) == "Zone:18202, Timeout Policies: udp_first=4 udp_multiple=4 udp_single=4"
	})

	// Those of the other pool last for 30 s, which is the switch's own timeout.
	asked := time.Now()
	for _, vip := range []string{stand.VIPAddress, limitedVIP} {
		for _, c := range s.Client.AskEach(t.Context(), vip+":53", []int{23000}, 100, 1) {
			must(t, c.Err)
		}
	}
	time.Sleep(time.Until(asked.Add(8 * time.Second)))
	if n := len(entries(limitedZone)); n > 0 {
		t.Errorf("%d entries of a pool with a timeout of 4 s after 8 s of silence", n)
	}
	if !strings.Contains(strings.Join(entries(18200), "\n"), "sport=23000,dport=53)") {
		t.Error("the entry of the other pool is gone after 8 s")
	}

	// What is counted, found and shown is that of the pool's zone.
	conn, err := s.Client.DialFrom(t.Context(), "tcp", limitedVIP+":80", 24000)
	must(t, err)
	defer conn.Close()
	trace, err := s.API.Trace(t.Context(), api.TraceRequest{Src: s.Client.Addr().String(), SrcPort: 24000, Dst: limitedVIP, DstPort: 80})
	must(t, err)
	if trace.Switch == nil || !trace.Switch.Agrees || !strings.Contains(trace.Switch.Entry, "zone=18202") {
		t.Errorf("trace: %+v, %s", trace.Switch, trace.SwitchError)
	}
	await(t, s, "one connection", func(st *api.Status) bool {
		zones := st.Conntrack.Pools
		return len(zones) == 1 && zones[0].Number == limitedZone && slices.Equal(zones[0].Pools, []string{"dns"}) &&
			zones[0].Entries > 0 && zones[0].Limit == limit && connectionsOf(st, trace.Member) == 1
	})

	// The flood.
	leaks := watchLeaks(t, s)
	leaks["members"].hidden = append(slices.Clone(leaks["members"].hidden), netip.MustParseAddr(limitedVIP))
	sendFrom(t, s.Client, limitedVIP+":53", portsFrom(20000, 5*limit))
	if n := len(entries(limitedZone)); n > limit || n == 0 {
		t.Errorf("the flood has made %d entries, and the limit is %d", n, limit)
	}
	for what, outcomes := range map[string][]lab.Connection{
		"connections": s.Client.ConnectEach(t.Context(), stand.VIP, portsFrom(21000, 40), 4),
		"datagrams":   s.Client.AskEach(t.Context(), stand.VIPAddress+":53", portsFrom(22000, 40), 100, 4),
	} {
		for _, c := range outcomes {
			if c.Err != nil || c.Server != "be1" && c.Server != "be2" {
				t.Fatalf("%s of the other pool during the flood: %+v", what, c)
			}
		}
	}
	eventually(t, "an alarm", func() bool {
		sendFrom(t, s.Client, limitedVIP+":53", portsFrom(20000, 5*limit)) // its entries last for 4 s only
		time.Sleep(500 * time.Millisecond)
		st, err := s.API.Status(t.Context())
		must(t, err)
		return strings.Contains(strings.Join(st.Degraded, " "), "pool dns: conntrack is nearly full")
	})
	leaks.check(t)

	// Limits and timeouts may change; the zone may not.
	reload(t, s, twoPools("{limit: 30}")(s.DefaultConfig()))
	limits(30)
	sendFrom(t, s.Client, limitedVIP+":53", portsFrom(20000, 5*limit))
	if n := len(entries(limitedZone)); n > 30 {
		t.Errorf("the flood has made %d entries, and the limit is 30", n)
	}
	must(t, s.WriteConfig(twoPools("{zone: 99}")(s.DefaultConfig())))
	_, err = s.API.Reload(t.Context(), api.ReloadRequest{})
	if want := "the conntrack zone of " + limitedVIP + " cannot change while brlb runs (it is 18202, the file says 99)"; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("another zone: %v", err)
	}

	// The member leaves, and then the pool: their connections end.
	reload(t, s, removeMember(s.DefaultConfig(), "be3"))
	eventually(t, "no entry is left in the zone", func() bool { return len(open(entries(limitedZone))) == 0 })
	eventually(t, "no timeouts are left", func() bool {
		out, err := s.Lab.Vsctl("list-zone-tp", lab.Datapath())
		return err == nil && !strings.Contains(out, "Zone:")
	})
}

// A restart may give a pool another zone: connections to it end, others go on, and
// nothing stays behind in the zone that was its before.
func TestZoneChangesAtRestart(t *testing.T) {
	s := build(t, stand.Options{})
	shared := strings.Replace(twoPools("")(s.DefaultConfig()), "conntrack: , ", "", 1)
	must(t, s.WriteConfig(shared))
	must(t, s.Start())
	await(t, s, "both pools", stand.SteadyPools(2, 2))
	var others []*kept
	for port := range 4 {
		for _, to := range []string{stand.VIP, limitedVIP + ":80"} {
			conn, err := s.Client.DialFrom(t.Context(), "tcp", to, 36000+port)
			must(t, err)
			defer conn.Close()
			if to == stand.VIP {
				others = append(others, &kept{conn: conn, reader: bufio.NewReader(conn)})
			}
		}
	}
	mustAnswer(t, "before the restart", others)
	of := func(zone int) int {
		t.Helper()
		out, err := s.Lab.Appctl("dpctl/dump-conntrack", fmt.Sprintf("zone=%d", zone))
		must(t, err)
		return strings.Count(out, "dst="+limitedVIP)
	}
	if n := of(18200); n != 4 {
		t.Fatalf("%d entries of the pool in the shared zone, not 4", n)
	}
	must(t, s.Kill())
	must(t, s.WriteConfig(twoPools("{limit: 100}")(s.DefaultConfig())))
	must(t, s.Start())
	await(t, s, "both pools", stand.SteadyPools(2, 2))
	eventually(t, "the entries in the shared zone are gone", func() bool { return of(18200) == 0 })
	for _, c := range s.Client.ConnectEach(t.Context(), limitedVIP+":80", portsFrom(38000, 20), 4) {
		if c.Err != nil || c.Server != "be3" && c.Server != "be4" {
			t.Errorf("%+v", c)
		}
	}
	if of(limitedZone) == 0 {
		t.Error("nothing is in the pool's own zone")
	}
	mustAnswer(t, "after the restart", others)
	verified(t, s)
}

// What is found by addresses alone finds its way in pools' own zones, too: errors,
// fragments, and clients on the members' own network.
func TestWaysInPoolZones(t *testing.T) {
	for name, scenario := range map[string]func(*testing.T, *stand.Stand){
		"datagrams": datagrams, "download across a smaller MTU": downloadAcrossSmallerMTU,
		"errors reach clients": errorsReachClients, "short errors": shortErrors, "hairpin": hairpin, "each packet once": eachOnce,
	} {
		t.Run(name, func(t *testing.T) {
			scenario(t, start(t, stand.Options{IPv6: true, Config: func(text string) string {
				return transferring(strings.ReplaceAll(text, "    check: web\n", "    check: web\n    conntrack: {limit: 100000}\n"))
			}}))
		})
	}
}

// eachOnce counts what a client gets of one answer in fragments, of one error, and
// of one more answer.
func eachOnce(t *testing.T, s *stand.Stand) {
	await(t, s, "both pools", stand.SteadyPools(4, 4))
	tap, err := s.Lab.Switch.Tap("p1-up")
	must(t, err)
	for _, vip := range vips {
		ask := func(port, size int) {
			t.Helper()
			for _, c := range s.Client.AskEach(t.Context(), netip.AddrPortFrom(vip, 53).String(), []int{port}, size, 1) {
				must(t, c.Err)
			}
		}
		const first, last = 20000, 20001
		ask(first, 4000)
		if err := askClosed(t, s.Client, netip.AddrPortFrom(vip, closedPort)); !errors.Is(err, syscall.ECONNREFUSED) {
			t.Errorf("a datagram to a closed port of %s: %v", vip, err)
		}
		ask(last, 100)
		frames, complete := 0, false
		eventually(t, "the last answer at the tap", func() bool {
			for _, frame := range tap.Frames() {
				if payload, ok := payloadFrom(frame, vip); ok {
					frames++
					complete = complete || binary.BigEndian.Uint16(payload[2:]) == last
				}
			}
			return complete
		})
		if frames != 3+1+1 {
			t.Errorf("%d packets came from %s, not 3 fragments, an error and an answer", frames, vip)
		}
	}
}

// payloadFrom returns what an IP packet from an address carries; ok is false for all
// other frames.
func payloadFrom(frame []byte, addr netip.Addr) (payload []byte, ok bool) {
	header, source := 20, 12
	if addr.Is6() {
		header, source = 40, 8
	}
	if len(frame) < 14+header+4 || neighbourTalk(frame) || !bytes.Equal(frame[14+source:][:addr.BitLen()/8], addr.AsSlice()) {
		return nil, false
	}
	return frame[14+header:], true
}

// open lists the entries of connections that are open.
func open(entries []string) []string {
	return slices.DeleteFunc(slices.Clone(entries), func(line string) bool {
		return strings.Contains(line, "CLOS") || strings.Contains(line, "TIME_WAIT")
	})
}

// connectionsOf is how many connections a member has, of whatever pool.
func connectionsOf(st *api.Status, name string) int {
	for _, p := range st.Pools {
		for _, m := range p.Members {
			if m.Name == name && m.Connections != nil {
				return *m.Connections
			}
		}
	}
	return 0
}

// sendFrom sends one datagram to target from each of the source ports.
func sendFrom(t *testing.T, host *lab.Host, target string, ports []int) {
	t.Helper()
	to, err := net.ResolveUDPAddr("udp", target)
	must(t, err)
	must(t, host.Do(func() error {
		for _, port := range ports {
			conn, err := net.DialUDP("udp", &net.UDPAddr{Port: port}, to)
			if err != nil {
				return err
			}
			_, err = conn.Write([]byte("flood"))
			conn.Close()
			if err != nil {
				return err
			}
		}
		return nil
	}))
}
