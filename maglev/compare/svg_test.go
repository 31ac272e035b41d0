package compare

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"io"
	"strings"
	"testing"

	"brlb/maglev"
)

// wellFormed parses a drawing.
func wellFormed(t *testing.T, svg []byte) {
	t.Helper()
	decoder := xml.NewDecoder(bytes.NewReader(svg))
	for {
		token, err := decoder.Token()
		if err == io.EOF {
			return
		}
		if err != nil {
			t.Fatalf("not well-formed: %v", err)
		}
		if start, ok := token.(xml.StartElement); ok {
			for _, a := range start.Attr {
				if strings.HasPrefix(a.Value, "-") || strings.Contains(a.Value, "NaN") {
					t.Errorf("<%s %s=%q>", start.Name.Local, a.Name.Local, a.Value)
				}
			}
		}
	}
}

// rectangles counts those in the path of a class.
func rectangles(svg []byte, class string) int {
	_, rest, found := bytes.Cut(svg, []byte(`<path class="`+class+`"`))
	if !found {
		return 0
	}
	path, _, _ := bytes.Cut(rest, []byte("/>"))
	return bytes.Count(path, []byte("M"))
}

func tables(t *testing.T, layout string, slots, members int) (before, after *maglev.Table) {
	t.Helper()
	l, err := maglev.ByName(layout)
	if err != nil {
		t.Fatal(err)
	}
	in := maglev.Input{Pool: 1, Slots: slots}
	for i := range members {
		in.Members = append(in.Members, maglev.Member{Key: fmt.Sprintf("10.0.0.%d:80", i), Weight: 1})
	}
	in.Anchor = in.Members
	before, after = new(maglev.Table), new(maglev.Table)
	if err := l.Build(in, before); err != nil {
		t.Fatal(err)
	}
	in.Members = in.Members[1:]
	if err := l.Build(in, after); err != nil {
		t.Fatal(err)
	}
	return before, after
}

func TestDrawSlots(t *testing.T) {
	for _, slots := range []int{2, 8, 1024, 2048, 65536} {
		before, after := tables(t, "v1", slots, min(60, slots))
		svg, err := DrawSlots("v1 <&> one of them leaves", before, after)
		if err != nil {
			t.Fatal(err)
		}
		wellFormed(t, svg)
		c := maglev.Compare(before, after)
		if got := rectangles(svg, "needed"); got != c.Needed {
			t.Errorf("%d slots: %d dots for %d needed moves", slots, got, c.Needed)
		}
		if got := rectangles(svg, "collateral"); got != c.Collateral {
			t.Errorf("%d slots: %d frames for %d collateral moves", slots, got, c.Collateral)
		}
		if !bytes.Contains(svg, []byte("v1 &lt;&amp;&gt; one")) {
			t.Error("the title is not escaped")
		}
	}
	before, _ := tables(t, "v1", 16, 4)
	if _, err := DrawSlots("", before, new(maglev.Table)); err == nil {
		t.Error("a table without slots is drawn")
	}
}

func TestDrawChart(t *testing.T) {
	o := options()
	o.Layouts = []string{"v1", "v2", "chash"}
	o.MinWeight, o.MaxWeight = 300, 301
	results, err := Run(o)
	if err != nil {
		t.Fatal(err)
	}
	svg := DrawChart("all layouts", results)
	wellFormed(t, svg)
	for _, want := range append(o.Layouts, "rolling", "weights out of range") {
		if !bytes.Contains(svg, []byte(want)) {
			t.Errorf("the chart does not speak of %q", want)
		}
	}
	wellFormed(t, DrawChart("nothing", nil))
}
