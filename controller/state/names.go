package state

import (
	"net/netip"
	"slices"
	"time"

	"brlb/controller/config"
	"brlb/controller/resolve"
)

// Members that DNS knows: every address of a name is one, and comes and goes as
// the members that OVSDB declares do.

// NameState says how well a name is known.
type NameState string

// The states of a name.
const (
	NameAsking     NameState = "asking"     // no answer has come yet
	NameResolved   NameState = "resolved"   // by the newest answer
	NameStale      NameState = "stale"      // the newest answer is of no use: the one before holds
	NameUnresolved NameState = "unresolved" // no answer was of any use
)

// Name is a member of which the configuration says the name.
type Name struct {
	Name      string // first part of its members' names
	Host      string
	Port      uint16
	Addresses int // how many it has
	State     NameState
	Since     time.Time // of State
	Problem   string    // why it is not resolved, or which addresses are no members
}

// resolution is what is known of a host.
type resolution struct {
	addrs   []netip.Addr // sorted, of the newest useful answer, or adopted; not to be changed
	state   NameState
	since   time.Time
	problem string
}

// question is what must be asked about a pool's name.
func question(p *config.Pool, n *config.Name) resolve.Name {
	return resolve.Name{Host: n.Host, V6: p.IPv6}
}

// Names returns what must be resolved, sorted. The list is not to be changed.
func (s *State) Names() []resolve.Name { return s.questions }

// listNames brings the list of names up to date, and forgets what is known of
// others.
func (s *State) listNames(now time.Time) {
	old := s.names
	s.names, s.questions = map[resolve.Name]resolution{}, nil
	for i := range s.cfg.Pools {
		for j := range s.cfg.Pools[i].Names {
			name := question(&s.cfg.Pools[i], &s.cfg.Pools[i].Names[j])
			if _, listed := s.names[name]; listed {
				continue
			}
			known, ok := old[name]
			if !ok {
				known = resolution{state: NameAsking, since: now}
			}
			s.names[name] = known
			s.questions = append(s.questions, name)
		}
	}
	slices.SortFunc(s.questions, resolve.Name.Compare)
}

// SetResolved records the answer to a question. While there is no useful one,
// the addresses stay what they were.
func (s *State) SetResolved(name resolve.Name, answer resolve.Answer, now time.Time) {
	s.now = now
	was, wanted := s.names[name]
	if !wanted {
		return
	}
	is := resolution{addrs: answer.Addrs, state: NameResolved, since: now, problem: answer.Problem}
	if len(is.addrs) == 0 {
		is.addrs, is.state = was.addrs, NameStale
		if len(was.addrs) == 0 {
			is.state = NameUnresolved
		}
	}
	if is.state == was.state {
		is.since = was.since
	}
	same := slices.Equal(is.addrs, was.addrs)
	if same && is.state == was.state && is.problem == was.problem {
		return
	}
	s.names[name] = is
	if !same {
		s.listMembers()
		s.forget()
	}
	s.outdate()
}

// adoptNames takes those members on the switch that own slots, and of which the
// file knows nothing, for addresses that names had before brlb began: without
// an answer they go on serving.
func (s *State) adoptNames(found []Adopted) {
	adopted := map[resolve.Name][]netip.Addr{}
	for i := range found {
		f := &found[i]
		p := s.poolByID(f.PoolID)
		// What OVSDB declares must be known, not to be taken for something else.
		if p == nil || len(f.Slots) == 0 || p.FromOVSDB && !s.numbered || s.find(MemberID{Pool: p.Name, Key: f.Address.String()}) != nil {
			continue
		}
		for j := range p.Names {
			n := &p.Names[j]
			if name := question(p, n); n.Port == f.Address.Port() && len(s.names[name].addrs) == 0 {
				adopted[name] = append(adopted[name], f.Address.Addr())
				break
			}
		}
	}
	for name, addrs := range adopted {
		r := s.names[name]
		slices.SortFunc(addrs, netip.Addr.Compare)
		r.addrs = slices.Compact(addrs)
		if r.state == NameUnresolved {
			r.state = NameStale
		}
		s.names[name] = r
	}
	if len(adopted) > 0 {
		s.listMembers()
		s.forget()
	}
}

// removeResolved makes an address of a pool's names unknown.
func (s *State) removeResolved(id MemberID) {
	c, _ := s.cfg.Pool(id.Pool)
	for i := range c.Names {
		n := &c.Names[i]
		r := s.names[question(&c, n)]
		r.addrs = slices.DeleteFunc(slices.Clone(r.addrs), func(addr netip.Addr) bool {
			return netip.AddrPortFrom(addr, n.Port).String() == id.Key
		})
		s.names[question(&c, n)] = r
	}
}

// namesOf are the names of a pool.
func (s *State) namesOf(c *config.Pool) []Name {
	var names []Name
	for i := range c.Names {
		n := &c.Names[i]
		r := s.names[question(c, n)]
		names = append(names, Name{
			Name: n.Name, Host: n.Host, Port: n.Port, Addresses: len(r.addrs), State: r.state, Since: r.since, Problem: r.problem,
		})
	}
	return names
}

// asks says whether an answer must come before it can be said who the members of
// a pool are.
func (s *State) asks(c *config.Pool) bool {
	for i := range c.Names {
		if r := s.names[question(c, &c.Names[i])]; r.state == NameAsking && len(r.addrs) == 0 {
			return true
		}
	}
	return slices.ContainsFunc(c.Nested, func(n config.Nested) bool {
		inner, _ := s.cfg.Pool(n.Pool)
		return s.asks(&inner)
	})
}

// nameEvents tells how the names of a pool have changed.
func nameEvents(before, p *Pool, now time.Time) []Event {
	var events []Event
	for i := range p.Names {
		n := &p.Names[i]
		was := NameAsking
		if before != nil {
			for j := range before.Names {
				if o := &before.Names[j]; o.Name == n.Name && o.Host == n.Host {
					was = o.State
				}
			}
		}
		text := ""
		switch {
		case n.State == was:
		case n.State == NameResolved && was != NameAsking:
			text = n.Host + " is resolved again"
		case n.State == NameUnresolved:
			text = n.Host + " is unresolved: " + n.Problem
		case n.State == NameStale:
			text = n.Host + " cannot be resolved, its last answer holds: " + n.Problem
		}
		if text != "" {
			events = append(events, Event{Time: now, Pool: p.Name, Member: n.Name, Text: text})
		}
	}
	return events
}
