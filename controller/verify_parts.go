package controller

import (
	"fmt"
	"slices"
	"strings"

	"brlb/controller/config"
	"brlb/controller/pipeline"
	"brlb/controller/state"
	"brlb/openflow"
)

// repaired is what to do about wrong flows.
func (c *checker) repaired() string {
	if len(c.wrong) == 0 {
		return ""
	}
	return ": brlb repairs them; if they stay, see brlb status and brlb flows --diff"
}

// part checks the rows that are there for one purpose. fine says what they do.
func (c *checker) part(name string, belongs func(*openflow.FlowMod) bool, fine string) {
	var wrong []*openflow.FlowMod
	for _, m := range c.wrong {
		if f, ok := m.(*openflow.FlowMod); ok && belongs(f) {
			wrong = append(wrong, f)
		}
	}
	if len(wrong) == 0 {
		c.say(name, true, "%s", fine)
		return
	}
	c.say(name, false, "%d rows missing, wrong or too many%s; the first: %s", len(wrong), c.repaired(), wrong[0])
}

// hairpin checks the way of clients on the members' own network.
func (c *checker) hairpin() {
	gateways := c.view.snapshot.Gateways
	if len(gateways) == 0 {
		return
	}
	var networks []string
	for _, g := range gateways {
		networks = append(networks, fmt.Sprintf("of %s are known as %s", g.Masked(), g.Addr()))
	}
	c.part("hairpin", pipeline.IsHairpin, fmt.Sprintf("behind a member's port, clients %s (zone %d)",
		strings.Join(networks, ", "), config.HairpinZone(c.view.snapshot.Zone)))
}

// transitions checks the rows of slots that move, and what the switch has learned
// meanwhile.
func (c *checker) transitions() {
	pools := map[uint16]*state.Pool{}
	moving := 0
	for i := range c.view.snapshot.Pools {
		if p := &c.view.snapshot.Pools[i]; p.Stateless() {
			pools[p.ID] = p
			if p.Moving != nil {
				moving += len(p.Moving.From)
			}
		}
	}
	learned, wrong := c.learned(pools)
	if len(pools) > 0 || learned > 0 {
		c.part("transitions", pipeline.IsTransition, fmt.Sprintf("%d slots move", moving))
		c.say("learned connections", len(wrong) == 0, "%s", orAll(wrong, fmt.Sprintf("%d, all of members that live", learned)))
	}
}

// learned counts the connections that the switch remembers, and says what is wrong
// with them.
func (c *checker) learned(stateless map[uint16]*state.Pool) (total int, wrong []string) {
	type owner struct{ pool, number uint16 }
	counts := map[owner]int{}
	for i := range c.all {
		if kind, pool, number := pipeline.CookieParts(c.all[i].Cookie); pipeline.IsOwn(c.all[i].Cookie) && kind == pipeline.KindLearned {
			counts[owner{pool, uint16(number)}]++
			total++
		}
	}
	for o, n := range counts {
		p := stateless[o.pool]
		if p == nil {
			wrong = append(wrong, fmt.Sprintf("%d of pool %d, which tracks none so", n, o.pool))
			continue
		}
		name := fmt.Sprintf("member number %d", o.number)
		i := slices.IndexFunc(p.Members, func(m state.Member) bool { return m.Number == o.number })
		if i >= 0 {
			name = p.Members[i].Name
		}
		switch {
		case i < 0 || !p.KeepsConnections(p.Members[i].ID.Key):
			wrong = append(wrong, fmt.Sprintf("pool %s: %d of %s, which gets no packets any more: they are forgotten when idle, or by ovs-ofctl -OOpenFlow14 del-flows %s \"table=%d,cookie=0x%x/-1\"",
				p.Name, n, name, c.view.snapshot.Bridge, pipeline.TableLearned, pipeline.Cookie(pipeline.KindLearned, o.pool, uint32(o.number))))
		case n >= pipeline.LearnLimit:
			wrong = append(wrong, fmt.Sprintf("pool %s: %d of %s are all that the switch remembers: new ones stay with the member before; a shorter transition helps", p.Name, n, name))
		}
	}
	slices.Sort(wrong)
	return total, wrong
}

// meters checks what bounds the packets that come up to brlb.
func (c *checker) meters(has []openflow.MeterConfig, err error) {
	if err != nil {
		c.say("meters", false, "not known: %v", err)
		return
	}
	if c.view.snapshot.NoMeters {
		c.say("meters", true, "the switch has none, and no row names one")
		return
	}
	wrong := pipeline.WrongMeters(has)
	if len(wrong) > 0 {
		wrong = append(wrong, "brlb sets them at its next change, within a minute")
	}
	c.say("meters", len(wrong) == 0, "%s", orAll(wrong, fmt.Sprintf("the %d that rows name pass what they should", len(pipeline.Meters()))))
}

// family checks that members and VIPs of a pool are of one address family.
func (c *checker) family(name string, p *state.Pool) {
	var wrong []string
	members := 0
	for _, a := range c.adopted {
		if a.PoolID != p.ID {
			continue
		}
		members++
		if a.Address.Addr().Is6() != p.IPv6 {
			wrong = append(wrong, fmt.Sprintf("member %s", a.Address))
		}
	}
	for _, front := range c.fronts {
		if front.PoolID == p.ID && front.Address.Is6() != p.IPv6 {
			wrong = append(wrong, fmt.Sprintf("VIP %s", front.Address))
		}
	}
	family := "IPv4"
	if p.IPv6 {
		family = "IPv6"
	}
	if len(wrong) > 0 {
		wrong[0] = "not " + family + ", and has rows nevertheless" + c.repaired() + ": " + wrong[0]
	}
	c.say(name+"address family", len(wrong) == 0, "%s", orAll(slices.Compact(wrong), fmt.Sprintf("%d members and the VIPs are %s", members, family)))
}

// tunnels checks the ports that pools of mode tunnel need.
func (c *checker) tunnels(problems []string) {
	types := c.view.config.Tunnels()
	var ports []string
	for _, kind := range types {
		i := slices.IndexFunc(c.view.snapshot.Ports, func(p state.Port) bool { return p.Name == kind.Port() })
		if i < 0 {
			problems = append(problems, fmt.Sprintf("the bridge has no port %s: see what ovs-vsctl show says of it", kind.Port()))
			continue
		}
		ports = append(ports, fmt.Sprintf("%s is port %d", kind.Port(), c.view.snapshot.Ports[i].Number))
	}
	if len(types) > 0 || len(problems) > 0 {
		c.say("tunnel ports", len(problems) == 0, "%s", orAll(problems, strings.Join(ports, ", ")))
	}
}
