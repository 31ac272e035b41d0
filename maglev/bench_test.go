package maglev

import (
	"cmp"
	"fmt"
	"slices"
	"testing"
)

// benchmarkBuild builds the same table again and again, as a controller does:
// members in key order, memory reused.
func benchmarkBuild(b *testing.B, name string, slots, n, maxWeight int) {
	b.Run(fmt.Sprintf("M=%d/N=%d/w=%d", slots, n, maxWeight), func(b *testing.B) {
		layout, err := ByName(name)
		if err != nil {
			b.Fatal(err)
		}
		in := sortedInput(slots, n, maxWeight)
		var table Table
		if err := layout.Build(in, &table); err != nil {
			b.Fatal(err)
		}
		b.ReportAllocs()
		for b.Loop() {
			if err := layout.Build(in, &table); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func BenchmarkV1(b *testing.B) {
	for _, slots := range []int{1024, 65536} {
		for _, n := range []int{4, 100, 1000} {
			benchmarkBuild(b, "v1", slots, n, 1)
		}
	}
	benchmarkBuild(b, "v1", 1024, 100, 100)
}

// BenchmarkV2Base builds the base table anew each time.
func BenchmarkV2Base(b *testing.B) {
	for _, c := range []struct{ slots, n, maxWeight int }{
		{1024, 4, 1}, {1024, 100, 1}, {1024, 1000, 1},
		{1024, 4, 100}, {1024, 100, 100}, {1024, 1000, 100},
		{65536, 4, 1}, {65536, 100, 1}, {65536, 1000, 1},
	} {
		b.Run(fmt.Sprintf("M=%d/N=%d/w=%d", c.slots, c.n, c.maxWeight), func(b *testing.B) {
			layout := new(v2)
			in := sortedInput(c.slots, c.n, c.maxWeight)
			b.ReportAllocs()
			for b.Loop() {
				layout.base.Pool = 0 // forgets the base
				if err := layout.buildBase(in, in.Members); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkV2Failure builds the table after one failure. "repair" is the
// repair alone, as a share of the whole build with a known anchor.
func BenchmarkV2Failure(b *testing.B) {
	for _, slots := range []int{1024, 65536} {
		for _, n := range []int{4, 100, 1000} {
			layout := new(v2)
			in := sortedInput(slots, n, 1)
			in.Anchor = in.Members
			in.Members = slices.Delete(slices.Clone(in.Members), n/2, n/2+1)
			var table Table
			if err := layout.Build(in, &table); err != nil {
				b.Fatal(err)
			}
			b.Run(fmt.Sprintf("build/M=%d/N=%d", slots, n), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					if err := layout.Build(in, &table); err != nil {
						b.Fatal(err)
					}
				}
			})
			b.Run(fmt.Sprintf("repair/M=%d/N=%d", slots, n), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					layout.repairer.repair(table.Owner, layout.base.Owner, layout.member, 0)
				}
			})
		}
	}
}

func sortedInput(slots, n, maxWeight int) Input {
	in := Input{Pool: 1, Slots: slots, Members: testMembers(n, maxWeight)}
	slices.SortFunc(in.Members, func(a, b Member) int { return cmp.Compare(a.Key, b.Key) })
	return in
}
