package conntrack

// Count is how many entries there are of something.
type Count struct {
	Open  int // connections
	Ended int // what is left of connections for a while
}

// Plus adds two counts.
func (c Count) Plus(d Count) Count { return Count{Open: c.Open + d.Open, Ended: c.Ended + d.Ended} }

// Tally counts the entries of a zone, line by line. The zero Tally has seen
// none.
type Tally struct {
	Total   Count
	ByMark  map[uint32]Count
	Unread  int   // lines that made no sense
	Problem error // of the first of them
}

// Line counts the entry of a line and returns it. ok is false if the line makes
// no sense, which is counted too.
func (t *Tally) Line(line []byte) (e Entry, ok bool) {
	e, err := Parse(line)
	if err != nil {
		t.Unread++
		if t.Problem == nil {
			t.Problem = err
		}
		return e, false
	}
	if t.ByMark == nil {
		t.ByMark = map[uint32]Count{}
	}
	c := t.ByMark[e.Mark]
	if e.Open() {
		c.Open++
		t.Total.Open++
	} else {
		c.Ended++
		t.Total.Ended++
	}
	t.ByMark[e.Mark] = c
	return e, true
}
