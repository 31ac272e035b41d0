package integration

import (
	"strings"
	"testing"
	"time"

	"brlb/controller/api"
	"brlb/integration/lab"
	"brlb/integration/stand"
)

// TestBFD: a member without probes, behind two Ethernet switches. The cable
// between them is cut, so that the bridge's own port keeps its carrier, and BFD
// notices.
//
//	br-lb: p3 ── [p3] ── cable ── [p4, which speaks BFD] ── be5
func TestBFD(t *testing.T) {
	s := start(t, stand.Options{})
	must(t, s.Lab.AddSegment("p3", lab.SegmentOptions{}))
	must(t, s.Lab.AddSegment("p4", lab.SegmentOptions{Isolated: true, Trunk: true}))
	cable, err := s.Lab.JoinSegments("p3", "p4")
	must(t, err)
	host, err := s.Lab.AddHost("be5", "10.30.0.15/24", lab.HostOptions{Port: "p4", Gateway: stand.Gateway})
	must(t, err)
	_, err = host.StartServer(t.Context(), "be5", "10.30.0.15:8080")
	must(t, err)
	vsctl := func(args ...string) string {
		t.Helper()
		out, err := s.Lab.Vsctl(args...)
		must(t, err)
		return strings.TrimSpace(out)
	}
	edge := func(bfd string) string {
		text := strings.Replace(s.DefaultConfig(), "checks:\n", "checks:\n  wire: {type: port}\n", 1)
		text = strings.Replace(text, "services:\n", "  edge: {id: 2, check: wire, "+bfd+"members: {be5: 10.30.0.15:8080}}\nservices:\n", 1)
		return strings.Replace(text, "pool: web}", "pool: edge, backup: web}", 1)
	}
	be5 := func(st *api.Status) *api.Member {
		for i := range st.Pools {
			if st.Pools[i].Name == "edge" {
				return &st.Pools[i].Members[0]
			}
		}
		return nil
	}
	served := func(by string) func(*api.Status) bool {
		return func(st *api.Status) bool { return st.InSync && st.Phase == "steady" && st.Services[0].Pool == by }
	}
	connect := func(first int, to func(server string) bool) {
		t.Helper()
		_, err := s.Lab.Appctl("revalidator/wait")
		must(t, err)
		for _, c := range s.Client.ConnectEach(t.Context(), stand.VIP, portsFrom(first, 40), 8) {
			if c.Err != nil || !to(c.Server) {
				t.Fatalf("from port %d to %q: %v", c.SourcePort, c.Server, c.Err)
			}
		}
	}
	isBE5 := func(server string) bool { return server == "be5" }
	explainBFD := func() api.Fact {
		t.Helper()
		e, err := s.API.Explain(t.Context(), "edge/be5")
		must(t, err)
		for _, f := range e.Facts {
			if f.Name == "bfd" {
				return f
			}
		}
		return api.Fact{}
	}

	must(t, s.WriteConfig(edge("")))
	_, err = s.API.Reload(t.Context(), api.ReloadRequest{})
	must(t, err)
	status := await(t, s, "be5 by its port alone", served("edge"))
	if m := be5(status); m.State != "up" || m.Check.Code != "PORTOK" || m.Check.Detail != "port p3 (3) lives" {
		t.Errorf("be5: %+v", m)
	}
	connect(36000, isBE5)

	vsctl("set", "Interface", cable.To, "bfd:enable=true", "bfd:min_tx=100", "bfd:min_rx=100")
	must(t, s.WriteConfig(edge("bfd: {min_tx: 100ms, min_rx: 100ms, mult: 3}, ")))
	_, err = s.API.Reload(t.Context(), api.ReloadRequest{})
	must(t, err)
	eventually(t, "BFD up", func() bool {
		return strings.Contains(explainBFD().Text, "turned on by brlb on p3: up, the other end says up")
	})
	await(t, s, "be5 with BFD", served("edge"))
	if got := vsctl("get", "Interface", "p3", "bfd"); got != `{enable="true", min_rx="100", min_tx="100", mult="3"}` {
		t.Errorf("bfd of p3 is %s", got)
	}
	if got := vsctl("get", "Interface", "p2", "bfd"); got != "{}" {
		t.Errorf("bfd of p2 is %s", got)
	}
	connect(36100, isBE5)

	load := s.Client.StartLoad(t.Context(), stand.VIP, lab.LoadOptions{Workers: 4, Pause: 5 * time.Millisecond, Timeout: 20 * time.Second})
	time.Sleep(500 * time.Millisecond)
	began := time.Now()
	must(t, cable.SetUp(false))
	status = await(t, s, "the backup", served("web"))
	t.Logf("the backup serves %v after the cut; 3 intervals are 300ms", time.Since(began).Round(time.Millisecond))
	if m := be5(status); m.State != "down" || m.Reason != "down: PORTDOWN port p3 (3) is down" {
		t.Errorf("be5: %+v", m)
	}
	if carrier := vsctl("get", "Interface", "p3", "link_state"); carrier != "up" {
		t.Errorf("p3 has lost its carrier, which BFD is not needed for: %s", carrier)
	}
	connect(36200, func(server string) bool { return !isBE5(server) })
	eventually(t, "BFD down", func() bool { return strings.Contains(explainBFD().Text, "turned on by brlb on p3: down (") })
	t.Log(explainBFD().Text)
	must(t, cable.SetUp(true))
	await(t, s, "be5 back", served("edge"))
	connect(36300, isBE5)
	t.Logf("load meanwhile: %+v", load.Stop())

	// ovsdb-server restarts, and somebody takes away what brlb has set.
	must(t, s.Lab.KillOVSDB())
	must(t, s.Lab.StartOVSDB(t.Context()))
	vsctl("--no-wait", "clear", "Interface", "p3", "bfd")
	eventually(t, "BFD is back", func() bool { return strings.Contains(vsctl("--no-wait", "get", "Interface", "p3", "bfd"), "enable=") })
	await(t, s, "be5 again", served("edge"))

	must(t, s.WriteConfig(edge("")))
	_, err = s.API.Reload(t.Context(), api.ReloadRequest{})
	must(t, err)
	eventually(t, "BFD is gone", func() bool {
		return vsctl("get", "Interface", "p3", "bfd") == "{}" && vsctl("get", "Interface", "p3", "external_ids") == "{}"
	})
	await(t, s, "be5 without BFD", served("edge"))
	if got := vsctl("get", "Interface", cable.To, "bfd:enable"); got != `"true"` && got != "true" {
		t.Errorf("somebody else's BFD is %s", got)
	}
}
