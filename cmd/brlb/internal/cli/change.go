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
is enabled, also when brlb restarts.`}
	enable = operation{"enable", "Let a member own slots again, as soon as its probes pass",
		`Ends a drain, or takes a disabled member up again. It owns slots as soon as its
probes pass.`}
	disable = operation{"disable", "Take a member out and stop probing it",
		`Does what drain does, and stops the member's probes. Use it for a member that is
gone for long.`}
)

func (a *App) changeCommand(op operation) *cobra.Command {
	c := &cobra.Command{
		Use:     op.name + " MEMBER",
		GroupID: groupChange,
		Short:   op.short,
		Long: op.long + `

MEMBER is a name (be1), a pool and a name (web/be1) or an address with its port
(10.30.0.11:8080). The command returns when the switch has confirmed the change.`,
		Example: fmt.Sprintf(`  brlb %[1]s be1
  brlb %[1]s web/be1 --why "kernel upgrade"
  brlb %[1]s 10.30.0.11:8080 --dry-run`, op.name),
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: a.completeMembers,
	}
	f := formatFlag(c, false)
	req := api.ChangeRequest{}
	wait := waitFlag(c)
	c.Flags().BoolVar(&req.DryRun, "dry-run", false, "only say what would move")
	c.Flags().StringVar(&req.Why, "why", "", "the reason, for those who look at the status later")
	c.Flags().BoolVar(&req.Force, "force", false, "do it even if the pool is left without an active member")
	c.RunE = func(c *cobra.Command, args []string) error {
		if err := checkWait(*wait); err != nil {
			return err
		}
		req.Member, req.Who, req.WaitSeconds = args[0], a.who(), wait.Seconds()
		var change *api.Change
		err := a.ask(c.Context(), *wait, func(ctx context.Context, client *api.Client) (err error) {
			change, err = client.Change(ctx, op.name, req)
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

// waitFlag adds --wait.
func waitFlag(c *cobra.Command) *time.Duration {
	return c.Flags().Duration("wait", 10*time.Second, "how long to wait until the switch has confirmed the change; 0 doesn't wait")
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

func (a *App) reloadCommand() *cobra.Command {
	c := &cobra.Command{
		Use:     "reload",
		GroupID: groupChange,
		Short:   "Make brlb read its configuration file again",
		Long: `Makes the running brlb read its configuration file again. A file with a mistake
changes nothing. The signal SIGHUP does the same.`,
		Example: "  brlb check /etc/brlb/brlb.yaml && brlb reload",
		Args:    cobra.NoArgs,
	}
	f := formatFlag(c, false)
	c.RunE = func(c *cobra.Command, _ []string) error {
		result, err := fetch(c.Context(), a, func(ctx context.Context, client *api.Client) (*api.ReloadResult, error) { return client.Reload(ctx) })
		if err != nil {
			return err
		}
		return a.print(f, result, func(s *screen) {
			for _, change := range result.Changes {
				s.linef("%s", change)
			}
			if !result.Changed {
				s.linef("nothing has changed (revision %d)", result.Revision)
			}
		})
	}
	return c
}
