package compare

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"math/bits"
	"slices"

	"brlb/maglev"
)

// drawing is an SVG under construction.
type drawing struct {
	bytes.Buffer
}

// begin writes the head. Text sizes and positions suit a sans-serif font.
func (d *drawing) begin(width, height int, title string) {
	fmt.Fprintf(d, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d" font-family="sans-serif" font-size="12">`+"\n",
		width, height, width, height)
	fmt.Fprintf(d, "<title>%s</title>\n<rect width=\"%d\" height=\"%d\" fill=\"#ffffff\"/>\n", escape(title), width, height)
}

func (d *drawing) end() []byte {
	d.WriteString("</svg>\n")
	return d.Bytes()
}

// text writes a line that starts (or, with anchor "end" or "middle", ends or is
// centred) at a point.
func (d *drawing) text(x, y int, anchor, style, s string) {
	fmt.Fprintf(d, `<text x="%d" y="%d" text-anchor="%s"%s>%s</text>`+"\n", x, y, anchor, style, escape(s))
}

func (d *drawing) rect(x, y, width, height int, fill string) {
	fmt.Fprintf(d, `<rect x="%d" y="%d" width="%d" height="%d" fill="%s"/>`+"\n", x, y, width, height, fill)
}

func escape(s string) string {
	var b bytes.Buffer
	_ = xml.EscapeText(&b, []byte(s)) // a buffer does not fail
	return b.String()
}

// colour is the colour of member i: hues that stay apart however many members
// there are, each third one darker.
func colour(i int) string {
	const goldenAngle = 137.508
	hue := float64(i) * goldenAngle
	return fmt.Sprintf("hsl(%d,65%%,%d%%)", int(hue)%360, 70-12*(i%3))
}

const (
	bold  = ` font-weight="bold"`
	faint = ` fill="#666666"`

	neededMark     = "#222222"
	collateralMark = "#d00000"
	frame          = `fill="none" stroke="` + collateralMark + `" stroke-width="2"`
)

// path is the outline of many rectangles.
type path struct {
	bytes.Buffer
}

func (p *path) rect(x, y, width, height int) {
	fmt.Fprintf(p, "M%d %dh%dv%dh-%dz", x, y, width, height, width)
}

func (d *drawing) path(class, style string, p path) {
	if p.Len() > 0 {
		fmt.Fprintf(d, `<path class="%s" %s d="%s"/>`+"\n", class, style, p.String())
	}
}

// DrawSlots draws a pool's slots before and after a change, one cell a slot and
// one colour a member. Slots that moved are marked in the second picture: with
// a dark dot if the change needed it, with a red frame if it is collateral.
// Both tables must have the same number of slots and at least one.
func DrawSlots(title string, before, after *maglev.Table) ([]byte, error) {
	slots := after.Slots()
	if slots == 0 || before.Slots() != slots {
		return nil, fmt.Errorf("tables of %d and %d slots: draw two of the same size", before.Slots(), slots)
	}
	change := maglev.Compare(before, after)
	members := make(map[string]int, len(change.Members))
	for i, m := range change.Members {
		members[m.Key] = i
	}
	columns := 1 << (bits.Len(uint(slots)) / 2) // of 2^k slots, 2^((k+1)/2)
	cell := max(3, 384/columns)
	rows := slots / columns
	const margin, top, legend = 20, 64, 300
	width := 3*margin + 2*columns*cell + margin + legend
	height := top + max(rows*cell, legendHeight(len(change.Members))) + margin

	var d drawing
	d.begin(width, height, title)
	d.text(margin, 24, "start", ` font-size="15"`+bold, title)
	d.text(margin, 44, "start", faint, fmt.Sprintf("%d of %d slots moved: %d needed, %d collateral; lower bound %d",
		change.Moved, slots, change.Needed, change.Collateral, change.LowerBound))
	d.panel(margin, top, columns, cell, before, members)
	second := 2*margin + columns*cell
	d.panel(second, top, columns, cell, after, members)
	var needed, collateral path
	for slot := range slots {
		from, to := before.Key(slot), after.Key(slot)
		if from == to {
			continue
		}
		x, y := second+slot%columns*cell, top+slot/columns*cell
		if from == "" || to == "" || change.Members[members[from]].Changed || change.Members[members[to]].Changed {
			dot := max(1, cell/4)
			needed.rect(x+(cell-dot)/2, y+(cell-dot)/2, dot, dot)
		} else {
			collateral.rect(x+1, y+1, max(1, cell-2), max(1, cell-2))
		}
	}
	d.path("needed", `fill="`+neededMark+`"`, needed)
	d.path("collateral", frame, collateral)
	d.legend(second+columns*cell+margin, top, change.Members)
	return d.end(), nil
}

