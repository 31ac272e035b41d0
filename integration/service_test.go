package integration

import (
	"context"
	"net"
	"net/netip"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"brlb/controller/api"
	"brlb/controller/pipeline"
	"brlb/health"
	"brlb/integration/lab"
	"brlb/integration/stand"
	"brlb/openflow"
	"brlb/openflow/session"
)

// In service mode brlb is a guest on a bridge that another controller holds:
// it balances, and neither that controller's flows nor what the bridge forwards
// for others notice.
func TestBesideAnotherController(t *testing.T) {
	s := build(t, stand.Options{Config: func(text string) string {
		var b strings.Builder
		for line := range strings.Lines(text) {
			if strings.HasPrefix(line, "openflow:") {
				line = "openflow: {mode: service}\n"
			}
			b.WriteString(line)
		}
		return b.String()
	}})
	one, err := s.Lab.AddHost("h1", "10.50.0.1/24", lab.HostOptions{})
	must(t, err)
	_, err = s.Lab.AddHost("h2", "10.50.0.2/24", lab.HostOptions{})
	must(t, err)
	master := otherController(t, s.Lab)
	otherFlow(t, master, "cookie=0xf00d, table=0, priority=0, actions=NORMAL")
	otherFlow(t, master, "cookie=0xf00d, table=0, priority=500, dl_vlan=42, actions=drop")
	otherFlow(t, master, "cookie=0xf00d0001, table=0, priority=40000, udp, nw_dst=10.50.0.2, tp_dst=9, actions=goto_table:50")
	otherFlow(t, master, "cookie=0xf00d0001, table=50, priority=7, in_port=3, actions=NORMAL")
	otherFlow(t, master, "cookie=0xbeef, table=200, priority=1, actions=drop")
	before := othersFlows(t, s.Lab)
	if len(before) != 5 {
		t.Fatalf("flows of the other controller: %q", before)
	}
	controllers := func() string {
		t.Helper()
		out, err := s.Lab.Vsctl("get-controller", s.Lab.Bridge())
		must(t, err)
		return strings.TrimSpace(out)
	}
	theirs := controllers()
	misdelivered := countOwnPackets(master)

	pings := startPing(t, one, "10.50.0.2")
	unchanged := func(when string) {
		t.Helper()
		if now := othersFlows(t, s.Lab); !slices.Equal(now, before) {
			t.Errorf("%s: the other controller's flows are\n%s\nbefore\n%s", when, strings.Join(now, "\n"), strings.Join(before, "\n"))
		}
		role, err := master.Role(t.Context(), openflow.RoleNoChange, 0)
		if err != nil || role.Role != openflow.RoleMaster {
			t.Errorf("%s: the other controller's role is %v, %v", when, role.Role, err)
		}
		if now := controllers(); now != theirs {
			t.Errorf("%s: the bridge's controllers are %s, before %s", when, now, theirs)
		}
		verify, err := s.API.Verify(t.Context())
		must(t, err)
		if !verify.OK {
			t.Errorf("%s: verify: %+v", when, verify.Checks)
		}
	}

	must(t, s.Start())
	await(t, s, "all members active", stand.Steady(4))
	unchanged("after the start")
	load := s.Client.StartLoad(t.Context(), stand.VIP, lab.LoadOptions{Workers: 4, Pause: 5 * time.Millisecond, Timeout: 20 * time.Second})
	for _, operation := range []string{"drain", "enable"} {
		_, err := s.API.Change(t.Context(), operation, api.ChangeRequest{Member: "be1", Who: "test", WaitSeconds: patience.Seconds()})
		must(t, err)
	}
	unchanged("after changes")

	// The other controller goes on working meanwhile.
	otherFlow(t, master, "cookie=0xf00d, table=0, priority=501, dl_vlan=43, actions=drop")
	before = othersFlows(t, s.Lab)
	if len(before) != 6 {
		t.Errorf("the other controller cannot add a flow: %q", before)
	}
	must(t, s.Kill())
	must(t, s.Start())
	await(t, s, "all members active again", stand.Steady(4))
	time.Sleep(time.Second)
	if m := metrics(t, s); m["brlb_flow_mods_total"] != 0 {
		t.Errorf("%v flow-mods at a restart", m["brlb_flow_mods_total"])
	}
	unchanged("after a restart")
	reload(t, s, strings.Replace(s.DefaultConfig(), "be2: 10.30.0.12:8080", "be2: {address: 10.30.0.12:8080, weight: 2}", 1))
	unchanged("after a reload")

	r := load.Stop()
	if r.Failed > 0 || len(r.PerServer) != 4 {
		t.Errorf("%d of %d requests failed: %v; per server %v", r.Failed, r.Requests+r.Failed, r.Failures, r.PerServer)
	}
	if n := misdelivered.Load(); n > 0 {
		t.Errorf("%d packets for brlb were handed to the other controller", n)
	}
	answered, lost := pings()
	t.Logf("%d requests; %d pings between others, %d lost", r.Requests, answered+lost, lost)
	if lost > 0 || answered < 50 {
		t.Errorf("of pings between others %d were answered and %d lost", answered, lost)
	}
}

