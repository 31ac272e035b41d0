package crush

// choice is one choose step below one bucket.
type choice struct {
	*placement
	tries    tries
	kind     int32 // the type of items wanted
	replicas int
	leaf     bool    // whether a device is wanted below each item
	out      []int32 // the items chosen
	leaves   []int32 // the devices below them, if leaf
}

// outcome is how one descent from a bucket to an item ended.
type outcome uint8

const (
	accepted outcome = iota
	rejected         // it is out, or nothing is below it
	collided         // it is chosen already
	impossible
)

// firstn chooses up to replicas items, filling out from position on, at most
// room of them, and returns the position behind the last. Later replicas move
// up when one cannot be placed.
func (c *choice) firstn(b *node, position, room, parentR int) int {
	replica := position
	if c.tries.stable {
		replica = 0
	}
	for ; replica < c.replicas && room > 0; replica++ {
		if item, ok := c.firstnOne(b, position, room, replica+parentR); ok {
			c.out[position] = item
			position++
			room--
		}
	}
	return position
}

// firstnOne tries to choose one item, starting with attempt r.
func (c *choice) firstnOne(b *node, position, room, r int) (int32, bool) {
	failed := 0
	for {
		in, failedHere := b, 0
	descent:
		for {
			item := None
			result := rejected
			if len(in.Items) > 0 {
				usePerm := c.tries.fallback > 0 && failedHere >= len(in.Items)/2 && failedHere > c.tries.fallback
				if usePerm {
					item = c.choosePermuted(in, c.x, uint32(r+failed))
				} else {
					item = c.choose(in, c.x, uint32(r+failed), position)
				}
				if c.typeOf(item) != c.kind {
					if in = c.bucket(item); in == nil {
						return None, false
					}
					continue
				}
				result = c.tryFirstn(item, position, room, r+failed)
			}
			if result == accepted {
				return item, true
			}
			failed++
			failedHere++
			switch {
			case result == collided && failedHere <= c.tries.local:
			case c.tries.fallback > 0 && failedHere <= len(in.Items)+c.tries.fallback:
			case failed < c.tries.total:
				break descent
			default:
				return None, false
			}
		}
	}
}

// tryFirstn decides about an item of the right type.
func (c *choice) tryFirstn(item int32, position, room, r int) outcome {
	for _, other := range c.out[:position] {
		if other == item {
			return collided
		}
	}
	if c.leaf {
		if item >= 0 {
			c.leaves[position] = item
		} else if !c.leafFirstn(c.bucket(item), position, room, r) {
			return rejected
		}
	}
	if item >= 0 && c.isOut(item) {
		return rejected
	}
	return accepted
}

// leafFirstn chooses a device below b.
func (c *choice) leafFirstn(b *node, position, room, r int) bool {
	below := *c
	below.kind, below.leaf = 0, false
	below.out, below.leaves = c.leaves, nil
	below.tries.total = c.tries.leaf
	below.replicas = position + 1
	if c.tries.stable {
		below.replicas = 1
	}
	subR := 0
	if c.tries.varyR > 0 {
		subR = r >> (c.tries.varyR - 1)
	}
	return below.firstn(b, position, room, subR) > position
}

// indep chooses an item for each of the left positions from the given one on.
// Each position is tried for itself, so none moves because another cannot be
// placed; it then stays None.
func (c *choice) indep(b *node, position, left, parentR int) {
	end := position + left
	for i := position; i < end; i++ {
		c.out[i] = undefined
		if c.leaves != nil {
			c.leaves[i] = undefined
		}
	}
	for failed := 0; left > 0 && failed < c.tries.total; failed++ {
		for i := position; i < end; i++ {
			if c.out[i] != undefined {
				continue
			}
			switch item, result := c.indepOne(b, position, end, i, parentR, failed); result {
			case accepted:
				c.out[i] = item
				left--
			case impossible:
				c.out[i] = None
				if c.leaves != nil {
					c.leaves[i] = None
				}
				left--
			}
		}
	}
	for i := position; i < end; i++ {
		if c.out[i] == undefined {
			c.out[i] = None
		}
		if c.leaves != nil && c.leaves[i] == undefined {
			c.leaves[i] = None
		}
	}
}

// indepOne tries once to choose an item for position i.
func (c *choice) indepOne(in *node, position, end, i, parentR, failed int) (int32, outcome) {
	for {
		if len(in.Items) == 0 {
			return None, rejected
		}
		r := i + parentR + c.replicas*failed
		if in.Algorithm == Uniform && len(in.Items)%c.replicas == 0 {
			// Else a permutation would offer the same items again.
			r += failed
		}
		item := c.choose(in, c.x, uint32(r), position)
		if c.typeOf(item) != c.kind {
			if in = c.bucket(item); in == nil {
				return None, impossible
			}
			continue
		}
		for _, other := range c.out[position:end] {
			if other == item {
				return None, collided
			}
		}
		if c.leaf {
			if item >= 0 {
				c.leaves[i] = item
			} else if !c.leafIndep(c.bucket(item), i, r) {
				return None, rejected
			}
		}
		if item >= 0 && c.isOut(item) {
			return None, rejected
		}
		return item, accepted
	}
}

// leafIndep chooses a device below b for position i.
func (c *choice) leafIndep(b *node, i, r int) bool {
	below := *c
	below.kind, below.leaf = 0, false
	below.out, below.leaves = c.leaves, nil
	below.tries.total = c.tries.leaf
	below.indep(b, i, 1, r)
	return c.leaves[i] != None
}
