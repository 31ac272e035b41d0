package integration

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"brlb/controller/api"
	"brlb/integration/lab"
	"brlb/integration/stand"
)

// What a reload does not change stays as it is, under load: the flows, the
// probes, the verdicts, and members in service while they are probed in another
// way.
func TestReload(t *testing.T) {
	onUserspace(t, func(t *testing.T, s *stand.Stand) {
		load := s.Client.StartLoad(t.Context(), stand.VIP, lab.LoadOptions{Workers: 4, Pause: 5 * time.Millisecond, Timeout: 20 * time.Second})
		s.Relay.ResetCounts()
		history := func() *api.History {
			t.Helper()
			h, err := s.API.History(t.Context(), "web/be1")
			must(t, err)
			return h
		}
		goesOn := func(what string, before *api.History) {
			t.Helper()
			after := history()
			first := before.Results[len(before.Results)-1].At
			if after.Since != before.Since || len(after.Results) == 0 || after.Results[0].At.After(first) {
				t.Errorf("%s: the probe of be1 has begun anew: since %v, before %v", what, after.Since, before.Since)
			}
		}
		eventually(t, "some probes", func() bool { return len(history().Results) > 2 })

		before := history()
		must(t, s.WriteConfig("# A comment.\n"+strings.ReplaceAll(s.DefaultConfig(), "members:", "members: # all of them")))
		if r, err := s.API.Reload(t.Context(), api.ReloadRequest{}); err != nil || r.Changed {
			t.Errorf("a comment: %+v, %v", r, err)
		}
		goesOn("a comment", before)

		// A dry run says what the reload does then.
		heavier := strings.Replace(s.DefaultConfig(), "be2: 10.30.0.12:8080", "be2: {address: 10.30.0.12:8080, weight: 2}", 1)
		must(t, s.WriteConfig(heavier))
		foreseen, err := s.API.Reload(t.Context(), api.ReloadRequest{DryRun: true})
		must(t, err)
		elsewhere, err := s.API.Reload(t.Context(), api.ReloadRequest{DryRun: true, Config: heavier})
		must(t, err)
		if n := s.Relay.FlowMods(); n != 0 || !foreseen.Changed || strings.Join(foreseen.Changes, "\n") != strings.Join(elsewhere.Changes, "\n") {
			t.Errorf("%d flow-mods after a comment and a dry run; foreseen %q and %q", n, foreseen.Changes, elsewhere.Changes)
		}
		done := reload(t, s, heavier)
		if strings.Join(done.Changes, "\n") != strings.Join(foreseen.Changes, "\n") {
			t.Errorf("foreseen %q, done %q", foreseen.Changes, done.Changes)
		}
		if n := s.Relay.FlowMods(); n != done.Pools[0].Moves.Moved {
			t.Errorf("%d flow-mods for %+v", n, done.Pools[0].Moves)
		}
		goesOn("a weight", before)

		// A check of another name that probes the same, in a further pool too.
		s.Relay.ResetCounts()
		renamed := strings.NewReplacer("  web: {type: http", "  other: {type: http", "check: web", "check: other").Replace(heavier)
		for _, text := range []string{renamed, strings.Replace(renamed, "pools:\n", "  third: {type: http, path: /healthz, interval: 1s, fast: 500ms, down: 500ms, timeout: 500ms, rise: 2, fall: 3}\npools:\n  more: {id: 2, check: third, members: {be1: 10.30.0.11:8080}}\n", 1), heavier} {
			reload(t, s, text)
			goesOn("another name", before)
			status := await(t, s, "steady", func(st *api.Status) bool { return st.Phase == "steady" && st.InSync })
			for _, p := range status.Pools {
				for _, m := range p.Members {
					if m.State != "up" {
						t.Errorf("another name of the check: %s is %s", m.Name, m.State)
					}
				}
			}
		}

		// Another check, under the same name and under another one.
		s.Relay.ResetCounts()
		for _, text := range []string{
			strings.Replace(heavier, "fall: 3", "fall: 4", 1),
			strings.NewReplacer("fall: 3", "fall: 4", "  web: {type: http, path: /healthz", "  other: {type: http, path: /", "check: web", "check: other").Replace(heavier),
		} {
			r := reload(t, s, text)
			t.Logf("%q", r.Changes)
			eventually(t, "probes of the other check", func() bool { return len(history().Results) > 2 })
		}
		await(t, s, "all members active", stand.Steady(4))
		if n := s.Relay.FlowMods(); n != 0 {
			t.Errorf("%d flow-mods for other checks: members were taken out", n)
		}
		// A member that the new check finds sick goes once that is certain.
		must(t, s.Servers[0].SetHealth(503))
		reload(t, s, strings.Replace(heavier, "fall: 3", "fall: 2", 1))
		await(t, s, "be1 out", stand.Steady(3))
		must(t, s.Servers[0].SetHealth(200))
		await(t, s, "be1 back", stand.Steady(4))

		if r := load.Stop(); r.Failed > 0 || r.Requests == 0 {
			t.Errorf("%d of %d requests failed: %v", r.Failed, r.Requests+r.Failed, r.Failures)
		}
	})
}