// otherController makes the bridge dial a controller that is not brlb, and
// returns its session, which has the master's role.
func otherController(t *testing.T, l *lab.Lab) *session.Session {
	t.Helper()
	path := filepath.Join(l.Dir(), "other.sock")
	listener, err := net.Listen("unix", path)
	must(t, err)
	t.Cleanup(func() { listener.Close() })
	_, err = l.Vsctl("set-controller", l.Bridge(), "unix:"+path, "--", "set-fail-mode", l.Bridge(), "secure", "--",
		"set", "bridge", l.Bridge(), "protocols=OpenFlow13,OpenFlow14")
	must(t, err)
	ctx := withTimeout(t, patience)
	stop := context.AfterFunc(ctx, func() { listener.Close() })
	defer stop()
	conn, err := listener.Accept()
	must(t, err)
	s, err := session.Open(ctx, conn, session.Options{})
	must(t, err)
	t.Cleanup(s.Close)
	_, err = s.TakeRole(ctx, openflow.RoleMaster)
	must(t, err)
	return s
}

func otherFlow(t *testing.T, s *session.Session, text string) {
	t.Helper()
	flow, err := openflow.ParseFlow(text)
	must(t, err)
	must(t, s.Transact(t.Context(), flow))
}

// countOwnPackets counts packets that flows of brlb hand to a session, until it
// ends.
func countOwnPackets(s *session.Session) *atomic.Int64 {
	count := new(atomic.Int64)
	go func() {
		for event := range s.Events() {
			if in, ok := event.Message.(*openflow.PacketIn); ok && pipeline.IsOwn(in.Cookie) {
				count.Add(1)
			}
		}
	}()
	return count
}

// othersFlows lists the flows that are not brlb's, without their counters.
func othersFlows(t *testing.T, l *lab.Lab) []string {
	t.Helper()
	out, err := l.Ofctl("-OOpenFlow14", "--no-names", "--no-stats", "dump-flows", l.Bridge())
	must(t, err)
	var flows []string
	for line := range strings.Lines(out) {
		if line = strings.TrimSpace(line); strings.Contains(line, "actions=") && !strings.Contains(line, "cookie=0xb71b") {
			flows = append(flows, line)
		}
	}
	slices.Sort(flows)
	return flows
}

// startPing pings an address 25 times a second until the function that it returns is
// called, which tells how many got an answer and how many did not.
func startPing(t *testing.T, from *lab.Host, address string) (stop func() (answered, lost int)) {
	t.Helper()
	var good, bad atomic.Int64
	prober := health.New(health.Options{
		Dial: from.DialContext,
		OnResult: func(_ health.Target, r health.Result) {
			switch r.Code.Outcome() {
			case health.Pass:
				good.Add(1)
			case health.Fail:
				bad.Add(1)
			}
		},
	})
	var targets []health.Target // they differ in the port, which ping has not
	for port := range uint16(25) {
		targets = append(targets, health.Target{
			Address: netip.AddrPortFrom(netip.MustParseAddr(address), port+1),
			Check:   health.Check{Type: health.ICMP, Interval: time.Second, Fast: time.Second, Timeout: time.Second}.WithDefaults(),
		})
	}
	must(t, prober.Set(targets))
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { prober.Run(ctx) })
	t.Cleanup(func() { cancel(); running.Wait() })
	return func() (answered, lost int) {
		cancel()
		running.Wait()
		return int(good.Load()), int(bad.Load())
	}
}
