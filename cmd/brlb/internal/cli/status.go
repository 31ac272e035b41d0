package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"brlb/controller/api"
)

func (a *App) statusCommand() *cobra.Command {
	c := &cobra.Command{
		Use:     "status",
		Aliases: []string{"health"},
		GroupID: groupRead,
		Short:   "Show services, members, slots and what is wrong",
		Long: `Shows every service with the members behind it: state, newest probe, weight and
slots. Lines at the end say what is degraded, if anything is.`,
		Example: `  brlb status
  brlb status --watch
  brlb status -o json | jq -r '.pools[].members[] | select(.active | not) | .name'`,
		Args: cobra.NoArgs,
	}
	f := formatFlag(c, true)
	every := watchFlag(c)
	c.RunE = func(c *cobra.Command, _ []string) error {
		return a.show(c.Context(), *every, func(ctx context.Context) ([]byte, error) {
			status, err := fetch(ctx, a, func(ctx context.Context, client *api.Client) (*api.Status, error) { return client.Status(ctx) })
			if err != nil {
				return nil, err
			}
			return a.render(f, status, func(s *screen) { drawStatus(s, status, a.Now(), f.wide()) })
		})
	}
	return c
}

// drawStatus draws the services, each pool's members under the last service that
// uses the pool, and then what is wrong.
func drawStatus(s *screen, status *api.Status, now time.Time, wide bool) {
	if wide {
		drawBridge(s, status, now)
	}
	drawn := false
	for _, pool := range poolsByService(status) {
		if drawn {
			s.linef("")
		}
		drawn = true
		drawPool(s, status, &pool, now, wide)
	}
	if !drawn {
		s.linef("bridge %s: no services", status.Bridge)
	}
	if status.Phase != "steady" {
		s.line(coloured(yellow, fmt.Sprintf("PHASE %s for %s", status.Phase, ago(status.Since, now))))
	}
	if status.Switch.Connected && status.Conntrack.Problem != "" {
		s.line(coloured(yellow, "connections are not counted: "+status.Conntrack.Problem))
	}
	for _, reason := range status.Degraded {
		s.line(coloured(red, "DEGRADED "+reason))
	}
}

func drawBridge(s *screen, status *api.Status, now time.Time) {
	s.linef("BRIDGE %s  %s  datapath %s  session %s  own flows %d  brlb %s  %s for %s  revision %d confirmed %d",
		status.Bridge, orDash(status.Switch.Description), orDash(status.Switch.DatapathID), ago(status.Switch.Since, now), status.Switch.OwnFlows,
		status.Version, status.Phase, ago(status.Since, now), status.Revision, status.Confirmed)
}

// poolsByService orders pools by the name of their first service; pools without
// one come last.
func poolsByService(status *api.Status) []api.Pool {
	var pools []api.Pool
	add := func(p api.Pool) {
		if !slices.ContainsFunc(pools, func(q api.Pool) bool { return q.Name == p.Name }) {
			pools = append(pools, p)
		}
	}
	for _, service := range status.Services {
		for _, p := range status.Pools {
			if p.Name == service.Pool {
				add(p)
			}
		}
	}
	for _, p := range status.Pools {
		add(p)
	}
	return pools
}

func drawPool(s *screen, status *api.Status, pool *api.Pool, now time.Time, wide bool) {
	rest := poolSummary(status, pool)
	services := 0
	var idle []string // services that the pool might serve
	for _, service := range status.Services {
		switch {
		case service.Pool == pool.Name:
			services++
			s.line(append([]cell{coloured(bold, "SERVICE "+service.Name), text("  " + endpoints(&service))}, rest...)...)
		case service.Primary == pool.Name || slices.Contains(service.Backup, pool.Name):
			idle = append(idle, service.Name)
		}
	}
	switch {
	case services > 0:
	case len(idle) > 0:
		s.line(append([]cell{coloured(bold, "NOT SERVING "+strings.Join(idle, ", "))}, rest...)...)
	case len(pool.Around) > 0:
		s.line(append([]cell{coloured(bold, "IN POOL "+strings.Join(pool.Around, ", "))}, rest...)...)
	default:
		s.line(append([]cell{coloured(bold, "NO SERVICE")}, rest...)...)
	}
	s.table(membersTable(pool, now, wide))
	drawNotes(s, pool)
}

// usageText is ENTRIES/LIMIT, or ENTRIES without a limit.
func usageText(u api.TableUsage) string {
	if u.Limit == 0 {
		return fmt.Sprint(u.Entries)
	}
	return fmt.Sprintf("%d/%d", u.Entries, u.Limit)
}

// poolSummary is the part of a service's line that speaks of its pool.
func poolSummary(status *api.Status, pool *api.Pool) []cell {
	activity := plain
	if pool.Active == 0 {
		activity = red
	}
	layout := "layout " + pool.Layout
	if pool.Digest != "" {
		layout += " " + pool.Digest
	}
	if pool.Anchor != nil {
		layout += " " + anchorText(pool.Anchor)
	}
	for _, z := range status.Conntrack.Pools {
		if slices.Contains(z.Pools, pool.Name) {
			layout += "   conntrack " + usageText(z.TableUsage)
		}
	}
	sync := coloured(red, "switch not connected")
	switch {
	case status.Switch.Connected && status.InSync:
		sync = coloured(green, "switch in sync")
	case status.Switch.Connected:
		sync = coloured(yellow, "switch not in sync")
	}
	return []cell{
		text(fmt.Sprintf("   pool %s (id %d)  %s   ", pool.Name, pool.ID, pool.Mode)),
		coloured(activity, fmt.Sprintf("%d/%d active", pool.Active, len(pool.Members))),
		text("   " + layout + "   "), sync,
	}
}

