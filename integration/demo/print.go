package demo

import (
	"context"
	"fmt"
	"strings"
	"time"

	"brlb/controller/api"
)

func (d *show) say(format string, args ...any) {
	fmt.Fprintf(d.opts.Out, format+"\n", args...)
}

func (d *show) heading(text string) {
	d.step++
	d.say("\n── %d/%d  %s %s\n", d.step, steps, text, strings.Repeat("─", max(3, 66-len(text))))
}

// check tells whether something is as it should be, and remembers if not.
func (d *show) check(ok bool, format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	if ok {
		d.say("  ok     %s", text)
		return
	}
	d.say("  WRONG  %s", text)
	d.wrong = append(d.wrong, text)
}

// members shows who owns how many slots.
func (d *show) members(s *api.Status) {
	d.say("    member   address            state   slots")
	for _, m := range s.Pools[0].Members {
		d.say("    %-6s   %-16s   %-5s   %4d  %s", m.Name, m.Address, m.State, m.Slots, strings.Repeat("█", m.Slots/16))
	}
}

// moves shows what a change has moved.
func (d *show) moves(c *api.Change) {
	d.say("    %d of %d slots moved: %d needed, %d collateral (the least possible is %d)", c.Moves.Moved, c.Moves.Slots, c.Moves.Needed, c.Moves.Collateral, c.Moves.LowerBound)
	for _, m := range c.Members {
		d.say("    %-6s %5d -> %4d slots", m.Name, m.Before, m.After)
	}
}

func (d *show) summary(took time.Duration) {
	d.say("\n── Summary %s\n", strings.Repeat("─", 64))
	if len(d.wrong) == 0 {
		d.say("All was as it should be. It took %s.", round(took))
		return
	}
	d.say("%d things were not as they should be:", len(d.wrong))
	for _, text := range d.wrong {
		d.say("  WRONG  %s", text)
	}
}

// keep leaves everything running and says what can be done with it.
func (d *show) keep(ctx context.Context) {
	s := d.stand
	d.say(`
Everything goes on until Ctrl-C. In another terminal, as root:

  export BRLB_SOCKET=%[1]s
  %[2]s status --watch
  %[2]s slots -o wide
  %[2]s drain be1
  %[2]s enable be1
  %[2]s trace --src 10.20.0.10 --sport 40000 --seg p1
  %[2]s verify

  ip netns exec %[3]s curl -s http://10.20.0.100/
  ip netns exec %[4]s env OVS_RUNDIR=%[5]s ovs-ofctl -OOpenFlow14 dump-flows br-lb table=11
  ip netns exec %[4]s tcpdump -ni p1

brlb's log is %[6]s.`, s.Socket(), d.opts.Brlb, s.Client.Name, s.Lab.Switch.Name, s.Lab.Dir(), s.LogPath())
	<-ctx.Done()
}

func round(d time.Duration) time.Duration {
	if d < 10*time.Millisecond {
		return d.Round(10 * time.Microsecond)
	}
	return d.Round(time.Millisecond)
}

func percent(part, whole int) float64 { return 100 * float64(part) / float64(whole) }
