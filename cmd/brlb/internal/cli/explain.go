package cli

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"brlb/controller/api"
)

func (a *App) historyCommand() *cobra.Command {
	c := &cobra.Command{
		Use:     "history MEMBER",
		GroupID: groupRead,
		Short:   "Show a member's last probes",
		Long: `Shows how the last probes of a member ended, the oldest first: when, the code,
how long it took, and what was seen. A probe that failed for a reason of brlb's own
is "not counted".`,
		Example:           "  brlb history be1\n  brlb history web/be1 -o json",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: a.completeMembers,
	}
	f := formatFlag(c, false)
	every := watchFlag(c)
	c.RunE = func(c *cobra.Command, args []string) error {
		return a.show(c.Context(), *every, func(ctx context.Context) ([]byte, error) {
			history, err := fetch(ctx, a, func(ctx context.Context, client *api.Client) (*api.History, error) {
				return client.History(ctx, args[0])
			})
			if err != nil {
				return nil, err
			}
			return a.render(f, history, func(s *screen) { drawHistory(s, history, a.Now()) })
		})
	}
	return c
}

func drawHistory(s *screen, h *api.History, now time.Time) {
	s.line(coloured(bold, fmt.Sprintf("%s/%s", h.Pool, h.Member)),
		text(fmt.Sprintf("  %s  %s for %s   check %s of %s", h.Address, h.Health, ago(h.Since, now), h.Check, orDash(h.Probed))))
	if len(h.Results) == 0 {
		s.linef("  not probed")
		return
	}
	s.table(resultsTable(h.Results))
}

func resultsTable(results []api.ProbeResult) *table {
	t := newTable("TIME", "CODE", ">MS", "RESULT", "SEEN")
	for _, r := range results {
		outcome := coloured(green, "pass")
		switch r.Outcome {
		case "fail":
			outcome = coloured(red, "fail")
		case "inconclusive":
			outcome = coloured(yellow, "not counted")
		}
		seen := r.Text
		if r.Agent != "" {
			seen += "; it says " + r.Agent
		}
		t.row(text(r.At.Local().Format("15:04:05.000")), text(r.Code), text(fmt.Sprintf("%.1f", 1000*r.DurationSeconds)), outcome, text(seen))
	}
	return t
}

func (a *App) explainCommand() *cobra.Command {
	c := &cobra.Command{
		Use:     "explain MEMBER",
		GroupID: groupRead,
		Short:   "Say why a member has the slots that it has",
		Long: `Says what decides about a member: operators, its check, its next hop and port, its
weight, its pool and the switch; how its last probes ended; and, if it owns no
slots, what would bring it back.`,
		Example:           "  brlb explain be1\n  brlb explain web/be1 -o json | jq -r '.remedies[]'",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: a.completeMembers,
	}
	f := formatFlag(c, false)
	c.RunE = func(c *cobra.Command, args []string) error {
		e, err := fetch(c.Context(), a, func(ctx context.Context, client *api.Client) (*api.Explanation, error) {
			return client.Explain(ctx, args[0])
		})
		if err != nil {
			return err
		}
		return a.print(f, e, func(s *screen) { drawExplanation(s, e, a.Now()) })
	}
	return c
}

func drawExplanation(s *screen, e *api.Explanation, now time.Time) {
	m := &e.Member
	owns := coloured(green, fmt.Sprintf("owns %d slots (%s)", m.Slots, percent(m.Share)))
	if m.Slots == 0 {
		owns = coloured(yellow, "owns no slots")
	}
	s.line(coloured(bold, e.Pool+"/"+m.Name), text(fmt.Sprintf("  %s  %s for %s  ", m.Address, m.State, ago(m.Since, now))), owns)
	width := len("weight")
	for _, fact := range e.Facts {
		width = max(width, len(fact.Name))
	}
	for _, fact := range e.Facts {
		verdict := coloured(green, "ok")
		if !fact.OK {
			verdict = coloured(red, "no")
		}
		s.line(text("  "), verdict, text(fmt.Sprintf("  %-*s  %s", width, fact.Name, fact.Text)))
	}
	installed := "not known"
	if e.Slots.Known {
		installed = fmt.Sprint(e.Slots.Installed)
	}
	s.linef("weight %d configured, %v in force; slots %d wanted, %s on the switch", e.Weight.Configured, e.Weight.Effective, e.Slots.Wanted, installed)
	if m.Connections != nil {
		s.linef("%d connections are open", *m.Connections)
	}
	if len(e.Remedies) > 0 {
		s.linef("what would bring it back: %s", strings.Join(e.Remedies, "; and "))
	}
	if len(e.Results) > 0 {
		s.linef("last probes:")
		s.table(resultsTable(e.Results))
	}
}
