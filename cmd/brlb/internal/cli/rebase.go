package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"brlb/controller/api"
)

func (a *App) rebaseCommand() *cobra.Command {
	c := &cobra.Command{
		Use:     "rebase [POOL]",
		GroupID: groupChange,
		Short:   "Make a pool's members its anchor",
		Long: `A pool of layout v2 repairs the table of its anchor: the list of members that it
had when it first served. When members have gone for good or come to stay, changes
cost more moves than they must until the pool is rebased: then the members that it
has now, active or not, are the anchor. A rebase itself moves slots, as brlb plan
rebase says; choose a quiet moment.

An anchor that the configuration pins is changed there; "brlb slots --anchor"
prints what to write.`,
		Example: `  brlb plan rebase web
  brlb rebase web --why "be3 is gone for good"`,
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: a.completePools,
	}
	f := formatFlag(c, false)
	req := api.RebaseRequest{}
	wait := waitFlag(c)
	c.Flags().BoolVar(&req.DryRun, "dry-run", false, "only say what would move")
	c.Flags().StringVar(&req.Why, "why", "", "the reason, for those who look at the events later")
	c.RunE = func(c *cobra.Command, args []string) error {
		if err := checkWait(*wait); err != nil {
			return err
		}
		req.Pool, req.Who, req.WaitSeconds = strings.Join(args, ""), a.who(), wait.Seconds()
		var change *api.Change
		err := a.ask(c.Context(), *wait, func(ctx context.Context, client *api.Client) (err error) {
			change, err = client.Rebase(ctx, req)
			return err
		})
		if err != nil {
			return err
		}
		if err := a.print(f, change, func(s *screen) { drawChange(s, change) }); err != nil {
			return err
		}
		return a.sayConfirmed(change, req.DryRun, *wait)
	}
	return c
}

// drawAnchor prints the YAML that pins a pool's anchor.
func drawAnchor(s *screen, t *api.Slots) {
	s.linef("# pool %s, anchor %s", t.Pool, t.Anchor.Digest)
	s.linef("anchor:")
	for _, m := range t.Anchor.Members {
		name := m.Name
		if name == "" {
			name = "gone-" + strings.NewReplacer(":", "-", "[", "", "]", "").Replace(m.Address)
		}
		name = strings.ReplaceAll(name, "/", ".") // of a pool inside
		if m.Weight == 1 {
			s.linef("  %s: %s", name, m.Address)
			continue
		}
		s.linef("  %s: {address: %s, weight: %d}", name, m.Address, m.Weight)
	}
}

// anchorText is an anchor as status shows it.
func anchorText(a *api.Anchor) string {
	text := "anchor " + a.Digest
	if a.Pinned {
		text += " (pinned)"
	}
	return text
}

// staleText says what becomes of an anchor that has grown old.
func staleText(pool string, a *api.Anchor) string {
	return fmt.Sprintf("the anchor is not the list of members any more: brlb rebase %s would move %d slots", pool, a.RebaseMoves)
}
