package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"brlb/controller/api"
)

// drainWait is --wait of drain: until no connection is left, if it is given.
type drainWait struct {
	given   bool
	most    time.Duration // 0: however long it takes
	confirm time.Duration // how long to wait for the switch
}

// untilEmpty is the value of --wait without one.
const untilEmpty = "until-empty"

// drainWaitFlag adds --wait. It returns how long to wait for the switch.
func drainWaitFlag(c *cobra.Command, w *drainWait) *time.Duration {
	w.confirm = confirmTime
	flag := c.Flags().VarPF(w, "wait", "", "return only when no connection is left, or the deadline has passed; --wait=10m waits no longer than that, and --wait=0 not even for the switch")
	flag.NoOptDefVal = untilEmpty
	return &w.confirm
}

// Set, String and Type make drainWait the value of a flag.
func (w *drainWait) Set(text string) error {
	*w = drainWait{given: true, confirm: confirmTime}
	if text == untilEmpty {
		return nil
	}
	most, err := time.ParseDuration(text)
	switch {
	case err != nil:
		return err
	case most < 0:
		return errors.New("it must not be negative")
	case most == 0:
		*w = drainWait{}
	}
	w.most = most
	return nil
}

func (w *drainWait) String() string {
	if w.most > 0 {
		return w.most.String()
	}
	return ""
}

// Type is what the help calls the value.
func (w *drainWait) Type() string { return "duration" }

// look is how often a drain looks at how many connections are left.
const look = time.Second

// awaitEmpty waits until no connection is left to what was drained.
func (a *App) awaitEmpty(ctx context.Context, change *api.Change, whole bool, most time.Duration) error {
	if most > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, most, errWaited)
		defer cancel()
	}
	var since time.Time // counts are of the table that the drain has made
	said, left := -1, 0
	for {
		status, err := fetch(ctx, a, func(ctx context.Context, client *api.Client) (*api.Status, error) { return client.Status(ctx) })
		if err == nil {
			if since.IsZero() {
				since = status.ConfirmedAt
			}
			var over bool
			left, over, err = leftAt(status, change, whole)
			switch {
			case err != nil:
				return err
			case over:
				fmt.Fprintln(a.Stderr, "the deadline has passed: what was still open is ended")
				return nil
			case status.Conntrack.At.Before(since):
			case left == 0:
				fmt.Fprintln(a.Stderr, "no connection is left")
				return nil
			case left != said:
				fmt.Fprintf(a.Stderr, "connections left: %d\n", left)
				said = left
			}
		} else if ctx.Err() == nil {
			return err
		}
		select {
		case <-ctx.Done():
			if context.Cause(ctx) == errWaited {
				return fmt.Errorf("connections left after %v: %d; the drain goes on", most, left)
			}
			return ctx.Err()
		case <-time.After(look):
		}
	}
}

var errWaited = errors.New("waited long enough")

// leftAt counts the connections that are open to the members of a drain. It is
// over when all have come to their deadline.
func leftAt(status *api.Status, change *api.Change, whole bool) (left int, over bool, err error) {
	drained := 0
	over = true
	for i := range status.Pools {
		p := &status.Pools[i]
		for j := range p.Members {
			m := &p.Members[j]
			name := p.Name + "/" + m.Name
			if p.Name != change.Pool {
				name = m.Name // POOL/MEMBER, if it comes from a pool inside
			}
			if name != change.Pool+"/"+change.Member && !(whole && strings.HasPrefix(name, change.Pool+"/")) {
				continue
			}
			if m.Admin != "draining" && m.Admin != "disabled" {
				if whole {
					continue // it came later
				}
				return 0, false, fmt.Errorf("%s is %s again", name, m.Admin)
			}
			drained++
			over = over && m.Admin == "disabled"
			switch {
			case m.Connections != nil:
				left += *m.Connections
			case p.Mode != "nat":
				return 0, false, fmt.Errorf("nobody counts the connections of pool %s: in mode %s the switch does not track them", p.Name, p.Mode)
			case status.Conntrack.Problem != "":
				return 0, false, fmt.Errorf("connections are not counted: %s", status.Conntrack.Problem)
			default:
				left++ // not counted yet
			}
		}
	}
	if drained == 0 {
		return 0, false, fmt.Errorf("%s is gone from the configuration", change.Member)
	}
	return left, over, nil
}

// oneMember permits at most one argument. A time after --wait is taken for one,
// since --wait of drain may stand alone.
func oneMember(c *cobra.Command, args []string) error {
	if len(args) == 2 && c.Flags().Changed("wait") {
		if _, err := time.ParseDuration(args[1]); err == nil {
			return fmt.Errorf("write --wait=%s", args[1])
		}
	}
	return cobra.MaximumNArgs(1)(c, args)
}
