package maglev

import (
	"errors"
	"fmt"
)

// ErrWeights means that a layout cannot work with the members' weights.
var ErrWeights = errors.New("weights out of range")

// CheckWeights says whether a layout, by its name, can work with the members'
// weights. Build checks the same. The error is [ErrWeights] and says what the
// limit is.
func CheckWeights(layout string, members []Member) error {
	most, whose := uint64(0), ""
	switch layout {
	case "straw2", "crush":
		most, whose = maxCrushWeight, "CRUSH"
	case "ring":
		most, whose = maxRingPoints/ringPoints, "a ring"
	case "chash":
		most, whose = maxRingPoints/chashPoints, "chash"
		for i := range members {
			if m := &members[i]; m.Weight > chashMaxWeight {
				return fmt.Errorf("%w: chash takes weights up to %d, but %.80s has %d: divide all by a common factor",
					ErrWeights, chashMaxWeight, m.Key, m.Weight)
			}
		}
	default:
		return nil
	}
	if total := totalWeight(members); total > most {
		return fmt.Errorf("%w: %s takes a sum of weights up to %d, but theirs is %d: divide them by a common factor",
			ErrWeights, whose, most, total)
	}
	return nil
}
