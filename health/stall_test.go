package health

import (
	"io"
	"net"
	"testing"
	"testing/synctest"
	"time"
)

// Time is the test's: the clock's own ticks are an hour away.
func TestStallClock(t *testing.T) {
	start := time.Now()
	at := func(minutes int) time.Time { return start.Add(time.Duration(minutes) * time.Minute) }
	c := stallClock{every: time.Hour}
	defer func() { c.timer.Stop() }()
	first := c.begin(at(0))
	c.tick(at(60))
	c.tick(at(125))
	second := c.begin(at(130))
	if got := c.end(at(140), first); got != 5*time.Minute {
		t.Errorf("after a tick that was 5m late: %v", got)
	}
	if got := c.end(at(215), second); got != 30*time.Minute {
		t.Errorf("30m into a stall: %v", got)
	}
	third := c.begin(at(1000))
	if got := c.end(at(1010), third); got != 0 {
		t.Errorf("stood still while no attempt was under way: %v", got)
	}
}

// An attempt that is shorter than a tick wakes nobody, and a longer one as often
// as there are ticks in it.
func TestStallClockSleeps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := stallClock{every: stallTick}
		for _, took := range []time.Duration{stallTick / 2, 10 * stallTick} {
			before := c.begin(time.Now())
			time.Sleep(took)
			if got := c.end(time.Now(), before); got != 0 {
				t.Errorf("stalled for %v", got)
			}
			if c.timer.Stop() {
				t.Errorf("after an attempt of %v the clock still ticks", took)
			}
		}
		c.running.Wait()
	})
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
