package cli

import (
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"brlb/maglev"
	"brlb/maglev/compare"
)

func (a *App) labCommand() *cobra.Command {
	c := &cobra.Command{
		Use:     "lab",
		GroupID: groupRead,
		Short:   "Compare slot layouts on random pools; no running brlb is needed",
		Args:    cobra.NoArgs,
		RunE:    func(*cobra.Command, []string) error { return usageErrorf("lab what? compare, slots or crush") },
	}
	c.AddCommand(a.labCompareCommand(), a.labSlotsCommand(), a.labCrushCommand())
	return c
}

// trialFlags are the flags that describe random pools.
type trialFlags struct {
	options compare.Options
	weights string
}

func (t *trialFlags) add(c *cobra.Command) {
	o := &t.options
	c.Flags().IntVar(&o.Members, "members", 16, "members of each pool")
	c.Flags().StringVar(&t.weights, "weights", "1..1", "range of the members' random weights, A..B")
	c.Flags().IntVar(&o.Slots, "slots", 1024, "slots of each pool, a power of two")
	c.Flags().Uint8Var(&o.Slack, "slack", 0, "v2's balance_slack")
	c.Flags().Uint64Var(&o.Seed, "seed", 1, "another number makes other pools")
}

// finish reads what the flags say as text.
func (t *trialFlags) finish(layouts, events []string) error {
	low, high, ok := strings.Cut(t.weights, "..")
	least, err := strconv.ParseUint(low, 10, 16)
	most, err2 := strconv.ParseUint(high, 10, 16)
	if !ok || err != nil || err2 != nil {
		return usageErrorf("--weights is %.40q: write a range such as 1..10", t.weights)
	}
	t.options.MinWeight, t.options.MaxWeight = uint32(least), uint32(most)
	t.options.Layouts = layouts
	t.options.Events = nil
	for _, e := range events {
		t.options.Events = append(t.options.Events, compare.Event(e))
	}
	return nil
}

// events are the names of all events.
func events() []string {
	var names []string
	for _, e := range compare.Events() {
		names = append(names, string(e))
	}
	return names
}

func (a *App) labCompareCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "compare",
		Short: "Compare what layouts move when something happens to random pools",
		Long: `Lets events happen to random pools and says, for each layout, how many slots moved
in the mean; how many an exact division has to move (BOUND) and the ratio of the
two; collateral moves; the largest and the smallest share of a member, relative to
what its weight entitles it to; and how long a build takes.

The events: a member leaves; one joins; one has another weight; rolling, all leave
and come back in turn; half of them leave, one by one.`,
		Example: `  brlb lab compare --members 16 --event leave --pools 1000
  brlb lab compare --members 100 --weights 1..10 --event join,half --layout v2,v1 -o csv
  brlb lab compare --layout v1 --members 4 --event leave --pools 1 --map slots.svg`,
		Args: cobra.NoArgs,
	}
	var t trialFlags
	t.add(c)
	f := formatsFlag(c, "text", "json", "csv")
	layouts := c.Flags().StringSlice("layout", maglev.Names(), "layouts to compare")
	happening := c.Flags().StringSlice("event", []string{"leave"}, "what happens: "+strings.Join(events(), ", "))
	c.Flags().IntVar(&t.options.Pools, "pools", 1000, "number of random pools")
	chart := c.Flags().String("svg", "", "file to draw the comparison into, as a chart")
	slots := c.Flags().String("map", "", "file to draw the first pool's slots into, before and after the first event, under the first layout")
	c.RegisterFlagCompletionFunc("layout", cobra.FixedCompletions(maglev.Names(), cobra.ShellCompDirectiveNoFileComp))
	c.RegisterFlagCompletionFunc("event", cobra.FixedCompletions(events(), cobra.ShellCompDirectiveNoFileComp))
	c.RunE = func(c *cobra.Command, _ []string) error {
		if err := t.finish(*layouts, *happening); err != nil {
			return err
		}
		results, err := a.compareLayouts(c.Context(), t.options)
		if err != nil {
			return err
		}
		if *chart != "" {
			title := fmt.Sprintf("%d members on %d slots", t.options.Members, t.options.Slots)
			if err := os.WriteFile(*chart, compare.DrawChart(title, results), 0o644); err != nil {
				return err
			}
		}
		if *slots != "" {
			if err := drawExample(*slots, t.options); err != nil {
				return err
			}
		}
		if f.value == "csv" {
			return a.writeCSV(results)
		}
		return a.print(f, results, func(s *screen) { drawResults(s, t.options, results) })
	}
	return c
}

