package cli

import (
	"context"
	"fmt"
	"net/netip"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"brlb/controller/api"
	"brlb/maglev"
)

func (a *App) planCommand() *cobra.Command {
	c := &cobra.Command{
		Use:     "plan",
		GroupID: groupRead,
		Short:   "Show what a change would move, before it is made",
		Long: `Lets a change happen to a copy of the state and says which slots would move: those
that must (needed) and those that pass between members that have not changed
(collateral), each member's share before and after, and what it means for
connections that are open. Nothing is changed. --compare says beside it what every
layout would make of the same change.`,
		Example: `  brlb plan drain be1
  brlb plan weight be1=3 --compare
  brlb plan add be5=10.30.0.15:8080
  brlb plan rebase web -o json`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			return usageErrorf("plan what? drain, enable, disable, weight, remove, add, rebase or layout")
		},
	}
	for _, op := range []operation{drain, enable, disable} {
		c.AddCommand(a.planSubcommand(planned{
			use: op.name + " MEMBER", short: "Show what " + op.name + " would move", example: op.name + " be1", members: true,
			request: func(arg string) (api.PlanRequest, error) {
				return api.PlanRequest{Operation: op.name, Member: arg}, nil
			},
		}))
	}
	c.AddCommand(
		a.planSubcommand(planned{
			use: "weight MEMBER=WEIGHT", short: "Show what another weight would move", example: "weight be1=3", request: planWeight,
		}),
		a.planSubcommand(planned{
			use: "remove MEMBER", short: "Show what the removal of a member would move", example: "remove be4", members: true,
			request: func(arg string) (api.PlanRequest, error) {
				return api.PlanRequest{Operation: "remove", Member: arg}, nil
			},
		}),
		a.planSubcommand(planned{
			use: "add NAME=ADDRESS:PORT[:WEIGHT]", short: "Show what a new member would move", example: "add be5=10.30.0.15:8080", pool: true, request: planAdd,
		}),
		a.planSubcommand(planned{
			use: "layout LAYOUT", short: "Show what another layout would move", example: "layout v2", pool: true, layouts: true,
			request: func(arg string) (api.PlanRequest, error) {
				return api.PlanRequest{Operation: "layout", Layout: arg}, nil
			},
		}),
		a.planRebaseCommand(),
	)
	return c
}

// planned is a kind of plan.
type planned struct {
	use, short, example string
	members, layouts    bool // what the argument may be
	pool                bool // --pool may name the pool
	request             func(arg string) (api.PlanRequest, error)
}

func (a *App) planSubcommand(p planned) *cobra.Command {
	c := &cobra.Command{Use: p.use, Short: p.short, Example: "  brlb plan " + p.example, Args: cobra.ExactArgs(1)}
	if p.members {
		c.ValidArgsFunction = a.completeMembers
	}
	if p.layouts {
		c.ValidArgs = maglev.Names()
	}
	f, compare := formatFlag(c, false), compareFlag(c)
	pool := new(string)
	if p.pool {
		c.Flags().StringVar(pool, "pool", "", "the pool; may be left out when there is one")
		c.RegisterFlagCompletionFunc("pool", a.completePools)
	}
	c.RunE = func(c *cobra.Command, args []string) error {
		req, err := p.request(args[0])
		if err != nil {
			return err
		}
		req.Pool, req.Compare = *pool, *compare
		return a.plan(c.Context(), f, req)
	}
	return c
}

func (a *App) planRebaseCommand() *cobra.Command {
	c := &cobra.Command{
		Use:               "rebase [POOL]",
		Short:             "Show what a rebase would move",
		Example:           "  brlb plan rebase web",
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: a.completePools,
	}
	f, compare := formatFlag(c, false), compareFlag(c)
	c.RunE = func(c *cobra.Command, args []string) error {
		return a.plan(c.Context(), f, api.PlanRequest{Operation: "rebase", Pool: strings.Join(args, ""), Compare: *compare})
	}
	return c
}

func compareFlag(c *cobra.Command) *bool {
	return c.Flags().Bool("compare", false, "say beside it what every layout would make of the change")
}

