package state

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"brlb/controller/config"
)

// backups is what is remembered about services with backup pools.
type backups struct {
	serving map[string]string    // pool that serves, by service
	works   map[string]time.Time // since when a pool works, by pool
}

func newBackups() backups {
	return backups{serving: map[string]string{}, works: map[string]time.Time{}}
}

func (b *backups) clone() backups {
	return backups{serving: cloneMap(b.serving), works: cloneMap(b.works)}
}

// Front is where a service was found on the switch.
type Front struct {
	Address netip.Addr // a VIP
	Proto   config.Proto
	Port    uint16 // 0 with config.ProtoAny
	PoolID  uint16
}

// AdoptFronts takes over which pool the switch uses for each service: it stays
// so until the pools before it have their first verdicts.
func (s *State) AdoptFronts(found []Front) {
	for i := range s.cfg.Services {
		c := &s.cfg.Services[i]
		for _, f := range found {
			pool := s.poolByID(f.PoolID)
			if pool != nil && slices.Contains(candidates(c), pool.Name) && slices.Contains(c.Addresses, f.Address) &&
				slices.ContainsFunc(c.Ports, func(p config.Port) bool { return p.Proto == f.Proto && p.First == f.Port }) {
				s.backups.serving[c.Name] = pool.Name
			}
		}
	}
}

// candidates are the pools that may serve, the first one first.
func candidates(c *config.Service) []string { return append([]string{c.Pool}, c.Backup...) }

// works says whether a pool does its work: a backup need not do it.
func (p *Pool) works() bool { return p.Serves() && p.Emergency != Kept }

// noteWorking brings up to date since when pools work, if a service asks for it.
func (s *State) noteWorking() {
	if !slices.ContainsFunc(s.cfg.Services, func(c config.Service) bool { return len(c.Backup) > 0 }) {
		return
	}
	for name, p := range s.pools {
		_, known := s.backups.works[name]
		switch works := p.picture.works(); {
		case works && !known:
			s.backups.works[name] = s.now
		case !works && p.picture.Settled:
			delete(s.backups.works, name)
		}
	}
	for name := range s.backups.works {
		if s.pools[name] == nil {
			delete(s.backups.works, name)
		}
	}
}

// servingPool chooses the pool that serves: the first that works. A pool is
// left at once when it fails, and returned to when it has worked for the time
// that the service wants.
func (s *State) servingPool(c *config.Service) string {
	if len(c.Backup) == 0 {
		return c.Pool
	}
	pools := candidates(c)
	current := s.backups.serving[c.Name]
	rank := slices.Index(pools, current)
	chosen := pools[0]
	for i, name := range pools {
		p := s.pools[name]
		if p == nil {
			continue
		}
		if !p.picture.Settled {
			if rank >= 0 {
				chosen = current
			}
			break
		}
		since, works := s.backups.works[name]
		early := i < rank && s.now.Before(since.Add(c.ReturnAfter)) && s.pools[current] != nil && s.pools[current].picture.works()
		if works && !early {
			chosen = name
			break
		}
	}
	s.backups.serving[c.Name] = chosen
	return chosen
}

// forgetServices forgets services that are gone.
func (s *State) forgetServices() {
	for name := range s.backups.serving {
		if c, known := s.cfg.Service(name); !known || len(c.Backup) == 0 {
			delete(s.backups.serving, name)
		}
	}
}

// serviceEvents tells which services are served by other pools than before.
func serviceEvents(old, current *Snapshot, now time.Time) []Event {
	var events []Event
	for i := range current.Services {
		service := &current.Services[i]
		j, known := slices.BinarySearchFunc(old.Services, service.Name, func(s Service, name string) int { return cmp.Compare(s.Name, name) })
		if !known || old.Services[j].Primary != service.Primary || old.Services[j].Pool == service.Pool {
			continue
		}
		was := old.Services[j].Pool
		text := fmt.Sprintf("service %s: backup pool %s serves in place of %s", service.Name, service.Pool, was)
		if service.Pool == service.Primary {
			text = fmt.Sprintf("service %s: pool %s serves again in place of %s", service.Name, service.Pool, was)
		}
		events = append(events, Event{Time: now, Pool: service.Pool, Text: text})
	}
	return events
}
