package cli

import (
	"bytes"
	"context"
	"time"

	"github.com/spf13/cobra"
)

// watchFlag adds --watch. The duration is 0 without it.
func watchFlag(c *cobra.Command) *time.Duration {
	every := c.Flags().Duration("watch", 0, "show again and again, with that much time in between, until interrupted")
	c.Flags().Lookup("watch").NoOptDefVal = "1s"
	return every
}

// show writes what make returns, once or again and again. While it watches, an
// error is shown and doesn't end it: brlb may be restarting.
func (a *App) show(ctx context.Context, every time.Duration, make func(context.Context) ([]byte, error)) error {
	if every < 0 {
		return usageErrorf("--watch is %v: it must be positive", every)
	}
	for {
		data, err := make(ctx)
		if every == 0 && err != nil {
			return err
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			a.complain(err)
		} else if _, err := a.Stdout.Write(a.frame(data, every)); err != nil {
			return err
		}
		if every == 0 {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(every):
		}
	}
}

// frame makes data overwrite the frame before it, if it is one of many and goes
// to a terminal: home, each line cleared to its end, and the rest of the screen.
// (ECMA-48: CUP, EL, ED)
func (a *App) frame(data []byte, every time.Duration) []byte {
	if every == 0 || !a.Terminal {
		return data
	}
	var b bytes.Buffer
	b.WriteString("\x1b[H")
	b.Write(bytes.ReplaceAll(data, []byte("\n"), []byte("\x1b[K\n")))
	b.WriteString("\x1b[J")
	return b.Bytes()
}
