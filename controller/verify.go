package controller

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"brlb/controller/api"
	"brlb/controller/config"
	"brlb/controller/pipeline"
	"brlb/controller/state"
	"brlb/maglev"
	"brlb/openflow"
	"brlb/ovsdb/vswitch"
)

// Verify implements api.Backend: it reads the switch and checks every
// invariant of the pipeline.
func (l *loop) Verify(ctx context.Context) (*api.Verify, error) {
	v := l.view.Load()
	flows, err := l.bridge.Flows(ctx, true)
	if err != nil {
		return nil, err
	}
	c, err := checkFlows(v, flows)
	if err != nil {
		return nil, err
	}
	c.meters(l.bridge.Meters(ctx))
	c.attachment(l.inv.Attachment())
	if v.config.OpenFlow.Mode == config.ModeController {
		c.say("controller role", l.bridge.Leads() || !v.writer, "%s", role(l.bridge.Leads(), v.writer))
	}
	c.zones()
	c.conntrack(ctx)
	c.timeouts(l.inv.Timeouts())
	c.tunnels(l.inv.Tunnels())
	if v.sw.userspace {
		c.routes(ctx)
	}
	doc := &api.Verify{OK: true, Checks: c.checks}
	for _, check := range c.checks {
		doc.OK = doc.OK && check.OK
	}
	return doc, nil
}

// checkFlows checks what the switch holds.
func checkFlows(v *view, flows []openflow.FlowStats) (*checker, error) {
	own, err := pipeline.FromSwitch(flows)
	if err != nil {
		return nil, err
	}
	c := &checker{view: v, own: own, all: flows, adopted: pipeline.Members(own), fronts: pipeline.Fronts(own)}
	for i := range v.snapshot.Pools {
		c.pool(&v.snapshot.Pools[i])
	}
	c.floor()
	c.foreign()
	c.same()
	c.hairpin()
	c.transitions()
	return c, nil
}

// checker collects the results.
type checker struct {
	view    *view
	own     pipeline.Set
	adopted []state.Adopted // members, as own has them
	fronts  []state.Front   // likewise, VIPs
	all     []openflow.FlowStats
	wrong   []openflow.Message // what would make own as it should be
	checks  []api.VerifyCheck
}

func (c *checker) say(name string, ok bool, format string, args ...any) {
	c.checks = append(c.checks, api.VerifyCheck{Name: name, OK: ok, Detail: fmt.Sprintf(format, args...)})
}

// pool checks one pool's rows.
func (c *checker) pool(p *state.Pool) {
	name := "pool " + p.Name + ": "
	want := 0
	if p.Table != nil {
		want = p.Slots
	}
	rows := c.rows(pipeline.KindSlot, p.ID)
	c.say(name+"slot rows", len(rows) == want, "%d rows, %d expected", len(rows), want)

	links := c.links(p)
	c.say(name+"multipath links", len(links) == 1 && links[0] == p.Slots, "%s links, the table has %d slots", words(links), p.Slots)

	owners, strangers := c.owners(p, rows)
	digest := ""
	if len(rows) > 0 {
		digest = maglev.Digest(p.Version, p.ID, owners)
	}
	c.say(name+"digest", digest == p.Digest, "layout %s: the switch holds %s, computed is %s", p.Version, orNone(digest), orNone(p.Digest))
	c.anchor(name, p)
	c.say(name+"owners are active", len(strangers) == 0, "%s", orAll(strangers, "every slot belongs to an active member"))
	c.members(name, p)
	c.family(name, p)
}

// links reads how many links the pool's multipath rows have, each number once.
func (c *checker) links(p *state.Pool) []int {
	var found []int
	for _, row := range c.rows(pipeline.KindHash, p.ID) {
		if links, ok := pipeline.Links(row.Mod); ok && !slices.Contains(found, links) {
			found = append(found, links)
		}
	}
	return found
}

