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
	ConfigPath string
	Logger     *slog.Logger
	Version    string
	// Reload delivers a signal whenever the configuration file should be read
	// again.
	Reload <-chan os.Signal
}

func (a *App) runCommand() *cobra.Command {
	c := &cobra.Command{
		Use:     "run --config FILE",
		GroupID: groupRun,
		Short:   "Run the controller of a bridge",
		Long: `Runs the controller until it is interrupted. It then leaves its flows in place: the
switch goes on forwarding. SIGHUP makes it read the configuration file again; a
file with a mistake changes nothing.`,
		Example: `  brlb run --config /etc/brlb/brlb.yaml
  brlb run --config brlb.yaml --log-level debug --log-format json`,
		Args: cobra.NoArgs,
	}
	path := c.Flags().String("config", "", "configuration file")
	level := c.Flags().String("log-level", "info", "least level of the log: debug, info, warn, error")
	form := c.Flags().String("log-format", "text", "form of the log on standard error: text, json")
	c.MarkFlagRequired("config")
	c.RunE = func(c *cobra.Command, _ []string) error {
		logger, flush, err := newLogger(a.Stderr, *level, *form)
		if err != nil {
			return err
		}
		defer flush()
		reload := make(chan os.Signal, 1) // signals that come while one waits are folded into it
		signal.Notify(reload, syscall.SIGHUP)
		defer signal.Stop(reload)
		ctx := c.Context()
		err = a.Run(ctx, RunOptions{ConfigPath: *path, Logger: logger, Version: a.Version, Reload: reload})
		if ctx.Err() != nil && (err == nil || context.Cause(ctx) == err) {
			logger.Info("brlb has stopped; its flows stay in place and the switch goes on forwarding")
			return nil
		}
		return err
	}
	return c
}
