package state

import (
	"strings"
	"testing"
	"time"

	"brlb/controller/config"
)

// heldBy is what a switch holds of a snapshot's members.
func heldBy(was *Snapshot) []Adopted {
	var found []Adopted
	for i := range was.Pools {
		p := &was.Pools[i]
		for j := range p.Members {
			m := &p.Members[j]
			a := Adopted{Number: m.Number, PoolID: p.ID, Address: m.Address, Next: m.Next, HasNext: true}
			for slot := range p.Slots {
				if p.Owner(slot) == m {
					a.Slots = append(a.Slots, uint16(slot))
				}
			}
			found = append(found, a)
		}
	}
	return found
}

// resumed is the state of a brlb that starts anew beside a switch that holds
// what the last one gave it.
func resumed(t *testing.T, text string, old *State, now time.Time) *State {
	t.Helper()
	was := old.Snapshot()
	s := New(parse(t, text), now)
	s.Snapshot()
	s.LoadAnchors(old.Anchors())
	if err := s.LoadClocks(old.Clocks()); err != nil {
		t.Fatal(err)
	}
	if err := s.LoadNumbers(old.Numbers()); err != nil {
		t.Fatal(err)
	}
	s.Snapshot() // before the switch has connected
	s.SetPorts(was.Ports, now)
	s.Adopt(heldBy(was), now)
	return s
}

// TestSlowStartGoesOn: a restart does not give a member at once what it was to
// get slowly, nor anew what it has.
func TestSlowStartGoesOn(t *testing.T) {
	text := ruled("slow_start: 40s")
	s := serving(t, text)
	judge(s, Down, byTCP(be1))
	s.Snapshot()
	if got := s.Clocks(); got != "" {
		t.Errorf("clocks %s", got)
	}
	s.SetVerdict(byTCP(be1), Verdict{Health: Up}, after(time.Minute))
	s.Snapshot()
	s.Tick(after(70 * time.Second)) // a second step
	if counts(s) != "11 27 26" && counts(s) != "11 26 27" {
		t.Fatalf("slots %s", counts(s))
	}
	without := s.Clone()
	without.SetConfig(parse(t, onePool), after(70*time.Second))
	if got := without.Clocks(); got != "" {
		t.Errorf("clocks without the rule: %s", got)
	}
	if got := s.Clocks(); got != `{"slow_start":{"web/10.30.0.11:80":1714564860000}}` {
		t.Errorf("clocks %s", got)
	}
	again := resumed(t, text, s, after(75*time.Second))
	if counts(again) != counts(s) {
		t.Errorf("after a restart: %s, before %s", counts(again), counts(s))
	}
	again.SetVerdict(byTCP(be1), Verdict{Health: Up}, after(76*time.Second))
	again.SetVerdict(byTCP(be2), Verdict{Health: Up}, after(76*time.Second))
	again.SetVerdict(byTCP(be3), Verdict{Health: Up}, after(76*time.Second))
	if counts(again) != counts(s) {
		t.Errorf("with verdicts: %s, before %s", counts(again), counts(s))
	}
	for _, x := range []*State{s, again} {
		x.Tick(after(85 * time.Second))
	}
	if counts(again) != counts(s) || strings.HasPrefix(counts(s), "11") {
		t.Errorf("a step later: %s, without a restart %s", counts(again), counts(s))
	}
	again.Tick(after(100 * time.Second))
	if got := counts(again); !strings.HasPrefix(got, "21") && !strings.HasPrefix(got, "22") {
		t.Errorf("at the end: %s", got)
	}
	if got := again.Clocks(); got != "" {
		t.Errorf("clocks at the end: %s", got)
	}
}

