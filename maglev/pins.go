package maglev

import "fmt"

// Pin fixes a slot to a member, whatever the layout says, as an entry of
// Ceph's pg_upmap does. It has no effect while the member is not among the
// input's members or has weight 0.
type Pin struct {
	Slot int
	Key  string
}

// PinError means that a pin names a slot that the pool does not have, or that
// another pin names too.
type PinError struct {
	Pool  uint16
	Slot  int
	Slots int // of the pool
	Twice bool
}

func (e *PinError) Error() string {
	if e.Twice {
		return fmt.Sprintf("pool %d pins slot %d twice: keep one of the two", e.Pool, e.Slot)
	}
	return fmt.Sprintf("pool %d pins slot %d: its slots are 0 to %d", e.Pool, e.Slot, e.Slots-1)
}

// pinning is a layout with the input's pins applied after it.
type pinning struct {
	Layout
	pinned []bool // by slot
}

func (l *pinning) Build(in Input, t *Table) error {
	if err := l.Layout.Build(in, t); err != nil || len(in.Pins) == 0 {
		return err
	}
	l.pinned = append(l.pinned[:0], make([]bool, in.Slots)...)
	for _, pin := range in.Pins {
		outside := pin.Slot < 0 || pin.Slot >= in.Slots
		if outside || l.pinned[pin.Slot] {
			t.reset()
			return &PinError{Pool: in.Pool, Slot: pin.Slot, Slots: in.Slots, Twice: !outside}
		}
		l.pinned[pin.Slot] = true
		if i, found := t.find(pin.Key); found && t.Members[i].Weight > 0 {
			t.Owner[pin.Slot] = uint16(i)
		}
	}
	return nil
}
