package maglev

import (
	"fmt"
	"testing"
)

func TestPermutationVisitsEverySlot(t *testing.T) {
	for slots := MinSlots; slots <= MaxSlots; slots *= 2 {
		bits := newSlotBits(slots)
		for i := range 20 {
			words := seed(7, fmt.Sprintf("10.0.0.%d:80", i))
			var order permutation
			order.draw(&words)
			inverse := order.invert()
			seen := make([]bool, slots)
			for rank := range uint32(slots) {
				slot := order.at(rank, bits)
				if seen[slot] {
					t.Fatalf("%d slots: slot %d is visited twice", slots, slot)
				}
				seen[slot] = true
				if got := inverse.rank(slot, bits); got != rank {
					t.Fatalf("%d slots: rank(at(%d)) = %d", slots, rank, got)
				}
			}
		}
	}
}

func TestSeedReadsEveryByte(t *testing.T) {
	seen := make(map[splitmix]string)
	for n := range 20 {
		key := make([]byte, n)
		for i := range key {
			key[i] = 'a'
		}
		variants := []string{string(key)}
		for i := range key {
			key[i] = 'b'
			variants = append(variants, string(key))
			key[i] = 'a'
		}
		for _, v := range append(variants, string(key)+"\x00") {
			s := seed(1, v)
			if other, ok := seen[s]; ok && other != v {
				t.Errorf("%q and %q have the same seed", v, other)
			}
			seen[s] = v
		}
	}
	if seed(1, "a") == seed(2, "a") {
		t.Error("the pool does not matter")
	}
}
