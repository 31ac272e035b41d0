package integration

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"brlb/controller/api"
	"brlb/integration/lab"
	"brlb/integration/stand"
)

// dsr is a stand whose members have the VIP themselves and answer directly.
func dsr(t *testing.T, transition string) *stand.Stand {
	t.Helper()
	s := build(t, stand.Options{Config: func(text string) string {
		text = strings.Replace(text, "    check: web\n", "    check: web\n    mode: dsr\n    transition: "+transition+"\n", 1)
		return strings.Replace(text, "ports: [80/tcp]", "ports: [8080/tcp, 8080/udp]", 1)
	}})
	for i, host := range s.Hosts {
		for _, c := range [][]string{
			{"ip", "address", "add", stand.VIPAddress + "/32", "dev", "lo"},
			{"ip", "route", "add", "10.20.0.0/24", "dev", "eth0"},
		} {
			_, err := host.Output(t.Context(), c[0], c[1:]...)
			must(t, err)
		}
		must(t, host.Sysctl("net/ipv4/conf/all/arp_ignore", "1"))
		must(t, host.Sysctl("net/ipv4/conf/all/arp_announce", "2"))
		_, err := host.StartServer(t.Context(), fmt.Sprintf("be%d", i+1), stand.VIPAddress+":8080")
		must(t, err)
	}
	must(t, s.Start())
	await(t, s, "four members", stand.Steady(4))
	return s
}

const dsrVIP = stand.VIPAddress + ":8080"

// Without conntrack every packet is hashed, and lands where the table says.
func TestStateless(t *testing.T) {
	s := dsr(t, "1m")
	ports := sourcePorts(20000, 1000)
	for _, proto := range []string{"tcp", "udp"} {
		want, err := s.PredictAll(t.Context(), "", proto, s.Client.Addr(), ports, dsrVIP)
		must(t, err)
		if proto == "tcp" {
			compare(t, "dsr, tcp", want, s.Client.ConnectEach(t.Context(), dsrVIP, ports, 8))
		} else {
			compare(t, "dsr, udp", want, s.Client.AskEach(t.Context(), dsrVIP, ports, 100, 8))
		}
	}
	out, err := s.Lab.Appctl("dpctl/dump-conntrack")
	must(t, err)
	if strings.Contains(out, stand.VIPAddress) {
		t.Errorf("the switch keeps connections:\n%s", out)
	}
	must(t, s.Kill())
	must(t, s.Start())
	await(t, s, "brlb back", stand.Steady(4))
}

// While slots move, connections stay where they were opened: before, meanwhile
// and after.
func TestTransition(t *testing.T) {
	s := dsr(t, "8s")
	streams := openStreams(t, s, 40)
	_, err := s.API.Change(t.Context(), "drain", api.ChangeRequest{Member: "be1", Who: "test", WaitSeconds: 30})
	must(t, err)
	await(t, s, "a transition", func(st *api.Status) bool { return st.Pools[0].Moving > 0 && !st.Pools[0].MovingSoon && st.InSync })
	goOn(t, streams)
	streams = append(streams, openStreams(t, s, 40)...)
	ports := sourcePorts(20000, 400)
	want, err := s.PredictAll(t.Context(), "", "tcp", s.Client.Addr(), ports, dsrVIP)
	must(t, err)
	compare(t, "during a transition", want, s.Client.ConnectEach(t.Context(), dsrVIP, ports, 8))

	// brlb starts anew in the middle of it.
	must(t, s.Kill())
	must(t, s.Start())
	await(t, s, "brlb back", stand.Steady(3))
	goOn(t, streams)

	_, err = s.API.Change(t.Context(), "enable", api.ChangeRequest{Member: "be1", Who: "test", WaitSeconds: 30})
	must(t, err)
	streams = append(streams, openStreams(t, s, 40)...)
	await(t, s, "the end of the transition", func(st *api.Status) bool { return st.Pools[0].Moving == 0 && st.InSync })
	goOn(t, streams)
	report, err := s.API.Verify(t.Context())
	must(t, err)
	if !report.OK {
		t.Errorf("%+v", report)
	}
}

func openStreams(t *testing.T, s *stand.Stand, n int) []*lab.Stream {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var streams []*lab.Stream
	for range n {
		stream, err := s.Client.OpenStream(ctx, dsrVIP, 50*time.Millisecond)
		must(t, err)
		t.Cleanup(func() { stream.Close() })
		streams = append(streams, stream)
	}
	return streams
}

// goOn demands that every stream still gets something.
func goOn(t *testing.T, streams []*lab.Stream) {
	t.Helper()
	t.Helper()
	before := make([]int, len(streams))
	for i, stream := range streams {
		before[i], _, _ = stream.Progress()
	}
	for i, stream := range streams {
		eventually(t, "a stream of "+stream.Server+" that goes on", func() bool {
			now, _, err := stream.Progress()
			if err != nil {
				t.Errorf("stream %d of %s: %v", i, stream.Server, err)
				return true
			}
			return now > before[i]+1
		})
	}
}
