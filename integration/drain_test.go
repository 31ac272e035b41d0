package integration

import (
	"errors"
	"net"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"brlb/controller/api"
	"brlb/integration/lab"
	"brlb/integration/stand"
)

// TestDrainDeadlineUnderLoad: a drain ends when it should, however busy the
// member's TCP and UDP clients are: it gets nothing new from its beginning, what
// is open then goes on until its end, and no longer.
func TestDrainDeadlineUnderLoad(t *testing.T) {
	onUserspace(t, func(t *testing.T, s *stand.Stand) {
		reload(t, s, strings.Replace(s.DefaultConfig(), "ports: [80/tcp]", "ports: [80/tcp, 80/udp]", 1))
		busy := s.Client.StartLoad(t.Context(), stand.VIP, lab.LoadOptions{Workers: 32, KeepAlive: true, Pause: 2 * time.Millisecond, Timeout: 20 * time.Second})
		askers := askEach(t, s, 32)
		for busy.Report().PerServer["be1"] == 0 || answered(askers)["be1"] == 0 {
			time.Sleep(10 * time.Millisecond)
		}
		const deadline = 3 * time.Second
		c, err := s.API.Change(t.Context(), "drain", api.ChangeRequest{Member: "be1", Who: "ann", Why: "a new disk", DeadlineSeconds: deadline.Seconds(), WaitSeconds: patience.Seconds()})
		must(t, err)
		if !c.Confirmed {
			t.Fatalf("not confirmed: %+v", c)
		}
		until := member(t, s, 0).AdminUntil
		if left := time.Until(until); left > deadline {
			t.Errorf("the drain ends in %v, and %v was asked for", left, deadline)
		}
		_, err = s.Lab.Appctl("revalidator/wait")
		must(t, err)
		fresh := s.Client.StartLoad(t.Context(), stand.VIP, lab.LoadOptions{Workers: 4, Pause: 2 * time.Millisecond, Timeout: 20 * time.Second})
		freshAskers := askEach(t, s, 8)

		await(t, s, "be1 disabled", func(st *api.Status) bool {
			m := st.Pools[0].Members[0]
			return m.State == "disabled" && m.AdminWho == "ann" && strings.Contains(m.Reason, "its drain has ended") && st.InSync
		})
		if early := time.Until(until); early > 0 {
			t.Errorf("the drain has ended %v too early", early)
		}
		// Who is busy with be1 turns to others; then be1 hears nothing more.
		tcp, udp := -1, -1
		for quiet := time.Now().Add(patience); ; {
			time.Sleep(time.Second)
			nowTCP, nowUDP := busy.Report().PerServer["be1"], answered(askers)["be1"]
			if nowTCP == tcp && nowUDP == udp {
				break
			}
			if tcp, udp = nowTCP, nowUDP; time.Now().After(quiet) {
				t.Fatal("be1 goes on answering after the end of its drain")
			}
		}
		b, f := busy.Stop(), fresh.Stop()
		t.Logf("busy: %d requests, %d failed, on %d connections, %v; fresh: %d, %v", b.Requests, b.Failed, b.Connections, b.PerServer, f.Requests, f.PerServer)
		if b.Connections != 32+b.Failed {
			t.Errorf("%d connections, and %d were cut of 32", b.Connections, b.Failed)
		}
		for _, failure := range b.Failures {
			if failure.Server != "be1" || failure.At.Before(until) {
				t.Errorf("failed although the drain ended at %v: %v", until, failure)
			}
		}
		if f.Failed > 0 || f.PerServer["be1"] > 0 || f.Requests == 0 {
			t.Errorf("new connections: %d requests, %d failed (%v), %d to be1", f.Requests, f.Failed, f.Failures, f.PerServer["be1"])
		}
		if n := answered(freshAskers); n["be1"] > 0 || len(n) == 0 {
			t.Errorf("datagrams of new clients were answered by %v", n)
		}
		for _, a := range askers {
			n := answered([]*asker{a})
			if most := map[bool]int{true: 2, false: 1}[n["be1"] > 0]; len(n) != most {
				t.Errorf("a client's datagrams were answered by %v", n)
			}
		}
		events, err := s.API.Events(t.Context(), 0)
		must(t, err)
		var told []string
		for _, e := range events.Events {
			if e.Member == "be1" && (strings.HasPrefix(e.Text, "draining until ") || strings.HasPrefix(e.Text, "disabled, for its drain has ended")) {
				told = append(told, e.Text)
			}
		}
		if len(told) != 2 || !strings.HasSuffix(told[0], "by ann: a new disk") || !strings.HasSuffix(told[1], "by ann: a new disk") {
			t.Errorf("events: %q", told)
		}
	})
}

// asker is a client that sends a datagram, waits for the answer, and sends the
// next, all from one port.
type asker struct {
	mu       sync.Mutex
	answered map[string]int // by whom
}

// askEach starts askers, which go on until the test ends.
func askEach(t *testing.T, s *stand.Stand, n int) []*asker {
	t.Helper()
	askers := make([]*asker, n)
	for i := range askers {
		askers[i] = ask(t, s)
	}
	return askers
}

func ask(t *testing.T, s *stand.Stand) *asker {
	t.Helper()
	var conn net.Conn
	must(t, s.Client.Do(func() (err error) {
		conn, err = net.Dial("udp", stand.VIP)
		return err
	}))
	a := &asker{answered: map[string]int{}}
	done := make(chan struct{})
	t.Cleanup(func() { conn.Close(); <-done })
	go func() {
		defer close(done)
		answer := make([]byte, 64)
		for {
			conn.Write([]byte("who"))
			conn.SetReadDeadline(time.Now().Add(time.Second)) // a datagram may be lost
			n, err := conn.Read(answer)
			switch {
			case err == nil:
				a.mu.Lock()
				name, _, _ := strings.Cut(string(answer[:n]), "\n")
				a.answered[name]++
				a.mu.Unlock()
				time.Sleep(20 * time.Millisecond)
			case !errors.Is(err, os.ErrDeadlineExceeded):
				return
			}
		}
	}()
	return a
}

// answered says how many answers askers have had, by whom.
func answered(askers []*asker) map[string]int {
	all := map[string]int{}
	for _, a := range askers {
		a.mu.Lock()
		for name, n := range a.answered {
			all[name] += n
		}
		a.mu.Unlock()
	}
	return all
}
