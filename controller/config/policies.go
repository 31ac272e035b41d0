package config

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"brlb/maglev"
)

// The shape stage for a pool's rules.

// The longest times of rules.
const (
	maxSlowStart = time.Hour
	maxHoldDown  = 24 * time.Hour

	minBFDGap, maxBFDGap = 10 * time.Millisecond, 10 * time.Second
)

func (d *document) policies(f fields, p *Pool) {
	choice(d, f["on_down"], &p.OnDown, OnDownReset, OnDownKeep)
	choice(d, f["on_all_down"], &p.OnAllDown, OnAllDownDrop, OnAllDownKeep, OnAllDownReject)
	integer(d, f["min_active"], &p.MinActive, 1, 65535)
	d.percentage(f["panic_below"], &p.PanicBelow)
	d.duration(f["slow_start"], &p.SlowStart, 0, maxSlowStart)
	switch {
	case p.SlowStart > 0 && p.SlowStart < time.Second:
		d.fail(f["slow_start"].path, "%v is out of range: 0s, or 1s to %v", p.SlowStart, maxSlowStart)
	case p.SlowStart > 0 && !slices.Contains(Proportional(), p.Layout) && slices.Contains(maglev.Names(), p.Layout):
		d.fail(f["slow_start"].path, "layout %s has whole weights only: slow_start needs layout %s", p.Layout, enumerate(Proportional(), "or"))
	}
	h := f["hold_down"]
	if h.isEmpty() {
		return
	}
	g := d.mapping(h, "after", "within")
	if g == nil {
		return
	}
	for _, key := range []string{"after", "within"} {
		if g[key].node == nil {
			d.fail(h.path, "has no %s: write {after: TIMES, within: TIME}, such as {after: 3, within: 5m}", key)
		}
	}
	integer(d, g["after"], &p.HoldDown.After, 1, MaxFalls)
	d.duration(g["within"], &p.HoldDown.Within, time.Second, maxHoldDown)
}

// bfd reads true, false, or a mapping, into dst.
func (d *document) bfd(e entry, dst *BFD) {
	usual := BFD{MinTx: DefaultBFDGap, MinRx: DefaultBFDGap, Mult: DefaultBFDMult}
	if _, short := scalarText(e.node); short {
		on := false
		if d.boolean(e, &on); on {
			*dst = usual
		}
		return
	}
	if e.isEmpty() {
		return
	}
	f := d.mapping(e, "min_tx", "min_rx", "mult")
	if f == nil {
		return
	}
	*dst = usual
	for _, gap := range []struct {
		key string
		dst *time.Duration
	}{{"min_tx", &dst.MinTx}, {"min_rx", &dst.MinRx}} {
		d.duration(f[gap.key], gap.dst, minBFDGap, maxBFDGap)
		if *gap.dst%time.Millisecond != 0 {
			d.fail(f[gap.key].path, "%v is no whole number of milliseconds", *gap.dst)
		}
	}
	integer(d, f["mult"], &dst.Mult, 1, 255)
}

// percentage reads 0% to 100% into dst.
func (d *document) percentage(e entry, dst *int) {
	s, ok := d.text(e)
	if !ok {
		return
	}
	number, isPercent := strings.CutSuffix(s, "%")
	n, err := strconv.ParseUint(number, 10, 8)
	if err != nil || !isPercent || n > 100 || number != strconv.FormatUint(n, 10) {
		d.fail(e.path, "%s is not a percentage: write 0%% to 100%%, such as 50%%", quote(s))
		return
	}
	*dst = int(n)
}

// Proportional lists the layouts to which only the proportions of weights
// matter, so that a part of a weight makes sense. Others make so many points, or
// so much straw, of each.
func Proportional() []string { return []string{LayoutV2, "v1", LayoutSticky, "rendezvous"} }
