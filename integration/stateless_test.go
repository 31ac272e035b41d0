package integration

import (
	"context"
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"brlb/controller/api"
	"brlb/integration/lab"
	"brlb/integration/stand"
)

// dsr is a stand whose members have the VIP themselves and answer directly.
func dsr(t *testing.T, settings string) *stand.Stand {
	t.Helper()
	s := build(t, stand.Options{Config: func(text string) string {
		text = strings.Replace(text, "    check: web\n", "    check: web\n    mode: dsr\n"+settings, 1)
		return strings.Replace(text, "ports: [80/tcp]", statelessPorts, 1)
	}})
	for i, host := range s.Hosts {
		has(t, host, stand.VIPAddress+"/32", fmt.Sprintf("be%d", i+1))
		shell(t, host, "ip route add 10.20.0.0/24 dev eth0")
		transferFrom(t, host)
	}
	must(t, s.Start())
	await(t, s, "four members", stand.Steady(4))
	return s
}

const dsrVIP = stand.VIPAddress + ":8080"

// Without conntrack every packet is hashed, and lands where the table says.
func TestStateless(t *testing.T) {
	s := dsr(t, "    transition: 1m\n")
	placed(t, s, "dsr", "", dsrVIP, s.Client.Addr(), 1000)
	out, err := s.Lab.Appctl("dpctl/dump-conntrack")
	must(t, err)
	if strings.Contains(out, stand.VIPAddress) {
		t.Errorf("the switch keeps connections:\n%s", out)
	}
	must(t, s.Kill())
	must(t, s.Start())
	await(t, s, "brlb back", stand.Steady(4))
	tracedStateless(t, s, api.FragmentDropped)
}

// tracedStateless demands that traces say what the switch does, and so of fragments.
// It returns how many connections the switch had learned of.
func tracedStateless(t *testing.T, s *stand.Stand, fragments string) (learned int) {
	t.Helper()
	status, err := s.API.Status(t.Context())
	must(t, err)
	moving, traces := 0, 100
	if testing.Short() {
		traces = 20 // in a guest each takes half a second
	}
	for _, from := range sourcePorts(20000, traces) {
		req := api.TraceRequest{Src: s.Client.Addr().String(), SrcPort: uint16(from), DstPort: 8080, InPort: "p1"}
		trace := agreed(t, s, req)
		if trace.MovingFrom != "" {
			moving++
		}
		if trace.Switch.Learned {
			learned++
		}
		req.Fragment = true
		if trace := agreed(t, s, req); trace.Mode != status.Pools[0].Mode || trace.Hairpin != "" || trace.Fragment != fragments {
			t.Errorf("a fragment of %s: %+v", trace.Flow, trace)
		}
	}
	if (moving > 0) != (status.Pools[0].Moving > 0) {
		t.Errorf("%d of %d traces speak of a slot that moves; %d do", moving, traces, status.Pools[0].Moving)
	}
	return learned
}

// longTransition does not end by itself while a test runs, however slow the machine.
const longTransition = "    transition: 15m\n"

// While slots move, connections stay where they were opened: before, meanwhile
// and after.
func TestTransition(t *testing.T) {
	moveSlots(t, dsr(t, longTransition))
}

func TestTransitionInATunnel(t *testing.T) {
	s := tunnelled(t, stand.Options{}, longTransition, unwrapVXLAN)
	must(t, s.Start())
	await(t, s, "four members", stand.Steady(4))
	moveSlots(t, s)
}

func moveSlots(t *testing.T, s *stand.Stand) {
	t.Helper()
	streams := openStreams(t, s, 40)
	_, err := s.API.Change(t.Context(), "drain", api.ChangeRequest{Member: "be1", Who: "test", WaitSeconds: 30})
	must(t, err)
	await(t, s, "a transition", func(st *api.Status) bool { return st.Pools[0].Moving > 0 && !st.Pools[0].MovingSoon && st.InSync })
	goOn(t, streams)
	tracedStateless(t, s, api.FragmentDropped)
	streams = append(streams, openStreams(t, s, 40)...)
	ports := sourcePorts(20000, 400)
	want, err := s.PredictAll(t.Context(), "", "tcp", s.Client.Addr(), ports, dsrVIP)
	must(t, err)
	compare(t, "during a transition", want, s.Client.ConnectEach(t.Context(), dsrVIP, ports, 8))
	if tracedStateless(t, s, api.FragmentDropped) == 0 {
		t.Error("no trace says that the switch has learned of a connection")
	}

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
	verified(t, s)
}

