package health

// lanes decide which attempts may run now. A cap bounds how many run at once;
// attempts beyond it wait their turn. Suspects, whose last result was a
// failure, may hold no more than half of the places: they tend to use up their
// whole timeout, and must not keep others from being probed on time.
type lanes struct {
	max     int // attempts at once, at least 2
	running [2]int
	waiting [2]fifo
}

type lane int

const (
	trusted lane = iota
	suspect
)

func laneOf(w *watch) lane {
	if w.suspect() {
		return suspect
	}
	return trusted
}

// enter takes a place in l and reports whether there was one.
func (s *lanes) enter(l lane) bool {
	if s.running[trusted]+s.running[suspect] >= s.max || l == suspect && s.running[suspect] >= s.max/2 {
		return false
	}
	s.running[l]++
	return true
}

func (s *lanes) leave(l lane) { s.running[l]-- }

// wait queues w, which found no place in l.
func (s *lanes) wait(l lane, w *watch) { s.waiting[l].push(w) }

// admit returns a waiting watch for which there is a place now, and takes the
// place. It returns nil if there is none.
func (s *lanes) admit() (*watch, lane) {
	for l := range s.waiting {
		if s.waiting[l].len() > 0 && s.enter(lane(l)) {
			return s.waiting[l].pop(), lane(l)
		}
	}
	return nil, 0
}