func (a *App) plan(ctx context.Context, f *format, req api.PlanRequest) error {
	change, err := fetch(ctx, a, func(ctx context.Context, client *api.Client) (*api.Change, error) { return client.Plan(ctx, req) })
	if err != nil {
		return err
	}
	return a.print(f, change, func(s *screen) { drawChange(s, change) })
}

// planWeight reads MEMBER=WEIGHT.
func planWeight(arg string) (api.PlanRequest, error) {
	at := strings.LastIndexByte(arg, '=')
	if at <= 0 {
		return api.PlanRequest{}, usageErrorf("%.80q is not MEMBER=WEIGHT, such as be1=3", arg)
	}
	weight, err := parseWeight(arg[at+1:])
	return api.PlanRequest{Operation: "weight", Member: arg[:at], Weight: weight}, err
}

// planAdd reads NAME=ADDRESS:PORT[:WEIGHT].
func planAdd(arg string) (api.PlanRequest, error) {
	req := api.PlanRequest{Operation: "add", Weight: 1}
	var ok bool
	if req.Member, req.Address, ok = strings.Cut(arg, "="); !ok || req.Member == "" {
		return req, usageErrorf("%.80q is not NAME=ADDRESS:PORT, such as be5=10.30.0.15:8080", arg)
	}
	if _, err := netip.ParseAddrPort(req.Address); err == nil {
		return req, nil
	}
	at := strings.LastIndexByte(req.Address, ':')
	if at < 0 {
		return req, usageErrorf("%.80q is not ADDRESS:PORT, such as 10.30.0.15:8080", req.Address)
	}
	weight, err := parseWeight(req.Address[at+1:])
	req.Address, req.Weight = req.Address[:at], weight
	return req, err
}

func parseWeight(s string) (uint32, error) {
	weight, err := strconv.ParseUint(s, 10, 16)
	if err != nil {
		return 0, usageErrorf("%.20q is no weight: it is a number from 0 to 65535", s)
	}
	return uint32(weight), nil
}

func drawChange(s *screen, change *api.Change) {
	s.linef("%s", change.Text)
	m := &change.Moves
	if m.Moved == 0 {
		s.linef("no slot moves   digest %s", orDash(m.After))
	} else {
		s.linef("%d of %d slots move: %d needed, %d collateral (no layout could move fewer than %d)   digest %s -> %s",
			m.Moved, m.Slots, m.Needed, m.Collateral, m.LowerBound, orDash(m.Before), orDash(m.After))
		drawMemberMoves(s, change.Members)
	}
	if change.Connections != "" {
		s.linef("connections: %s", change.Connections)
	}
	if len(change.Compare) > 0 {
		drawCompare(s, change.Compare)
	}
}

func drawMemberMoves(s *screen, members []api.MemberMove) {
	t := newTable("MEMBER", ">BEFORE", ">AFTER", ">GAINED", ">LOST", ">SHARE", ">THEN")
	for _, m := range members {
		t.row(text(m.Name), text(fmt.Sprint(m.Before)), text(fmt.Sprint(m.After)),
			text(fmt.Sprint(m.Gained)), text(fmt.Sprint(m.Lost)), text(percent(m.ShareBefore)), text(percent(m.ShareAfter)))
	}
	s.table(t)
}

// drawCompare draws what every layout would make of a change.
func drawCompare(s *screen, layouts []api.LayoutChange) {
	t := newTable("LAYOUT", ">MOVED", ">NEEDED", ">COLLATERAL", ">BOUND", ">LARGEST", ">SMALLEST", "")
	for _, l := range layouts {
		if l.Error != "" {
			t.row(text(l.Layout), text("-"), text("-"), text("-"), text("-"), text("-"), text("-"), text(l.Error))
			continue
		}
		m := &l.Moves
		t.row(text(l.Layout), text(fmt.Sprint(m.Moved)), text(fmt.Sprint(m.Needed)), text(fmt.Sprint(m.Collateral)), text(fmt.Sprint(m.LowerBound)),
			text(fmt.Sprintf("%.2f", l.MaxShare)), text(fmt.Sprintf("%.2f", l.MinShare)))
	}
	s.table(t)
}
