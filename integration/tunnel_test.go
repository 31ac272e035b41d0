package integration

import (
	"bufio"
	"bytes"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"brlb/controller/api"
	"brlb/integration/stand"
)

// tunnelled is a stand whose members have the VIP themselves, get its packets
// through a tunnel, and answer directly.
func tunnelled(t *testing.T, options string) *stand.Stand {
	t.Helper()
	s := build(t, stand.Options{Config: func(text string) string {
		text = strings.Replace(text, "    check: web\n", "    check: web\n    mode: tunnel\n"+options, 1)
		return strings.Replace(text, "ports: [80/tcp]", "ports: [8080/tcp, 8080/udp]", 1)
	}})
	for i, host := range s.Hosts {
		for _, c := range []string{
			"ip address add " + stand.VIPAddress + "/32 dev lo",
			"ip route add 10.20.0.0/24 dev eth0",
			"ip link add tunnel0 address 02:62:72:6c:62:00 type vxlan id 0 dstport 4789 local " + host.Addr().String(),
			"ip link set tunnel0 up",
		} {
			words := strings.Fields(c)
			_, err := host.Output(t.Context(), words[0], words[1:]...)
			must(t, err)
		}
		for key, value := range map[string]string{"all/arp_ignore": "1", "all/arp_announce": "2", "all/rp_filter": "0", "tunnel0/rp_filter": "0"} {
			must(t, host.Sysctl("net/ipv4/conf/"+key, value))
		}
		_, err := host.StartServer(t.Context(), fmt.Sprintf("be%d", i+1), stand.VIPAddress+":8080")
		must(t, err)
	}
	must(t, s.Start())
	await(t, s, "four members", stand.Steady(4))
	return s
}

func TestTunnel(t *testing.T) {
	s := tunnelled(t, "")
	ports := sourcePorts(20000, 500)
	for _, proto := range []string{"tcp", "udp"} {
		want, err := s.PredictAll(t.Context(), "", proto, s.Client.Addr(), ports, dsrVIP)
		must(t, err)
		if proto == "tcp" {
			compare(t, "tunnel, tcp", want, s.Client.ConnectEach(t.Context(), dsrVIP, ports, 8))
		} else {
			compare(t, "tunnel, udp", want, s.Client.AskEach(t.Context(), dsrVIP, ports, 100, 8))
		}
	}
	send(t, s, 200_000)
	route, err := s.Client.Output(t.Context(), "ip", "route", "get", stand.VIPAddress)
	must(t, err)
	if !strings.Contains(route, "mtu 1450") {
		t.Errorf("the client has not been told that 1450 octets fit into the tunnel: %s", route)
	}
	trace, err := s.API.Trace(t.Context(), api.TraceRequest{Src: s.Client.Addr().String(), SrcPort: 20000, Dst: stand.VIPAddress, DstPort: 8080, InPort: "p1"})
	must(t, err)
	if trace.Switch == nil || !trace.Switch.Agrees {
		t.Errorf("the switch says otherwise: %+v", trace)
	}
	// brlb starts anew, and finds everything as it left it.
	sent := s.Relay.FlowMods()
	must(t, s.Kill())
	must(t, s.Start())
	await(t, s, "brlb back", stand.Steady(4))
	if n := s.Relay.FlowMods() - sent; n > 0 {
		t.Errorf("%d flow-mods although nothing has changed", n)
	}
	// Somebody deletes the port.
	_, err = s.Lab.Vsctl("del-port", "brlb-vxlan")
	must(t, err)
	eventually(t, "a port that is made anew", func() bool {
		_, err := s.Lab.Vsctl("port-to-br", "brlb-vxlan")
		return err == nil
	})
	await(t, s, "four members by the new port", stand.Steady(4))
	if c := s.Client.ConnectEach(t.Context(), dsrVIP, ports[:20], 8); c[0].Err != nil || c[19].Err != nil {
		t.Errorf("through a port that was made anew: %v, %v", c[0].Err, c[19].Err)
	}
	report, err := s.API.Verify(t.Context())
	must(t, err)
	if !report.OK {
		t.Errorf("%+v", report)
	}
	// The pool is tunnelled no more: the port goes.
	must(t, s.WriteConfig(strings.Replace(s.DefaultConfig(), "    check: web\n", "    check: web\n    mode: dsr\n", 1)))
}

// send has a server answer a request that is as long as it is, in whole segments.
func send(t *testing.T, s *stand.Stand, size int) {
	t.Helper()
	conn, err := s.Client.DialContext(t.Context(), "tcp", dsrVIP)
	must(t, err)
	defer conn.Close()
	must(t, conn.SetDeadline(time.Now().Add(patience)))
	_, err = fmt.Fprintf(conn, "GET / HTTP/1.1\r\nHost: vip\r\nX-Padding: %s\r\n\r\n", bytes.Repeat([]byte("x"), size))
	must(t, err)
	answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
	must(t, err)
	answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		t.Errorf("%d octets are answered by %s", size, answer.Status)
	}
}

