package maglev

// Change tells what separates two tables of a pool.
type Change struct {
	// Slots is the number of slots compared: M, or the larger M of the two.
	Slots int

	// Moved is the number of slots whose owner differs: Needed + Collateral.
	Moved int

	// Needed counts moves from or to a member that changed: one that left,
	// joined or got another weight (or domain).
	Needed int

	// Collateral counts moves between members that did not change.
	Collateral int

	// LowerBound is the least number of moves that leads from the old counts
	// to the new ones.
	LowerBound int

	// Members lists every member of either table in key order.
	Members []MemberChange
}

// MemberChange is one member's part of a [Change].
type MemberChange struct {
	Key string

	// Before and After count the member's slots in the two tables.
	Before, After int

	// Gained and Lost count the slots that moved to it and away from it.
	Gained, Lost int

	// Changed says that the member left, joined or got another weight or
	// domain.
	Changed bool
}

// Compare tells what separates two tables. Members are matched by key. A table
// without slots, which stands for "no layout", is compared as slots that
// nobody owns.
//
// Tables of different sizes can be compared too: both sizes are powers of two
// and a connection's slot is its hash mod M, so slot s of the larger table
// receives connections that slot s mod M of the smaller one received.
func Compare(before, after *Table) Change {
	slots := max(before.Slots(), after.Slots())
	c := Change{Slots: slots}
	fromIndex, toIndex := c.match(before, after)
	nobody := len(c.Members) - 1
	for slot := range slots {
		from, to := nobody, nobody
		if m := before.Slots(); m > 0 {
			if owner := before.Owner[slot&(m-1)]; owner != NoOwner {
				from = fromIndex[owner]
			}
		}
		if m := after.Slots(); m > 0 {
			if owner := after.Owner[slot&(m-1)]; owner != NoOwner {
				to = toIndex[owner]
			}
		}
		c.Members[from].Before++
		c.Members[to].After++
		if from == to {
			continue
		}
		c.Members[from].Lost++
		c.Members[to].Gained++
		c.Moved++
		if c.Members[from].Changed || c.Members[to].Changed {
			c.Needed++
		} else {
			c.Collateral++
		}
	}
	for i := range c.Members {
		c.LowerBound += max(0, c.Members[i].After-c.Members[i].Before)
	}
	c.Members = c.Members[:nobody]
	return c
}

// match fills in Members, followed by an entry that stands for nobody, and
// returns where each table's members are in it.
func (c *Change) match(before, after *Table) (fromIndex, toIndex []int) {
	old, new := before.Members, after.Members
	fromIndex = make([]int, 0, len(old))
	toIndex = make([]int, 0, len(new))
	for len(old) > 0 || len(new) > 0 {
		index := len(c.Members)
		switch {
		case len(new) == 0 || len(old) > 0 && old[0].Key < new[0].Key:
			c.Members = append(c.Members, MemberChange{Key: old[0].Key, Changed: true})
			fromIndex = append(fromIndex, index)
			old = old[1:]
		case len(old) == 0 || new[0].Key < old[0].Key:
			c.Members = append(c.Members, MemberChange{Key: new[0].Key, Changed: true})
			toIndex = append(toIndex, index)
			new = new[1:]
		default:
			c.Members = append(c.Members, MemberChange{Key: old[0].Key, Changed: old[0] != new[0]})
			fromIndex = append(fromIndex, index)
			toIndex = append(toIndex, index)
			old, new = old[1:], new[1:]
		}
	}
	c.Members = append(c.Members, MemberChange{Changed: true})
	return fromIndex, toIndex
}
