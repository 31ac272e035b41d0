package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"brlb/controller/api"
)

const (
	// barWidth is the bar of the member with the most slots.
	barWidth = 32
	// mapWidth is how many slots a row of the map has.
	mapWidth = 64
	// letters stand for members in the map; those beyond share moreMembers.
	letters     = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
	moreMembers = '*'
	nobody      = '.'
)

func (a *App) slotsCommand() *cobra.Command {
	c := &cobra.Command{
		Use:     "slots [POOL]",
		GroupID: groupRead,
		Short:   "Show who owns how many slots of a pool's table",
		Long: `Shows the slots that every member owns, of one pool or of all. The digest is
equal on two nodes exactly when their tables are. -o wide shows the whole table,
one letter a slot. --anchor prints the anchor of layout v2, in the form in which a
pool's configuration pins it.`,
		Example: `  brlb slots
  brlb slots web -o wide
  brlb slots -o json | jq -r '.[].digest'`,
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: a.completePools,
	}
	f := formatFlag(c, true)
	every := watchFlag(c)
	anchor := c.Flags().Bool("anchor", false, "print the anchor, to pin it in the configuration")
	c.RunE = func(c *cobra.Command, args []string) error {
		return a.show(c.Context(), *every, func(ctx context.Context) ([]byte, error) {
			tables, err := a.fetchSlots(ctx, args)
			if err != nil {
				return nil, err
			}
			if *anchor {
				if tables, err = withAnchor(tables); err != nil {
					return nil, err
				}
			}
			return a.render(f, tables, func(s *screen) {
				for i, t := range tables {
					if i > 0 {
						s.linef("")
					}
					if *anchor {
						drawAnchor(s, t)
						continue
					}
					drawSlots(s, t, f.wide())
				}
			})
		})
	}
	return c
}

// fetchSlots asks for the named pools, or for all of them.
func (a *App) fetchSlots(ctx context.Context, pools []string) (tables []*api.Slots, err error) {
	err = a.ask(ctx, 0, func(ctx context.Context, client *api.Client) error {
		if len(pools) == 0 {
			status, err := client.Status(ctx)
			if err != nil {
				return err
			}
			for _, p := range status.Pools {
				pools = append(pools, p.Name)
			}
		}
		for _, pool := range pools {
			t, err := client.Slots(ctx, pool)
			if err != nil {
				return err
			}
			tables = append(tables, t)
		}
		return nil
	})
	return tables, err
}

// withAnchor keeps the tables that have an anchor.
func withAnchor(tables []*api.Slots) ([]*api.Slots, error) {
	tables = slices.DeleteFunc(tables, func(t *api.Slots) bool { return t.Anchor == nil })
	if len(tables) == 0 {
		return nil, errors.New("no pool has an anchor: only those of layout v2 have one, from their first table on")
	}
	return tables, nil
}

func drawSlots(s *screen, t *api.Slots, wide bool) {
	digest := t.Digest
	if digest == "" {
		digest = "none: no member owns a slot"
	}
	if t.Anchor != nil {
		digest += "   " + anchorText(t.Anchor)
	}
	s.line(coloured(bold, "POOL "+t.Pool), text(fmt.Sprintf(" (id %d)   %d slots   layout %s   digest %s", t.ID, t.Slots, t.Layout, digest)))
	counts := make([]int, len(t.Members)+1) // the last is of nobody's slots
	most := 1
	for _, owner := range t.Owner {
		if owner < 0 || owner >= len(t.Members) {
			owner = len(t.Members)
		}
		counts[owner]++
		most = max(most, counts[owner])
	}
	members := newTable("MEMBER", "ADDRESS", ">SLOTS", ">SHARE", "")
	if wide {
		members = newTable("MEMBER", "ADDRESS", ">SLOTS", ">SHARE", "MAP", "")
	}
	row := func(name, key string, n int, letter rune) {
		cells := []cell{text(name), text(key), text(fmt.Sprint(n)), text(percent(float64(n) / float64(max(t.Slots, 1))))}
		if wide {
			cells = append(cells, text(string(letter)))
		}
		// A member with any slot has a bar.
		members.row(append(cells, text(strings.Repeat("#", (n*barWidth+most-1)/most)))...)
	}
	for i, name := range t.Members {
		row(name, t.Keys[i], counts[i], letterOf(i, len(t.Members)))
	}
	if n := counts[len(t.Members)]; n > 0 {
		row("(none)", "-", n, nobody)
	}
	s.table(members)
	if wide {
		drawMap(s, t)
	}
}

// letterOf is the letter of a member in the map.
func letterOf(member, members int) rune {
	switch {
	case member < 0 || member >= members:
		return nobody
	case member >= len(letters):
		return moreMembers
	default:
		return rune(letters[member])
	}
}

// drawMap draws the slots in rows; each row begins with the number of its first.
func drawMap(s *screen, t *api.Slots) {
	digits := len(fmt.Sprint(max(len(t.Owner)-1, 0)))
	for first := 0; first < len(t.Owner); first += mapWidth {
		var row strings.Builder
		for _, owner := range t.Owner[first:min(first+mapWidth, len(t.Owner))] {
			row.WriteRune(letterOf(owner, len(t.Members)))
		}
		s.linef("  %*d  %s", digits, first, row.String())
	}
}
