package health

import (
	"io"
	"net"
	"testing"
	"time"
)

func TestStallClock(t *testing.T) {
	start := time.Now()
	at := func(ms int) time.Time { return start.Add(time.Duration(ms) * time.Millisecond) }
	var c stallClock
	if got := c.stalled(at(1000)); got != 0 {
		t.Errorf("before the first tick: %v", got)
	}
	c.tick(at(0))
	c.tick(at(20))
	c.tick(at(45)) // 5ms late
	if got := c.stalled(at(50)); got != 5*time.Millisecond {
		t.Errorf("after a tick that was 5ms late: %v", got)
	}
	if got := c.stalled(at(365)); got != 305*time.Millisecond {
		t.Errorf("300ms into a stall: %v, want 305ms", got)
	}
	c.tick(at(365))
	if got := c.stalled(at(366)); got != 305*time.Millisecond {
		t.Errorf("after the stall: %v, want 305ms", got)
	}
}

func TestStallsExcuseSilence(t *testing.T) {
	const timeout = 400 * time.Millisecond
	for _, tc := range []struct {
		name          string
		code          Code
		took, stalled time.Duration
		want          Code
	}{
		{"silence", L4TOUT, timeout, 0, L4TOUT},
		{"silence with jitter", L7TOUT, timeout + 5*time.Millisecond, 20 * time.Millisecond, L7TOUT},
		{"silence while we stood still", L7TOUT, timeout, 150 * time.Millisecond, LATE},
		{"timer long overdue", L4TOUT, 90 * time.Second, 0, LATE},
		{"closed by the peer long after the timeout", L7RSP, 90 * time.Second, 90 * time.Second, LATE},
		{"refused while we stood still", L4CON, 200 * time.Millisecond, 150 * time.Millisecond, L4CON},
		{"a pass is a pass", L7OK, 90 * time.Second, 90 * time.Second, L7OK},
		{"a local error stays one", SOCKERR, 90 * time.Second, 90 * time.Second, SOCKERR},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := excuse(report{code: tc.code, detail: "no answer"}, tc.took, tc.stalled, timeout); got.code != tc.want {
				t.Errorf("got %v %q, want %v", got.code, got.detail, tc.want)
			}
		})
	}
}

func TestResultText(t *testing.T) {
	for _, tc := range []struct {
		r    Result
		want string
	}{
		{Result{Code: L7OK, Detail: "200", Duration: 1234 * time.Microsecond}, "L7OK 200 in 1.2ms"},
		{Result{Code: L4CON, Detail: "connection refused", Duration: 123456}, "L4CON connection refused in 120µs"},
		{Result{Code: L4TOUT, Detail: "no connection", Duration: 500123 * time.Microsecond}, "L4TOUT no connection in 500ms"},
		{Result{}, "INI not probed yet"},
	} {
		if got := tc.r.String(); got != tc.want {
			t.Errorf("%+v reads %q, want %q", tc.r, got, tc.want)
		}
	}
}

// TestAnswerReadLate lets the deadline pass before the probe looks at an answer
// that is there.
func TestAnswerReadLate(t *testing.T) {
	address := serve(t, func(c net.Conn) { io.WriteString(c, "hello"); untilClosed(c) })
	c, err := net.Dial("tcp", address.String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := io.ReadFull(c, make([]byte, 1)); err != nil { // the rest has come with it
		t.Fatal(err)
	}
	c.SetDeadline(time.Unix(1, 0))
	_, err = c.Read(make([]byte, 1))
	wantReport(t, silenceFailed(err, "answer", c), LATE, "did not read it in time")

	for n := 0; n < 3; { // now it is read, and nothing more comes
		c.SetDeadline(time.Time{})
		got, err := c.Read(make([]byte, 8))
		if err != nil {
			t.Fatal(err)
		}
		n += got
	}
	c.SetDeadline(time.Unix(1, 0))
	_, err = c.Read(make([]byte, 1))
	wantReport(t, silenceFailed(err, "answer", c), L7TOUT, "no complete answer")
}
