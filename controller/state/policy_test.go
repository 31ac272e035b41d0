package state

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"
)

// ruled is a pool of three members with rules.
func ruled(rules string) string {
	return strings.Replace(onePool, "    id: 1\n", "    id: 1\n    "+strings.ReplaceAll(rules, "; ", "\n    ")+"\n", 1)
}

// counts says how many slots of 64 be1, be2 and be3 own.
func counts(s *State) string {
	p := s.Snapshot().Pool("web")
	var list []string
	for _, addr := range []netip.AddrPort{be1, be2, be3} {
		list = append(list, fmt.Sprint(p.Member(addr.String()).Slots))
	}
	return strings.Join(list, " ")
}

// TestEmergencies: who owns slots when members go down, one after the other.
func TestEmergencies(t *testing.T) {
	for _, c := range []struct {
		rules string
		then  []string // slots after 1, 2 and 3 members are down, and the rule in force
		back  string   // after be1 is up again
	}{
		{"on_all_down: drop", []string{"0 32 32 ", "0 0 64 ", "0 0 0 "}, "64 0 0 "},
		{"on_all_down: keep", []string{"0 32 32 ", "0 0 64 ", "0 0 64 kept"}, "64 0 0 "},
		{"min_active: 2", []string{"0 32 32 ", "0 0 0 short", "0 0 0 "}, "0 0 0 short"},
		{"min_active: 2; on_all_down: keep", []string{"0 32 32 ", "0 32 32 kept", "0 32 32 kept"}, "21 21 22 kept"},
		{"panic_below: 50%", []string{"0 32 32 ", "22 21 21 panic", "22 21 21 panic"}, "22 21 21 panic"},
		{"panic_below: 30%", []string{"0 32 32 ", "0 0 64 ", "22 21 21 panic"}, "64 0 0 "},
		{"panic_below: 30%; on_all_down: keep", []string{"0 32 32 ", "0 0 64 ", "22 21 21 panic"}, "64 0 0 "},
	} {
		t.Run(c.rules, func(t *testing.T) {
			s := serving(t, ruled(c.rules))
			look := func(when, want string) {
				t.Helper()
				p := s.Snapshot().Pool("web")
				got := counts(s) + " " + string(p.Emergency)
				if strings.HasSuffix(want, "panic") || strings.HasSuffix(want, "kept") && strings.HasPrefix(want, "21") {
					// Who has a slot more is the layout's business.
					got = strings.NewReplacer("22", "x", "21", "x").Replace(got)
					want = strings.NewReplacer("22", "x", "21", "x").Replace(want)
				}
				if got != want || (p.Alarm != "") != (p.Emergency != "") {
					t.Errorf("%s: %q (%s), want %q", when, got, p.Alarm, want)
				}
			}
			for i, addr := range []netip.AddrPort{be1, be2, be3} {
				judge(s, Down, byTCP(addr))
				look(fmt.Sprintf("%d down", i+1), c.then[i])
			}
			judge(s, Up, byTCP(be1))
			look("be1 up again", c.back)
		})
	}
}

// TestPanicSparesWhomOperatorsTookOut: nor does it serve who cannot be reached,
// or has weight 0.
func TestPanicSparesWhomOperatorsTookOut(t *testing.T) {
	s := serving(t, ruled("panic_below: 60%"))
	judge(s, Down, byTCP(be1), byTCP(be2), byTCP(be3))
	s.SetOverride(inWeb(be1), Override{State: Draining, At: start})
	s.SetOverride(inWeb(be2), Override{State: Enabled, Weighting: Weighting{To: "0"}, At: start})
	if got := counts(s); got != "0 0 64" {
		t.Errorf("slots %s", got)
	}
	p := s.Snapshot().Pool("web")
	if m := p.Member(be3.String()); !m.Active || m.Despite != "down: L4CON" || m.Reason != "" {
		t.Errorf("be3: %+v", m)
	}
	if m := p.Member(be1.String()); m.Active || m.Reason != "draining" {
		t.Errorf("be1: %+v", m)
	}
}

// TestKeptThroughARestart: a brlb that starts while everything is down leaves
// the table as it finds it.
func TestKeptThroughARestart(t *testing.T) {
	s := connected(t, ruled("on_all_down: keep"))
	var found []Adopted
	for i, addr := range []netip.AddrPort{be1, be2} {
		f := Adopted{Number: uint16(i + 1), PoolID: 1, Address: addr}
		for slot := range 32 {
			f.Slots = append(f.Slots, uint16(32*i+slot))
		}
		found = append(found, f)
	}
	s.Adopt(found, start)
	s.Snapshot()
	for _, addr := range []netip.AddrPort{be3, be1, be2} {
		judge(s, Down, byTCP(addr))
		s.Snapshot() // until the last verdict the switch keeps what it holds
	}
	if got := counts(s); got != "32 32 0" {
		t.Errorf("slots %s", got)
	}
	if p := s.Snapshot().Pool("web"); !p.Settled || p.Emergency != Kept {
		t.Errorf("settled %v, %q", p.Settled, p.Emergency)
	}
}

