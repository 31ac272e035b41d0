package integration

import (
	"bufio"
	"context"
	"fmt"
	"log/slog"
	"math"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"brlb/controller/bridge"
	"brlb/controller/config"
	"brlb/controller/pipeline"
	"brlb/controller/state"
	"brlb/integration/lab"
	"brlb/openflow"
	"brlb/openflow/oftest"
)

// benchLab is a lab for a benchmark, with more bridges beside its own.
func benchLab(b *testing.B, bridges ...string) *lab.Lab {
	b.Helper()
	l, err := lab.New(b.Context(), lab.Options{FailMode: "secure"})
	if err != nil {
		if lab.Unavailable(err) {
			b.Skip(err)
		}
		b.Fatal(err)
	}
	b.Cleanup(func() { l.Close() })
	for _, name := range bridges {
		if _, err := l.Vsctl("add-br", name, "--", "set", "Bridge", name, "datapath_type="+lab.Datapath(), "fail_mode=secure"); err != nil {
			b.Fatal(err)
		}
	}
	return l
}

// mgmt is the socket where a bridge takes OpenFlow connections.
func mgmt(l *lab.Lab, name string) string { return filepath.Join(l.Dir(), name+".mgmt") }

// manyPools is a configuration of n pools of 1,024 slots with four members
// each. The first member of the first pool is 10.10.0.0:80.
func manyPools(b *testing.B, n int) *config.Config {
	b.Helper()
	var text strings.Builder
	text.WriteString("mac: 02:00:5e:00:01:02\npools:\n")
	for i := range n {
		fmt.Fprintf(&text, "  p%d: {id: %d, members: {", i, i+1)
		for m := range 4 {
			fmt.Fprintf(&text, "m%d: 10.%d.%d.%d:80, ", m, 10+m, i/256, i%256)
		}
		text.WriteString("}}\n")
	}
	text.WriteString("services:\n")
	for i := range n {
		fmt.Fprintf(&text, "  s%d: {address: 10.1.%d.%d, ports: [80/tcp], pool: p%d}\n", i, i/256, i%256, i)
	}
	cfg, err := config.Parse("bench.yaml", []byte(text.String()))
	if err != nil {
		b.Fatal(err)
	}
	return cfg
}

// allUp is a state that knows everything but what the switch holds.
func allUp(b *testing.B, cfg *config.Config) *state.State {
	b.Helper()
	now := time.Now()
	s := state.New(cfg, now)
	if err := s.LoadNumbers(""); err != nil {
		b.Fatal(err)
	}
	s.SetPorts([]state.Port{{Number: 1, Name: "p1", Live: true}}, now)
	for i, addr := range s.NextHops() {
		s.SetNextHop(addr, state.NextHop{MAC: openflow.MAC{2, 0, 0, 0, byte(i >> 8), byte(i)}, Port: 1, Source: "arp"}, now)
	}
	for _, probe := range s.Probes() {
		s.SetVerdict(probe, state.Verdict{Health: state.Up, Since: now, Code: "L4OK"}, now)
	}
	return s
}

// converger takes events to the switch by the controller's own steps, on a
// session of the controller's own kind.
type converger struct {
	state     *state.State
	renderer  *pipeline.Renderer
	installed pipeline.Set
	bridge    *bridge.Bridge
	session   uint64
}

func newConverger(b *testing.B, l *lab.Lab, name string, cfg *config.Config) *converger {
	b.Helper()
	events := make(chan bridge.Event, 64)
	c := &converger{installed: pipeline.Set{}, bridge: bridge.New(bridge.Options{
		Bridge: name, Dial: "unix:" + mgmt(l, name), Refresh: time.Hour, Logger: slog.New(slog.DiscardHandler),
		Emit: func(e bridge.Event) { events <- e },
	})}
	ctx, cancel := context.WithCancel(b.Context())
	ran := make(chan struct{})
	go func() {
		defer close(ran)
		c.bridge.Run(ctx)
	}()
	b.Cleanup(func() {
		cancel()
		<-ran
	})
	c.forget(b, cfg)
	for {
		select {
		case e := <-events:
			if connected, ok := e.(bridge.Connected); ok {
				c.session = connected.Session
				go drop(events)
				return c
			}
		case <-time.After(patience):
			b.Fatalf("no session with bridge %s", name)
		}
	}
}

// drop takes what nobody wants to know.
func drop(events <-chan bridge.Event) {
	for range events {
	}
}

// forget starts anew, with nothing rendered and nothing installed.
func (c *converger) forget(b *testing.B, cfg *config.Config) {
	c.state, c.renderer, c.installed = allUp(b, cfg), pipeline.NewRenderer(), pipeline.Set{}
}

// judge is the event: the probes' verdict of the first pool's first member.
func (c *converger) judge(h state.Health) {
	now := time.Now()
	probe := state.ProbeID{Address: c.state.Config().Pools[0].Members[0].Address, Check: c.state.Config().Pools[0].Check}
	c.state.SetVerdict(probe, state.Verdict{Health: h, Since: now, Code: "L4CON"}, now)
}

// plan is what the switch must be sent.
func (c *converger) plan() (pipeline.Plan, error) {
	desired, held, err := c.renderer.Render(c.state.Snapshot())
	if err != nil {
		return pipeline.Plan{}, err
	}
	return pipeline.Diff(c.installed, desired, held), nil
}

// converge returns when the switch has confirmed what the facts demand.
func (c *converger) converge(b *testing.B) (rows int) {
	plan, err := c.plan()
	if err != nil {
		b.Fatal(err)
	}
	c.send(b, plan.Mods)
	c.installed = plan.Result
	return len(plan.Mods)
}

func (c *converger) send(b *testing.B, mods []openflow.Message) {
	if result := c.bridge.Apply(b.Context(), c.session, mods); result.Err != nil {
		b.Fatal(result.Err)
	}
}

