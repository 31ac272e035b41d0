package cli

import (
	"io"
	"os"

	"github.com/spf13/cobra"
)

// DemoOptions is what "brlb demo" hands to the demo.
type DemoOptions struct {
	Out  io.Writer
	Brlb string // path of this executable
	Keep bool
}

func (a *App) demoCommand() *cobra.Command {
	c := &cobra.Command{
		Use:     "demo",
		GroupID: groupRun,
		Short:   "Show brlb balancing real traffic, in a network of its own",
		Long: `Builds a private network in namespaces of its own (a client, four servers and
an Open vSwitch), runs brlb in it, and shows with continuous traffic how it
balances, drains, survives a dead server and its own death. It takes under a
minute, needs root and Debian's openvswitch-switch, touches nothing of this
machine's Open vSwitch, and leaves nothing behind.`,
		Example: `  sudo brlb demo
  sudo brlb demo --keep`,
		Args: cobra.NoArgs,
	}
	keep := c.Flags().Bool("keep", false, "leave everything running until Ctrl-C, and say what can be done with it")
	c.RunE = func(c *cobra.Command, _ []string) error {
		path, err := os.Executable()
		if err != nil {
			return err
		}
		return a.Demo(c.Context(), DemoOptions{Out: a.Stdout, Brlb: path, Keep: *keep})
	}
	return c
}
