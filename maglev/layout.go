package maglev

import (
	"fmt"
	"strings"
)

// A Layout turns an [Input] into a [Table].
//
// A Layout owns scratch memory that Build reuses, so one value serves one
// goroutine at a time. It holds no state that could influence a result.
type Layout interface {
	// Name is what a configuration calls the layout, for example "v1".
	Name() string

	// Version identifies the exact function. It is part of every digest. A
	// layout whose output had to change would get a new version.
	Version() string

	// Build computes the table of in and stores it in t, reusing t's memory;
	// a second build of the same size allocates nothing. Members listed in
	// key order spare Build the sorting. On error t holds no slots.
	//
	// Errors: [ErrNoMembers] when nobody has a weight above 0,
	// [*TooManyMembersError], [*DuplicateKeyError], [*SlotsError], and
	// [ErrEmptyKey].
	Build(in Input, t *Table) error
}

// Names lists the layouts that [ByName] knows.
func Names() []string {
	return []string{"v1", "v2"}
}

// ByName returns a new layout with its own scratch memory.
func ByName(name string) (Layout, error) {
	switch name {
	case "v1":
		return new(v1), nil
	case "v2":
		return new(v2), nil
	}
	return nil, fmt.Errorf("unknown layout %.40q: choose one of %s", name, strings.Join(Names(), ", "))
}
