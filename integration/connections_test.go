package integration

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"brlb/controller/api"
	"brlb/integration/lab"
	"brlb/integration/stand"
)

// kept is a connection to the VIP that stays open between requests.
type kept struct {
	conn   net.Conn
	reader *bufio.Reader
	server string
}

// keep opens connections to the VIP, n to each of the servers, from ports that
// begin with first.
func keep(t *testing.T, s *stand.Stand, first, n int) map[string][]*kept {
	t.Helper()
	return keepFrom(t, s, s.Client, first, n)
}

// keepFrom is keep for another client.
func keepFrom(t *testing.T, s *stand.Stand, client *lab.Host, first, n int) map[string][]*kept {
	t.Helper()
	slots, err := s.API.Slots(t.Context(), "")
	must(t, err)
	open := map[string][]*kept{}
	for port := first; port < first+400; port++ {
		owner := stand.OwnerOf(slots, "tcp", netip.AddrPortFrom(client.Addr(), uint16(port)), netip.MustParseAddrPort(stand.VIP))
		if len(open[owner]) == n {
			continue
		}
		conn, err := client.DialFrom(t.Context(), "tcp", stand.VIP, port)
		must(t, err)
		t.Cleanup(func() { conn.Close() })
		k := &kept{conn: conn, reader: bufio.NewReader(conn)}
		must(t, k.ask(patience))
		if k.server != owner {
			t.Fatalf("port %d is at %s, not at %s", port, k.server, owner)
		}
		open[owner] = append(open[owner], k)
	}
	return open
}

// ask makes one request and notes who has answered.
func (k *kept) ask(timeout time.Duration) error {
	k.conn.SetDeadline(time.Now().Add(timeout))
	if _, err := fmt.Fprintf(k.conn, "GET / HTTP/1.1\r\nHost: vip\r\n\r\n"); err != nil {
		return err
	}
	return k.answer()
}

func (k *kept) answer() error {
	response, err := http.ReadResponse(k.reader, nil)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	name, err := io.ReadAll(response.Body)
	k.server = string(name)
	return err
}

