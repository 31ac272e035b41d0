package session

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestBackoffDoublesAndResets(t *testing.T) {
	b := Backoff{Min: time.Second, Max: 8 * time.Second, Healthy: time.Minute}
	steps := []struct{ lived, want time.Duration }{
		{0, 1 * time.Second},
		{0, 2 * time.Second},
		{59 * time.Second, 4 * time.Second}, // lived, but not long enough
		{0, 8 * time.Second},
		{0, 8 * time.Second},
		{time.Minute, 1 * time.Second},
		{0, 2 * time.Second},
	}
	for i, s := range steps {
		if got := b.Next(s.lived, 1); got != s.want {
			t.Errorf("step %d: waits %v, want %v", i, got, s.want)
		}
	}
}

func TestBackoffStaysInRange(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := Backoff{
			Min: time.Duration(rapid.Int64Range(0, int64(time.Hour)).Draw(t, "min")),
			Max: time.Duration(rapid.Int64Range(0, int64(time.Hour)).Draw(t, "max")),
		}
		least := orDefault(b.Min, 100*time.Millisecond)
		most := max(orDefault(b.Max, 5*time.Second), least)
		for range rapid.IntRange(1, 80).Draw(t, "attempts") {
			got := b.Next(0, rapid.Float64().Draw(t, "jitter"))
			if got < least/2 || got > most {
				t.Fatalf("waits %v, outside [%v, %v]", got, least/2, most)
			}
		}
	})
}
