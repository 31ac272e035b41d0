package controller

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"brlb/controller/config"
	"brlb/controller/state"
)

// reloadable is a configuration in which there is something of everything.
const reloadable = `
checks:
  web: {type: http, path: /healthz, interval: 1s}
pools:
  web:
    id: 1
    check: web
    members:
      be1: 10.30.0.11:80
      be2: 10.30.0.12:80
      be3: 10.30.0.13:80
      be4: 10.30.0.14:80
  api: {id: 2, members: {a1: 10.30.0.21:80}}
services:
  web: {address: 10.20.0.100, ports: [80/tcp], pool: web}
  api: {address: 10.20.0.101, ports: [80/tcp], pool: api}
`

func parse(t *testing.T, text string) *config.Config {
	t.Helper()
	cfg, err := config.Parse("test.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return cfg
}

func TestForeseeConfig(t *testing.T) {
	replace := func(pairs ...string) string { return strings.NewReplacer(pairs...).Replace(reloadable) }
	for _, c := range []struct {
		name, text string
		want       []string // sentences
		moved      int      // slots of pool web
		refused    string
	}{
		{"the same", reloadable, nil, 0, ""},
		{"a comment, another order, a default that is said", "# new\nzone: 18200\n" + replace("be1: 10.30.0.11:80\n      be2: 10.30.0.12:80", "be2: 10.30.0.12:80\n      be1: 10.30.0.11:80"), nil, 0, ""},
		{"a member more", replace("be4: 10.30.0.14:80", "be4: 10.30.0.14:80\n      be5: {address: 10.30.0.15:80, weight: 4}"), []string{
			"pool web: member be5, 10.30.0.15:80, added",
			"pool web: 512 of 1024 slots move, 512 needed and 0 collateral, when the new members' probes pass",
		}, 512, ""},
		{"a member less", replace("      be4: 10.30.0.14:80\n", ""), []string{
			"pool web: member be4, 10.30.0.14:80, removed",
			"pool web: 256 of 1024 slots move, 256 needed and 0 collateral",
		}, 256, ""},
		{"a drained member less", replace("      be3: 10.30.0.13:80\n", ""), []string{
			"pool web: member be3, 10.30.0.13:80, removed",
			"pool web: should member be3 come back, it is draining; brlb overrides --clear web/10.30.0.13:80 forgets that",
			"pool web: 256 of 1024 slots move, 256 needed and 0 collateral",
		}, 256, ""},
		{"a member that was disabled when it went", replace("be4: 10.30.0.14:80", "be4: 10.30.0.14:80\n      be9: 10.30.0.19:80"), []string{
			"pool web: member be9, 10.30.0.19:80, added",
			"pool web: member be9 is disabled and of weight 50%, as was decided by ann: fan; brlb enable web/be9 takes it back",
		}, 0, ""},
		{"weights and names", replace("be1: 10.30.0.11:80", "be7: 10.30.0.11:80", "be2: 10.30.0.12:80", "be2: {address: 10.30.0.12:80, weight: 0}"), []string{
			"pool web: member be2: weight 0 instead of 1",
			"pool web: member be7: name be7 instead of be1",
			"pool web: 256 of 1024 slots move, 256 needed and 0 collateral",
		}, 256, ""},
		{"settings", "start_deadline: 20s\n" + replace("    check: web\n", "    check: web\n    panic_below: 30%\n    hold_down: {after: 3, within: 1m}\n", "path: /healthz", "path: /ok, headers: {Authorization: secret}"), []string{
			"start_deadline 20s instead of 10s",
			"check web: other http.path, http.headers; until its first verdicts the old ones stand",
			"pool web: panic_below 30 instead of 0",
			"pool web: hold_down.after 3 instead of 0",
			"pool web: hold_down.within 1m0s instead of 0s",
		}, 0, ""},
		{"a service and a pool more", replace("services:\n", "  spare: {id: 3, members: {s1: 10.30.0.31:80}}\nservices:\n", "pool: api}", "pool: api}\n  tls: {address: 10.20.0.100, ports: [443/tcp], pool: web}"), []string{
			"pool spare added: id 3, 1 members",
			"service tls added: [10.20.0.100] [443/tcp], pool web",
		}, 0, ""},
		{"a service and a pool less", replace("  api: {id: 2, members: {a1: 10.30.0.21:80}}\n", "", "  api: {address: 10.20.0.101, ports: [80/tcp], pool: api}\n", ""), []string{
			"check tcp removed",
			"pool api removed",
			"service api removed",
		}, 0, ""},
		{"other ports", replace("10.20.0.100, ports: [80/tcp]", "10.20.0.100, ports: [80/tcp, 443/tcp]"), []string{
			"service web: ports [80/tcp 443/tcp] instead of [80/tcp]",
		}, 0, ""},
		{"members move into a pool inside", replace("      be1: 10.30.0.11:80\n      be2: 10.30.0.12:80\n      be3: 10.30.0.13:80\n", "      eu: {pool: eu, weight: 3}\n",
			"services:\n", "  eu: {id: 3, check: web, members: {be1: 10.30.0.11:80, be2: 10.30.0.12:80, be3: 10.30.0.13:80}}\nservices:\n"), []string{
			"pool eu added: id 3, 3 members",
			"pool web: pool eu is inside it",
			"pool web: member be1, 10.30.0.11:80, removed",
			"pool web: member be2, 10.30.0.12:80, removed",
			"pool web: member be3, 10.30.0.13:80, removed",
		}, 0, ""},
		{"most members less", replace("      be1: 10.30.0.11:80\n      be2: 10.30.0.12:80\n      be3: 10.30.0.13:80\n", ""), nil, 768,
			"it removes 3 of 5 members, more than half: if that is meant, brlb --socket /run/brlb/br-lb.sock reload --allow-shrink does it"},
		{"no services", reloadable[:strings.Index(reloadable, "services:")], nil, 0, "it removes 2 of 2 services, more than half"},
		{"another zone, which another bridge may have", "zone: 7\n" + reloadable, nil, 0, "zone cannot change while brlb runs (it is 18200, the file says 7)"},
		{"a zone of its own", replace("api: {id: 2,", "api: {id: 2, conntrack: {limit: 50},"), nil, 0, "the conntrack zone of 10.20.0.101 cannot change while brlb runs (it is 18200, the file says 18202)"},
		{"another bridge", "bridge: br-2\n" + reloadable, nil, 0, "bridge cannot change while brlb runs"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := servingConfig(t, parse(t, reloadable))
			s.SetOverride(state.MemberID{Pool: "web", Key: "10.30.0.19:80"}, state.Override{
				State: state.Disabled, Who: "ann", Why: "fan", Weighting: state.Weighting{To: "50%"}})
			if strings.Contains(c.name, "drained") {
				s.SetOverride(state.MemberID{Pool: "web", Key: "10.30.0.13:80"}, state.Override{State: state.Draining})
				c.want, c.moved = c.want[:2], 0 // it owns no slot
			}
			now := s.Snapshot()
			cfg := parse(t, c.text)
			r := foreseeConfig(now, s.Clone(), cfg, false)
			if c.want != nil && !slices.Equal(r.Changes, c.want) || r.Changed != (len(r.Changes) > 0) {
				t.Errorf("changes\n%s\nwant\n%s", strings.Join(r.Changes, "\n"), strings.Join(c.want, "\n"))
			}
			moved := 0
			for _, p := range r.Pools {
				moved += p.Moves.Moved
			}
			if moved != c.moved {
				t.Errorf("%d slots move, want %d", moved, c.moved)
			}
			if !strings.HasPrefix(r.Refused, c.refused) || c.refused == "" && r.Refused != "" {
				t.Errorf("refused: %s, want %s", r.Refused, c.refused)
			}
			if r := foreseeConfig(now, s.Clone(), cfg, true); strings.Contains(r.Refused, "more than half") {
				t.Errorf("refused although it may shrink: %s", r.Refused)
			}
			if s.Snapshot() != now {
				t.Error("the state has changed")
			}
		})
	}
}