// What the switch has learned goes with the members that it is about.
func TestRemovedMembersAreForgotten(t *testing.T) {
	s := dsr(t, "    transition: 10m\n")
	_, err := s.API.Change(t.Context(), "drain", api.ChangeRequest{Member: "be1", Who: "test", WaitSeconds: 30})
	must(t, err)
	await(t, s, "a transition", func(st *api.Status) bool { return st.Pools[0].Moving > 0 && !st.Pools[0].MovingSoon && st.InSync })
	openStreams(t, s, 80)
	learnedOf := func() (table9 int) {
		out, err := s.Lab.Ofctl("-OOpenFlow14", "--no-names", "dump-flows", s.Lab.Bridge(), "table=9,cookie=0xb71b090001000000/0xffffffffff000000")
		must(t, err)
		return strings.Count(out, "table=9")
	}
	before := learnedOf()
	verified(t, s)
	must(t, s.WriteConfig(removeMember(s.DefaultConfig(), "be2")))
	_, err = s.API.Reload(t.Context(), api.ReloadRequest{})
	must(t, err)
	await(t, s, "be2 gone", stand.Steady(2))
	verified(t, s)
	if after := learnedOf(); after == 0 || after >= before {
		t.Errorf("the switch knows %d connections that it has learned of, %d before", after, before)
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

// What routers on the clients' side say of answers, which brlb has not seen,
// reaches the member that sent them.
func TestStatelessErrors(t *testing.T) {
	onStateless(t, "", func(t *testing.T, s *stand.Stand) {
		far, _ := farClient(t, s)
		for _, host := range s.Hosts {
			shell(t, host, "ip route add 192.0.2.0/24 via 10.20.0.251")
		}
		download(t, far, netip.MustParseAddr(stand.VIPAddress))
		if n := learned(t, s, "192.0.2.10"); n != 1 {
			t.Errorf("%d members have learned the MTU, not one", n)
		}
		// With no more than 8 octets behind the IP header.
		vip, client := netip.MustParseAddrPort(dsrVIP), netip.AddrPortFrom(s.Client.Addr(), 20000)
		member := s.Hosts[ownerOf(t, s, 20000, vip)]
		sendError(t, s.Client, vip.Addr(), 4, smallMTU, quote(vip, client))
		eventually(t, "the member has learned the MTU", func() bool { return knowsMTU(t, member, client.Addr().String()) })
		if n := learned(t, s, client.Addr().String()); n != 1 {
			t.Errorf("%d members have learned the MTU, not one", n)
		}
		verified(t, s)
	})
}

func learned(t *testing.T, s *stand.Stand, addr string) (members int) {
	t.Helper()
	for _, host := range s.Hosts {
		if knowsMTU(t, host, addr) {
			members++
		}
	}
	return members
}

// Fragments find the member where a client's address alone decides.
func TestStatelessFragments(t *testing.T) {
	onStateless(t, "    affinity: source\n", func(t *testing.T, s *stand.Stand) {
		ports := sourcePorts(20000, 20)
		trace, err := s.API.Trace(t.Context(), api.TraceRequest{Src: s.Client.Addr().String(), SrcPort: 1, Proto: "udp"})
		must(t, err)
		// The first fragment in a tunnel tells the client how long they may be, and its
		// socket, too.
		s.Client.AskEach(t.Context(), dsrVIP, []int{10000}, 4000, 1)
		for _, c := range s.Client.AskEach(t.Context(), dsrVIP, ports, 4000, 4) {
			if c.Err != nil || c.Server != trace.Member {
				t.Errorf("4,000 octets from port %d are answered by %q, not %s: %v", c.SourcePort, c.Server, trace.Member, c.Err)
			}
		}
		tracedStateless(t, s, api.FragmentHashed)
	})
}

// onStateless runs a scenario with members of each stateless mode.
func onStateless(t *testing.T, settings string, scenario func(t *testing.T, s *stand.Stand)) {
	t.Run("dsr", func(t *testing.T) { scenario(t, dsr(t, settings)) })
	t.Run("tunnel", func(t *testing.T) {
		s := tunnelled(t, stand.Options{}, settings, unwrapVXLAN)
		must(t, s.Start())
		await(t, s, "four members", stand.Steady(4))
		scenario(t, s)
	})
}
