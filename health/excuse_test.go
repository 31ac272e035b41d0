package health

import (
	"context"
	"net"
	"net/netip"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// A failure that the caller takes upon itself counts against nobody.
func TestCallerExcusesFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var ours atomic.Bool
		ours.Store(true)
		p := New(Options{
			Dial: func(context.Context, string, string) (net.Conn, error) { return nil, syscall.ECONNREFUSED },
			Excuse: func(start, end time.Time, code Code) string {
				if ours.Load() && !end.Before(start) && code == L4CON {
					return "the cable is out"
				}
				return ""
			},
		})
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { p.Run(ctx); close(done) }()
		target := Target{Address: netip.MustParseAddrPort("192.0.2.1:80"), Check: Check{Fall: 2}.WithDefaults()}
		if err := p.Set([]Target{target}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		if s, _ := p.Snapshot(target); s.State != Unknown || s.Last.Code != SOCKERR || !strings.Contains(s.Last.Detail, "the cable is out") {
			t.Errorf("while excused: %v, %v", s.State, s.Last)
		}
		ours.Store(false)
		time.Sleep(time.Minute)
		if s, _ := p.Snapshot(target); s.State != Down {
			t.Errorf("afterwards: %v, %v", s.State, s.Last)
		}
		cancel()
		<-done
	})
}
