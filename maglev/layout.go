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

// Names lists the layouts that [ByName] knows, the default for new pools
// first.
func Names() []string {
	return []string{"v2", "v1", "sticky", "rendezvous", "straw2", "ring", "chash", "crush"}
}

// ByName returns a new layout with its own scratch memory.
func ByName(name string) (Layout, error) {
	var layout Layout
	switch name {
	case "v1":
		layout = new(v1)
	case "v2":
		layout = new(v2)
	case "sticky":
		layout = new(sticky)
	case "rendezvous":
		layout = new(rendezvous)
	case "straw2":
		layout = new(straw2)
	case "ring":
		layout = new(ring)
	case "chash":
		layout = new(chash)
	case "crush":
		layout = new(hierarchy)
	default:
		return nil, fmt.Errorf("unknown layout %.40q: choose one of %s", name, strings.Join(Names(), ", "))
	}
	return &pinning{Layout: layout}, nil
}