// endpoints is every address with every port.
func endpoints(service *api.Service) string {
	var all []string
	for _, address := range service.Addresses {
		if strings.Contains(address, ":") {
			address = "[" + address + "]"
		}
		for _, port := range service.Ports {
			all = append(all, address+":"+port)
		}
	}
	return strings.Join(all, ",")
}

func membersTable(pool *api.Pool, now time.Time, wide bool) *table {
	titles := []string{"MEMBER", "ADDRESS", "STATE", "SINCE", "CHECK", "W", "SLOTS", ">SHARE", ">CONNS"}
	if wide {
		titles = append(titles, "NUMBER", "HEALTH", "PORT", "MAC", "VIA")
	}
	t := newTable(titles...)
	for i := range pool.Members {
		m := &pool.Members[i]
		slots := "0"
		if m.Slots > 0 {
			slots = fmt.Sprintf("%d/%d", m.Slots, pool.Slots)
		}
		row := []cell{
			text(m.Name), text(m.Address), coloured(stateColour(m), m.State), text(ago(m.Since, now)), text(checkText(&m.Check)),
			text(weightText(m)), text(slots), text(percent(m.Share)), text(connectionsText(m)),
		}
		if wide {
			row = append(row, text(fmt.Sprint(m.Number)), text(m.Health), text(orDash(m.Port)), text(orDash(m.MAC)), text(orDash(m.Via)))
		}
		t.row(row...)
	}
	for i := range pool.Names {
		if n := &pool.Names[i]; n.State != "resolved" || n.Problem != "" {
			t.row(text(n.Name), text(fmt.Sprintf("%s:%d", n.Host, n.Port)), coloured(yellow, n.State), text(ago(n.Since, now)))
		}
	}
	return t
}

// connectionsText is how many connections are open.
func connectionsText(m *api.Member) string {
	if m.Connections == nil {
		return "-"
	}
	return fmt.Sprint(*m.Connections)
}

// weightText is the weight in force, and how much of it counts.
func weightText(m *api.Member) string {
	if m.Percent == 100 {
		return fmt.Sprint(m.Weight)
	}
	return fmt.Sprintf("%d×%d%%", m.Weight, m.Percent)
}

func stateColour(m *api.Member) colour {
	switch {
	case m.State == "up" && m.Active:
		return green
	case m.State == "down":
		return red
	default:
		return yellow
	}
}

// checkText is the newest probe: what was seen and, unless it says what the ones
// before it said long enough, how many of how many such results there are.
func checkText(c *api.Check) string {
	if c.Code == "" {
		return "-"
	}
	parts := []string{c.Code}
	passed := strings.HasSuffix(c.Code, "OK")
	if c.Detail != "" {
		parts = append(parts, c.Detail)
	}
	if passed && c.DurationSeconds > 0 {
		parts = append(parts, "in "+shortDuration(c.DurationSeconds))
	}
	if c.Needed > 0 && (!passed || c.Consecutive < c.Needed) {
		parts = append(parts, fmt.Sprintf("%d/%d", min(c.Consecutive, c.Needed), c.Needed))
	}
	return strings.Join(parts, " ")
}

// drawNotes says why members own no slots where their state and their check
// don't tell, and what is wrong with the pool.
func drawNotes(s *screen, pool *api.Pool) {
	for i := range pool.Members {
		m := &pool.Members[i]
		if m.Reason != "" && m.State != "down" {
			s.line(coloured(yellow, fmt.Sprintf("  %s owns no slots: %s", m.Name, m.Reason)))
		}
	}
	for i := range pool.Names {
		if n := &pool.Names[i]; n.Problem != "" {
			s.line(coloured(yellow, fmt.Sprintf("  %s is %s: %s", n.Host, n.State, n.Problem)))
		}
	}
	if pool.Anchor != nil && pool.Anchor.Stale {
		s.line(coloured(yellow, "  "+staleText(pool.Name, pool.Anchor)))
	}
	if pool.Waiting {
		s.line(coloured(yellow, "  waiting for first probes: the switch keeps what it holds of this pool"))
	}
	if pool.Moving > 0 {
		s.linef("  %d slots take new connections only: others keep their open ones until %s", pool.Moving, pool.MovingUntil.Local().Format(time.TimeOnly))
	}
	if pool.Alarm != "" {
		s.line(coloured(red, "  "+pool.Alarm))
	}
	if pool.Problem != "" {
		s.line(coloured(red, "  "+pool.Problem))
	}
	if pool.Active == 0 && !pool.Waiting && pool.Alarm == "" {
		then := "it serves nobody"
		if len(pool.Around) > 0 {
			then = "it has no share of pool " + strings.Join(pool.Around, ", ")
		}
		s.line(coloured(red, "  no member is active: "+then))
	}
}

func percent(share float64) string { return fmt.Sprintf("%.1f%%", 100*share) }

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}