// A reload that breaks connections says so.
func TestForeseeBrokenConnections(t *testing.T) {
	nat := "pools: {web: {id: 1, members: {be1: 10.30.0.11:80}}}"
	dsr := strings.Replace(nat, "id: 1", "id: 1, mode: dsr", 1)
	for _, c := range []struct{ old, new, want string }{
		{nat, dsr, "for in one of the modes the switch keeps them"},
		{dsr, nat, "for in one of the modes the switch keeps them"},
		{dsr, strings.Replace(dsr, "id: 1", "id: 2", 1), "for in mode dsr id, slots and affinity say where they belong"},
		{dsr, strings.Replace(dsr, "id: 1", "id: 1, slots: 64", 1), "for in mode dsr id, slots"},
		{dsr, strings.Replace(dsr, "id: 1", "id: 1, affinity: source", 1), "for in mode dsr id, slots"},
		{dsr, strings.Replace(dsr, "mode: dsr", "mode: tunnel", 1), ""},
		{dsr, strings.Replace(dsr, "id: 1", "id: 1, transition: 1m", 1), ""},
		{nat, strings.Replace(nat, "id: 1", "id: 2, slots: 64, affinity: source", 1), ""},
	} {
		said := ""
		for _, change := range describeConfigs(parse(t, c.old), parse(t, c.new), func(state.MemberID) state.Override { return state.Override{} }) {
			if strings.HasPrefix(change, "pool web: its open connections break, ") {
				said = change
			}
		}
		if !strings.Contains(said, c.want) || c.want == "" && said != "" {
			t.Errorf("%s\n%s\n\tsays %q, want %q", c.old, c.new, said, c.want)
		}
	}
}

