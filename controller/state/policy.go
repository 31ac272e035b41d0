package state

import (
	"fmt"
	"slices"
	"time"

	"brlb/controller/config"
)

// Emergency is the rule by which a pool's members own slots, or own none,
// against what their probes say.
type Emergency string

// The emergencies.
const (
	Panic Emergency = "panic" // too few members are active: all that may serve do
	Kept  Emergency = "kept"  // too few are active: those that were active go on
	Short Emergency = "short" // fewer than min_active are active: none serves
)

// policies is what a pool's rules remember.
type policies struct {
	last  []string             // keys of the members that owned slots before an emergency
	ramps map[string]time.Time // when members, by key, began their slow start
	wake  time.Time            // when time alone will change something; zero if it won't
}

func (k *policies) clone() policies {
	return policies{last: slices.Clone(k.last), ramps: cloneMap(k.ramps), wake: k.wake}
}

func (k *policies) wakeAt(t time.Time) {
	if k.wake.IsZero() || t.Before(k.wake) {
		k.wake = t
	}
}

// applyPolicies decides, by the pool's own rules, which members own slots and
// with how much of their weight.
func (s *State) applyPolicies(c *config.Pool, kept *pool, p *Pool) {
	k := &kept.policies
	k.wake = time.Time{}
	for i := range p.Members {
		if p.Members[i].Origin == (MemberID{}) {
			s.holdDown(c, k, &p.Members[i])
		}
	}
	p.Emergency = k.emergency(c, p)
	p.Alarm = p.describeEmergency()
	p.Active = 0
	for i := range p.Members {
		m := &p.Members[i]
		if m.Active {
			p.Active++
		}
		if c.SlowStart > 0 && m.Origin == (MemberID{}) {
			k.slowStart(c.SlowStart, &kept.picture, m, p.Settled, s.now)
		}
	}
}

// holdDown keeps a member from coming back that has gone down too often.
func (s *State) holdDown(c *config.Pool, k *policies, m *Member) {
	if !m.Active || c.HoldDown.After == 0 {
		return
	}
	falls := s.falls[ProbeID{Address: m.Address, Check: m.Check}]
	if len(falls) < c.HoldDown.After {
		return
	}
	until := falls[len(falls)-c.HoldDown.After].Add(c.HoldDown.Within)
	if !s.now.Before(until) {
		return
	}
	k.wakeAt(until)
	m.Active = false
	m.Reason = fmt.Sprintf("held down until %s: it went down %d times within %v",
		until.UTC().Format(time.TimeOnly), c.HoldDown.After, c.HoldDown.Within)
}

// emergency looks whether enough members are active, and does what the pool's
// rules say if not. Members of weight 0 don't count.
func (k *policies) emergency(c *config.Pool, p *Pool) Emergency {
	active, fit := 0, 0
	var owners []string
	for i := range p.Members {
		if m := &p.Members[i]; m.Weight*m.Percent > 0 {
			if m.Active {
				active++
				owners = append(owners, m.ID.Key)
			}
			if m.fit {
				fit++
			}
		}
	}
	switch {
	case !p.Settled:
		// What was found on the switch counts until there are verdicts.
		k.last = slices.Compact(slices.Sorted(slices.Values(append(k.last, owners...))))
		return ""
	case active*100 < c.PanicBelow*fit:
		p.serveDespite(func(*Member) bool { return true })
		return Panic
	case active >= c.MinActive && active > 0:
		k.last = owners
		return ""
	case c.OnAllDown == config.OnAllDownKeep && p.serveDespite(func(m *Member) bool { return slices.Contains(k.last, m.ID.Key) }):
		return Kept
	case active > 0:
		for i := range p.Members {
			if m := &p.Members[i]; m.Active {
				m.Active, m.Reason = false, fmt.Sprintf("the pool has %d active members, and min_active is %d", active, c.MinActive)
			}
		}
		return Short
	}
	return ""
}

// serveDespite makes those of the chosen members active that nothing but their
// health keeps from it. It tells whether there is one.
func (p *Pool) serveDespite(chosen func(*Member) bool) bool {
	found := false
	for i := range p.Members {
		if m := &p.Members[i]; m.fit && !m.Active && chosen(m) {
			m.Active, m.Despite, found = true, m.Reason, true
			m.Reason = ""
		}
	}
	return found
}

// slowSteps is in how many steps the weight of a member grows: each is a
// change of the table.
const slowSteps = 5

// slowStart gives a member that has just become active its weight in steps of
// a fifth. At the start of a pool, where all come at once, nobody waits but who
// was on the way already.
func (k *policies) slowStart(whole time.Duration, before *Pool, m *Member, settled bool, now time.Time) {
	key := m.ID.Key
	if !m.Active || m.Despite != "" {
		if settled {
			delete(k.ramps, key)
		}
		return
	}
	if was := before.Member(key); before.Serves() && (was == nil || !was.Active) {
		if k.ramps == nil {
			k.ramps = map[string]time.Time{}
		}
		k.ramps[key] = now
	}
	began, ramps := k.ramps[key]
	if !ramps {
		return
	}
	step := whole / (slowSteps - 1)
	done := int(now.Sub(began) / step)
	if done >= slowSteps-1 {
		delete(k.ramps, key)
		return
	}
	k.wakeAt(began.Add(time.Duration(done+1) * step))
	m.Ramp = uint32(done+1) * 100 / slowSteps
	if m.Percent > 0 {
		m.Percent = max(1, m.Percent*m.Ramp/100)
	}
}

// rememberFall notes that a member has gone down. The newest ones are kept, as
// many as a rule may count.
func (s *State) rememberFall(id ProbeID, at time.Time) {
	falls := append(slices.Clip(s.falls[id]), at) // copies of the state share the old ones
	s.falls[id] = falls[max(0, len(falls)-config.MaxFalls):]
}

// describeEmergency says what an emergency means; "" if there is none.
func (p *Pool) describeEmergency() string {
	switch p.Emergency {
	case Panic:
		return "panic mode: too few members are active, so all that may serve get connections, whatever their probes say"
	case Kept:
		return "too few members are active, so those that were active last still get connections (on_all_down: keep)"
	case Short:
		return "fewer members are active than min_active: it serves nobody"
	}
	return ""
}
