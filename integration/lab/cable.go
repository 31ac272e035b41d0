package lab

import "fmt"

// Cable joins two segments.
type Cable struct {
	// From and To are its ends, devices in the switch namespace.
	From, To string

	ns *Namespace
}

// JoinSegments lays a cable from one segment to another, as between two
// Ethernet switches.
func (l *Lab) JoinSegments(from, to string) (*Cable, error) {
	l.mu.Lock()
	a, b := l.segments[from], l.segments[to]
	l.mu.Unlock()
	if a == nil || b == nil {
		return nil, fmt.Errorf("lab: join segments %s and %s: there are no such two", from, to)
	}
	c := &Cable{From: from + "-" + to, To: to + "-" + from, ns: l.Switch}
	if err := (veth{from: l.Switch, fromName: c.From, to: l.Switch, toName: c.To}).plug(); err != nil {
		return nil, err
	}
	if err := l.join(a, c.From, 0); err != nil {
		return nil, err
	}
	return c, l.join(b, c.To, 0)
}

// SetUp sets the cable's first end up or down, as plugging and pulling it would.
func (c *Cable) SetUp(up bool) error { return c.ns.setLink(c.From, up) }