func words(numbers []int) string {
	if len(numbers) == 0 {
		return "no"
	}
	return strings.Trim(fmt.Sprint(numbers), "[]")
}

// owners reads who owns each slot on the switch, and which owners should not.
func (c *checker) owners(p *state.Pool, rows []pipeline.Row) (keys []string, strangers []string) {
	byNumber := map[uint16]*state.Member{}
	for i := range p.Members {
		byNumber[p.Members[i].Number] = &p.Members[i]
	}
	keys = make([]string, p.Slots)
	heirs := map[uint32]uint16{}
	for _, row := range c.rows(pipeline.KindMoving, p.ID) {
		_, _, slot := pipeline.CookieParts(row.Mod.Cookie)
		if heirs[slot], _ = pipeline.Heir(row.Mod); p.Moving != nil && !p.Moving.From[int(slot)].Open && p.Table != nil {
			heirs[slot] = p.Owner(int(slot)).Number // from now on in a moment
		}
	}
	for _, row := range rows {
		_, _, slot := pipeline.CookieParts(row.Mod.Cookie)
		number, moves := heirs[slot]
		if !moves {
			number, _ = pipeline.SlotOwner(row.Mod)
		}
		m := byNumber[number]
		if int(slot) >= len(keys) {
			continue
		}
		what := fmt.Sprintf("member number %d", number)
		if m != nil {
			keys[slot], what = m.ID.Key, m.Name
		}
		if m != nil && m.Active {
			continue
		}
		if what += " owns slots and is not active"; !slices.Contains(strangers, what) {
			strangers = append(strangers, what)
		}
	}
	return keys, strangers
}

// members checks that every member's row leads to the member.
func (c *checker) members(name string, p *state.Pool) {
	var wrong []string
	found := map[uint16]state.Adopted{}
	for _, a := range c.adopted {
		if a.PoolID == p.ID {
			found[a.Number] = a
		}
	}
	checked := 0
	for i := range p.Members {
		m := &p.Members[i]
		if !m.HasNext {
			continue
		}
		checked++
		a, ok := found[m.Number]
		switch {
		case !ok:
			wrong = append(wrong, m.Name+" has no rows")
		case a.Address != m.Address:
			wrong = append(wrong, fmt.Sprintf("%s: rows say %s instead of %s", m.Name, a.Address, m.Address))
		case a.Next.Port != m.Next.Port || a.Next.MAC != m.Next.MAC:
			wrong = append(wrong, fmt.Sprintf("%s: rows say port %d and %s instead of port %d and %s", m.Name, a.Next.Port, a.Next.MAC, m.Next.Port, m.Next.MAC))
		case !slices.ContainsFunc(c.view.snapshot.Ports, func(port state.Port) bool { return port.Number == m.Next.Port }):
			wrong = append(wrong, fmt.Sprintf("%s: port %d is not on the bridge", m.Name, m.Next.Port))
		}
	}
	c.say(name+"member rows", len(wrong) == 0, "%s", orAll(wrong, fmt.Sprintf("%d members have the right address, MAC and port", checked)))
}

// floor checks the row that drops what no slot takes.
func (c *checker) floor() {
	found := 0
	for _, row := range c.rows(pipeline.KindBase, 0) {
		if row.Mod.Table == pipeline.TableSlots && len(row.Mod.Match) == 0 && len(row.Mod.Instructions) == 0 {
			found++
		}
	}
	c.say("floor", found == 1, "table %d drops what no slot takes (%d row)", pipeline.TableSlots, found)
}

// foreign looks for flows of others in brlb's own tables.
func (c *checker) foreign() {
	var wrong []string
	for i := range c.all {
		f := &c.all[i]
		if pipeline.IsOwnTable(f.Table) && !pipeline.IsOwn(f.Cookie) {
			wrong = append(wrong, fmt.Sprintf("table=%d, cookie=0x%x, priority=%d, %s", f.Table, f.Cookie, f.Priority, f.Match))
		}
	}
	const most = 3
	if len(wrong) > most {
		wrong = append(wrong[:most], fmt.Sprintf("and %d more", len(wrong)-most))
	}
	c.say("foreign flows", len(wrong) == 0, "%s", orAll(wrong, "brlb's tables hold nobody else's flows"))
}

