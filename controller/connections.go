package controller

import (
	"fmt"
	"time"

	"brlb/controller/api"
	"brlb/controller/config"
	"brlb/controller/conntrack"
)

// connections is what is known of the switch's connection table; immutable.
type connections struct {
	at       time.Time                  // of the newest reading; zero if none succeeded
	byMember map[uint16]conntrack.Count // by member number
	zones    []zoneUse                  // as the configuration lists them
	datapath usage                      // of all zones; not known of the kernel's
	problem  string                     // why the newest reading failed or says not everything; "" if all is well
}

// zoneUse is how full a zone is.
type zoneUse struct {
	config.Zone
	usage
	unlimited string // why its limit is not what the configuration says
}

// usage is how full a table is.
type usage struct {
	used  int
	limit int // 0: none is known
}

func (u usage) document() api.TableUsage { return api.TableUsage{Entries: u.used, Limit: u.limit} }

// nearFull is the part of a limit, in percent, from which on people are warned.
const nearFull = 90

func (u usage) nearFull() bool { return u.limit > 0 && u.used*100 >= u.limit*nearFull }

// describe says what is nearly full, and why that matters.
func (u usage) describe(what string) string {
	return fmt.Sprintf("conntrack is nearly full: %d entries, and %s allows %d; beyond that new connections are dropped", u.used, what, u.limit)
}

// datapathLimit is what limits all zones together.
const datapathLimit = "the switch"

func (z *zoneUse) describe() string {
	if len(z.Pools) == 0 {
		return z.usage.describe("the limit of brlb's zone")
	}
	return zonePrefix(&z.Zone) + z.usage.describe(fmt.Sprintf("the limit of zone %d", z.Number))
}

// wrong says what is, in sentences.
func (c *connections) wrong() []string {
	var wrong []string
	for i := range c.zones {
		z := &c.zones[i]
		if z.unlimited != "" {
			wrong = append(wrong, zonePrefix(&z.Zone)+"conntrack: the limit of the configuration is not set: "+z.unlimited)
		}
		if z.nearFull() {
			wrong = append(wrong, z.describe())
		}
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
	doc := api.Conntrack{At: c.at, Problem: c.problem, Datapath: c.datapath.document()}
	for _, z := range c.zones {
		use := api.ZoneUsage{Number: z.Number, Pools: z.Pools, TableUsage: z.usage.document()}
		if len(z.Pools) > 0 {
			doc.Pools = append(doc.Pools, use)
		} else {
			doc.Zone = use
		}
	}
	return doc
}
