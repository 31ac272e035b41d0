package maglev

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestCompare(t *testing.T) {
	a, b, c := Member{Key: "a", Weight: 1}, Member{Key: "b", Weight: 1}, Member{Key: "c", Weight: 1}
	table := func(members []Member, owner ...uint16) *Table { return &Table{Members: members, Owner: owner} }
	four := table([]Member{a, b, c}, 0, 0, 1, 2)
	for _, tc := range []struct {
		name          string
		before, after *Table
		want          Change
	}{
		{"same", four, four, Change{Slots: 4, Members: []MemberChange{
			{"a", 2, 2, 0, 0, false}, {"b", 1, 1, 0, 0, false}, {"c", 1, 1, 0, 0, false}}}},
		{"a leaves", four, table([]Member{b, c}, 0, 1, 1, 0), Change{Slots: 4, Moved: 4, Needed: 2, Collateral: 2, LowerBound: 2,
			Members: []MemberChange{{"a", 2, 0, 0, 2, true}, {"b", 1, 2, 2, 1, false}, {"c", 1, 2, 2, 1, false}}}},
		{"c joins", table([]Member{a, b}, 0, 0, 1, 1), four, Change{Slots: 4, Moved: 1, Needed: 1, LowerBound: 1,
			Members: []MemberChange{{"a", 2, 2, 0, 0, false}, {"b", 2, 1, 0, 1, false}, {"c", 0, 1, 1, 0, true}}}},
		{"b is drained", four, table([]Member{a, {Key: "b", Weight: 0}, c}, 0, 0, 2, 2), Change{Slots: 4, Moved: 1, Needed: 1, LowerBound: 1,
			Members: []MemberChange{{"a", 2, 2, 0, 0, false}, {"b", 1, 0, 0, 1, true}, {"c", 1, 2, 1, 0, false}}}},
		{"no layout", four, new(Table), Change{Slots: 4, Moved: 4, Needed: 4, LowerBound: 4,
			Members: []MemberChange{{"a", 2, 0, 0, 2, true}, {"b", 1, 0, 0, 1, true}, {"c", 1, 0, 0, 1, true}}}},
		{"more slots", table([]Member{a, b}, 0, 1), table([]Member{a, b}, 0, 1, 0, 0), Change{Slots: 4, Moved: 1, Collateral: 1, LowerBound: 1,
			Members: []MemberChange{{"a", 2, 3, 1, 0, false}, {"b", 2, 1, 0, 1, false}}}},
		{"nothing", new(Table), new(Table), Change{Members: []MemberChange{}}},
	} {
		if diff := cmp.Diff(tc.want, Compare(tc.before, tc.after)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tc.name, diff)
		}
	}
}
