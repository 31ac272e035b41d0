package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"brlb/controller/api"
)

func (a *App) reloadCommand() *cobra.Command {
	c := &cobra.Command{
		Use:     "reload",
		GroupID: groupChange,
		Short:   "Make brlb read its configuration file again",
		Long: `Makes the running brlb read its configuration file again, and says what that changes
and which slots move. The file is taken over as a whole, or refused and nothing
changes. Members that stay keep their verdicts, their numbers and what operators
have decided about them; a member whose check changes serves as before until that
check's first verdict.

A file that removes more than half of the members, or of the services, is refused
unless --allow-shrink says that this is meant: as a rule, such a file was cut off.

The signal SIGHUP does the same, without --allow-shrink; the log then says what
this command prints.`,
		Example: `  brlb reload --dry-run
  brlb reload`,
		Args: cobra.NoArgs,
	}
	f := formatFlag(c, false)
	req := api.ReloadRequest{}
	c.Flags().BoolVar(&req.DryRun, "dry-run", false, "only say what would change")
	c.Flags().BoolVar(&req.AllowShrink, "allow-shrink", false, "do it even if more than half of the members or of the services go")
	c.RunE = func(c *cobra.Command, _ []string) error { return a.reload(c.Context(), f, req) }
	return c
}

// reload asks for a reload, and says what came of it or would come of it.
func (a *App) reload(ctx context.Context, f *format, req api.ReloadRequest) error {
	result, err := fetch(ctx, a, func(ctx context.Context, client *api.Client) (*api.ReloadResult, error) {
		return client.Reload(ctx, req)
	})
	if err != nil {
		return err
	}
	if err := a.print(f, result, func(s *screen) { drawReload(s, result) }); err != nil {
		return err
	}
	switch {
	case result.Refused != "":
		return errors.New("brlb would refuse this: " + result.Refused)
	case req.DryRun:
		fmt.Fprintln(a.Stderr, "dry run: nothing was changed")
	case result.Confirmed:
		fmt.Fprintf(a.Stderr, "confirmed by the switch (revision %d)\n", result.Revision)
	case result.Changed:
		fmt.Fprintf(a.Stderr, "taken over (revision %d); the switch has not confirmed it yet: see brlb status\n", result.Revision)
	}
	return nil
}

func drawReload(s *screen, result *api.ReloadResult) {
	if !result.Changed {
		s.linef("nothing has changed (revision %d)", result.Revision)
	}
	for _, change := range result.Changes {
		s.linef("%s", change)
	}
	for _, p := range result.Pools {
		s.linef("pool %s:", p.Pool)
		drawMemberMoves(s, p.Members)
	}
}
