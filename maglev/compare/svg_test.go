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

// wellFormed parses a drawing and counts its elements by name.
func wellFormed(t *testing.T, svg []byte) map[string]int {
	t.Helper()
	names := make(map[string]int)
	decoder := xml.NewDecoder(bytes.NewReader(svg))
	for {
		token, err := decoder.Token()
		if err == io.EOF {
			return names
		}
		if err != nil {
			t.Fatalf("not well-formed: %v", err)
		}
		if start, ok := token.(xml.StartElement); ok {
			names[start.Name.Local]++
			for _, a := range start.Attr {
				if strings.HasPrefix(a.Value, "-") || strings.Contains(a.Value, "NaN") {
					t.Errorf("<%s %s=%q>", start.Name.Local, a.Name.Local, a.Value)
				}
			}
		}
	}
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
		names := wellFormed(t, svg)
		c := maglev.Compare(before, after)
		if names["circle"] != c.Needed+1 {
			t.Errorf("%d slots: %d dots for %d needed moves", slots, names["circle"], c.Needed)
		}
		if !bytes.Contains(svg, []byte("v1 &lt;&amp;&gt; one")) {
			t.Error("the title is not escaped")
		}
		if framed := bytes.Count(svg, []byte(`stroke="`+collateralMark)); framed != c.Collateral+1 {
			t.Errorf("%d slots: %d frames for %d collateral moves", slots, framed, c.Collateral)
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
