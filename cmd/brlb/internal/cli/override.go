package cli

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"brlb/controller/api"
)

func (a *App) weightCommand() *cobra.Command {
	req := api.ChangeRequest{}
	c := &cobra.Command{
		Use:   "weight MEMBER WEIGHT",
		Short: "Give a member another weight",
		Long: `Gives a member another weight until it is enabled, also when brlb restarts: a
number in place of the configured weight, or a percentage of that. Where the
configured weight changes later, a percentage follows it.

Layouts ring, chash, straw2 and crush know whole weights only, to which
percentages are rounded.`,
		Example: `  brlb weight be1 50%
  brlb weight web/be1 3 --why "half of its disks are gone"
  brlb weight be1 100%`,
		Args:              cobra.ExactArgs(2),
		ValidArgsFunction: a.completeMembers,
	}
	a.carriesOut(c, &req, waitFlag(c), func(ctx context.Context, client *api.Client) (*api.Change, error) {
		return client.Change(ctx, "weight", req)
	})
	carryOut := c.RunE
	c.RunE = func(c *cobra.Command, args []string) error {
		req.Member, req.Weight = args[0], args[1]
		return carryOut(c, args)
	}
	return c
}

func (a *App) overridesCommand() *cobra.Command {
	req := api.ChangeRequest{}
	c := &cobra.Command{
		Use:   "overrides [--clear MEMBER]",
		Short: "Show or clear what operators have decided beside the configuration",
		Long: `Shows which members operators have drained, disabled or given a weight: who, when
and why. A member that has left the configuration is listed with its address alone.

--clear takes back what was decided about a member, as enable does. For a member
that has left the configuration give its address and port.`,
		Example: "  brlb overrides\n  brlb overrides --clear 10.30.0.19:8080",
		Args:    cobra.NoArgs,
	}
	c.Flags().StringVar(&req.Member, "clear", "", "take back what was decided about this member")
	c.RegisterFlagCompletionFunc("clear", a.completeMembers)
	a.carriesOut(c, &req, waitFlag(c), func(ctx context.Context, client *api.Client) (*api.Change, error) { return client.Clear(ctx, req) })
	clearOne := c.RunE
	c.RunE = func(c *cobra.Command, args []string) error {
		if req.Member != "" {
			return clearOne(c, args)
		}
		for _, flag := range []string{"dry-run", "why", "force", "wait"} {
			if c.Flags().Changed(flag) {
				return usageErrorf("--%s means nothing without --clear", flag)
			}
		}
		overrides, err := fetch(c.Context(), a, func(ctx context.Context, client *api.Client) (*api.Overrides, error) { return client.Overrides(ctx) })
		if err != nil {
			return err
		}
		form := c.Flags().Lookup("output").Value.(*format)
		return a.print(form, overrides, func(s *screen) { drawOverrides(s, overrides, a.Now()) })
	}
	return c
}

func drawOverrides(s *screen, doc *api.Overrides, now time.Time) {
	if len(doc.Overrides) == 0 {
		s.linef("none: every member is as the configuration has it")
		return
	}
	t := newTable("POOL", "MEMBER", "ADDRESS", "OVERRIDE", "SINCE", "WHO", "WHY")
	for _, o := range doc.Overrides {
		member := coloured(plain, o.Member)
		if o.Member == "" {
			member = coloured(yellow, "(gone)")
		}
		row := func(what string, at time.Time, who, why string) {
			t.row(text(o.Pool), member, text(o.Address), text(what), text(ago(at, now)), text(orDash(who)), text(orDash(why)))
		}
		if o.State != "enabled" {
			what := o.State
			if !o.Until.IsZero() && o.State == "draining" {
				what += " until " + o.Until.Local().Format("2006-01-02 15:04:05")
			}
			row(what, o.At, o.Who, o.Why)
		}
		if w := o.Weight; w != nil {
			row("weight "+w.To, w.At, w.Who, w.Why)
		}
	}
	s.table(t)
}
