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
		in := Input{Pool: 1, Slots: slots, Members: testMembers(n, maxWeight)}
		slices.SortFunc(in.Members, func(a, b Member) int { return cmp.Compare(a.Key, b.Key) })
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