// same compares all that the switch holds with all that it should.
func (c *checker) same() {
	desired, held, err := pipeline.NewRenderer().Render(c.view.snapshot)
	if err != nil {
		c.say("flows", false, "%v", err)
		return
	}
	diff := pipeline.Diff(c.own, desired, held)
	c.wrong = diff.Mods
	c.say("flows", len(diff.Mods) == 0, "%d own flows, %d missing or wrong, %d too many%s", c.own.Len(), diff.Added, diff.Deleted, c.repaired())
}

// attachment checks what OVSDB says of the bridge's controllers.
func (c *checker) attachment(problems []string) {
	c.say("bridge settings", len(problems) == 0, "%s", orAll(problems, "fail_mode, protocols and controller are as brlb needs them"))
}

func role(master, writer bool) string {
	switch {
	case master:
		return "brlb is the switch's master"
	case writer:
		return "brlb should be the switch's master and is not: has another controller taken the role?"
	}
	return "standby: another brlb leads"
}

func (c *checker) conntrack(ctx context.Context) {
	relaxed, kernel, err := sequenceCheck(ctx, c.view.config.RunDir)
	switch {
	case err != nil:
		c.say("conntrack", true, "whether it checks TCP sequence numbers is not known: %v", err)
	case relaxed:
		c.say("conntrack", true, "TCP sequence numbers are not checked")
	case kernel:
		c.say("conntrack", false, "%v", errKernelChecks)
	default:
		c.say("conntrack", false, "TCP sequence numbers are checked: connections from ports that were just used may start slowly")
	}
	for _, z := range c.view.config.Zones() {
		if z.Limit > 0 {
			c.limit(ctx, &z)
		}
	}
}

// limit checks how many entries a zone may have.
func (c *checker) limit(ctx context.Context, z *config.Zone) {
	name, zone := zonePrefix(z)+"conntrack limit", fmt.Sprintf("zone=%d", z.Number)
	text, err := ask(ctx, c.view.config.RunDir, "dpctl/ct-get-limits", zone)
	if err != nil {
		c.say(name, false, "not known: %v", err)
		return
	}
	limit := zoneUsage(text, zone).limit
	c.say(name, limit == z.Limit, "the switch limits zone %d to %d entries, the configuration to %d", z.Number, limit, z.Limit)
}

// timeouts checks what OVSDB says of conntrack's timeouts.
func (c *checker) timeouts(problems []string) {
	var want []string
	for _, z := range c.view.config.Zones() {
		if z.Timeouts != nil {
			want = append(want, zonePrefix(&z)+vswitch.Timeouts(z.Timeouts).String())
		}
	}
	if len(want) == 0 && len(problems) == 0 {
		return
	}
	c.say("conntrack timeouts", len(problems) == 0, "%s", orAll(problems, strings.Join(want, "; ")))
}

// zonePrefix says whose zone it is, if it is one of pools.
func zonePrefix(z *config.Zone) string {
	switch len(z.Pools) {
	case 0:
		return ""
	case 1:
		return "pool " + z.Pools[0] + ": "
	}
	return "pools " + strings.Join(z.Pools, ", ") + ": "
}

func (c *checker) rows(kind pipeline.Kind, pool uint16) []pipeline.Row {
	if g := c.own[pipeline.GroupID{Kind: kind, Pool: pool}]; g != nil {
		return g.Rows
	}
	return nil
}

func orNone(digest string) string {
	if digest == "" {
		return "no table"
	}
	return digest
}

// orAll joins what is wrong, or says that all is well.
func orAll(wrong []string, fine string) string {
	if len(wrong) == 0 {
		return fine
	}
	return strings.Join(wrong, "; ")
}