// compareLayouts runs a comparison, with a bar on standard error.
func (a *App) compareLayouts(ctx context.Context, o compare.Options) ([]compare.Result, error) {
	start := a.Now()
	o.Clock = func() int64 { return int64(a.Now().Sub(start)) }
	shown := -1
	o.Progress = func(done, total int) bool {
		if percent := 100 * done / total; a.Progress && percent != shown {
			shown = percent
			const width = 40
			filled := width * done / total
			fmt.Fprintf(a.Stderr, "\r[%s%s] %3d%%", strings.Repeat("#", filled), strings.Repeat(" ", width-filled), percent)
			if done == total {
				fmt.Fprint(a.Stderr, "\r\x1b[K") // EL of ECMA-48
			}
		}
		return ctx.Err() == nil
	}
	results, err := compare.Run(o)
	switch {
	case errors.Is(err, compare.ErrStopped):
		return nil, ctx.Err()
	case err != nil:
		return nil, usageError{err}
	}
	return results, nil
}

// drawExample draws the first pool under the first layout and event.
func drawExample(path string, o compare.Options) error {
	before, after, err := compare.Example(o, o.Layouts[0], o.Events[0])
	if err != nil {
		return usageError{err}
	}
	drawing, err := compare.DrawSlots(fmt.Sprintf("%s: %s", o.Layouts[0], o.Events[0]), before, after)
	if err != nil {
		return err
	}
	return os.WriteFile(path, drawing, 0o644)
}

func drawResults(s *screen, o compare.Options, results []compare.Result) {
	weights := fmt.Sprintf("weights %d..%d", o.MinWeight, o.MaxWeight)
	if o.MinWeight == o.MaxWeight {
		weights = "equal weights"
	}
	s.linef("%s of %s, %s, on %s", count(o.Pools, "random pool"), count(o.Members, "member"), weights, count(o.Slots, "slot"))
	for _, event := range o.Events {
		s.linef("")
		s.line(coloured(bold, "EVENT "+string(event)))
		t := newTable("LAYOUT", ">MOVED", ">BOUND", ">RATIO", ">COLLATERAL", ">P95", ">P99", ">MAX", ">LARGEST", ">SMALLEST", ">BUILD", "")
		for i := range results {
			if r := &results[i]; r.Event == event {
				t.row(resultRow(r)...)
			}
		}
		s.table(t)
	}
}

