package state

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"brlb/controller/config"
	"brlb/maglev"
)

func TestParseWeight(t *testing.T) {
	for text, want := range map[string]string{
		"3": "3", "0": "0", "65535": "65535", "50%": "50%", "0%": "0%", "1000%": "1000%", "007": "7",
		"65536": "!", "1001%": "!", "-1": "!", "": "!", "%": "!", "1.5": "!", "half": "!", "5 %": "!",
	} {
		got, err := ParseWeight(text)
		if err != nil {
			got = "!"
		}
		if string(got) != want {
			t.Errorf("%q is %q (%v), want %q", text, got, err, want)
		}
	}
}

// TestOperatorsWeights: what operators' weights make of configured ones, in slots.
func TestOperatorsWeights(t *testing.T) {
	const text = `
pools:
  web: {id: 1, slots: 64, layout: %s, members: {be1: 10.30.0.11:80, be2: {address: 10.30.0.12:80, weight: 2}}}
`
	for _, c := range []struct {
		layout   string
		be1, be2 Weight
		want     [2]int // slots of 64
	}{
		{"v2", "", "", [2]int{21, 43}},
		{"v2", "2", "", [2]int{32, 32}},
		{"v2", "", "50%", [2]int{32, 32}},
		{"v2", "50%", "25%", [2]int{32, 32}},
		{"v2", "100%", "100%", [2]int{21, 43}},
		{"v2", "0", "", [2]int{0, 64}},
		{"v2", "0%", "", [2]int{0, 64}},
		{"v1", "50%", "", [2]int{13, 51}},
		{"chash", "50%", "", [2]int{23, 41}}, // 50% of 1 is rounded to 1
		{"chash", "", "", [2]int{23, 41}},
	} {
		s := serving(t, fmt.Sprintf(text, c.layout))
		s.SetOverride(inWeb(be1), Override{State: Enabled, Weighting: Weighting{To: c.be1}})
		s.SetOverride(inWeb(be2), Override{State: Enabled, Weighting: Weighting{To: c.be2}})
		p := s.Snapshot().Pool("web")
		if got := [2]int{p.Member(be1.String()).Slots, p.Member(be2.String()).Slots}; got != c.want {
			t.Errorf("%s %q %q: slots %v, want %v", c.layout, c.be1, c.be2, got, c.want)
		}
		if p.Stale() {
			t.Errorf("%q %q: an operator's weight makes the anchor stale", c.be1, c.be2)
		}
	}
}

// TestProportional: the layouts for which weights are counted in hundredths
// give the same table then.
func TestProportional(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		layout, err := maglev.ByName(rapid.SampledFrom(config.Proportional()).Draw(t, "layout"))
		if err != nil {
			t.Fatal(err)
		}
		in := maglev.Input{Pool: 1, Slots: 64}
		for i := range rapid.IntRange(1, 8).Draw(t, "members") {
			in.Members = append(in.Members, maglev.Member{Key: fmt.Sprintf("10.0.0.%d:80", i), Weight: rapid.Uint32Range(1, 200).Draw(t, "weight")})
		}
		in.Anchor = slices.Clone(in.Members)
		scaled := in
		scaled.Members = slices.Clone(in.Members)
		for i := range scaled.Members {
			scaled.Members[i].Weight *= 100
		}
		var a, b maglev.Table
		if err := layout.Build(in, &a); err != nil {
			t.Fatal(err)
		}
		if err := layout.Build(scaled, &b); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(a.Owner, b.Owner) {
			t.Fatalf("%s: %v\n%v", layout.Name(), a.Owner, b.Owner)
		}
	})
}

// TestDrainWithDeadline: a drain becomes a disablement when its time has come,
// by itself, also if that time passed while nobody looked.
func TestDrainWithDeadline(t *testing.T) {
	s := serving(t, onePool)
	s.SetOverride(inWeb(be1), Override{State: Draining, Who: "ann", Why: "disk", At: start, Until: after(10 * time.Minute)})
	look := func(want Admin, reason string, probed bool) {
		t.Helper()
		m := s.Snapshot().Pool("web").Member(be1.String())
		if m.Admin.State != want || m.Reason != reason || m.Slots != 0 || slices.Contains(s.Probes(), byTCP(be1)) != probed {
			t.Errorf("%s, %q, %d slots, probed %v", m.Admin.State, m.Reason, m.Slots, slices.Contains(s.Probes(), byTCP(be1)))
		}
	}
	look(Draining, "draining until 2024-05-01T12:10:00Z by ann: disk", true)
	s.Tick(after(10*time.Minute - time.Nanosecond))
	look(Draining, "draining until 2024-05-01T12:10:00Z by ann: disk", true)
	s.SetPorts(slices.Clone(s.portList), after(10*time.Minute)) // the clock goes on with every event
	s.Tick(after(10 * time.Minute))
	const ended = "disabled, for its drain has ended, by ann: disk"
	look(Disabled, ended, false)

	again := serving(t, onePool)
	again.SetOverrides(s.Overrides(), after(time.Hour))
	s = again
	look(Disabled, ended, false)

	s.SetOverride(inWeb(be1), Override{State: Enabled, At: after(time.Hour)})
	judge(s, Up, byTCP(be1))
	if m := s.Snapshot().Pool("web").Member(be1.String()); !m.Active || len(s.Overrides()) != 0 {
		t.Errorf("after enable: %+v, %v", m, s.Overrides())
	}
}