// TestSlowStart: a member that comes back gets its weight in steps, each of
// which moves slots to it alone, but for one that rounding may move between
// others; at the start of the pool all have all at once.
func TestSlowStart(t *testing.T) {
	s := serving(t, ruled("slow_start: 40s"))
	if got := counts(s); strings.Contains(got, "0") {
		t.Errorf("at the start: %s", got)
	}
	judge(s, Down, byTCP(be1))
	s.Snapshot()
	s.SetVerdict(byTCP(be1), Verdict{Health: Up}, after(time.Minute))
	whole := map[time.Duration]int{0: 6, 10: 11, 20: 15, 30: 18, 40: 21} // 64 * w/(w+2), w from 0.2 to 1
	before := s.Snapshot().Pool("web").Table
	for _, second := range []time.Duration{0, 9, 10, 19, 20, 30, 39, 40, 50} {
		s.Tick(after(time.Minute + second*time.Second))
		p := s.Snapshot().Pool("web")
		m := p.Member(be1.String())
		want := whole[second/10*10]
		if second >= 40 {
			want = whole[40]
		}
		if m.Slots < want-1 || m.Slots > want+1 {
			t.Errorf("after %ds: %d slots (%d%%), want %d", second, m.Slots, m.Percent, want)
		}
		others := 0
		for slot := range p.Slots {
			if was, is := before.Key(slot), p.Table.Key(slot); was != is && is != be1.String() {
				others++
			}
		}
		if others > 1 {
			t.Errorf("after %ds: %d slots move between others", second, others)
		}
		before = p.Table
	}
	if m := s.Snapshot().Pool("web").Member(be1.String()); m.Ramp != 0 || m.Percent != 100 {
		t.Errorf("at the end: %+v", m)
	}
}

// TestHoldDown: a member that flaps stays out until it has gone down often
// enough ago; its failures count at once all the while.
func TestHoldDown(t *testing.T) {
	s := serving(t, ruled("hold_down: {after: 3, within: 1m}"))
	verdict := func(h Health, at time.Duration) {
		s.SetVerdict(byTCP(be1), Verdict{Health: h}, after(at))
		s.Snapshot()
	}
	look := func(when time.Duration, owns bool, reason string) {
		t.Helper()
		s.Tick(after(when))
		m := s.Snapshot().Pool("web").Member(be1.String())
		if (m.Slots > 0) != owns || m.Reason != reason {
			t.Errorf("at %v: %d slots, %q", when, m.Slots, m.Reason)
		}
	}
	for i := range 3 {
		at := time.Duration(10*i) * time.Second
		verdict(Down, at)
		look(at, false, "down:")
		verdict(Up, at+5*time.Second)
		if i < 2 {
			look(at+5*time.Second, true, "")
		}
	}
	const held = "held down until 12:01:00: it went down 3 times within 1m0s"
	look(25*time.Second, false, held)
	look(59*time.Second, false, held)
	look(60*time.Second, true, "")
	verdict(Down, 61*time.Second) // the third within a minute, with those at 10s and 20s
	verdict(Up, 62*time.Second)
	look(62*time.Second, false, "held down until 12:01:10: it went down 3 times within 1m0s")
	look(70*time.Second, true, "")
}

// TestRulesOfACopy: what happens to a copy of the state does not happen to it.
func TestRulesOfACopy(t *testing.T) {
	s := serving(t, ruled("slow_start: 40s; on_all_down: keep; hold_down: {after: 2, within: 1m}"))
	judge(s, Down, byTCP(be1))
	before := counts(s)
	c := s.Clone()
	c.SetVerdict(byTCP(be1), Verdict{Health: Up}, after(time.Second))
	c.Snapshot()
	judge(c, Down, byTCP(be2), byTCP(be3))
	c.Snapshot()
	if got := counts(s); got != before {
		t.Errorf("slots %s, before %s", got, before)
	}
	if p := s.pools["web"]; len(p.ramps) != 0 || len(p.last) != 2 || len(s.falls[byTCP(be2)]) != 0 {
		t.Errorf("it remembers %v, %v, %v", p.ramps, p.last, s.falls)
	}
}
