package cli

import (
	"context"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"

	"github.com/spf13/cobra"

	"brlb/controller/api"
	"brlb/controller/config"
)

func (a *App) checkCommand() *cobra.Command {
	c := &cobra.Command{
		Use:     "check FILE",
		GroupID: groupRun,
		Short:   "Check a configuration file",
		Long: `Reads a configuration file and names every mistake with file, line and column. The
exit code is 0 for a good file and 1 for a bad one. --example prints a complete
file that explains every key.

--diff says what the file would change if it took the place of the configuration
that brlb runs with, and which slots would move. It asks the brlb that listens on
the socket which the file names, unless --socket, --bridge or BRLB_SOCKET names
another. The exit code is 1 as well if brlb would refuse the file.`,
		Example: `  brlb check /etc/brlb/brlb.yaml
  brlb check --diff new.yaml
  brlb check --example > brlb.yaml`,
	}
	example := c.Flags().Bool("example", false, "print a complete file with the default of every key")
	diff := c.Flags().Bool("diff", false, "say what the file would change in the running brlb")
	f := formatFlag(c, false)
	c.MarkFlagsMutuallyExclusive("example", "diff")
	c.Args = func(c *cobra.Command, args []string) error {
		if *example {
			return cobra.NoArgs(c, args)
		}
		return cobra.ExactArgs(1)(c, args)
	}
	c.RunE = func(c *cobra.Command, args []string) error {
		if !*diff && c.Flags().Changed("output") {
			return usageErrorf("--output means nothing without --diff")
		}
		if *example {
			_, err := io.WriteString(a.Stdout, config.Example())
			return err
		}
		loaded, err := config.Load(args[0])
		if err != nil {
			return err
		}
		if *diff {
			if !c.Flags().Changed("socket") && a.bridge == "" && a.Getenv("BRLB_SOCKET") == "" {
				a.socket = loaded.API.Socket
			}
			return a.diff(c.Context(), f, args[0])
		}
		_, err = fmt.Fprintf(a.Stdout, "%s: ok: %s\n", args[0], summary(loaded))
		return err
	}
	return c
}

// diff says what the running brlb would make of a file, which is good.
func (a *App) diff(ctx context.Context, f *format, path string) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	return a.reload(ctx, f, api.ReloadRequest{DryRun: true, Config: string(data)})
}

// summary says what a file configures.
func summary(c *config.Config) string {
	members, names := 0, 0
	for _, p := range c.Pools {
		members += len(p.Members)
		names += len(p.Names)
	}
	parts := []string{
		"bridge " + c.Bridge, count(len(c.Services), "service"), count(len(c.Pools), "pool"), count(members, "member"),
	}
	if names > 0 {
		parts = append(parts, count(names, "name")+" not looked up here")
	}
	return strings.Join(parts, ", ")
}

func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

func (a *App) versionCommand() *cobra.Command {
	c := &cobra.Command{
		Use:     "version",
		GroupID: groupRun,
		Short:   "Show the version of this program",
		Example: "  brlb version",
		Args:    cobra.NoArgs,
	}
	f := formatFlag(c, false)
	c.RunE = func(*cobra.Command, []string) error {
		doc := struct {
			Version  string `json:"version"`
			Go       string `json:"go"`
			Platform string `json:"platform"`
		}{a.Version, runtime.Version(), runtime.GOOS + "/" + runtime.GOARCH}
		return a.print(f, doc, func(s *screen) { s.linef("brlb %s (%s, %s)", doc.Version, doc.Go, doc.Platform) })
	}
	return c
}
