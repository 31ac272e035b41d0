package lab_test

import (
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"brlb/integration/lab"
)

// serve starts a server on a host, on port 8080 of its first address.
func serve(t *testing.T, h *lab.Host, name string) *lab.Server {
	t.Helper()
	s, err := h.StartServer(t.Context(), name, h.Addr().String()+":8080")
	check(t, err)
	return s
}

// reaches tells whether a request from ns to the server is answered.
func reaches(t *testing.T, ns *lab.Namespace, s *lab.Server) bool {
	t.Helper()
	load := ns.StartLoad(t.Context(), s.Addr(), lab.LoadOptions{Timeout: 300 * time.Millisecond})
	waitUntil(t, func() bool { r := load.Report(); return r.Requests+r.Failed > 0 })
	return load.Stop().PerServer[s.Name()] > 0
}

// TestVLANs puts two hosts of a trunk segment into two VLANs: each reaches
// only the bridge port of its own.
func TestVLANs(t *testing.T) {
	l := newLab(t, lab.Options{})
	check(t, l.AddSegment("trunk", lab.SegmentOptions{Trunk: true}))
	h10, err := l.AddHost("h10", "10.0.0.10/24", lab.HostOptions{Port: "trunk", VLAN: 10})
	check(t, err)
	h20, err := l.AddHost("h20", "10.0.0.20/24", lab.HostOptions{Port: "trunk", VLAN: 20})
	check(t, err)
	access, err := l.AddHost("access", "10.0.0.1/24", lab.HostOptions{VLAN: 10})
	check(t, err)
	server := serve(t, access, "access")
	if !reaches(t, h10.Namespace, server) {
		t.Error("the host of VLAN 10 does not reach the port of VLAN 10")
	}
	if reaches(t, h20.Namespace, server) {
		t.Error("the host of VLAN 20 reaches the port of VLAN 10")
	}
}

// TestRouter has a client behind a router, on a segment that the bridge does
// not see, in IPv4 and IPv6.
func TestRouter(t *testing.T) {
	l := newLab(t, lab.Options{})
	check(t, l.AddSegment("lan", lab.SegmentOptions{Isolated: true}))
	router, err := l.AddHost("r1", "10.20.0.1/24", lab.HostOptions{MAC: "02:aa:00:00:00:01"})
	check(t, err)
	check(t, router.Forward())
	_, err = router.Attach("192.168.0.1/24", lab.HostOptions{Port: "lan"})
	check(t, err)
	client, err := l.AddHost("c1", "192.168.0.10/24", lab.HostOptions{Port: "lan", Gateway: "192.168.0.1"})
	check(t, err)
	host, err := l.AddHost("be1", "10.20.0.11/24", lab.HostOptions{Gateway: "10.20.0.1"})
	check(t, err)
	if !reaches(t, client.Namespace, serve(t, host, "be1")) {
		t.Error("the client does not reach the server through the router")
	}
	if got := router.Interface().MAC.String(); got != "02:aa:00:00:00:01" {
		t.Errorf("the router's MAC is %s", got)
	}

	v6client, err := l.AddHost("c6", "2001:db8::10/64", lab.HostOptions{})
	check(t, err)
	v6host, err := l.AddHost("be6", "2001:db8::11/64", lab.HostOptions{})
	check(t, err)
	v6server, err := v6host.StartServer(t.Context(), "be6", "[2001:db8::11]:8080")
	check(t, err)
	if !reaches(t, v6client.Namespace, v6server) {
		t.Error("the client does not reach the server over IPv6")
	}
}

// TestCarrier pulls a host's cable: the switch sees its port lose the link.
func TestCarrier(t *testing.T) {
	l := newLab(t, lab.Options{})
	h, err := l.AddHost("be1", "10.0.0.1/24", lab.HostOptions{Port: "p2"})
	check(t, err)
	for _, up := range []bool{false, true} {
		check(t, h.Interface().SetUp(up))
		want := map[bool]string{false: "down", true: "up"}[up]
		waitUntil(t, func() bool {
			state, err := l.Vsctl("get", "Interface", "p2", "link_state")
			return err == nil && strings.TrimSpace(state) == want
		})
	}
}

