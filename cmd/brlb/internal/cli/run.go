package cli

import (
	"context"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
)

// RunOptions is what "brlb run" hands to the controller.
type RunOptions struct {
	ConfigPaths []string // of each bridge
	Logger      *slog.Logger
	Version     string
	// Reload delivers a signal whenever the configuration files should be read
	// again.
	Reload <-chan os.Signal
}

func (a *App) runCommand() *cobra.Command {
	c := &cobra.Command{
		Use:     "run FILE...",
		GroupID: groupRun,
		Short:   "Run the controller of a bridge, or of several",
		Long: `Runs the controller until it is interrupted. It then leaves its flows in place: the
switch goes on forwarding. SIGHUP makes it read the configuration file again; a
file that it refuses changes nothing.

Each FILE configures one bridge. With several, each needs a bridge, an API socket,
an HTTP address and a conntrack zone of its own; SIGHUP is for all of them, the
other commands take --bridge. If one cannot start or fails, all end.`,
		Example: `  brlb run /etc/brlb/brlb.yaml
  brlb run /etc/brlb/br-a.yaml /etc/brlb/br-b.yaml
  brlb run brlb.yaml --log-level debug --log-format json`,
	}
	config := c.Flags().StringArray("config", nil, "configuration file, another way to name a FILE")
	level := c.Flags().String("log-level", "info", "least level of the log: debug, info, warn, error")
	form := c.Flags().String("log-format", "text", "form of the log on standard error: text, json")
	c.RunE = func(c *cobra.Command, args []string) error {
		paths := append(*config, args...)
		if len(paths) == 0 {
			return usageErrorf("name the configuration FILE of the bridge")
		}
		logger, flush, err := newLogger(a.Stderr, *level, *form)
		if err != nil {
			return err
		}
		defer flush()
		reload := make(chan os.Signal, 1) // signals that come while one waits are folded into it
		signal.Notify(reload, syscall.SIGHUP)
		defer signal.Stop(reload)
		ctx := c.Context()
		err = a.Run(ctx, RunOptions{ConfigPaths: paths, Logger: logger, Version: a.Version, Reload: reload})
		if ctx.Err() != nil && (err == nil || context.Cause(ctx) == err) {
			logger.Info("brlb has stopped; its flows stay in place and the switch goes on forwarding")
			return nil
		}
		return err
	}
	return c
}