// untilReset makes requests on a connection until it is reset, and returns how
// long that took.
func (k *kept) untilReset(t *testing.T) time.Duration {
	t.Helper()
	began := time.Now()
	for time.Since(began) < patience {
		if err := k.ask(patience); err != nil {
			if !errors.Is(err, syscall.ECONNRESET) && !errors.Is(err, syscall.EPIPE) {
				t.Errorf("a connection to %s ends with %v", k.server, err)
			}
			return time.Since(began)
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Errorf("a connection to %s goes on", k.server)
	return patience
}

// pushUntilReset sends requests without waiting for answers until the connection
// is reset.
func (k *kept) pushUntilReset(t *testing.T) time.Duration {
	began := time.Now()
	k.conn.SetDeadline(began.Add(patience))
	for {
		if _, err := fmt.Fprintf(k.conn, "GET / HTTP/1.1\r\nHost: vip\r\n\r\n"); err != nil {
			if !errors.Is(err, syscall.ECONNRESET) && !errors.Is(err, syscall.EPIPE) {
				t.Errorf("a connection to %s ends with %v", k.server, err)
			}
			return time.Since(began)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// mustAnswer makes a request on each of the connections.
func mustAnswer(t *testing.T, when string, connections []*kept) {
	t.Helper()
	for _, k := range connections {
		if err := k.ask(patience); err != nil {
			t.Errorf("%s: a connection to %s: %v", when, k.server, err)
		}
	}
}

// counted is the condition that the members have so many open connections.
func counted(want ...int) func(*api.Status) bool {
	return func(st *api.Status) bool {
		for i, m := range st.Pools[0].Members {
			if m.Connections == nil || *m.Connections != want[i] {
				return false
			}
		}
		return len(want) == len(st.Pools[0].Members)
	}
}

// TestConnectionsAreCounted: status knows how many connections each member has,
// also after a restart, and those that have ended don't count.
func TestConnectionsAreCounted(t *testing.T) {
	onUserspace(t, func(t *testing.T, s *stand.Stand) {
		open := keep(t, s, 36000, 3)
		await(t, s, "three connections each", counted(3, 3, 3, 3))
		open["be2"][0].conn.Close()
		await(t, s, "two at be2", counted(3, 2, 3, 3))
		must(t, s.Kill())
		must(t, s.Start())
		await(t, s, "the same after a restart", counted(3, 2, 3, 3))
		for _, member := range []string{"be1", "be2", "be3", "be4"} {
			mustAnswer(t, "after a restart", open[member][1:])
		}
		st, err := s.API.Status(t.Context())
		must(t, err)
		if c := st.Conntrack; c.Problem != "" || c.At.IsZero() || c.Zone.Entries < 11 || c.Datapath.Entries < c.Zone.Entries || c.Datapath.Limit == 0 {
			t.Errorf("conntrack: %+v", c)
		}
	})
}

// TestConntrackNearlyFull: a table that gets full is told before it is.
func TestConntrackNearlyFull(t *testing.T) {
	onUserspace(t, func(t *testing.T, s *stand.Stand) {
		reload(t, s, "conntrack: {limit: 10}\n"+s.DefaultConfig())
		told := func(st *api.Status) bool {
			return strings.Contains(strings.Join(st.Degraded, " "), "conntrack is nearly full")
		}
		keep(t, s, 36000, 2)
		await(t, s, "eight of ten", func(st *api.Status) bool {
			return st.Conntrack.Zone.TableUsage == api.TableUsage{Entries: 8, Limit: 10}
		})
		if st, err := s.API.Status(t.Context()); err != nil || told(st) {
			t.Errorf("alarm at 8 of 10: %q, %v", st.Degraded, err)
		}
		conn, err := s.Client.DialFrom(t.Context(), "tcp", stand.VIP, 41000)
		must(t, err)
		defer conn.Close()
		await(t, s, "an alarm", told)
		events, err := s.API.Events(t.Context(), 0)
		must(t, err)
		if !strings.Contains(fmt.Sprint(events.Events), "conntrack is nearly full: 9 entries") {
			t.Errorf("no event: %v", events.Events)
		}

		// The switch forgets its limits when it restarts.
		limited := func() {
			t.Helper()
			eventually(t, "the limit in verify", func() bool {
				verify, err := s.API.Verify(t.Context())
				must(t, err)
				return slices.ContainsFunc(verify.Checks, func(c api.VerifyCheck) bool { return c.Name == "conntrack limit" && c.OK })
			})
		}
		limited()
		must(t, s.Lab.KillOVS())
		must(t, s.Lab.StartOVS(t.Context()))
		await(t, s, "the table back", stand.Steady(4))
		limited()
	})
}

// TestConntrackFull: what comes beyond the limit is dropped, and not sent to members
// as it is: those that forward packets would send it back.
func TestConntrackFull(t *testing.T) {
	const limit = 10
	s := start(t, stand.Options{Config: func(text string) string {
		return fmt.Sprintf("conntrack: {limit: %d}\n", limit) + serve("80/tcp, 53/udp")(text)
	}})
	eventually(t, "the limit", func() bool {
		out, err := s.Lab.Appctl("dpctl/ct-get-limits", "zone=18200")
		return err == nil && strings.Contains(out, fmt.Sprintf("limit=%d,", limit))
	})
	leaks := watchLeaks(t, s)
	for _, when := range []string{"before the flood", "in it"} {
		for _, c := range s.Client.AskEach(t.Context(), stand.VIPAddress+":53", portsFrom(20000, 2), 100, 1) {
			if c.Err != nil {
				t.Errorf("%s, a client that has been there before it: %v", when, c.Err)
			}
		}
		sendFrom(t, s.Client, stand.VIPAddress+":53", portsFrom(20100, 10*limit))
	}
	leaks.check(t)
}

// TestConnectionsOfADownMember: clients of a member that hangs are answered by
// a reset at their next packet, busy or idle, or left alone, as the pool says.
func TestConnectionsOfADownMember(t *testing.T) {
	onUserspace(t, func(t *testing.T, s *stand.Stand) {
		open := keep(t, s, 36000, 4)
		must(t, s.Servers[0].Process().Pause())
		busy := make(chan time.Duration, 1)
		go func() { busy <- open["be1"][0].pushUntilReset(t) }()
		await(t, s, "be1 down", stand.Steady(3))
		await(t, s, "no connection at be1", counted(0, 4, 4, 4))
		t.Logf("the busy client was reset %v after the server hung", (<-busy).Round(time.Millisecond))
		for _, idle := range open["be1"][1:] {
			began := time.Now()
			if err := idle.ask(patience); !errors.Is(err, syscall.ECONNRESET) {
				t.Errorf("an idle connection to be1: %v", err)
			}
			t.Logf("an idle one %v after its next packet", time.Since(began).Round(time.Microsecond))
		}
		for _, other := range []string{"be2", "be3", "be4"} {
			mustAnswer(t, "while be1 is down", open[other])
		}
		must(t, s.Servers[0].Process().Resume())
		await(t, s, "be1 up", stand.Steady(4))

		reload(t, s, withRules(s, "on_down: keep"))
		open = keep(t, s, 37000, 5)
		must(t, s.Servers[0].Process().Pause())
		await(t, s, "be1 down", stand.Steady(3))
		read := time.Now()
		await(t, s, "its connections counted", func(st *api.Status) bool { return st.Conntrack.At.After(read) })
		silent := open["be1"][4]
		if err := silent.ask(time.Second); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("a connection that is kept: %v", err)
		}
		must(t, s.Servers[0].Process().Resume())
		silent.conn.SetDeadline(time.Now().Add(patience))
		if err := silent.answer(); err != nil || silent.server != "be1" {
			t.Errorf("a connection that was kept, when its server goes on: %s, %v", silent.server, err)
		}
	})
}

// TestConnectionsOfARemovedMember: they end by a reset when a reload, or a
// restart, takes the member away; nobody else's does.
func TestConnectionsOfARemovedMember(t *testing.T) {
	onUserspace(t, func(t *testing.T, s *stand.Stand) {
		open := keep(t, s, 36000, 3)
		rest := removeMember(s.DefaultConfig(), "be2")
		reload(t, s, rest)
		for _, k := range open["be2"] {
			t.Logf("reset %v after the reload", k.untilReset(t).Round(time.Millisecond))
		}
		for _, other := range []string{"be1", "be3", "be4"} {
			mustAnswer(t, "after the reload", open[other])
		}

		must(t, s.Kill())
		must(t, s.WriteConfig(removeMember(rest, "be3")))
		must(t, s.Start())
		await(t, s, "be1 and be4", stand.Steady(2))
		for _, k := range open["be3"] {
			t.Logf("reset %v after the restart", k.untilReset(t).Round(time.Millisecond))
		}
		for _, other := range []string{"be1", "be4"} {
			mustAnswer(t, "after the restart", open[other])
		}
		await(t, s, "no other connections", counted(3, 3))
	})
}

// TestDrainEndsOnTime: a drain with a deadline lets busy clients go on until
// then, and no longer.
func TestDrainEndsOnTime(t *testing.T) {
	onUserspace(t, func(t *testing.T, s *stand.Stand) {
		open := keep(t, s, 36000, 3)
		_, err := s.API.Change(t.Context(), "drain", api.ChangeRequest{Member: "be1", Who: "test", DeadlineSeconds: 4, WaitSeconds: patience.Seconds()})
		must(t, err)
		until := member(t, s, 0).AdminUntil
		for _, k := range open["be1"] {
			k.untilReset(t)
			if late := time.Since(until); late < 0 {
				t.Errorf("a connection ended %v before the deadline", -late)
			} else {
				t.Logf("reset %v after the deadline", late.Round(time.Millisecond))
			}
		}
		for _, other := range []string{"be2", "be3", "be4"} {
			mustAnswer(t, "after the deadline", open[other])
		}
	})
}

// TestDrainWaits: `brlb drain --wait` returns when the last connection has ended,
// and at the deadline.
func TestDrainWaits(t *testing.T) {
	onUserspace(t, func(t *testing.T, s *stand.Stand) {
		open := keep(t, s, 36000, 2)
		run := func(args ...string) chan string {
			said := make(chan string, 1)
			cmd := exec.CommandContext(t.Context(), brlb, append([]string{"--socket", s.Socket()}, args...)...)
			var stderr strings.Builder
			cmd.Stderr = &stderr
			must(t, cmd.Start())
			go func() {
				err := cmd.Wait()
				said <- fmt.Sprintf("%s%v", stderr.String(), err)
			}()
			return said
		}
		said := run("drain", "be1", "--wait")
		await(t, s, "be1 drained", func(st *api.Status) bool { return st.InSync && st.Pools[0].Members[0].State == "draining" })
		open["be1"][0].conn.Close()
		await(t, s, "one connection left", counted(1, 2, 2, 2))
		select {
		case text := <-said:
			t.Errorf("drain returned with a connection open: %s", text)
		default:
		}
		mustAnswer(t, "while be1 drains", open["be1"][1:])
		open["be1"][1].conn.Close()
		if text := <-said; !strings.HasSuffix(text, "no connection is left\n<nil>") || !strings.Contains(text, "connections left: 1") {
			t.Errorf("drain --wait: %s", text)
		}
		if text := <-run("drain", "be2", "--wait", "--deadline", "3s"); !strings.HasSuffix(text, "what was still open is ended\n<nil>") {
			t.Errorf("drain --wait --deadline: %s", text)
		}
		for _, k := range open["be2"] {
			k.untilReset(t)
		}
	})
}

// TestConnectionsEndBlindly: where ovs-vswitchd's control socket cannot be found,
// connections are not counted, but those of a member that goes down end all the
// same.
func TestConnectionsEndBlindly(t *testing.T) {
	s := build(t, stand.Options{})
	pid := filepath.Join(s.Lab.Dir(), "ovs-vswitchd.pid")
	must(t, os.Rename(pid, pid+".gone"))
	t.Cleanup(func() { os.Rename(pid+".gone", pid) })
	must(t, s.Start())
	await(t, s, "all members active", stand.Steady(4))
	await(t, s, "nothing counted", func(st *api.Status) bool {
		return strings.Contains(st.Conntrack.Problem, "does not seem to run") && st.Pools[0].Members[0].Connections == nil
	})
	open := keep(t, s, 36000, 2)
	must(t, s.Servers[0].Process().Pause())
	open["be1"][0].pushUntilReset(t)
	for _, other := range []string{"be2", "be3", "be4"} {
		mustAnswer(t, "while be1 is down", open[other])
	}
	must(t, s.Servers[0].Process().Resume())
}

// TestDatagramsOfADownMember: a client that goes on from the same port is served
// by another member at once, and not before the end of a drain.
func TestDatagramsOfADownMember(t *testing.T) {
	s := start(t, stand.Options{Config: serve("80/tcp, 53/udp")})
	vip, ports := stand.VIPAddress+":53", sourcePorts(20000, 60)
	by := func(member string, outcomes []lab.Connection) (from []int) {
		t.Helper()
		for _, c := range outcomes {
			if c.Err != nil {
				t.Errorf("from port %d: %v", c.SourcePort, c.Err)
			}
			if c.Server == member {
				from = append(from, c.SourcePort)
			}
		}
		return from
	}
	ask := func(from []int) []lab.Connection { return s.Client.AskEach(t.Context(), vip, from, 100, 8) }

	be1 := by("be1", ask(ports))
	must(t, s.Servers[0].Process().Pause())
	await(t, s, "be1 down, and none of its connections left", func(st *api.Status) bool {
		m := &st.Pools[0].Members[0]
		return m.State == "down" && m.Connections != nil && *m.Connections == 0
	})
	if left := by("be1", ask(be1)); len(be1) == 0 || len(left) > 0 {
		t.Errorf("%d of %d ports are still served by be1", len(left), len(be1))
	}
	must(t, s.Servers[0].Process().Resume())
	await(t, s, "be1 up", stand.Steady(4))

	be2 := by("be2", ask(sourcePorts(30000, 60)))
	_, err := s.API.Change(t.Context(), "drain", api.ChangeRequest{Member: "be2", Who: "test", DeadlineSeconds: 5, WaitSeconds: patience.Seconds()})
	must(t, err)
	if on := by("be2", ask(be2)); len(be2) == 0 || len(on) != len(be2) {
		t.Errorf("%d of %d ports are served by be2 while it drains", len(on), len(be2))
	}
	await(t, s, "the end of the drain", func(st *api.Status) bool {
		m := &st.Pools[0].Members[1]
		return m.State == "disabled" && m.Connections != nil && *m.Connections == 0
	})
	if left := by("be2", ask(be2)); len(left) > 0 {
		t.Errorf("%d of %d ports are still served by be2", len(left), len(be2))
	}
}