func TestBadTopology(t *testing.T) {
	l := newLab(t, lab.Options{})
	check(t, l.AddSegment("p2", lab.SegmentOptions{}))
	_, err := l.AddHost("be1", "10.0.0.1/24", lab.HostOptions{Port: "p2"})
	check(t, err)
	for name, err := range map[string]error{
		"segment twice":         l.AddSegment("p2", lab.SegmentOptions{}),
		"segment without name":  l.AddSegment("", lab.SegmentOptions{}),
		"long segment name":     l.AddSegment("twelve-bytes", lab.SegmentOptions{}),
		"host twice":            addHost(l, "be1", "10.0.0.2/24", lab.HostOptions{}),
		"address without mask":  addHost(l, "be2", "10.0.0.2", lab.HostOptions{}),
		"bad MAC":               addHost(l, "be3", "10.0.0.2/24", lab.HostOptions{MAC: "x"}),
		"bad VLAN":              addHost(l, "be4", "10.0.0.2/24", lab.HostOptions{VLAN: 4095}),
		"VLAN without trunk":    addHost(l, "be5", "10.0.0.2/24", lab.HostOptions{Port: "p2", VLAN: 1}),
		"gateway out of reach":  addHost(l, "be6", "10.0.0.2/24", lab.HostOptions{Gateway: "192.0.2.1"}),
		"server without port":   startServer(t, l, "10.0.0.9"),
		"server elsewhere":      startServer(t, l, "192.0.2.1:80"),
		"unknown ovs-vsctl":     second(l.Vsctl("no-such-command")),
		"bad address for LOCAL": newLabError(t, lab.Options{LocalAddrs: []string{"10.0.0.1"}}),
	} {
		if err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func addHost(l *lab.Lab, name, cidr string, options lab.HostOptions) error {
	_, err := l.AddHost(name, cidr, options)
	return err
}

func startServer(t *testing.T, l *lab.Lab, addr string) error {
	h, err := l.AddHost("server-"+addr[:3], "10.0.9.9/24", lab.HostOptions{Port: "srv" + addr[:3]})
	check(t, err)
	_, err = h.StartServer(t.Context(), "x", addr)
	return err
}

func second(_ string, err error) error { return err }

func newLabError(t *testing.T, options lab.Options) error {
	_, err := lab.New(t.Context(), options)
	return err
}

const orphanEnv = "BRLB_LAB_TEST_ORPHAN"

// TestOrphan is the process that TestCleanStale kills.
func TestOrphan(t *testing.T) {
	if os.Getenv(orphanEnv) == "" {
		t.Skip("a part of TestCleanStale")
	}
	l := newLab(t, lab.Options{})
	h, err := l.AddHost("be1", "10.0.0.1/24", lab.HostOptions{})
	check(t, err)
	serve(t, h, "be1")
	os.Stdout.WriteString(l.Name() + "\n")
	select {}
}

// TestCleanStale kills a process that has a lab, and cleans up after it.
func TestCleanStale(t *testing.T) {
	own := newLab(t, lab.Options{})
	orphan := exec.Command(os.Args[0], "-test.run=^TestOrphan$")
	orphan.Env = append(os.Environ(), orphanEnv+"=1")
	out, err := orphan.StdoutPipe()
	check(t, err)
	check(t, orphan.Start())
	buffer := make([]byte, 100)
	n, err := out.Read(buffer)
	check(t, orphan.Process.Kill())
	orphan.Wait()
	check(t, err)
	name, _, _ := strings.Cut(string(buffer[:n]), "\n")
	if len(leftovers(t, name)) != 3 { // two namespaces and the directory
		t.Fatalf("%s left %q", name, leftovers(t, name))
	}
	pid, err := os.ReadFile("/tmp/" + name + "/ovs-vswitchd.pid")
	check(t, err)
	removed, err := lab.CleanStale()
	check(t, err)
	if left := leftovers(t, name); len(left) > 0 {
		t.Errorf("removed %q, left %q", removed, left)
	}
	waitUntil(t, func() bool {
		_, err := os.Stat("/proc/" + strings.TrimSpace(string(pid)))
		return os.IsNotExist(err)
	})
	if len(leftovers(t, own.Name())) == 0 {
		t.Error("removed the lab of a living process")
	}
}
