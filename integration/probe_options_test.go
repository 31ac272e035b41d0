package integration

import (
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"brlb/controller/api"
	"brlb/integration/lab"
	"brlb/integration/stand"
)

// callers records who connects to a port of each server.
type callers struct {
	mu   sync.Mutex
	seen map[netip.Addr]bool
}

const callersPort = 9020

func recordCallers(t *testing.T, s *stand.Stand) *callers {
	c := &callers{seen: map[netip.Addr]bool{}}
	for _, h := range s.Hosts {
		l := listen(t, h, callersPort)
		go func() {
			for {
				conn, err := l.Accept()
				if err != nil {
					return
				}
				c.mu.Lock()
				c.seen[conn.RemoteAddr().(*net.TCPAddr).AddrPort().Addr()] = true
				c.mu.Unlock()
				conn.Close()
			}
		}()
	}
	return c
}

// take returns who has connected since the last call.
func (c *callers) take() []netip.Addr {
	c.mu.Lock()
	defer c.mu.Unlock()
	var list []netip.Addr
	for a := range c.seen {
		list = append(list, a)
	}
	clear(c.seen)
	return list
}

// restartWith stops brlb, and starts it with another configuration.
func restartWith(t *testing.T, s *stand.Stand, config string) {
	t.Helper()
	must(t, s.WriteConfig(config))
	if s.Process() != nil {
		must(t, s.Stop())
	}
	must(t, s.Start())
}

// probing is the usual configuration with settings at its top and another check.
func probing(s *stand.Stand, settings, check string) string {
	return settings + "\n" + strings.Replace(s.DefaultConfig(), "type: http, path: /healthz, interval: 1s, fast: 500ms, down: 500ms, timeout: 500ms, rise: 2, fall: 3", check+", "+patient, 1)
}

// TestProbeOptions: probes come from where the configuration says, and go
// nowhere else.
func TestProbeOptions(t *testing.T) {
	s := build(t, stand.Options{})
	bridge := s.Lab.Bridge()
	ip := func(args ...string) {
		t.Helper()
		_, err := s.Lab.Switch.Output(t.Context(), "ip", args...)
		must(t, err)
	}
	seen := recordCallers(t, s)
	check := fmt.Sprintf("type: tcp, port: %d", callersPort)
	from := func(want string) {
		t.Helper()
		seen.take()
		var got []netip.Addr
		eventually(t, "probes", func() bool { got = append(got, seen.take()...); return len(got) > 0 })
		for _, a := range got {
			if a.String() != want {
				t.Errorf("probes come from %v, want %s", got, want)
				break
			}
		}
	}

	t.Run("through the bridge in secure mode", func(t *testing.T) {
		restartWith(t, s, probing(s, "", check))
		await(t, s, "all members active", stand.Steady(4))
		mode, err := s.Lab.Vsctl("get", "Bridge", bridge, "fail_mode")
		must(t, err)
		if strings.TrimSpace(mode) != "secure" {
			t.Errorf("fail_mode is %s", mode)
		}
		from("10.30.0.2")
		// The bridge loses its flows, and with them the path of the probes.
		must(t, s.Lab.KillOVS())
		must(t, s.Lab.StartOVS(t.Context()))
		status := await(t, s, "the bridge filled again", stand.Steady(4))
		for _, m := range status.Pools[0].Members {
			if m.State != "up" {
				t.Errorf("%s is %s: %s", m.Name, m.State, m.Reason)
			}
		}
		seen.take()
		from("10.30.0.2")
	})

	t.Run("through a bridge that drops all else", func(t *testing.T) {
		restartWith(t, s, probing(s, "miss: drop", check))
		await(t, s, "all members active", stand.Steady(4))
		ip("neighbour", "flush", "dev", bridge)
		seen.take()
		from("10.30.0.2")
		await(t, s, "all members active", func(st *api.Status) bool {
			return stand.Steady(4)(st) && st.Pools[0].Members[3].Check.Consecutive > 5
		})
	})

	t.Run("probe_source", func(t *testing.T) {
		ip("address", "add", "10.30.0.9/24", "dev", bridge)
		restartWith(t, s, probing(s, "probe_source: 10.30.0.9", check))
		await(t, s, "all members active", stand.Steady(4))
		from("10.30.0.9")
		ip("address", "del", "10.30.0.9/24", "dev", bridge)
		await(t, s, "blind probes", func(st *api.Status) bool {
			return strings.Contains(strings.Join(st.Degraded, " "), "4 of 4 probes find out nothing")
		})
		await(t, s, "all members still active", stand.Steady(4))
	})

	t.Run("probe_device", func(t *testing.T) {
		ip("link", "add", "decoy", "type", "veth", "peer", "name", "decoy-end")
		ip("link", "set", "decoy-end", "up")
		ip("link", "set", "decoy", "up")
		ip("route", "add", "10.30.0.0/25", "dev", "decoy")
		defer ip("link", "del", "decoy")
		restartWith(t, s, probing(s, "probe_device: "+bridge, check))
		await(t, s, "all members active", func(st *api.Status) bool {
			return stand.Steady(4)(st) && st.Pools[0].Members[0].Check.Code == "L4OK" && st.Pools[0].Members[0].Check.Consecutive > 2
		})
		from("10.30.0.2")
	})

	t.Run("probe_allow", func(t *testing.T) {
		text := probing(s, "probe_allow: [10.30.0.8/29]", check)
		restartWith(t, s, strings.Replace(text, "    check: web\n", "    check: web\n    from_ovsdb: true\n", 1))
		await(t, s, "all members active", stand.Steady(4))
		_, err := s.Lab.Vsctl("set", "Interface", "p2", "external_ids:brlb-pool=web", "external_ids:brlb-name=far",
			"external_ids:brlb-address=10.30.0.77:8080", `external_ids:attached-mac="02:00:0a:1e:00:4d"`)
		must(t, err)
		status := await(t, s, "the member that OVSDB declares", func(st *api.Status) bool { return len(st.Pools[0].Members) == 5 })
		far := status.Pools[0].Members[4]
		if far.Active || !strings.Contains(far.Reason, "in none of the networks of probe_allow") {
			t.Errorf("a member outside of probe_allow: %+v", far)
		}
		_, err = s.Lab.Vsctl("clear", "Interface", "p2", "external_ids")
		must(t, err)
		if err := s.WriteConfig(strings.Replace(text, "10.30.0.8/29", "10.30.0.8/30", 1)); err != nil {
			t.Fatal(err)
		}
		if _, err := s.API.Reload(t.Context(), api.ReloadRequest{}); err == nil || !strings.Contains(err.Error(), "be2: 10.30.0.12 is in none of the networks of probe_allow") {
			t.Errorf("a file with members outside of probe_allow: %v", err)
		}
	})

	t.Run("probe_netns", func(t *testing.T) { probeFromNetns(t, s, from) })
}

