package maglev

// sticky repairs the previous table: every step moves exactly the lower bound,
// from whatever table it starts. In return the table depends on all that
// happened before, so two nodes agree only if one of them hands its table to
// the other. Without a previous table it builds v2's.
//
// The quotas and the order in which members give up and get slots are v2's.
// There is nothing that slack could spare.
type sticky struct {
	v2     v2
	before Table
}

func (*sticky) Name() string    { return "sticky" }
func (*sticky) Version() string { return "sticky-1" }

func (l *sticky) Build(in Input, t *Table) error {
	in.Slack = 0
	if in.Previous == nil || in.Previous.Slots() == 0 {
		err := l.v2.Build(in, t)
		if err == nil {
			t.Version = l.Version()
		}
		return err
	}
	// A copy, for t may be the previous table itself.
	l.before.Members = append(l.before.Members[:0], in.Previous.Members...)
	l.before.Owner = append(l.before.Owner[:0], in.Previous.Owner...)
	members, err := l.v2.sorter.start(in, l.Version(), t)
	if err != nil {
		return err
	}
	l.v2.member = match(l.v2.member[:0], l.before.Members, members)
	l.v2.repairer.begin(in, members)
	// A table with another number of slots is read as Compare reads it: by
	// where the connections of a slot went.
	l.v2.repairer.repair(t.Owner, l.before.Owner, l.v2.member, 0)
	return nil
}
