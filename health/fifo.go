package health

// fifo is a queue of watches.
type fifo struct {
	items []*watch
	head  int
}

func (q *fifo) len() int { return len(q.items) - q.head }

func (q *fifo) push(w *watch) {
	if q.head > len(q.items)/2 { // reuse the room of those that left
		q.items = append(q.items[:0], q.items[q.head:]...)
		q.head = 0
	}
	q.items = append(q.items, w)
}

func (q *fifo) pop() *watch {
	w := q.items[q.head]
	q.items[q.head] = nil
	q.head++
	return w
}

// dropRemoved takes out the watches that were removed.
func (q *fifo) dropRemoved() {
	kept := q.items[:0]
	for _, w := range q.items[q.head:] {
		if !w.removed {
			kept = append(kept, w)
		}
	}
	clear(q.items[len(kept):])
	q.items, q.head = kept, 0
}
