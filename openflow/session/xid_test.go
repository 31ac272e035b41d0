package session

import "testing"

// Transaction ids are consecutive within a call and never 0, also where they
// begin again.
func TestReserve(t *testing.T) {
	s := &Session{xid: 1<<32 - 3}
	for i, want := range []struct{ n, first uint32 }{{1, 1<<32 - 2}, {3, 1}, {2, 4}} {
		if got := s.reserve(want.n); got != want.first {
			t.Errorf("call %d: first id %d, want %d", i, got, want.first)
		}
	}
	s.xid = 1<<32 - 1
	if got := s.reserve(1); got != 1 {
		t.Errorf("after the last id: %d", got)
	}
}