func resultRow(r *compare.Result) []cell {
	if r.Error != "" {
		return []cell{text(r.Layout), {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, text(r.Error)}
	}
	number := func(format string, v any) cell { return text(fmt.Sprintf(format, v)) }
	return []cell{
		text(r.Layout), number("%.1f", r.Moved), number("%.1f", r.ExactBound), number("%.3f", r.Ratio()),
		number("%.1f", r.Collateral.Mean), number("%d", r.Collateral.P95), number("%d", r.Collateral.P99), number("%d", r.Collateral.Max),
		number("%.2f", r.MaxShare), number("%.2f", r.MinShare), text(buildTime(r.BuildNanos)),
	}
}

// buildTime is a time in microseconds, so that a column of them can be compared.
func buildTime(nanos float64) string { return fmt.Sprintf("%.1fµs", nanos/1000) }

// writeCSV writes results with the names that -o json has.
func (a *App) writeCSV(results []compare.Result) error {
	w := csv.NewWriter(a.Stdout)
	w.Write([]string{
		"layout", "version", "event", "steps", "moved", "lower_bound", "exact_bound", "needed",
		"collateral_mean", "collateral_p50", "collateral_p95", "collateral_p99", "collateral_max", "max_share", "min_share", "build_ns", "error",
	})
	float := func(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }
	for i := range results {
		r := &results[i]
		c := &r.Collateral
		w.Write([]string{
			r.Layout, r.Version, string(r.Event), strconv.Itoa(r.Steps), float(r.Moved), float(r.LowerBound), float(r.ExactBound), float(r.Needed),
			float(c.Mean), strconv.Itoa(c.P50), strconv.Itoa(c.P95), strconv.Itoa(c.P99), strconv.Itoa(c.Max),
			float(r.MaxShare), float(r.MinShare), float(r.BuildNanos), r.Error,
		})
	}
	w.Flush()
	return w.Error()
}

func (a *App) labSlotsCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "slots",
		Short: "Show the slots of a random pool before and after something happens to it",
		Long: `Builds the table of one random pool, lets an event happen and says what moved. --svg
draws both tables, one cell a slot and one colour a member, with the moved slots
marked: those that had to move by a dot, collateral by a red frame.`,
		Example: `  brlb lab slots --layout v1 --members 4 --svg slots.svg`,
		Args:    cobra.NoArgs,
	}
	var t trialFlags
	t.add(c)
	layout := c.Flags().String("layout", maglev.Names()[0], "layout: "+strings.Join(maglev.Names(), ", "))
	event := c.Flags().String("event", "leave", "what happens: "+strings.Join(events(), ", "))
	drawing := c.Flags().String("svg", "", "file to draw into")
	f := formatsFlag(c, "text", "json")
	c.RunE = func(*cobra.Command, []string) error {
		if err := t.finish([]string{*layout}, []string{*event}); err != nil {
			return err
		}
		before, after, err := compare.Example(t.options, *layout, compare.Event(*event))
		if err != nil {
			return usageError{err}
		}
		if *drawing != "" {
			if err := drawExample(*drawing, t.options); err != nil {
				return err
			}
		}
		change := maglev.Compare(before, after)
		return a.print(f, exampleDocument(before, after, change), func(s *screen) { drawExampleText(s, before, after, change) })
	}
	return c
}

// exampleDocument is what -o json prints of an example.
func exampleDocument(before, after *maglev.Table, change maglev.Change) any {
	type table struct {
		Digest string   `json:"digest"`
		Owners []string `json:"owners"` // by slot
	}
	of := func(t *maglev.Table) table {
		doc := table{Digest: t.Digest(), Owners: make([]string, t.Slots())}
		for slot := range doc.Owners {
			doc.Owners[slot] = t.Key(slot)
		}
		return doc
	}
	return struct {
		Layout     string `json:"layout_version"`
		Slots      int    `json:"slots"`
		Moved      int    `json:"moved"`
		Needed     int    `json:"needed"`
		Collateral int    `json:"collateral"`
		LowerBound int    `json:"lower_bound"`
		Before     table  `json:"before"`
		After      table  `json:"after"`
	}{after.Version, change.Slots, change.Moved, change.Needed, change.Collateral, change.LowerBound, of(before), of(after)}
}

func drawExampleText(s *screen, before, after *maglev.Table, change maglev.Change) {
	s.linef("layout %s: %d of %d slots move: %d needed, %d collateral (no layout could move fewer than %d)   digest %s -> %s",
		after.Version, change.Moved, change.Slots, change.Needed, change.Collateral, change.LowerBound, before.Digest(), after.Digest())
	t := newTable("MEMBER", ">BEFORE", ">AFTER", ">GAINED", ">LOST")
	for _, m := range change.Members {
		t.row(text(m.Key), text(fmt.Sprint(m.Before)), text(fmt.Sprint(m.After)), text(fmt.Sprint(m.Gained)), text(fmt.Sprint(m.Lost)))
	}
	s.table(t)
}
