// Package demo shows brlb at work: a client, four servers and a real Open
// vSwitch in network namespaces of their own, continuous traffic, and what
// operators and accidents do to it. It tells what it sees step by step, and
// fails if what it saw was not right.
package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"brlb/controller/api"
	"brlb/integration/lab"
	"brlb/integration/stand"
)

// Options say how to show it.
type Options struct {
	Out  io.Writer
	Brlb string // path of the brlb executable
	Keep bool   // leave everything running until ctx ends
}

// show is one run of the demo.
type show struct {
	opts  Options
	stand *stand.Stand
	step  int
	wrong []string // what was not as it should be
}

// steps is how many headings the demo prints.
const steps = 7

// patience is how long a step waits for what must come.
const patience = 20 * time.Second

// Run runs the demo. It returns an error if something could not be shown, or
// was not right; all that it made is gone when it returns.
func Run(ctx context.Context, opts Options) (err error) {
	d := &show{opts: opts}
	started := time.Now()
	if removed, err := lab.CleanStale(); err == nil && len(removed) > 0 {
		d.say("Removed what an earlier run left behind: %s.", strings.Join(removed, ", "))
	}
	d.heading("A network of its own")
	d.say(`A client, four servers, and an Open vSwitch that knows nothing yet, all in
network namespaces made for this. The Open vSwitch of this machine, if there is
one, is not touched.

    client 10.20.0.10 ── p1 ┐             ┌ p2 ── be1 10.30.0.11:8080
                            ├─  br-lb  ───┤       be2 10.30.0.12:8080
        10.20.0.100:80 is ──┘             │       be3 10.30.0.13:8080
        the VIP                           └────── be4 10.30.0.14:8080
`)
	d.stand, err = stand.New(ctx, stand.Options{Brlb: opts.Brlb})
	if err != nil {
		return err
	}
	defer func() {
		if e := d.stand.Close(); e != nil {
			err = errors.Join(err, fmt.Errorf("clean up: %w", e))
		}
	}()
	if err := d.play(ctx); err != nil {
		return err
	}
	d.summary(time.Since(started))
	if opts.Keep {
		d.keep(ctx)
	}
	if len(d.wrong) > 0 {
		return fmt.Errorf("%d things were not as they should be", len(d.wrong))
	}
	return nil
}

// play goes through the acts.
func (d *show) play(ctx context.Context) error {
	for _, act := range []func(context.Context) error{d.table, d.placement} {
		if err := act(ctx); err != nil {
			return err
		}
	}
	load := d.stand.Client.StartLoad(ctx, stand.VIP, lab.LoadOptions{Workers: 6, Pause: 3 * time.Millisecond, Timeout: 10 * time.Second})
	held := d.stand.Client.StartLoad(ctx, stand.VIP, lab.LoadOptions{Workers: 12, KeepAlive: true, Pause: 5 * time.Millisecond, Timeout: 10 * time.Second})
	defer load.Abort()
	defer held.Abort()
	both := &traffic{fresh: load, held: held}
	for _, act := range []func(context.Context, *traffic) error{d.drain, d.kill, d.comeback, d.crash} {
		if err := act(ctx, both); err != nil {
			return err
		}
	}
	return nil
}

// table starts brlb and shows the slot table.
func (d *show) table(ctx context.Context) error {
	d.heading("brlb fills the slot table")
	start := time.Now()
	if err := d.stand.Start(); err != nil {
		return err
	}
	status, err := d.await(ctx, "four active members", stand.Steady(4))
	if err != nil {
		return err
	}
	d.say("brlb has attached itself to the bridge, probed the members and sent the table in one\nbundle: %d flows, %s after its start. %s, OpenFlow 1.4.\n",
		status.Switch.OwnFlows, round(time.Since(start)), status.Switch.Description)
	d.members(status)
	pool := status.Pools[0]
	d.say("\nEvery connection has one of %d slots, by a hash of its addresses and ports; every\nslot has one member. The digest of the table is %s: any brlb with\nthe same members computes the same.", pool.Slots, pool.Digest)
	return nil
}

// placement sends connections and compares with what the table says.
func (d *show) placement(ctx context.Context) error {
	d.heading("Connections land where the table says")
	ports := make([]int, 2000)
	for i := range ports {
		ports[i] = 20000 + 3*i
	}
	want, err := d.stand.Predict(ctx, ports)
	if err != nil {
		return err
	}
	counted, elsewhere, failed := map[string]int{}, 0, 0
	for i, c := range d.stand.Client.ConnectEach(ctx, stand.VIP, ports, 16) {
		switch {
		case c.Err != nil:
			failed++
		case c.Server != want[i]:
			elsewhere++
		}
		counted[c.Server]++
	}
	slots, err := d.stand.API.Slots(ctx, "")
	if err != nil {
		return err
	}
	owned := map[string]int{}
	for _, owner := range slots.Owner {
		owned[slots.Members[owner]]++
	}
	d.say("%d connections, each from another port of the client:\n", len(ports))
	d.say("    member   slots          connections")
	for _, name := range slots.Members {
		d.say("    %-6s   %4d  %5.1f%%   %6d  %5.1f%%", name, owned[name], percent(owned[name], slots.Slots), counted[name], percent(counted[name], len(ports)))
	}
	d.say("")
	d.check(failed == 0 && elsewhere == 0, "%d of %d landed on the member that the table names; %d failed", len(ports)-elsewhere-failed, len(ports), failed)
	return nil
}

