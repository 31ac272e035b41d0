package controller

import (
	"sync"

	"brlb/controller/api"
	"brlb/controller/state"
)

// eventsKept is how many events are kept for people to read.
const eventsKept = 1000

// eventLog keeps the newest events.
type eventLog struct {
	mu     sync.Mutex
	events []api.Event
	seq    uint64
}

func newEventLog() *eventLog { return &eventLog{} }

func (l *eventLog) add(e state.Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.seq++
	l.events = append(l.events, api.Event{Seq: l.seq, Time: e.Time, Pool: e.Pool, Member: e.Member, Text: e.Text})
	if len(l.events) > 2*eventsKept {
		l.events = append([]api.Event(nil), l.events[len(l.events)-eventsKept:]...)
	}
}

// after returns the kept events with a greater number, oldest first.
func (l *eventLog) after(seq uint64) []api.Event {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := range l.events {
		if l.events[i].Seq > seq {
			return append([]api.Event(nil), l.events[i:]...)
		}
	}
	return nil
}
