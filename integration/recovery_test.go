package integration

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"brlb/controller/api"
	"brlb/integration/lab"
	"brlb/integration/stand"
)

// When ovsdb-server goes away and comes back, brlb says so meanwhile and sends
// the switch nothing.
func TestOVSDBRestart(t *testing.T) {
	onUserspace(t, func(t *testing.T, s *stand.Stand) {
		load := s.Client.StartLoad(t.Context(), stand.VIP, lab.LoadOptions{Workers: 4, Pause: 5 * time.Millisecond, Timeout: 20 * time.Second})
		s.Relay.ResetCounts()
		must(t, s.Lab.KillOVSDB())
		await(t, s, "OVSDB missed", func(st *api.Status) bool {
			return !st.OVSDB.Connected && strings.Contains(strings.Join(st.Degraded, " "), "OVSDB")
		})
		_, err := s.API.Change(t.Context(), "drain", api.ChangeRequest{Member: "be1", Who: "test"})
		if err == nil || !strings.Contains(err.Error(), "not connected") {
			t.Errorf("a change that cannot be stored: %v", err)
		}
		must(t, s.Lab.StartOVSDB(t.Context()))
		await(t, s, "OVSDB back", func(st *api.Status) bool { return st.OVSDB.Connected && len(st.Degraded) == 0 && st.InSync })
		time.Sleep(time.Second)
		if n := s.Relay.FlowMods(); n != 0 {
			t.Errorf("%d flow-mods were sent", n)
		}
		if r := load.Stop(); r.Failed > 0 {
			t.Errorf("%d of %d requests failed: %v", r.Failed, r.Requests+r.Failed, r.Failures[0])
		}
	})
}

// When the answer to a commit is lost, brlb reads the switch before it sends
// anything else.
func TestCommitReplyLost(t *testing.T) {
	onUserspace(t, func(t *testing.T, s *stand.Stand) {
		s.Relay.DropNextCommitReply()
		_, err := s.API.Change(t.Context(), "drain", api.ChangeRequest{Member: "be1", Who: "test"})
		must(t, err)
		// Nothing answers any more, so the session ends by silence at the latest.
		await(t, s, "the truth", stand.Steady(3))
		verify, err := s.API.Verify(t.Context())
		must(t, err)
		if !verify.OK {
			t.Errorf("verify: %+v", verify.Checks)
		}
	})
}

// A switch that stands still for a while is noticed; when it goes on, all is
// as before. Its silence is held against no member.
func TestSwitchStandsStill(t *testing.T) {
	onUserspace(t, func(t *testing.T, s *stand.Stand) {
		digest := await(t, s, "steady", stand.Steady(4)).Pools[0].Digest
		s.Relay.ResetCounts()
		for _, pause := range []time.Duration{time.Second, 3 * time.Second} {
			must(t, s.Lab.PauseOVS())
			time.Sleep(pause)
			must(t, s.Lab.ResumeOVS())
			await(t, s, "switch back", stand.Steady(4))
			time.Sleep(2 * time.Second)
		}
		if n := s.Relay.FlowMods(); n != 0 {
			t.Errorf("%d flow-mods were sent because the switch was silent", n)
		}
		must(t, s.Lab.PauseOVS())
		await(t, s, "silence noticed", func(st *api.Status) bool { return !st.Switch.Connected })
		must(t, s.Lab.ResumeOVS())
		status := await(t, s, "switch back", stand.Steady(4))
		if status.Pools[0].Digest != digest {
			t.Errorf("digest %s, before %s", status.Pools[0].Digest, digest)
		}
		for _, m := range status.Pools[0].Members {
			if m.State != "up" {
				t.Errorf("%s is %s: the switch's silence was held against it", m.Name, m.State)
			}
		}
	})
}

