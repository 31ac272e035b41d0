package controller

import (
	"fmt"
	"time"

	"brlb/controller/api"
	"brlb/controller/conntrack"
)

// connections is what is known of the switch's connection table; immutable.
type connections struct {
	at        time.Time                  // of the newest reading; zero if none succeeded
	byMember  map[uint16]conntrack.Count // by member number
	zone      usage                      // entries of brlb's zone
	datapath  usage                      // of all zones; not known of the kernel's
	unlimited string                     // why the zone's limit is not what the configuration says
	problem   string                     // why the newest reading failed or says not everything; "" if all is well
}

// usage is how full a table is.
type usage struct {
	used  int
	limit int // 0: none is known
}

// nearFull is the part of a limit, in percent, from which on people are warned.
const nearFull = 90

func (u usage) nearFull() bool { return u.limit > 0 && u.used*100 >= u.limit*nearFull }

// describe says what is nearly full, and why that matters.
func (u usage) describe(what string) string {
	return fmt.Sprintf("conntrack is nearly full: %d entries, and %s allows %d; beyond that new connections are dropped", u.used, what, u.limit)
}

// What sets the limits.
const (
	zoneLimit     = "the limit of brlb's zone"
	datapathLimit = "the switch"
)

// wrong says what is, in sentences.
func (c *connections) wrong() []string {
	var wrong []string
	if c.unlimited != "" {
		wrong = append(wrong, "conntrack: the limit of the configuration is not set: "+c.unlimited)
	}
	if c.zone.nearFull() {
		wrong = append(wrong, c.zone.describe(zoneLimit))
	}
	if c.datapath.nearFull() {
		wrong = append(wrong, c.datapath.describe(datapathLimit))
	}
	return wrong
}

// of returns the connections of a member. ok is false if they are not known.
func (c *connections) of(number uint16) (count conntrack.Count, ok bool) {
	if c == nil || c.byMember == nil {
		return count, false
	}
	return c.byMember[number], true
}

func (c *connections) document() api.Conntrack {
	return api.Conntrack{
		At: c.at, Problem: c.problem,
		Zone:     api.TableUsage{Entries: c.zone.used, Limit: c.zone.limit},
		Datapath: api.TableUsage{Entries: c.datapath.used, Limit: c.datapath.limit},
	}
}
