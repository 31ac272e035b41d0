package controller

import (
	"fmt"
	"net/netip"
	"slices"
	"sync"
	"time"

	"brlb/controller/api"
	"brlb/controller/bridge"
	"brlb/controller/config"
	"brlb/controller/state"
	"brlb/health"
)

// probeTarget is what the prober must watch for a probe of the state.
func probeTarget(cfg *config.Config, id state.ProbeID) health.Target {
	check, _ := cfg.Check(id.Check)
	address := id.Address
	if check.Port != 0 {
		address = netip.AddrPortFrom(address.Addr(), check.Port)
	}
	return health.Target{Address: address, Check: check.Check}
}

// setProbes probes what must be probed.
func (l *loop) setProbes() {
	now := probing{config: l.state.Config(), ids: l.state.Probes()}
	if now.config == l.probing.config && slices.Equal(now.ids, l.probing.ids) {
		return
	}
	targets := make(map[state.ProbeID]health.Target, len(now.ids))
	list := make([]health.Target, 0, len(now.ids))
	for _, id := range now.ids {
		target := probeTarget(now.config, id)
		targets[id] = target
		list = append(list, target)
	}
	if err := l.prober.Set(list); err != nil {
		// A file that a check names has gone, say. The old probes go on.
		if l.probeProblem != err.Error() {
			l.probeProblem = err.Error()
			l.opts.Logger.Error("probes cannot be changed; trying again and again", "err", err)
		}
		return
	}
	before := l.targets
	l.targets, l.probing, l.probeProblem = targets, now, ""
	l.probes.keep(list)
	for id, target := range targets {
		if _, known := before[id]; !known {
			l.takeKnown(id, target)
		}
	}
}

// takeKnown takes over what is known of a target that was probed before, under
// another check's name. It may be long until its verdict changes.
func (l *loop) takeKnown(id state.ProbeID, target health.Target) {
	probe, ok := l.prober.Snapshot(target)
	if !ok || probe.State == health.Unknown {
		return
	}
	l.state.SetVerdict(id, state.Verdict{
		Health: state.Health(probe.State.String()), Since: probe.Since,
		Code: probe.Last.Code.String(), Detail: probe.Last.Sentence(), Says: statement(probe.Agent),
	}, time.Now())
}

// probing is what is probed, and the configuration that says how.
type probing struct {
	config *config.Config
	ids    []state.ProbeID
}

// statement is what an endpoint says of itself, for the state.
func statement(a health.Agent) state.Statement {
	s := state.Statement{HasWeight: a.HasWeight, Percent: uint32(a.Weight)}
	if a.Mode == health.DrainMode || a.Mode == health.MaintMode {
		s.Leave = a.Mode.String()
	}
	return s
}

// probeBounds are the upper bounds, in seconds, of the histogram of probe
// durations.
var probeBounds = []float64{0.0005, 0.001, 0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5}

// probeStats counts probe results. It is fed by the prober's goroutines.
type probeStats struct {
	mu     sync.Mutex
	counts map[health.Target]*probeCount
}

type probeCount struct {
	results map[string]uint64
	seconds histogram
}

func newProbeStats() *probeStats { return &probeStats{counts: map[health.Target]*probeCount{}} }

func (p *probeStats) observe(t health.Target, r health.Result) {
	p.mu.Lock()
	defer p.mu.Unlock()
	c := p.counts[t]
	if c == nil {
		c = &probeCount{results: map[string]uint64{}, seconds: newHistogram(probeBounds)}
		p.counts[t] = c
	}
	c.results[r.Code.String()]++
	c.seconds.observe(r.Duration)
}

// keep forgets targets that are not probed any more.
func (p *probeStats) keep(wanted []health.Target) {
	p.mu.Lock()
	defer p.mu.Unlock()
	kept := make(map[health.Target]*probeCount, len(wanted))
	for _, t := range wanted {
		if c := p.counts[t]; c != nil {
			kept[t] = c
		}
	}
	p.counts = kept
}

func (p *probeStats) read(t health.Target) (api.ProbeCounts, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	c := p.counts[t]
	if c == nil {
		return api.ProbeCounts{}, false
	}
	results := make(map[string]uint64, len(c.results))
	for code, n := range c.results {
		results[code] = n
	}
	return api.ProbeCounts{Results: results, Seconds: c.seconds.read()}, true
}

// probePath knows whether probes can reach members at all. They go through the
// bridge: while the switch is away, empty or silent, a failure says nothing
// about a member.
type probePath struct {
	heard func() time.Time // when the switch last answered

	mu     sync.Mutex
	broken bool
	since  time.Time // when it was last restored
}

func newProbePath(heard func() time.Time) *probePath { return &probePath{heard: heard, broken: true} }

// switchSilence is how long the switch may be silent before a probe that timed
// out is taken for a victim of that. The switch is asked twice as often.
const switchSilence = 2 * bridge.Pulse

func (p *probePath) interrupted() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.broken = true
}

// restored notes that the switch holds what it should.
func (p *probePath) restored(now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.broken {
		p.broken, p.since = false, now
	}
}

// excuse implements health.Options.Excuse.
func (p *probePath) excuse(start, end time.Time, code health.Code) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.broken:
		return "the switch is not connected, and probes go through it"
	case start.Before(p.since):
		return "the switch has come back meanwhile, and probes go through it"
	}
	if silent := end.Sub(p.heard()); code.TimedOut() && silent > switchSilence {
		return fmt.Sprintf("the switch has not answered for %v, and probes go through it", silent.Round(time.Millisecond))
	}
	return ""
}

// histogram counts durations below each bound.
type histogram struct {
	bounds []float64
	counts []uint64
	count  uint64
	sum    float64
}

func newHistogram(bounds []float64) histogram {
	return histogram{bounds: bounds, counts: make([]uint64, len(bounds))}
}

func (h *histogram) observe(d time.Duration) {
	seconds := d.Seconds()
	h.count++
	h.sum += seconds
	for i, bound := range h.bounds {
		if seconds <= bound {
			h.counts[i]++
		}
	}
}

func (h *histogram) read() api.Histogram {
	return api.Histogram{Bounds: h.bounds, Counts: append([]uint64(nil), h.counts...), Count: h.count, Sum: h.sum}
}