// check fails the benchmark if the switch does not hold what it confirmed.
func (c *converger) check(b *testing.B) {
	b.Helper()
	flows, err := c.bridge.Flows(b.Context(), false)
	if err != nil {
		b.Fatal(err)
	}
	held, err := pipeline.FromSwitch(flows)
	if err != nil {
		b.Fatal(err)
	}
	if wrong := pipeline.Diff(held, c.installed, func(pipeline.GroupID) bool { return false }).Mods; len(wrong) > 0 {
		b.Errorf("%d flows on the switch are wrong", len(wrong))
	}
}

// change is one change in the forms in which others send it.
type change struct {
	rows int
	file string // for ovs-ofctl add-flows
	raw  rawBundle
}

func newChange(b *testing.B, l *lab.Lab, name string, mods []openflow.Message) change {
	b.Helper()
	var text strings.Builder
	for _, m := range mods {
		f := m.(*openflow.FlowMod)
		if f.Command == openflow.FlowDeleteStrict {
			fmt.Fprintf(&text, "delete_strict cookie=%#x/%#x,table=%d,priority=%d,%s\n", f.Cookie, f.CookieMask, f.Table, f.Priority, f.Match)
			continue
		}
		stats := openflow.FlowStats{Cookie: f.Cookie, Table: f.Table, Priority: f.Priority, Match: f.Match, Instructions: f.Instructions}
		fmt.Fprintf(&text, "add %s\n", &stats)
	}
	c := change{rows: len(mods), file: filepath.Join(l.Dir(), name+".flows"), raw: encodeBundle(b, mods)}
	if err := os.WriteFile(c.file, []byte(text.String()), 0o644); err != nil {
		b.Fatal(err)
	}
	return c
}

// addFlows sends a change as a script does that calls ovs-ofctl.
func addFlows(b *testing.B, l *lab.Lab, name string, c change, options ...string) {
	if _, err := l.Ofctl(append(options, "-OOpenFlow14", "--bundle", "add-flows", name, c.file)...); err != nil {
		b.Fatal(err)
	}
}

// rawBundle are the octets of a bundle: all up to the barrier, and the commit.
type rawBundle struct{ prepare, commit []byte }

func encodeBundle(b *testing.B, mods []openflow.Message) (r rawBundle) {
	b.Helper()
	xid := uint32(100)
	put := func(out []byte, m openflow.Message) []byte {
		xid++
		out, err := openflow.Append(out, xid, m)
		if err != nil {
			b.Fatal(err)
		}
		return out
	}
	const id, flags = 1, openflow.BundleAtomic | openflow.BundleOrdered
	r.prepare = put(nil, &openflow.BundleControl{ID: id, Kind: openflow.BundleOpenRequest, Flags: flags})
	for _, m := range mods {
		r.prepare = put(r.prepare, &openflow.BundleAdd{ID: id, Flags: flags, Message: m})
	}
	r.prepare = put(r.prepare, &openflow.BarrierRequest{})
	r.commit = put(nil, &openflow.BundleControl{ID: id, Kind: openflow.BundleCommitRequest, Flags: flags})
	return r
}

// rawConn writes octets to a switch: what is left when nothing is computed.
type rawConn struct {
	conn net.Conn
	r    *bufio.Reader
}

func dialRaw(b *testing.B, l *lab.Lab, name string) *rawConn {
	b.Helper()
	conn, err := net.Dial("unix", mgmt(l, name))
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { conn.Close() })
	raw := &rawConn{conn: conn, r: bufio.NewReaderSize(conn, 64<<10)}
	hello, err := openflow.Append(nil, 1, &openflow.Hello{Versions: openflow.HelloVersionBitmap(openflow.Version)})
	if err != nil {
		b.Fatal(err)
	}
	raw.write(b, hello)
	return raw
}

// setMeters gives a switch the meters that rows name.
func setMeters(b *testing.B, l *lab.Lab, name string) {
	b.Helper()
	raw := dialRaw(b, l, name)
	var octets []byte
	var err error
	for i, m := range append(pipeline.Meters(), nil) {
		var message openflow.Message = &openflow.BarrierRequest{}
		if m != nil {
			message = m
		}
		if octets, err = openflow.Append(octets, uint32(2+i), message); err != nil {
			b.Fatal(err)
		}
	}
	raw.write(b, octets)
	raw.await(b, openflow.TypeBarrierReply)
}

func (c *rawConn) send(b *testing.B, bundle rawBundle) {
	c.write(b, bundle.prepare)
	c.await(b, openflow.TypeBarrierReply)
	c.write(b, bundle.commit)
	c.await(b, openflow.TypeBundleControl)
}

func (c *rawConn) write(b *testing.B, octets []byte) {
	if _, err := c.conn.Write(octets); err != nil {
		b.Fatal(err)
	}
}

func (c *rawConn) await(b *testing.B, want openflow.Type) {
	for {
		got, err := oftest.ReadMessage(c.r)
		switch {
		case err != nil:
			b.Fatal(err)
		case got.Header.Type == openflow.TypeError:
			b.Fatal(got.Message)
		case got.Header.Type == want:
			return
		}
	}
}

// times are how long the same thing took, each time.
type times []time.Duration

// measure adds how long f takes.
func (t *times) measure(f func()) {
	start := time.Now()
	f()
	*t = append(*t, time.Since(start))
}

// percentile returns the time that so many percent do not exceed, in
// milliseconds.
func (t times) percentile(percent float64) float64 {
	sorted := slices.Sorted(slices.Values(t))
	i := int(math.Ceil(percent/100*float64(len(sorted)))) - 1
	return float64(sorted[max(i, 0)].Microseconds()) / 1000
}
