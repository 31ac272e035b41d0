// Package cli is the brlb command line: flags, one call to the running brlb per
// command, and printing.
//
// Data goes to standard output, everything else to standard error. The exit
// code is 0 when the command did what it says, 1 when it failed, 2 when it was
// not understood. The package decides nothing about load balancing.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"brlb/controller/api"
	"brlb/controller/config"
)

// socketOf is where brlb listens for a bridge, unless its configuration says
// something else.
func socketOf(bridge string) string { return "/run/brlb/" + bridge + ".sock" }

// answerTime is how long a command waits for an answer, beside what --wait says.
const answerTime = 40 * time.Second

// The exit codes.
const (
	exitOK     = 0
	exitFailed = 1
	exitUsage  = 2
)

// App is the command line with everything that it takes from its surroundings.
type App struct {
	Version  string
	Stdout   io.Writer
	Stderr   io.Writer
	Terminal bool // Stdout is a terminal
	Progress bool // Stderr is one: show how far long work has come
	Getenv   func(string) string
	Now      func() time.Time
	// Run is the controller behind "brlb run". Without one there is no such
	// command.
	Run func(context.Context, RunOptions) error
	// TraceFile is where a connection goes when all members of a configuration
	// are active.
	TraceFile func(*config.Config, api.TraceRequest) (*api.Trace, error)
	// Demo is the show behind "brlb demo". Without one there is no such command.
	Demo func(context.Context, DemoOptions) error

	socket string // --socket
	bridge string // --bridge
}

// usageError is a command line that was not understood.
type usageError struct{ error }

func usageErrorf(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

// Main runs the command line and returns the exit code.
func (a *App) Main(ctx context.Context, args []string) int {
	root := a.root()
	running := false
	for _, c := range root.Commands() {
		markRunning(c, &running)
	}
	root.SetArgs(args)
	command, err := root.ExecuteContextC(ctx)
	var usage usageError
	switch {
	case err == nil, errors.Is(err, context.Canceled) && ctx.Err() != nil:
		return exitOK
	case !running, errors.As(err, &usage):
		a.complain(err)
		fmt.Fprintf(a.Stderr, "Try '%s --help'.\n", command.CommandPath())
		return exitUsage
	}
	a.complain(err)
	return exitFailed
}

// complain tells of an error. Mistakes in a configuration file are told as
// compilers do, so that editors find the place.
func (a *App) complain(err error) {
	var mistakes config.Errors
	if errors.As(err, &mistakes) {
		for _, m := range mistakes {
			fmt.Fprintln(a.Stderr, printable(m.Error()))
		}
		return
	}
	prefix := "error: "
	for line := range strings.Lines(err.Error()) {
		fmt.Fprintf(a.Stderr, "%s%s\n", prefix, printable(strings.TrimRight(line, "\n")))
		prefix = "  "
	}
}

// markRunning notes when the command's own code begins: what cobra finds before
// that is wrong with the command line.
func markRunning(c *cobra.Command, running *bool) {
	for _, sub := range c.Commands() {
		markRunning(sub, running)
	}
	run := c.RunE
	if run == nil {
		return
	}
	c.RunE = func(c *cobra.Command, args []string) error {
		*running = true
		return run(c, args)
	}
}

func (a *App) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "brlb",
		Short: "A layer-4 load balancer that programs Open vSwitch",
		Long: `brlb balances connections over servers by programming an Open vSwitch
bridge with OpenFlow. "brlb run" is the controller; the other commands ask it,
over its unix socket, or change it.`,
		Example: `  brlb check /etc/brlb/brlb.yaml
  brlb run /etc/brlb/brlb.yaml
  brlb status
  brlb drain be1 --why "kernel upgrade"`,
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.SetOut(a.Stdout)
	root.SetErr(a.Stderr)
	socket := a.Getenv("BRLB_SOCKET")
	if socket == "" {
		socket = socketOf(config.DefaultBridge)
	}
	root.PersistentFlags().StringVar(&a.socket, "socket", socket,
		"unix socket of the running brlb, or an http URL for reading; the environment variable BRLB_SOCKET sets the default")
	root.PersistentFlags().StringVar(&a.bridge, "bridge", "", "bridge whose brlb is meant, if that listens on "+socketOf("BRIDGE"))
	root.MarkFlagsMutuallyExclusive("socket", "bridge")
	root.AddGroup(
		&cobra.Group{ID: groupRun, Title: "Running brlb:"},
		&cobra.Group{ID: groupRead, Title: "Looking:"},
		&cobra.Group{ID: groupChange, Title: "Changing:"},
	)
	if a.Run != nil {
		root.AddCommand(a.runCommand())
	}
	if a.Demo != nil {
		root.AddCommand(a.demoCommand())
	}
	root.AddCommand(
		a.checkCommand(), a.versionCommand(),
		a.statusCommand(), a.slotsCommand(), a.planCommand(), a.flowsCommand(), a.traceCommand(), a.verifyCommand(), a.eventsCommand(),
		a.historyCommand(), a.explainCommand(),
		a.changeCommand(drain), a.changeCommand(enable), a.changeCommand(disable, "maint"), a.weightCommand(), a.overridesCommand(), a.rebaseCommand(), a.reapplyCommand(), a.reloadCommand(),
		a.labCommand(),
	)
	return root
}

// The groups of the help text.
const (
	groupRun    = "run"
	groupRead   = "read"
	groupChange = "change"
)

// client is for the brlb that --socket or --bridge means.
func (a *App) client() (*api.Client, error) {
	socket := a.socket
	if a.bridge != "" {
		socket = socketOf(a.bridge)
	}
	client, err := api.NewClient(socket)
	if err != nil {
		return nil, usageError{err}
	}
	return client, nil
}

// ask calls the running brlb, at most for answerTime and extra.
func (a *App) ask(ctx context.Context, extra time.Duration, call func(context.Context, *api.Client) error) error {
	client, err := a.client()
	if err != nil {
		return err
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(ctx, answerTime+extra)
	defer cancel()
	return call(ctx, client)
}

// fetch is ask for one document.
func fetch[T any](ctx context.Context, a *App, get func(context.Context, *api.Client) (*T, error)) (doc *T, err error) {
	err = a.ask(ctx, 0, func(ctx context.Context, c *api.Client) error {
		doc, err = get(ctx, c)
		return err
	})
	return doc, err
}
