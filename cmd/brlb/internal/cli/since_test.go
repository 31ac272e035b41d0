package cli

import (
	"testing"
	"time"
)

func TestAgo(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for _, test := range []struct {
		d    time.Duration
		want string
	}{
		{0, "0s"},
		{-time.Hour, "0s"},
		{499 * time.Millisecond, "0s"},
		{59600 * time.Millisecond, "1m00s"},
		{250 * time.Second, "4m10s"},
		{2*time.Hour + 5*time.Minute, "2h05m"},
		{74 * time.Hour, "3d02h"},
		{120 * 24 * time.Hour, "120d"},
	} {
		if got := ago(now.Add(-test.d), now); got != test.want {
			t.Errorf("%v: %s, want %s", test.d, got, test.want)
		}
	}
	if got := ago(time.Time{}, now); got != "-" {
		t.Errorf("the zero time: %s", got)
	}
}

func TestShortDuration(t *testing.T) {
	for seconds, want := range map[float64]string{0.0012345: "1.2ms", 0.50149: "501ms", 0.000123: "120µs", 1.5: "1.5s"} {
		if got := shortDuration(seconds); got != want {
			t.Errorf("%v: %s, want %s", seconds, got, want)
		}
	}
}
