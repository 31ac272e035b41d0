package maglev

import (
	"math/big"
	"testing"
)

// Checks every table against the same series carried with 200 bits.
func TestArrivalsAreExact(t *testing.T) {
	const precision = 200
	one := new(big.Int).Lsh(big.NewInt(1), precision)
	for slots := MinSlots; slots <= MaxSlots; slots *= 2 {
		got := arrivals(nil, slots)
		if len(got) != slots+1 || got[0] != 0 {
			t.Fatalf("%d slots: %d entries, the first %d", slots, len(got), got[0])
		}
		sum := new(big.Int)
		d, n := int64(4*slots-1), int64(2*slots-1)
		bad := 0
		for r := range slots {
			// sum += 2 artanh(1/d)
			power := new(big.Int).Div(new(big.Int).Lsh(one, 1), big.NewInt(d))
			for i := int64(1); power.Sign() > 0; i += 2 {
				sum.Add(sum, new(big.Int).Div(power, big.NewInt(i)))
				power.Div(power, big.NewInt(d*d))
			}
			want := new(big.Int).Rsh(sum, precision-arrivalBits).Uint64()
			if uint64(got[r+1]) != want {
				bad++
			}
			if got[r+1] <= got[r] {
				t.Fatalf("%d slots: E[%d] = %d after %d", slots, r, got[r+1], got[r])
			}
			d, n = n-1, n-2
		}
		if bad > 0 {
			t.Errorf("%d slots: %d entries differ from the exact value rounded down", slots, bad)
		}
	}
}
