package cli

import (
	"fmt"
	"time"
)

// ago says how long ago something happened in at most two units: 12s, 4m10s,
// 2h05m, 3d02h, 120d. It is "-" for the zero time.
func ago(t, now time.Time) string {
	if t.IsZero() {
		return "-"
	}
	d := max(now.Sub(t), 0).Round(time.Second)
	seconds, minutes, hours := int(d.Seconds()), int(d.Minutes()), int(d.Hours())
	switch {
	case minutes == 0:
		return fmt.Sprintf("%ds", seconds)
	case hours == 0:
		return fmt.Sprintf("%dm%02ds", minutes, seconds%60)
	case hours < 24:
		return fmt.Sprintf("%dh%02dm", hours, minutes%60)
	case hours < 100*24:
		return fmt.Sprintf("%dd%02dh", hours/24, hours%24)
	default:
		return fmt.Sprintf("%dd", hours/24)
	}
}

// shortDuration is the duration of a probe in two or three significant digits.
func shortDuration(seconds float64) string {
	d := time.Duration(seconds * float64(time.Second))
	switch {
	case d >= 100*time.Millisecond:
		d = d.Round(time.Millisecond)
	case d >= time.Millisecond:
		d = d.Round(100 * time.Microsecond)
	default:
		d = d.Round(10 * time.Microsecond)
	}
	return d.String()
}