// panel draws a table as a grid, one path a member.
func (d *drawing) panel(left, top, columns, cell int, table *maglev.Table, members map[string]int) {
	cells := make([]path, len(members)+1) // the last one for slots without an owner
	for first := 0; first < table.Slots(); first += columns {
		for from := 0; from < columns; {
			// One rectangle for neighbours of the same owner.
			key := table.Key(first + from)
			to := from + 1
			for to < columns && table.Key(first+to) == key {
				to++
			}
			i, owned := members[key]
			if !owned {
				i = len(members)
			}
			cells[i].rect(left+from*cell, top+first/columns*cell, (to-from)*cell, cell)
			from = to
		}
	}
	for i, p := range cells {
		fill := "#eeeeee"
		if i < len(members) {
			fill = colour(i)
		}
		d.path("member", `fill="`+fill+`"`, p)
	}
}

const (
	legendLine = 18
	maxLegend  = 40 // members listed
)

func legendHeight(members int) int { return (min(members, maxLegend) + 4) * legendLine }

// legend lists the members with their counts, and the marks.
func (d *drawing) legend(x, y int, members []maglev.MemberChange) {
	line := func(s string) {
		d.text(x+20, y+11, "start", "", s)
		y += legendLine
	}
	d.rect(x+5, y+5, 3, 3, neededMark)
	line("moved, needed")
	fmt.Fprintf(d, `<rect x="%d" y="%d" width="10" height="10" %s/>`+"\n", x+1, y+1, frame)
	line("moved, collateral")
	for i, m := range members {
		if i == maxLegend {
			line(fmt.Sprintf("and %d more", len(members)-maxLegend))
			break
		}
		d.rect(x, y, 12, 12, colour(i))
		line(fmt.Sprintf("%s: %d → %d", m.Key, m.Before, m.After))
	}
}

// DrawChart draws results as bars, grouped by event: how many slots each layout
// moved in the mean, needed and collateral ones, beside what an exact layout
// has to move at least.
func DrawChart(title string, results []Result) []byte {
	const margin, top, label, bars, line, numbers = 20, 76, 110, 420, 20, 320
	var events []Event
	most := 1.0
	for _, r := range results {
		if !slices.Contains(events, r.Event) {
			events = append(events, r.Event)
		}
		most = max(most, r.Moved, r.ExactBound)
	}
	height := top + len(events)*2*line + len(results)*line + margin
	var d drawing
	d.begin(2*margin+label+bars+numbers, height, title)
	d.text(margin, 24, "start", ` font-size="15"`+bold, title)
	d.rect(margin, 38, 12, 12, neededColour)
	d.text(margin+18, 49, "start", "", "moved, needed")
	d.rect(margin+130, 38, 12, 12, collateralMark)
	d.text(margin+148, 49, "start", "", "moved, collateral")
	d.rect(margin+274, 36, 2, 16, neededMark)
	d.text(margin+282, 49, "start", "", "least that an exact division has to move")
	y := top
	left := margin + label
	scale := func(slots float64) int { return int(slots / most * bars) }
	for _, event := range events {
		d.text(margin, y+14, "start", bold, string(event))
		column := func(n int) int { return left + bars + [...]int{50, 200, 310}[n] }
		d.text(column(0), y+14, "end", faint, "moved")
		d.text(column(1), y+14, "end", faint, "collateral / p99 / max")
		d.text(column(2), y+14, "end", faint, "largest share")
		y += line
		for _, r := range results {
			if r.Event != event {
				continue
			}
			d.text(left-8, y+14, "end", "", r.Layout)
			if r.Error != "" {
				d.text(left, y+14, "start", faint, r.Error)
			} else {
				needed := scale(r.Needed)
				d.rect(left, y+3, needed, line-6, neededColour)
				d.rect(left+needed, y+3, scale(r.Moved)-needed, line-6, collateralMark)
				d.rect(left+scale(r.ExactBound), y, 2, line, neededMark)
				d.text(column(0), y+14, "end", "", fmt.Sprintf("%.1f", r.Moved))
				d.text(column(1), y+14, "end", "", fmt.Sprintf("%.1f / %d / %d", r.Collateral.Mean, r.Collateral.P99, r.Collateral.Max))
				d.text(column(2), y+14, "end", "", fmt.Sprintf("%.2f", r.MaxShare))
			}
			y += line
		}
		y += line
	}
	return d.end()
}

const neededColour = "#4a90c0"
