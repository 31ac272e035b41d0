package integration

import (
	"context"
	"strconv"
	"strings"
	"testing"
	"time"

	"brlb/integration/lab"
	"brlb/integration/stand"
)

// Behind two routers, one 5-tuple gets one slot through either, and the answer
// leaves by the router that brought the request.
func TestTwoRouters(t *testing.T) {
	onUserspace(t, func(t *testing.T, s *stand.Stand) {
		must(t, s.Lab.AddSegment("outside", lab.SegmentOptions{}))
		client, err := s.Lab.AddHost("far", "192.0.2.10/24", lab.HostOptions{Port: "outside"})
		must(t, err)
		var routers []*lab.Host
		for i, name := range []string{"r1", "r2"} {
			router, err := s.Lab.AddHost(name, "10.20.0."+strconv.Itoa(251+i)+"/24", lab.HostOptions{Port: "p1"})
			must(t, err)
			must(t, router.Forward())
			_, err = router.Attach("192.0.2."+strconv.Itoa(251+i)+"/24", lab.HostOptions{Port: "outside"})
			must(t, err)
			routers = append(routers, router)
		}
		ports := []int{42001, 42002, 42003, 42004, 42005, 42006, 42007, 42008}
		var answers [2][]string
		for i, router := range routers {
			route := "192.0.2." + strconv.Itoa(251+i)
			_, err := client.Output(t.Context(), "ip", "route", "replace", stand.VIPAddress+"/32", "via", route)
			must(t, err)
			other := routers[1-i]
			before := forwarded(t, other)
			through := forwarded(t, router)
			for _, c := range client.ConnectEach(t.Context(), stand.VIP, ports, 1) {
				if c.Err != nil {
					t.Fatalf("through %s: %v", route, c.Err)
				}
				answers[i] = append(answers[i], c.Server)
			}
			if n := forwarded(t, other) - before; n != 0 {
				t.Errorf("%d packets went through the other router", n)
			}
			// Both directions of eight connections.
			if n := forwarded(t, router) - through; n < 2*4*len(ports) {
				t.Errorf("only %d packets went through the router: the answers took another way", n)
			}
		}
		t.Logf("through either router: %v", answers[0])
		if strings.Join(answers[0], " ") != strings.Join(answers[1], " ") {
			t.Errorf("through the first router %v, through the second %v", answers[0], answers[1])
		}
	})
}

// behindRouter starts a stand whose be4 is behind a router.
func behindRouter(t *testing.T, configure func(string) string) (*stand.Stand, *lab.Host) {
	t.Helper()
	s := build(t, stand.Options{Config: func(text string) string {
		return strings.Replace(configure(text), "be4: 10.30.0.14:8080", "be4: {address: 10.40.0.14:8080, via: 10.30.0.254}", 1)
	}})
	must(t, s.Lab.AddSegment("inside", lab.SegmentOptions{Isolated: true}))
	router, err := s.Lab.AddHost("router", "10.30.0.254/24", lab.HostOptions{Port: "p2", Gateway: stand.Gateway})
	must(t, err)
	must(t, router.Forward())
	_, err = router.Attach("10.40.0.1/24", lab.HostOptions{Port: "inside"})
	must(t, err)
	far, err := s.Lab.AddHost("far", "10.40.0.14/24", lab.HostOptions{Port: "inside", Gateway: "10.40.0.1"})
	must(t, err)
	_, err = far.StartServer(t.Context(), "be4", "10.40.0.14:8080")
	must(t, err)
	must(t, s.Lab.Switch.AddRoute("10.40.0.0/24", "10.30.0.254"))
	must(t, s.Start())
	await(t, s, "four members", stand.Steady(4))
	return s, router
}

// A member behind a router is reached through it (via), and its answers come
// back that way.
func TestMemberBehindRouter(t *testing.T) {
	s, router := behindRouter(t, func(text string) string { return text })
	ports := make([]int, 200)
	for i := range ports {
		ports[i] = 44000 + i
	}
	want, err := s.Predict(t.Context(), ports)
	must(t, err)
	before := forwarded(t, router)
	compare(t, "one of four behind a router", want, connect(t, s, ports))
	if forwarded(t, router) == before {
		t.Error("nothing went through the router")
	}
}

func forwarded(t *testing.T, host *lab.Host) int {
	t.Helper()
	out, err := host.Output(t.Context(), "cat", "/proc/net/snmp")
	must(t, err)
	return snmp(t, out, "Ip", "ForwDatagrams")
}

// snmp reads a counter out of /proc/net/snmp.
func snmp(t *testing.T, text, group, counter string) int {
	t.Helper()
	var names []string
	for line := range strings.Lines(text) {
		fields := strings.Fields(line)
		if len(fields) == 0 || fields[0] != group+":" {
			continue
		}
		if names == nil {
			names = fields
			continue
		}
		for i, name := range names {
			if name == counter {
				n, err := strconv.Atoi(fields[i])
				must(t, err)
				return n
			}
		}
	}
	t.Fatalf("no counter %s of %s", counter, group)
	return 0
}

// floorPackets is the packet counter of the row that drops what no slot takes.
func floorPackets(t *testing.T, s *stand.Stand) int {
	t.Helper()
	out, err := s.Lab.Ofctl("-OOpenFlow14", "--no-names", "dump-flows", s.Lab.Bridge(), "table=11")
	must(t, err)
	for line := range strings.Lines(out) {
		if !strings.Contains(line, "priority=0") {
			continue
		}
		_, rest, _ := strings.Cut(line, "n_packets=")
		text, _, _ := strings.Cut(rest, ",")
		n, err := strconv.Atoi(text)
		must(t, err)
		return n
	}
	t.Fatalf("table 11 has no floor:\n%s", out)
	return 0
}

func withTimeout(t *testing.T, d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}
