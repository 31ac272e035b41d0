package pipeline

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"brlb/controller/state"
	"brlb/openflow"
)

// pools is a configuration of n pools with four members each.
func pools(n, slots int) string {
	var b strings.Builder
	b.WriteString("pools:\n")
	for i := range n {
		fmt.Fprintf(&b, "  p%d: {id: %d, slots: %d, members: {", i, i+1, slots)
		for m := range 4 {
			fmt.Fprintf(&b, "m%d: 10.%d.%d.%d:80, ", m, 10+m, i/256, i%256)
		}
		b.WriteString("}}\n")
	}
	b.WriteString("services:\n")
	for i := range n {
		fmt.Fprintf(&b, "  s%d: {address: 10.1.%d.%d, ports: [80/tcp], pool: p%d}\n", i, i/256, i%256, i)
	}
	return b.String()
}

// One of the four members of one pool goes down and comes back: from the facts
// to what must be sent.
func BenchmarkOneMemberChanges(b *testing.B) {
	for _, n := range []int{1, 200} {
		s := serving(b, pools(n, 1024))
		up := s.Snapshot()
		member := byTCP("10.10.0.0:80")
		judge(s, state.Down, member)
		down := s.Snapshot()
		r := NewRenderer()
		installed, _, err := r.Render(up)
		if err != nil {
			b.Fatal(err)
		}
		b.Run(fmt.Sprintf("pools=%d/render+diff", n), func(b *testing.B) {
			b.ReportAllocs()
			rows := 0
			for i := range b.N {
				snap := down
				if i%2 == 1 {
					snap = up
				}
				desired, held, err := r.Render(snap)
				if err != nil {
					b.Fatal(err)
				}
				plan := Diff(installed, desired, held)
				installed, rows = plan.Result, len(plan.Mods)
			}
			b.ReportMetric(float64(rows), "rows")
		})
		b.Run(fmt.Sprintf("pools=%d/snapshot+render+diff", n), func(b *testing.B) {
			b.ReportAllocs()
			for i := range b.N {
				judge(s, []state.Health{state.Up, state.Down}[i%2], member)
				desired, held, err := r.Render(s.Snapshot())
				if err != nil {
					b.Fatal(err)
				}
				installed = Diff(installed, desired, held).Result
			}
		})
	}
}

func BenchmarkNothingChanges(b *testing.B) {
	for _, n := range []int{1, 200} {
		s := serving(b, pools(n, 1024))
		s.Snapshot()
		b.Run(fmt.Sprintf("pools=%d/snapshot", n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				s.Snapshot()
			}
		})
	}
}

func BenchmarkFullTable(b *testing.B) {
	for _, slots := range []int{1024, 65536} {
		snap := serving(b, pools(1, slots)).Snapshot()
		b.Run(fmt.Sprintf("slots=%d", slots), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				desired, held, err := NewRenderer().Render(snap)
				if err != nil {
					b.Fatal(err)
				}
				Diff(Set{}, desired, held)
			}
		})
	}
}

// A brlb that starts reads what the switch holds, and finds nothing to change.
func BenchmarkAdopt(b *testing.B) {
	desired, _, err := NewRenderer().Render(serving(b, pools(200, 1024)).Snapshot())
	if err != nil {
		b.Fatal(err)
	}
	var stats []openflow.FlowStats
	for _, group := range desired { // a switch has them in no order
		for _, i := range rand.Perm(len(group.Rows)) {
			f := group.Rows[i].Mod
			stats = append(stats, openflow.FlowStats{
				Table: f.Table, Priority: f.Priority, Cookie: f.Cookie, Flags: f.Flags, Match: f.Match, Instructions: f.Instructions,
			})
		}
	}
	b.ReportAllocs()
	for b.Loop() {
		installed, err := FromSwitch(stats)
		if err != nil {
			b.Fatal(err)
		}
		Members(installed)
		Fronts(installed)
		if plan := Diff(installed, desired, func(GroupID) bool { return false }); len(plan.Mods) > 0 {
			b.Fatalf("%d flows differ", len(plan.Mods))
		}
	}
	b.ReportMetric(float64(len(stats)), "rows")
}