// Members by name are told, and missed, as others are.
func TestForeseeNames(t *testing.T) {
	const names = "pools: {web: {id: 1, members: {a: one.example.org:80, b: two.example.org:80}}}"
	old := parse(t, names)
	s := servingConfig(t, old)
	now := s.Snapshot()
	for _, c := range []struct{ text, want, refused string }{
		{strings.Replace(names, "b: two", "b: three", 1),
			"pool web: member b, three.example.org:80, added: the addresses that DNS has of it; pool web: member b, two.example.org:80, removed", ""},
		{strings.Replace(names, "b: two.example.org:80", "b: {address: two.example.org:80, weight: 2}", 1), "pool web: member b: weight 2 instead of 1", ""},
		{"pools: {web: {id: 1, from_ovsdb: true, members: {}}}",
			"pool web: from_ovsdb true instead of false; pool web: member a, one.example.org:80, removed; pool web: member b, two.example.org:80, removed",
			"it removes 2 of 2 members"},
	} {
		r := foreseeConfig(now, s.Clone(), parse(t, c.text), false)
		if got := strings.Join(r.Changes, "; "); got != c.want || !strings.HasPrefix(r.Refused, c.refused) || c.refused == "" && r.Refused != "" {
			t.Errorf("%s\ngot  %s, refused %q\nwant %s, refused %q", c.text, got, r.Refused, c.want, c.refused)
		}
	}
}

// A file that was cut off anywhere is refused, or means what the whole one
// means. (Of several services at its end, one half might go unnoticed.)
func TestCutOffFiles(t *testing.T) {
	whole := strings.Replace(reloadable, "  api: {address: 10.20.0.101, ports: [80/tcp], pool: api}\n", "", 1)
	s := servingConfig(t, parse(t, whole))
	now := s.Snapshot()
	path := filepath.Join(t.TempDir(), "brlb.yaml")
	taken := 0
	for n := range len(whole) {
		if err := os.WriteFile(path, []byte(whole[:n]), 0o600); err != nil {
			t.Fatal(err)
		}
		cfg, err := config.Load(path)
		if err != nil {
			continue
		}
		if r := foreseeConfig(now, s.Clone(), cfg, false); r.Changed && r.Refused == "" {
			taken++
			t.Logf("%d bytes: %v", n, r.Changes)
		}
	}
	if taken > 0 {
		t.Errorf("%d beginnings of the file were good enough", taken)
	}
}

// servingConfig is the state of a configuration whose members are all up.
func servingConfig(t *testing.T, cfg *config.Config) *state.State {
	t.Helper()
	now := time.Date(2024, 5, 1, 12, 0, 0, 0, time.UTC)
	s := state.New(cfg, now)
	if err := s.LoadNumbers(""); err != nil {
		t.Fatal(err)
	}
	s.SetPorts([]state.Port{{Number: 1, Name: "p1", Live: true}}, now)
	for _, addr := range s.NextHops() {
		s.SetNextHop(addr, state.NextHop{Port: 1}, now)
	}
	for _, id := range s.Probes() {
		s.SetVerdict(id, state.Verdict{Health: state.Up}, now)
	}
	return s
}