// drain takes a member out under load.
func (d *show) drain(ctx context.Context, traffic *traffic) error {
	d.heading("An operator drains be1 under load")
	traffic.mark()
	sleep(ctx, time.Second)
	change, err := d.stand.API.Change(ctx, "drain", api.ChangeRequest{Member: "be1", Who: "demo", Why: "to show it", WaitSeconds: patience.Seconds()})
	if err != nil {
		return err
	}
	before := traffic.perServer("be1")
	sleep(ctx, 2*time.Second)
	fresh := traffic.perServer("be1") - before
	d.say("$ brlb drain be1 --why \"to show it\"\n")
	d.moves(change)
	d.say("\nbe1 gets no new connection; those that it has go on.")
	d.check(change.Confirmed && fresh == 0, "new connections to be1 after the switch had confirmed: %d", fresh)
	traffic.checkNone(d)
	change, err = d.stand.API.Change(ctx, "enable", api.ChangeRequest{Member: "be1", Who: "demo", WaitSeconds: patience.Seconds()})
	if err != nil {
		return err
	}
	d.say("$ brlb enable be1\n")
	d.moves(change)
	sleep(ctx, time.Second)
	traffic.checkNone(d)
	return nil
}

// kill ends a server as a crash does.
func (d *show) kill(ctx context.Context, traffic *traffic) error {
	d.heading("A server dies: be3 is killed (SIGKILL)")
	slots, err := d.stand.API.Slots(ctx, "")
	if err != nil {
		return err
	}
	traffic.mark()
	killed := time.Now()
	if err := d.stand.Servers[2].Kill(); err != nil {
		return err
	}
	status, err := d.await(ctx, "be3 out of the table", stand.Steady(3))
	if err != nil {
		return err
	}
	sleep(ctx, time.Second)
	verdict := member(status, "be3").Since
	d.say("kill to verdict           %8s   3 failed probes (%s)", round(verdict.Sub(killed)), member(status, "be3").Check.Code)
	d.say("verdict to confirmed      %8s   the switch holds the new table", round(status.ConfirmedAt.Sub(verdict)))
	own, others := 0, 0
	for _, f := range traffic.failures() {
		if f.Server == "be3" || f.Server == "" && d.stand.Owner(slots, int(f.Source.Port())) == "be3" {
			own++
		} else {
			if others++; others <= 5 {
				d.say("    %v", f)
			}
		}
	}
	d.say("\nRequests that failed meanwhile, on connections to be3: %d.", own)
	d.check(others == 0, "failed requests of other members: %d", others)
	traffic.mark()
	sleep(ctx, time.Second)
	traffic.checkNone(d)
	return nil
}

// comeback starts the server again.
func (d *show) comeback(ctx context.Context, traffic *traffic) error {
	d.heading("be3 comes back")
	digest := d.digest(ctx)
	traffic.mark()
	if err := d.stand.Servers[2].Restart(ctx); err != nil {
		return err
	}
	started := time.Now()
	status, err := d.await(ctx, "be3 back in the table", stand.Steady(4))
	if err != nil {
		return err
	}
	d.say("2 good probes later, after %s, it has its slots again: digest %s -> %s.\n", round(time.Since(started)), digest, status.Pools[0].Digest)
	d.members(status)
	sleep(ctx, time.Second)
	traffic.checkNone(d)
	return nil
}

// crash kills brlb itself and starts it again.
func (d *show) crash(ctx context.Context, traffic *traffic) error {
	d.heading("brlb itself is killed (SIGKILL) and started again")
	digest := d.digest(ctx)
	traffic.mark()
	d.stand.Relay.ResetCounts()
	if err := d.stand.Kill(); err != nil {
		return err
	}
	sleep(ctx, 2*time.Second)
	without := traffic.requests()
	if err := d.stand.Start(); err != nil {
		return err
	}
	status, err := d.await(ctx, "brlb back", stand.Steady(4))
	if err != nil {
		return err
	}
	sleep(ctx, 2*time.Second)
	d.say("The switch forwards by itself: %d requests in the 2 s without a controller. The new\nbrlb reads what the switch holds, finds that it is right, and sends nothing.\n", without)
	sent := d.stand.Relay.FlowMods()
	d.check(sent == 0, "flow-mods on the wire: %d", sent)
	d.check(status.Pools[0].Digest == digest, "digest %s, as before", status.Pools[0].Digest)
	traffic.checkNone(d)
	return nil
}

func (d *show) digest(ctx context.Context) string {
	status, err := d.stand.API.Status(ctx)
	if err != nil || len(status.Pools) == 0 {
		return ""
	}
	return status.Pools[0].Digest
}

func (d *show) await(ctx context.Context, what string, condition func(*api.Status) bool) (*api.Status, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	return d.stand.Await(ctx, what, condition)
}

func member(s *api.Status, name string) api.Member {
	for _, m := range s.Pools[0].Members {
		if m.Name == name {
			return m
		}
	}
	return api.Member{}
}

func sleep(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}