// probeFromNetns probes from a host of the members' network: in every way, and
// while its namespace cannot be found.
func probeFromNetns(t *testing.T, s *stand.Stand, from func(string)) {
	prober, err := s.Lab.AddHost("prober", "10.30.0.3/24", lab.HostOptions{Port: "p2"})
	must(t, err)
	// Nothing gets to the members from brlb's own namespace.
	_, err = s.Lab.Switch.Output(t.Context(), "ip", "address", "flush", "dev", s.Lab.Bridge())
	must(t, err)
	link := filepath.Join(t.TempDir(), "netns")
	appear := func() { must(t, os.Symlink("/var/run/netns/"+prober.Name, link)) }
	appear()
	script := filepath.Join(t.TempDir(), "check")
	must(t, os.WriteFile(script, []byte("#!/bin/sh\nip -4 -o address show | grep -q 10.30.0.3/24\n"), 0o755))
	for _, h := range s.Hosts {
		serveUDP(t, h, new(atomic.Bool))
	}
	restartWith(t, s, probing(s, "allow_exec: true\nprobe_netns: "+prober.Name, "type: icmp"))
	await(t, s, "all members active, by the name", stand.Steady(4))
	settings := "allow_exec: true\nprobe_netns: " + link
	tcp := fmt.Sprintf("type: tcp, port: %d", callersPort)
	restartWith(t, s, probing(s, settings, tcp))
	await(t, s, "all members active, by the path", stand.Steady(4))
	from("10.30.0.3")
	for _, way := range []struct{ check, good string }{
		{"type: http, path: /healthz", "L7OK"},
		{"type: udp, port: 9003, send: ping, expect: pong", "L7OK"},
		{"type: icmp", "L4OK"},
		{"type: exec, command: " + script, "PROCOK"},
	} {
		reload(t, s, probing(s, settings, way.check))
		await(t, s, "all up by "+way.check, func(st *api.Status) bool {
			for _, m := range st.Pools[0].Members {
				if m.Check.Code != way.good || m.Check.Consecutive < 1 {
					return false
				}
			}
			return stand.Steady(4)(st)
		})
	}

	must(t, os.Remove(link))
	status := await(t, s, "blind probes", func(st *api.Status) bool {
		return strings.Contains(strings.Join(st.Degraded, " "), "4 of 4 probes find out nothing, so verdicts stay as they are: local error: network namespace "+link)
	})
	if !stand.Steady(4)(status) {
		t.Errorf("with blind probes: phase %s, %+v", status.Phase, status.Pools[0])
	}
	appear()
	await(t, s, "probes that see", func(st *api.Status) bool { return stand.Steady(4)(st) && len(st.Degraded) == 0 })
	reload(t, s, probing(s, settings, tcp))
	from("10.30.0.3")
}

// TestHoldDown: a member that goes down again and again stays out for a while.
func TestHoldDown(t *testing.T) {
	onUserspace(t, func(t *testing.T, s *stand.Stand) {
		reload(t, s, withRules(s, "hold_down: {after: 2, within: 15s}"))
		var fell time.Time
		for i := range 2 {
			sicken(t, s, 503, 0)
			await(t, s, "be1 down", stand.Steady(3))
			if i == 0 {
				fell = time.Now()
			}
			sicken(t, s, 200, 0)
			if i == 0 {
				await(t, s, "be1 back", stand.Steady(4))
			}
		}
		status := await(t, s, "be1 held down", func(st *api.Status) bool {
			m := st.Pools[0].Members[0]
			return m.State == "up" && strings.HasPrefix(m.Reason, "held down until")
		})
		if m := status.Pools[0].Members[0]; m.Active || m.Slots != 0 {
			t.Errorf("held down, but: %+v", m)
		}
		_, err := s.Lab.Appctl("revalidator/wait")
		must(t, err)
		for _, c := range s.Client.ConnectEach(t.Context(), stand.VIP, portsFrom(35000, 100), 8) {
			if c.Err != nil || c.Server == "be1" {
				t.Fatalf("from port %d to %q: %v", c.SourcePort, c.Server, c.Err)
			}
		}
		e, err := s.API.Explain(t.Context(), "web/be1")
		must(t, err)
		if !strings.Contains(strings.Join(e.Remedies, " "), "time: it is held down until") {
			t.Errorf("remedies %q", e.Remedies)
		}
		await(t, s, "be1 back in its own time", stand.Steady(4))
		if d := time.Since(fell); d < 14*time.Second {
			t.Errorf("back %v after it first went down", d)
		}
	})
}
