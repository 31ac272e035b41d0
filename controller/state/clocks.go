package state

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"time"

	"brlb/controller/config"
)

// clocks are the times from which rules count, each a number of milliseconds
// since 1970: what must be kept for a restart not to set them back.
type clocks struct {
	Ramps map[string]int64   `json:"slow_start,omitempty"`   // by POOL/ADDRESS:PORT: when it began
	Falls map[string][]int64 `json:"hold_down,omitempty"`    // by CHECK/ADDRESS:PORT: when it went down
	Works map[string]int64   `json:"return_after,omitempty"` // by pool: since when it works
}

// maxClocks is how many members' times are kept, at most. They are all stored
// in one column of one row of OVSDB.
const maxClocks = 1024

// Clocks returns the times from which rules count, in the form that LoadClocks
// reads; "" if none does.
func (s *State) Clocks() string {
	c := clocks{Ramps: map[string]int64{}, Falls: map[string][]int64{}, Works: map[string]int64{}}
	within := map[string]time.Duration{} // how long falls count, by check
	for _, p := range s.byID {
		if p.SlowStart > 0 {
			ramps := s.pools[p.Name].ramps
			for _, key := range slices.Sorted(maps.Keys(ramps)) {
				if len(c.Ramps) < maxClocks && s.find(MemberID{Pool: p.Name, Key: key}) != nil {
					c.Ramps[p.Name+"/"+key] = ramps[key].UnixMilli()
				}
			}
		}
		if p.HoldDown.After > 0 {
			within[p.Check] = max(within[p.Check], p.HoldDown.Within)
		}
	}
	if len(within) > 0 && len(s.falls) > 0 {
		for _, id := range s.probes {
			for _, at := range s.falls[id] {
				if key := fallsKey(id); s.now.Before(at.Add(within[id.Check])) && len(c.Falls) < maxClocks {
					c.Falls[key] = append(c.Falls[key], at.UnixMilli())
				}
			}
		}
	}
	for i := range s.cfg.Services {
		service := &s.cfg.Services[i]
		if len(service.Backup) == 0 || service.ReturnAfter == 0 {
			continue
		}
		pools := candidates(service)
		for _, name := range pools[:max(0, slices.Index(pools, s.backups.serving[service.Name]))] {
			if since, works := s.backups.works[name]; works {
				c.Works[name] = since.UnixMilli()
			}
		}
	}
	if len(c.Ramps)+len(c.Falls)+len(c.Works) == 0 {
		return ""
	}
	text, err := json.Marshal(c)
	if err != nil {
		panic(err) // maps of numbers by strings have a JSON form
	}
	return string(text)
}

// LoadClocks takes over what Clocks has returned in an earlier run, about what
// this run knows nothing of. It must be called before LoadNumbers, that is, before
// anybody is active. Times to come are left out: the clock has been set back.
func (s *State) LoadClocks(text string) error {
	if text == "" {
		return nil
	}
	var c clocks
	if err := json.Unmarshal([]byte(text), &c); err != nil {
		return fmt.Errorf("stored times of rules: %w", err)
	}
	for key, ms := range c.Ramps {
		pool, member, _ := strings.Cut(key, "/")
		p := s.pools[pool]
		if p == nil {
			continue
		}
		_, known := p.ramps[member]
		if at, stored := s.past(ms); stored && !known {
			if p.ramps == nil {
				p.ramps = map[string]time.Time{}
			}
			p.ramps[member] = at
		}
	}
	for key, list := range c.Falls {
		check, address, _ := strings.Cut(key, "/")
		ap, err := netip.ParseAddrPort(address)
		id := ProbeID{Address: ap, Check: check}
		if err != nil || len(s.falls[id]) > 0 {
			continue
		}
		for _, ms := range list[max(0, len(list)-config.MaxFalls):] {
			if at, stored := s.past(ms); stored {
				s.falls[id] = append(s.falls[id], at)
			}
		}
		slices.SortFunc(s.falls[id], time.Time.Compare)
	}
	for name, ms := range c.Works {
		_, known := s.backups.works[name]
		if at, stored := s.past(ms); stored && !known {
			s.backups.works[name] = at
		}
	}
	s.outdate()
	return nil
}

func fallsKey(id ProbeID) string { return id.Check + "/" + id.Address.String() }

// past is a stored time, if there is one and it is not to come.
func (s *State) past(ms int64) (at time.Time, ok bool) {
	at = time.UnixMilli(ms)
	return at, ms > 0 && !at.After(s.now)
}
