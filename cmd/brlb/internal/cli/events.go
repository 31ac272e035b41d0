package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/spf13/cobra"

	"brlb/controller/api"
)

func (a *App) eventsCommand() *cobra.Command {
	c := &cobra.Command{
		Use:     "events",
		GroupID: groupRead,
		Short:   "Show what has happened",
		Long: `Shows the events that brlb remembers, the oldest first; --follow goes on with new
ones until it is interrupted. While it follows, -o json writes one event a line.`,
		Example: `  brlb events
  brlb events --follow
  brlb events --follow -o json | jq -r .text`,
		Args: cobra.NoArgs,
	}
	f := formatFlag(c, false)
	follow := c.Flags().BoolP("follow", "f", false, "go on with new events")
	c.RunE = func(c *cobra.Command, _ []string) error {
		if *follow {
			return a.followEvents(c.Context(), f)
		}
		events, err := fetch(c.Context(), a, func(ctx context.Context, client *api.Client) (*api.Events, error) { return client.Events(ctx, 0) })
		if err != nil {
			return err
		}
		return a.print(f, events, func(s *screen) {
			for i := range events.Events {
				drawEvent(s, &events.Events[i])
			}
		})
	}
	return c
}

func (a *App) followEvents(ctx context.Context, f *format) error {
	client, err := a.client()
	if err != nil {
		return err
	}
	defer client.Close()
	return client.Follow(ctx, 0, func(event api.Event) error {
		switch f.value {
		case "json":
			line, err := json.Marshal(event)
			if err != nil {
				return err
			}
			_, err = a.Stdout.Write(append(line, '\n'))
			return err
		case "yaml":
			if _, err := fmt.Fprintln(a.Stdout, "---"); err != nil {
				return err
			}
		}
		return a.print(f, event, func(s *screen) { drawEvent(s, &event) })
	})
}

func drawEvent(s *screen, e *api.Event) {
	subject := strings.Trim(e.Pool+"/"+e.Member, "/")
	if subject != "" {
		subject += ": "
	}
	s.linef("%s  %s%s", e.Time.Local().Format("2006-01-02 15:04:05.000"), subject, e.Text)
}
