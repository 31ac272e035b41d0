package cli

import (
	"context"
	"fmt"
	"os/user"
	"time"

	"github.com/spf13/cobra"

	"brlb/controller/api"
)

// operation is what an operator does to a member.
type operation struct{ name, short, long string }

var (
	drain = operation{"drain", "Take a member out gently: no new connections, the old ones finish",
		`Gives the member's slots to the others, so that no new connection reaches it.
Connections that are open go on until they end. The member stays drained until it
is enabled, also when brlb restarts.

With --wait the command returns when no connection to the member is left, or when
the deadline has passed, and tells meanwhile how many there are.

With --deadline the member is disabled when that time has passed, also if brlb
does not run then: nothing probes it any more, and connections that are still open
end, their clients' next packets being answered by a reset.`}
	enable = operation{"enable", "Let a member be what the configuration says, and own slots as soon as its probes pass",
		`Takes back what drain, disable and weight have done. The member owns slots as
soon as its probes pass.`}
	disable = operation{"disable", "Take a member out and stop probing it",
		`Does what drain does, and stops the member's probes. Use it for a member that is
gone for long.`}
)

func (a *App) changeCommand(op operation, aliases ...string) *cobra.Command {
	req := api.ChangeRequest{}
	c := &cobra.Command{
		Use:     op.name + " MEMBER",
		Aliases: aliases,
		Short:   op.short,
		Long: op.long + `

MEMBER is a name (be1), a pool and a name (web/be1) or an address with its port
(10.30.0.11:8080). --pool instead means every member that the pool has now. The
command returns when the switch has confirmed the change.`,
		Example: fmt.Sprintf(`  brlb %[1]s be1
  brlb %[1]s web/be1 --why "kernel upgrade"
  brlb %[1]s --pool web --force
  brlb %[1]s 10.30.0.11:8080 --dry-run`, op.name),
		Args:              oneMember,
		ValidArgsFunction: a.completeMembers,
	}
	pool := c.Flags().String("pool", "", "all members of this pool")
	c.RegisterFlagCompletionFunc("pool", a.completePools)
	deadline := new(time.Duration)
	var wait *time.Duration
	var empty drainWait
	if op.name == drain.name {
		deadline = c.Flags().Duration("deadline", 0, "disable the member, and end its connections, when this time has passed; 0 never does")
		wait = drainWaitFlag(c, &empty)
	} else {
		wait = waitFlag(c)
	}
	var done *api.Change
	a.carriesOut(c, &req, wait, func(ctx context.Context, client *api.Client) (*api.Change, error) {
		change, err := client.Change(ctx, op.name, req)
		done = change
		return change, err
	})
	carryOut := c.RunE
	c.RunE = func(c *cobra.Command, args []string) error {
		req.Pool, req.DeadlineSeconds = *pool, deadline.Seconds()
		switch {
		case len(args) == 0 && *pool == "":
			return usageErrorf("name a MEMBER, or a pool with --pool")
		case len(args) == 1 && *pool != "":
			return usageErrorf("name a MEMBER or a pool, not both: web/be1 is a member of a pool")
		case *deadline < 0:
			return usageErrorf("--deadline is %v: it must not be negative", *deadline)
		case len(args) == 1:
			req.Member = args[0]
		}
		if err := carryOut(c, args); err != nil || !empty.given || req.DryRun {
			return err
		}
		return a.awaitEmpty(c.Context(), done, req.Member == "", empty.most)
	}
	return c
}

// carriesOut makes c a command that changes something, with the flags of all of
// them.
func (a *App) carriesOut(c *cobra.Command, req *api.ChangeRequest, wait *time.Duration, call func(context.Context, *api.Client) (*api.Change, error)) {
	c.GroupID = groupChange
	f := formatFlag(c, false)
	c.Flags().BoolVar(&req.DryRun, "dry-run", false, "only say what would move")
	c.Flags().StringVar(&req.Why, "why", "", "the reason, for those who look at the status later")
	c.Flags().BoolVar(&req.Force, "force", false, "do it even if the pool is left without an active member")
	c.RunE = func(c *cobra.Command, _ []string) error {
		if err := checkWait(*wait); err != nil {
			return err
		}
		req.Who, req.WaitSeconds = a.who(), wait.Seconds()
		var change *api.Change
		err := a.ask(c.Context(), *wait, func(ctx context.Context, client *api.Client) (err error) {
			change, err = call(ctx, client)
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
}

// confirmTime is how long to wait for the switch where nothing else is asked for.
const confirmTime = 10 * time.Second

// waitFlag adds --wait.
func waitFlag(c *cobra.Command) *time.Duration {
	return c.Flags().Duration("wait", confirmTime, "how long to wait until the switch has confirmed the change; 0 doesn't wait")
}

func checkWait(wait time.Duration) error {
	if wait < 0 || wait > 10*time.Minute {
		return usageErrorf("--wait is %v: it must be from 0 to 10m", wait)
	}
	return nil
}

// sayConfirmed tells, beside the data, whether the change is in force.
func (a *App) sayConfirmed(change *api.Change, dryRun bool, wait time.Duration) error {
	switch {
	case dryRun:
		fmt.Fprintln(a.Stderr, "dry run: nothing was changed")
	case change.Confirmed:
		fmt.Fprintf(a.Stderr, "confirmed by the switch (revision %d)\n", change.Revision)
	case wait == 0:
		fmt.Fprintf(a.Stderr, "accepted (revision %d); not waited for the switch\n", change.Revision)
	default:
		return fmt.Errorf("accepted (revision %d), but the switch has not confirmed it within %v: see brlb status", change.Revision, wait)
	}
	return nil
}

// who is the person behind the command.
func (a *App) who() string {
	if name := a.Getenv("SUDO_USER"); name != "" {
		return name
	}
	if u, err := user.Current(); err == nil {
		return u.Username
	}
	return ""
}

func (a *App) reapplyCommand() *cobra.Command {
	c := &cobra.Command{
		Use:     "reapply",
		GroupID: groupChange,
		Short:   "Read the switch back and correct what differs from what it should hold",
		Example: "  brlb reapply",
		Args:    cobra.NoArgs,
	}
	f := formatFlag(c, false)
	c.RunE = func(c *cobra.Command, _ []string) error {
		result, err := fetch(c.Context(), a, func(ctx context.Context, client *api.Client) (*api.ReapplyResult, error) { return client.Reapply(ctx) })
		if err != nil {
			return err
		}
		return a.print(f, result, func(s *screen) {
			s.linef("%s", result.Text)
			s.linef("flow modifications %d   own flows %d", result.FlowMods, result.OwnFlows)
		})
	}
	return c
}