// Of two brlb on one bridge one writes; the other stands by and takes over.
func TestStandby(t *testing.T) {
	onUserspace(t, func(t *testing.T, s *stand.Stand) {
		second, err := s.Second()
		must(t, err)
		must(t, second.Start())
		defer second.Kill()
		ctx := withTimeout(t, patience)
		status, err := second.Await(ctx, "standby", func(st *api.Status) bool { return st.OVSDB.Lock == "waiting" })
		must(t, err)
		if !strings.Contains(strings.Join(status.Degraded, " "), "standby") {
			t.Errorf("the second brlb says %q", status.Degraded)
		}
		if _, err := second.API.Change(t.Context(), "drain", api.ChangeRequest{Member: "be1", Who: "test"}); err == nil {
			t.Error("the brlb that stands by has changed something")
		}
		must(t, s.Kill())
		_, err = second.Await(ctx, "takeover", func(st *api.Status) bool { return st.OVSDB.Lock == "held" && stand.Steady(4)(st) })
		must(t, err)
		// The first comes back while the second leads: it must not get in its way.
		must(t, s.Start())
		await(t, s, "the first stands by", func(st *api.Status) bool { return st.OVSDB.Lock == "waiting" && st.Switch.Connected })
		change, err := second.API.Change(t.Context(), "drain", api.ChangeRequest{Member: "be1", Who: "test", WaitSeconds: patience.Seconds()})
		must(t, err)
		if !change.Confirmed {
			t.Error("the brlb that leads cannot write while the other stands by")
		}
		must(t, second.Kill())
		await(t, s, "the first again", stand.Steady(3))
	})
}

// brlb waits for what is not there yet, and says for what.
func TestWaitsForWhatIsMissing(t *testing.T) {
	s := build(t, stand.Options{Config: func(text string) string { return strings.Replace(text, "bridge: br-lb", "bridge: br-later", 1) }})
	must(t, s.Start())
	await(t, s, "the bridge missed", func(st *api.Status) bool {
		return strings.Contains(strings.Join(st.Degraded, " "), "bridge br-later does not exist")
	})
	_, err := s.Lab.Vsctl("add-br", "br-later", "--", "set", "bridge", "br-later", "datapath_type=netdev")
	must(t, err)
	await(t, s, "the bridge found", func(st *api.Status) bool { return st.Switch.Connected })

	must(t, s.Stop())
	must(t, s.Lab.KillOVSDB())
	must(t, s.Start())
	status := await(t, s, "OVSDB missed", func(st *api.Status) bool {
		return !st.OVSDB.Connected && st.OVSDB.LastError != ""
	})
	if !strings.Contains(status.Degraded[0], "db.sock") {
		t.Errorf("what is wrong should be named first: %q", status.Degraded)
	}
	must(t, s.Lab.StartOVSDB(t.Context()))
	await(t, s, "OVSDB found", func(st *api.Status) bool { return st.OVSDB.Connected })
}

// A peer that isn't a switch is turned away, and the switch is not disturbed.
func TestStrangerOnTheSocket(t *testing.T) {
	onUserspace(t, func(t *testing.T, s *stand.Stand) {
		conn, err := net.Dial("unix", filepath.Join(s.Lab.Dir(), "brlb.sock"))
		must(t, err)
		defer conn.Close()
		_, err = conn.Write([]byte("GET / HTTP/1.1\r\nHost: switch\r\n\r\n"))
		must(t, err)
		eventually(t, "the stranger is named", func() bool {
			log, err := os.ReadFile(s.LogPath())
			return err == nil && strings.Contains(string(log), "OpenFlow") && strings.Contains(string(log), "GET /")
		})
		await(t, s, "the switch again", stand.Steady(4))
	})
}

// A member may be declared in OVSDB, on the Interface that leads to it.
func TestDeclaredMember(t *testing.T) {
	s := build(t, stand.Options{Config: func(text string) string {
		return strings.Replace(removeMember(text, "be4"), "check: web\n", "check: web\n    from_ovsdb: true\n", 1)
	}})
	must(t, s.Start())
	await(t, s, "three members", stand.Steady(3))
	_, err := s.Lab.Vsctl("set", "interface", "p2", "external_ids:brlb-pool=web", "external_ids:brlb-address=\"10.30.0.14:8080\"",
		"external_ids:brlb-name=declared", "external_ids:brlb-weight=2")
	must(t, err)
	status := await(t, s, "the declared member", stand.Steady(4))
	found := false
	for _, m := range status.Pools[0].Members {
		if m.Name == "declared" && m.Weight == 2 && m.Slots > 400 {
			found = true
		}
	}
	if !found {
		t.Errorf("members: %+v", status.Pools[0].Members)
	}
	_, err = s.Lab.Vsctl("remove", "interface", "p2", "external_ids", "brlb-address")
	must(t, err)
	await(t, s, "the declared member gone", stand.Steady(3))
}