// TestHoldDownGoesOn: a restart does not bring a member back that is held down.
func TestHoldDownGoesOn(t *testing.T) {
	text := ruled("hold_down: {after: 2, within: 1m}")
	s := serving(t, text)
	for _, second := range []time.Duration{10, 20} {
		s.SetVerdict(byTCP(be1), Verdict{Health: Down}, after(second*time.Second))
		s.Snapshot()
		s.SetVerdict(byTCP(be1), Verdict{Health: Up}, after((second+5)*time.Second))
		s.Snapshot()
	}
	again := resumed(t, text, s, after(30*time.Second))
	for _, addr := range again.Probes() {
		again.SetVerdict(addr, Verdict{Health: Up}, after(31*time.Second))
	}
	const held = "held down until 12:01:10: it went down 2 times within 1m0s"
	if m := again.Snapshot().Pool("web").Member(be1.String()); m.Active || m.Reason != held {
		t.Errorf("be1: %+v", m)
	}
	again.Tick(after(70 * time.Second))
	if m := again.Snapshot().Pool("web").Member(be1.String()); !m.Active {
		t.Errorf("be1 at the end: %+v", m)
	}
	if got := again.Clocks(); !strings.Contains(got, `"hold_down":{"tcp/10.30.0.11:80":[1714564820000]}`) {
		t.Errorf("clocks %s: the first fall is too long ago", got)
	}
	again.Tick(after(90 * time.Second))
	if got := again.Clocks(); got != "" {
		t.Errorf("clocks at the end: %s", got)
	}
}

// TestReturnGoesOn: the time that a pool must have worked is counted through a
// restart.
func TestReturnGoesOn(t *testing.T) {
	text := strings.Replace(onePool, "pool: web}", "pool: web, backup: spare, return_after: 1m}", 1)
	text = strings.Replace(text, "services:", "  spare: {id: 2, members: {sp1: 10.30.0.21:80}}\nservices:", 1)
	s := serving(t, text)
	judge(s, Down, byTCP(be1), byTCP(be2), byTCP(be3))
	s.Snapshot()
	s.SetVerdict(byTCP(be1), Verdict{Health: Up}, after(10*time.Second))
	if got := s.Snapshot().Services[0].Pool; got != "spare" {
		t.Fatalf("served by %s", got)
	}
	again := resumed(t, text, s, after(40*time.Second))
	again.AdoptFronts([]Front{{Address: s.Snapshot().Services[0].Addresses[0], Proto: config.ProtoTCP, Port: 80, PoolID: 2}})
	judgeAt := func(at time.Time) {
		for _, id := range again.Probes() {
			health := Up
			if id == byTCP(be2) || id == byTCP(be3) {
				health = Down
			}
			again.SetVerdict(id, Verdict{Health: health}, at)
		}
	}
	again.Snapshot()
	judgeAt(after(41 * time.Second))
	for second, want := range map[time.Duration]string{69: "spare", 70: "web"} {
		c := again.Clone()
		c.Tick(after(second * time.Second))
		if got := c.Snapshot().Services[0].Pool; got != want {
			t.Errorf("after %ds served by %s, want %s", second, got, want)
		}
	}
}

// TestBadClocks: what makes no sense, or is to come, is left out.
func TestBadClocks(t *testing.T) {
	text := ruled("slow_start: 40s; hold_down: {after: 1, within: 1h}")
	s := connected(t, text)
	for _, bad := range []string{"{", "[]", `{"slow_start": 1}`, `{"hold_down": {"tcp/10.30.0.11:80": 1}}`} {
		if err := s.LoadClocks(bad); err == nil {
			t.Errorf("%s: no error", bad)
		}
	}
	for _, odd := range []string{
		"", "{}", `{"slow_start":{"":1,"web":1,"none/10.30.0.11:80":1,"web/10.30.0.99:80":1}}`,
		`{"slow_start":{"web/10.30.0.11:80":9999999999999,"web/10.30.0.12:80":-1},"hold_down":{"tcp":[1],"tcp/be1":[1],"tcp/10.30.0.11:80":[9999999999999,0,-5]}}`,
		`{"return_after":{"none":1}}`,
	} {
		if err := s.LoadClocks(odd); err != nil {
			t.Errorf("%s: %v", odd, err)
		}
	}
	judge(s, Up, s.Probes()...)
	if got := counts(s); strings.Contains(got, " 0") || strings.HasPrefix(got, "0") || s.Clocks() != "" {
		t.Errorf("slots %s, clocks %s", got, s.Clocks())
	}
}