// A thousand SIGHUPs in a second are few reloads, the last of which takes what
// the file says then.
func TestManyReloads(t *testing.T) {
	onUserspace(t, func(t *testing.T, s *stand.Stand) {
		load := s.Client.StartLoad(t.Context(), stand.VIP, lab.LoadOptions{Workers: 4, Pause: 5 * time.Millisecond, Timeout: 20 * time.Second})
		began := time.Now()
		for i := range 1000 {
			if i == 999 {
				must(t, s.WriteConfig(strings.Replace(s.DefaultConfig(), "be2: 10.30.0.12:8080", "be2: {address: 10.30.0.12:8080, weight: 3}", 1)))
			}
			must(t, s.Process().Signal(syscall.SIGHUP))
			time.Sleep(time.Until(began.Add(time.Duration(i+1) * time.Millisecond)))
		}
		took := time.Since(began)
		await(t, s, "weight 3", func(st *api.Status) bool { return st.InSync && st.Pools[0].Members[1].Slots > 500 })
		log, err := os.ReadFile(s.LogPath())
		must(t, err)
		reloads := strings.Count(string(log), "reloaded")
		t.Logf("1000 signals in %v: %d reloads", took, reloads)
		if most := int(took/(100*time.Millisecond)) + 3; reloads > most || reloads < 1 {
			t.Errorf("%d reloads in %v, at most %d expected", reloads, took, most)
		}
		if r := load.Stop(); r.Failed > 0 || r.Requests == 0 {
			t.Errorf("%d of %d requests failed: %v", r.Failed, r.Requests+r.Failed, r.Failures)
		}
	})
}

// A configuration that is refused leaves the running one in force, and is
// alarmed.
func TestRefusedReload(t *testing.T) {
	onUserspace(t, func(t *testing.T, s *stand.Stand) {
		s.Relay.ResetCounts()
		before := await(t, s, "steady", stand.Steady(4))
		good := s.DefaultConfig()
		replace := func(old, new string) func() error {
			return func() error { return s.WriteConfig(strings.Replace(good, old, new, 1)) }
		}
		other := filepath.Join(s.Lab.Dir(), "other.yaml")
		for _, bad := range []struct {
			name  string
			write func() error
			want  string
		}{
			{"a key that is not known", replace("rise: 2", "raise: 2"), "raise"},
			{"a value out of range", replace("id: 1", "id: 1\n    slots: 1000"), "not a power of two"},
			{"a VIP twice", replace("services:\n", "services:\n  twice: {address: 10.20.0.100, ports: [80/tcp], pool: web}\n"), "10.20.0.100"},
			{"another bridge", replace("bridge: br-lb", "bridge: br-other"), "cannot change while brlb runs"},
			{"an empty file", func() error { return s.WriteConfig("") }, "empty"},
			{"10 MiB", func() error { return s.WriteConfig(strings.Repeat("# nothing\n", 1<<20)) }, "larger than"},
			{"half of it", func() error { return s.WriteConfig(good[:len(good)/2]) }, "brlb.yaml:"},
			{"no services", func() error { return s.WriteConfig(good[:strings.Index(good, "services:")]) }, "--allow-shrink"},
			{"no file", func() error { return os.Remove(s.ConfigPath()) }, "no such file"},
			{"a directory", func() error { return os.Mkdir(s.ConfigPath(), 0o755) }, "is a directory"},
			{"a symbolic link to nothing", func() error {
				must(t, os.Remove(s.ConfigPath()))
				return os.Symlink(other, s.ConfigPath())
			}, "no such file"},
			{"a symbolic link to a bad file", func() error { return os.WriteFile(other, []byte("pools: ["), 0o600) }, "brlb.yaml:1:"},
			{"most members gone", func() error {
				return os.WriteFile(other, []byte(removeMember(removeMember(removeMember(good, "be1"), "be2"), "be3")), 0o600)
			}, "3 of 4 members"},
		} {
			must(t, bad.write())
			_, err := s.API.Reload(t.Context(), api.ReloadRequest{})
			if err == nil || !strings.Contains(err.Error(), "stays in force") || !strings.Contains(err.Error(), bad.want) {
				t.Errorf("%s: %v", bad.name, err)
			}
			if m := metrics(t, s); m["brlb_config_last_reload_successful"] != 0 {
				t.Errorf("%s: the metric says that it was taken over", bad.name)
			}
			await(t, s, "the refusal in the status", func(st *api.Status) bool {
				return strings.Contains(strings.Join(st.Degraded, " "), "reload was refused: the running configuration stays in force: ")
			})
		}
		// The log tells whoever sent SIGHUP what to do.
		must(t, s.Process().Signal(syscall.SIGHUP))
		eventually(t, "the refusal is in the log", func() bool {
			log, err := os.ReadFile(s.LogPath())
			return err == nil && strings.Contains(string(log), "reload refused") && strings.Contains(string(log), "reload --allow-shrink")
		})
		after := await(t, s, "steady", stand.Steady(4))
		if after.Revision != before.Revision || s.Relay.FlowMods() != 0 {
			t.Errorf("revision %d -> %d, %d flow-mods", before.Revision, after.Revision, s.Relay.FlowMods())
		}

		// A link that leads to another good file, by a rename as programs do it.
		must(t, os.WriteFile(other+".new", []byte(removeMember(good, "be4")), 0o600))
		must(t, os.Symlink(other+".new", s.ConfigPath()+".new"))
		must(t, os.Rename(s.ConfigPath()+".new", s.ConfigPath()))
		_, err := s.API.Reload(t.Context(), api.ReloadRequest{})
		must(t, err)
		await(t, s, "three members", func(st *api.Status) bool { return stand.Steady(3)(st) && len(st.Degraded) == 0 })
		if m := metrics(t, s); m["brlb_config_last_reload_successful"] != 1 {
			t.Error("the metric says that the good file was refused")
		}
		must(t, os.WriteFile(other+".new", []byte(removeMember(removeMember(removeMember(good, "be1"), "be2"), "be3")), 0o600))
		_, err = s.API.Reload(t.Context(), api.ReloadRequest{AllowShrink: true})
		must(t, err)
		await(t, s, "what was meant", func(st *api.Status) bool { return len(st.Pools[0].Members) == 1 })
	})
}
