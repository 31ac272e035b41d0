package controller

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"brlb/controller/bridge"
	"brlb/controller/config"
	"brlb/controller/pipeline"
	"brlb/controller/state"
	"brlb/health"
	"brlb/openflow"
	"brlb/openflow/session"
)

// BenchmarkEvent is all that the loop does when one member of four in one pool
// goes or comes back, except for the switch's part.
func BenchmarkEvent(b *testing.B) {
	for _, n := range []int{1, 20, 200} {
		b.Run(fmt.Sprintf("pools=%d", n), func(b *testing.B) {
			l := benchLoop(b, n)
			probe := l.state.Probes()[0]
			b.ReportAllocs()
			b.ResetTimer()
			for i := range b.N {
				now := time.Now()
				l.state.SetVerdict(probe, state.Verdict{Health: []state.Health{state.Down, state.Up}[i%2], Since: now}, now)
				converge(b, l)
			}
		})
	}
}

// BenchmarkEventInLargePool is the same in one pool of the largest size.
func BenchmarkEventInLargePool(b *testing.B) {
	for _, layout := range []string{"v1", config.LayoutV2} {
		b.Run(layout, func(b *testing.B) {
			var text strings.Builder
			fmt.Fprintf(&text, "mac: 02:00:5e:00:01:02\npools:\n  p0:\n    id: 1\n    slots: 65536\n    layout: %s\n    members:\n", layout)
			for m := range 10_000 {
				fmt.Fprintf(&text, "      m%d: 10.10.%d.%d:80\n", m, m/250, m%250+1)
			}
			text.WriteString("services:\n  s0: {address: 10.1.0.1, ports: [80/tcp], pool: p0}\n")
			l := filledLoop(b, text.String())
			probe := l.state.Probes()[0]
			b.ReportAllocs()
			b.ResetTimer()
			for i := range b.N {
				now := time.Now()
				l.state.SetVerdict(probe, state.Verdict{Health: []state.Health{state.Down, state.Up}[i%2], Since: now}, now)
				converge(b, l)
			}
		})
	}
}

// benchLoop is a loop that has filled a switch with n pools of 1,024 slots.
func benchLoop(b *testing.B, n int) *loop {
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
	return filledLoop(b, text.String())
}

// filledLoop is a loop that has filled a switch with what a configuration says.
func filledLoop(b *testing.B, text string) *loop {
	b.Helper()
	cfg, err := config.Parse("bench.yaml", []byte(text))
	if err != nil {
		b.Fatal(err)
	}
	logger := slog.New(slog.DiscardHandler)
	l := newLoop(cfg, loopOptions{Logger: logger}, nil)
	l.bridge = bridge.New(bridge.Options{Bridge: cfg.Bridge, Logger: logger})
	l.path = newProbePath(l.bridge.LastHeard)
	l.prober = health.New(health.Options{})
	now := time.Now()
	if err := l.state.LoadNumbers(""); err != nil {
		b.Fatal(err)
	}
	l.loaded = true
	l.state.SetPorts([]state.Port{{Number: 1, Name: "p1", Live: true}}, now)
	for i, addr := range l.state.NextHops() {
		l.state.SetNextHop(addr, state.NextHop{MAC: openflow.MAC{2, 0, 0, 0, byte(i >> 8), byte(i)}, Port: 1}, now)
	}
	for _, probe := range l.state.Probes() {
		l.state.SetVerdict(probe, state.Verdict{Health: state.Up, Since: now}, now)
	}
	l.sw.session = 1
	l.reconcile.connected(1, pipeline.Set{})
	converge(b, l)
	return l
}

// converge is what the loop does from a fact to the confirmed table, with a
// switch that applies everything at once.
func converge(b *testing.B, l *loop) {
	l.turn(b.Context(), time.Now())
	plan, err := l.reconcile.plan(l.snapshot, time.Now())
	if err != nil || plan == nil {
		b.Fatalf("no plan: %v", err)
	}
	l.takeBundle(context.Background(), bundleDone{plan: plan, result: session.BundleResult{Outcome: session.Applied}}, time.Now())
	l.turn(b.Context(), time.Now())
	if !l.view.Load().inSync {
		b.Fatal("not in sync")
	}
}
